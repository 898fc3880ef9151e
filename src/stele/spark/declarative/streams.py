"""Records of one source: judged once, then decoded into their tables, or set aside."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa

from stele.errors import Invalid, NotInstalled
from stele.spark.decode.errors import error_structs, error_type, raise_first_error
from stele.spark.decode.jvm_expressions import ERROR, ID, VALUE
from stele.spark.decode.jvm_expressions import decoded as decoded_by_jvm
from stele.spark.decode.records import ReadPlan, ReadTarget
from stele.spark.engines.arrow import ArrowType, Column
from stele.spark.functions import to_spark_types
from stele.spark.pipeline.judging import ID_COLUMN, VERSION_COLUMN, letter_parts, names_of, version_of
from stele.spark.pipeline.schema_evolution import OWN
from stele.spark.session import need_spark

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, SparkSession

Newer = Literal["stop", "read"]
"""What becomes of records whose schema came after the run had pinned the newest one: the run stops, and the next one
reads them whole; or they are read by the pinned one, without columns that are new."""

ERROR_COLUMN: Final = f"{OWN}error"
TABLE_COLUMN: Final = f"{OWN}table"
"""Columns of the records beside `_stele_schema_id`: what is wrong with a record, else which table's it is."""
_MADE: Final = f"{OWN}made"
_LETTER: Final = ("schema_id", "byte", "code", "reason")
_LATE: Final = (
    " was registered after this run began, or in another subject: run again, or take such records with newer='read'"
)


@dataclass(frozen=True, slots=True)
class _Decode:
    """What tasks do where the engine is not the JVM's: columns in, a struct of value, id and error out."""

    reading: ReadPlan
    fail_fast: bool

    @property
    def type(self) -> ArrowType:
        number = self.reading.wire.id_type
        return pa.struct([(VALUE, self.reading.type), (ID, number), (ERROR, error_type(number))])

    def function(self) -> Callable[[Iterator[Any]], Iterator[Column]]:
        """The function of batches. Nested, for Spark asks what it is given for its name."""
        reading, fail_fast, type_ = self.reading, self.fail_fast, self.type

        def decode(batches: Iterator[Any]) -> Iterator[Column]:
            decoder = reading.decoder()
            for batch in batches:
                found = decoder.decode(*(batch if isinstance(batch, tuple) else (batch,)))
                if fail_fast:
                    raise_first_error(found)
                parts = [found.values, found.schema_ids, error_structs(found)]
                yield pa.StructArray.from_arrays(parts, fields=list(type_))

        return decode

    def column(self, spark: SparkSession, raw: Expression, headers: Expression | None) -> Expression:
        """The struct for a column of records. Nothing here asks Spark about a DataFrame: its pipelines forbid that
        where tables are defined, and the dataset that is read need not exist yet."""
        from pyspark.sql.pandas.functions import ArrowUDFType, arrow_udf

        found = decoded_by_jvm(spark, raw, self.reading, fail_fast=self.fail_fast)
        if found is not None:
            return found
        returns: Any = to_spark_types([self.type])[0]  # a struct does, the hint knows flat types only
        decode = arrow_udf(self.function(), returns, ArrowUDFType.SCALAR_ITER)
        return decode(raw) if headers is None else decode(raw, headers)


