"""Connectors: where the records of a stream are, and how Spark reads and writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from stele.errors import Invalid, NotFound
from stele.spark.session import MISSING_KAFKA
from stele.spark.types.names import quote_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

EARLIEST, LATEST = "earliest", "latest"
_TEXTS: Final = {"json", "csv"}
"""Formats that hold bytes as base64 text."""
_GLOB: Final = frozenset("*?[{")


class Connector(Protocol):
    """Reads and writes the records of one stream at one place.

    `column` is the column with the records, and `headers` the column with their headers ('' if there are none).
    """

    @property
    def column(self) -> str:
        """The column with the records."""
        ...

    @property
    def headers(self) -> str:
        """The column with the headers of the records; '' for none."""
        ...

    def read(self, spark: SparkSession, *, streaming: bool) -> DataFrame:
        """Return the records with all other columns of the source. Raises `Invalid`, `NotFound`."""
        ...

    def write(self, df: DataFrame) -> None:
        """Append records; df has the binary column of the records, and others. Raises `Invalid`."""
        ...

    def writable_columns(self, spark: SparkSession) -> tuple[tuple[str, ...], bool]:
        """Return the other columns that can be written beside the records, and whether all of them must be written."""
        ...

    def __str__(self) -> str:
        """Return a short description of the place, without secrets."""
        ...


@dataclass(frozen=True)
class KafkaConnector:
    """A topic, through Spark's Kafka connector. `starting` is `earliest`, `latest` or JSON of offsets."""

    topic: str
    bootstrap: str
    options: Mapping[str, str]
    column: str
    headers: str
    starting: str

    def read(self, spark: SparkSession, *, streaming: bool) -> DataFrame:
        """Read the topic; see `Connector`. A batch query with `starting` `latest` reads from the earliest offset."""
        start = self.starting
        if start not in {EARLIEST, LATEST} and not start.lstrip().startswith("{"):
            raise Invalid(f"starting is earliest, latest or the JSON of offsets, not {start!r}")
        if not streaming and start == LATEST:
            start = EARLIEST
        own = {"kafka.bootstrap.servers": self.bootstrap, "subscribe": self.topic, "startingOffsets": start}
        if self.headers:
            own["includeHeaders"] = "true"
        reader = spark.readStream if streaming else spark.read
        with _explain_missing_kafka():
            df = reader.format("kafka").options(**own, **self._more(own)).load()
            df.columns  # noqa: B018 - on Spark Connect only this asks
            return df

    def write(self, df: DataFrame) -> None:
        """Append records to the topic; see `Connector`."""
        own = {"kafka.bootstrap.servers": self.bootstrap, "topic": self.topic}
        with _explain_missing_kafka():
            df.withColumnRenamed(self.column, "value").write.format("kafka").options(**own, **self._more(own)).save()

    def writable_columns(self, spark: SparkSession) -> tuple[tuple[str, ...], bool]:
        """Return key, partition and headers, which are optional; see `Connector`."""
        del spark
        return ("key", "partition", "headers"), False

    def _more(self, own: Mapping[str, str]) -> dict[str, str]:
        mine = {name.lower() for name in own}
        return {name: value for name, value in self.options.items() if name.lower() not in mine}

    def __str__(self) -> str:
        return f"topic {self.topic} at {self.bootstrap}"


@contextmanager
def _explain_missing_kafka() -> Iterator[None]:
    """Raise `Invalid` with the package to add when Spark has no Kafka connector."""
    from pyspark import __version__
    from pyspark.errors import AnalysisException

    try:
        yield
    except AnalysisException as error:
        if error.getCondition() not in MISSING_KAFKA:
            raise
        line = ".".join(__version__.split(".")[:3])
        raise Invalid(
            "this session of Spark has no connector for Kafka: start it with "
            f"spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10_2.13:{line}"
        ) from None


@dataclass(frozen=True)
class FilesConnector:
    """Files of one folder in a format Spark reads. In JSON and CSV records are base64 text."""

    path: str
    format: str
    options: Mapping[str, str]
    column: str
    headers: str
    starting: str

    def read(self, spark: SparkSession, *, streaming: bool) -> DataFrame:
        """Read the files; see `Connector`. An empty folder is a stream without records."""
        _require_earliest(self.starting)
        if "://" not in self.path and not set(self.path) & _GLOB and not Path(self.path).exists():
            raise NotFound(f"there is nothing at {self.path} to read records from")
        reader = self._reader(spark.read)
        df: DataFrame = reader.load(self.path) if self._has_files() else reader.schema(self._least()).load(self.path)
        if streaming:
            df = self._reader(spark.readStream).schema(df.schema).load(self.path)
        return self._bytes(df)

    def write(self, df: DataFrame) -> None:
        """Append records as new files; see `Connector`."""
        from pyspark.sql import functions as f

        if self.format.lower() == "binaryfile":
            raise Invalid("Spark does not write binaryFile: INSERT needs files of another format")
        if self._text():
            df = df.withColumn(self.column, f.base64(f.col(quote_name(self.column))))
        writer = df.write.format(self.format).mode("append").options(**self.options)
        (writer.option("header", "true") if self.format.lower() == "csv" else writer).save(self.path)

    def writable_columns(self, spark: SparkSession) -> tuple[tuple[str, ...], bool]:
        """Return all other columns, which are required, because files of one folder have the same columns."""
        return _columns_beside(self, spark), True

    def _reader(self, reader: Any) -> Any:
        reader = reader.format(self.format).options(**self.options)
        return reader.option("header", "true") if self.format.lower() == "csv" else reader

    def _text(self) -> bool:
        return self.format.lower() in _TEXTS

    def _least(self) -> str:
        return f"{quote_name(self.column)} {'string' if self._text() else 'binary'}"

    def _has_files(self) -> bool:
        """Return whether there is a file to learn the columns from. True for a path that is not a local folder."""
        folder = Path(self.path)
        if not folder.is_dir():
            return True
        return any(path.is_file() and not _is_hidden(path.relative_to(folder)) for path in folder.rglob("*"))

    def _bytes(self, df: DataFrame) -> DataFrame:
        from pyspark.sql import functions as f
        from pyspark.sql.types import StringType

        if self._text() and self.column in df.columns and isinstance(df.schema[self.column].dataType, StringType):
            return df.withColumn(self.column, f.unbase64(f.col(quote_name(self.column))))
        return df

    def __str__(self) -> str:
        return f"{self.format} files of {self.path}"


@dataclass(frozen=True)
class SourceConnector:
    """Any Spark data source, by its format name, with its own options."""

    format: str
    options: Mapping[str, str]
    column: str
    headers: str
    starting: str

    def read(self, spark: SparkSession, *, streaming: bool) -> DataFrame:
        """Read the source; see `Connector`."""
        reader = _start_reading(self.starting, spark, streaming=streaming)
        return reader.format(self.format).options(**self.options).load()

    def write(self, df: DataFrame) -> None:
        """Append records to the source; see `Connector`."""
        df.write.format(self.format).mode("append").options(**self.options).save()

    def writable_columns(self, spark: SparkSession) -> tuple[tuple[str, ...], bool]:
        """Return all other columns, which are optional; see `Connector`."""
        return _columns_beside(self, spark), False

    def __str__(self) -> str:
        return f"source {self.format}"


@dataclass(frozen=True)
class TableConnector:
    """A table or view of the session's catalogues."""

    name: str
    options: Mapping[str, str]
    column: str
    headers: str
    starting: str

    def read(self, spark: SparkSession, *, streaming: bool) -> DataFrame:
        """Read the table; see `Connector`."""
        return _start_reading(self.starting, spark, streaming=streaming).options(**self.options).table(self.name)

    def write(self, df: DataFrame) -> None:
        """Append records to the table; see `Connector`."""
        df.write.mode("append").options(**self.options).saveAsTable(self.name)

    def writable_columns(self, spark: SparkSession) -> tuple[tuple[str, ...], bool]:
        """Return all other columns, which are required; see `Connector`."""
        return _columns_beside(self, spark), True

    def __str__(self) -> str:
        return f"table {self.name}"


def _is_hidden(path: Path) -> bool:
    """Return whether Spark ignores a file, because a part of its path is hidden.

    A part is hidden if it begins with `.`, or with `_` and is no partition (`_name=value`).
    """
    return any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in path.parts)


def _columns_beside(connector: Connector, spark: SparkSession) -> tuple[str, ...]:
    return tuple(name for name in connector.read(spark, streaming=False).columns if name != connector.column)


def _start_reading(starting: str, spark: SparkSession, *, streaming: bool) -> DataFrameReader | DataStreamReader:
    """Return the session's reader. Raises `Invalid` unless `starting` is `earliest`."""
    _require_earliest(starting)
    return spark.readStream if streaming else spark.read


def _require_earliest(starting: str) -> None:
    if starting != EARLIEST:
        raise Invalid("starting works for Kafka topics only: other sources are read from the beginning")