@dataclass(frozen=True, slots=True)
class Stream:
    """Records that are judged together.

    reading  its targets have the names of their tables
    records  the table of the judged records
    keep     columns of the source that come along
    stops    at a schema that was not pinned
    """

    reading: ReadPlan
    records: str
    column: str
    headers: str | None
    keep: tuple[str, ...]
    stops: bool
    fail_fast: bool

    def declare(
        self, spark: SparkSession, raw: DataFrame, kept: Mapping[str, str], format_: str | None, details: dict[str, Any]
    ) -> None:
        """Declare the records and the tables; kept says which columns tables have, and how they are called there."""
        from pyspark import pipelines as dp

        self._check(kept)
        judged = self._judged(spark, raw)
        table: Any = dp.table  # its hints lack format
        table(name=self.records, format=format_, comment="raw records, judged once")(partial(_same, judged))
        for target in self.reading.targets:
            rows = self._rows(spark, target, kept)
            table(name=target.name, format=format_, **details)(partial(_same, rows))

    def letters(self, spark: SparkSession) -> DataFrame:
        """The dead letters among the records."""
        from pyspark.sql import functions as f

        error = f.col(ERROR_COLUMN)
        parts = letter_parts(error)
        stored = spark.readStream.table(self.records).where(error.isNotNull())
        return stored.select(_named(self.column), *self._along(), *parts)

    def _along(self) -> list[Expression]:
        names = dict.fromkeys([*([self.headers] if self.headers else []), *self.keep])
        return [_named(name) for name in names if name != self.column]

    def _judged(self, spark: SparkSession, raw: DataFrame) -> DataFrame:
        from pyspark.sql import functions as f

        made = _Decode(self.reading, self.fail_fast).column(spark, *self._framed())
        value, number, error = (f.col(_MADE)[part] for part in (VALUE, ID, ERROR))
        good = error.isNull()
        if self.stops:
            known = sorted({name for schema in self._schemas() for name in names_of(schema)})
            strange = good & number.isNotNull() & ~number.cast("string").isin(*known)
            number = f.when(strange, f.raise_error(f.concat(f.lit("schema id "), number, f.lit(_LATE)))).otherwise(
                number
            )
        whose = f.lit(self.reading.targets[0].name)
        if self.reading.several:
            whose = f.coalesce(
                *(f.when(value[each.name].isNotNull(), f.lit(each.name)) for each in self.reading.targets)
            )
        own = [number.alias(ID_COLUMN), error.alias(ERROR_COLUMN), f.when(good, whose).alias(TABLE_COLUMN)]
        return raw.select("*", made.alias(_MADE)).select(_named(self.column), *self._along(), *own)

    def _rows(self, spark: SparkSession, target: ReadTarget, kept: Mapping[str, str]) -> DataFrame:
        """A table's records, decoded once more: this time each is known to be good."""
        from pyspark.sql import functions as f

        mine = _named(self.column).isNotNull() & (f.col(TABLE_COLUMN) == target.name)
        reading = replace(self.reading, targets=(target,), several=False)
        made = _Decode(reading, fail_fast=True).column(spark, *self._framed())
        own = [f.col(ID_COLUMN), version_of(target.pinned, f.col(ID_COLUMN)).alias(VERSION_COLUMN)]
        along = [_named(name).alias(alias) for name, alias in kept.items()]
        stored = spark.readStream.table(self.records).where(mine)
        return stored.select("*", made.alias(_MADE)).select(f"{_MADE}.{VALUE}.*", *own, *along)

    def _framed(self) -> tuple[Expression, Expression | None]:
        return _named(self.column), _named(self.headers) if self.headers else None

    def _schemas(self) -> list[Any]:
        return [schema for target in self.reading.targets for schema in target.pinned.snapshot.schemas]

    def _check(self, kept: Mapping[str, str]) -> None:
        """Raise `Invalid` for what makes no table."""
        for target in self.reading.targets:
            type_ = replace(self.reading, targets=(target,), several=False).type
            if not pa.types.is_struct(type_):
                raise Invalid(f"the schema of {target.pinned.subject} is no record, so it has no columns")
            names = {field.name.casefold() for field in type_}
            taken = [name for name in kept.values() if name.casefold() in names]
            taken += [field.name for field in type_ if field.name.casefold().startswith(OWN)]
            if taken:
                raise Invalid(f"{target.pinned.subject} has a field {taken[0]!r} already: the column needs the name")
        if self.column in _LETTER or any(name in _LETTER for name in self.keep):
            raise Invalid(f"dead letters have columns {', '.join(_LETTER)} of their own: rename those of the source")


def declare_letters(name: str, flows: Mapping[str, DataFrame], format_: str | None) -> None:
    """Declare the table of dead letters, into which each of the flows goes."""
    from pyspark import pipelines as dp

    create: Any = dp.create_streaming_table
    create(name, format=format_, comment="records that could not be decoded, and why")
    for source, letters in flows.items():
        flow = re.sub(r"\W", "_", f"{name}_of_{source}")  # a flow's name has one part
        dp.append_flow(target=name, name=flow)(partial(_same, letters))


def session() -> SparkSession:
    """The session that loads the definitions."""
    from pyspark.sql import SparkSession

    return SparkSession.active()


def need_pipelines() -> None:
    """Raise `NotInstalled` where Spark has no declarative pipelines."""
    need_spark()
    try:
        import pyspark.pipelines  # noqa: F401 - an optional part, only tried
    except ImportError as missing:
        what = "Spark's declarative pipelines (PySpark 4.1 or newer, with Spark Connect)"
        raise NotInstalled(what, "connect") from missing


def _same(df: DataFrame) -> DataFrame:
    return df


def _named(name: str) -> Expression:
    """A column by its name, whatever is in it."""
    from pyspark.sql import functions as f

    return f.col("`" + name.replace("`", "``") + "`")
