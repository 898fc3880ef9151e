"""Read files and tables with framed records, as commands name them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from stele.errors import Invalid, NotFound
from stele.spark.data_audit.aggregation import RecordColumn
from stele.spark.session import spark_failures

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE: Final = "table"
"""Format name for a table of the session's catalogues, in place of a path."""
TEXTS: Final = frozenset({"json", "csv"})
"""Formats that hold bytes as base64 text."""
_KAFKA: Final = ("topic", "partition", "offset")
_FILE, _ROW = "file", "row"


def read_records(
    spark: SparkSession,
    path: str,
    format: str = "parquet",  # noqa: A002 - the word of the whole package for it
    *,
    column: str = "value",
    headers: str | None = None,
    timestamp: str | None = None,
    position: Sequence[str] = (),
) -> RecordColumn:
    """Return the records of a file, a folder or a table.

    format    any format that Spark reads (`parquet`, `orc`, `json`, `csv`, `avro` with Spark's package for it …);
              `binaryFile`: each file is one record, in the column `content`; `table`: path is the name of a table
    column    the column with the records; text in JSON and CSV is base64
    position  columns that locate a record; by default topic, partition and offset if they exist, else file (and row)

    Raises `NotFound` for a path that does not exist, `Invalid` without the column, `JobFailed`.
    """
    _check_exists(path, format)
    with spark_failures():
        df = load_data(spark, path, format)
        if column not in df.columns:
            raise Invalid(f"there is no column {column!r}: the data have {', '.join(df.columns)}")
        where = tuple(position)
        if not where:
            df, where = _add_positions(df, format)
        df = _decode_base64(df, column, format)
    return RecordColumn(df, column, headers, timestamp, where)


def read_stored(spark: SparkSession, path: str, format: str, column: str) -> DataFrame:  # noqa: A002 - as above
    """Return a file, a folder or a table with records as a DataFrame, without added columns.

    Raises what `read_records` raises.
    """
    _check_exists(path, format)
    with spark_failures():
        df = load_data(spark, path, format)
        if column not in df.columns:
            raise Invalid(f"there is no column {column!r}: the data have {', '.join(df.columns)}")
        return _decode_base64(df, column, format)


def _decode_base64(df: DataFrame, column: str, format_: str) -> DataFrame:
    """Decode the column of records from base64, if it is text in a text format."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StringType

    if format_ not in TEXTS or not isinstance(df.schema[column].dataType, StringType):
        return df
    return df.withColumn(column, f.unbase64(f.col(f"`{column.replace('`', '``')}`")))


def read_raw(spark: SparkSession, path: str, format: str, column: str | None = None) -> DataFrame:  # noqa: A002 - as above
    """Return data without frames, from a file, a folder or a table.

    JSON is text with one document per line, in the column `value`, unless `column` names one of its columns. CSV has
    columns of texts, named by its first line. Raises `NotFound`, `JobFailed`.
    """
    from pyspark.sql import functions as f

    _check_exists(path, format)
    with spark_failures():
        if format == "json" and column is None:
            return spark.read.text(path).where(f.trim("value") != "")
        return load_data(spark, path, format)


def load_data(spark: SparkSession, path: str, format_: str) -> DataFrame:
    """Return a path or table as Spark reads it; the first line of CSV has the column names."""
    if format_ == TABLE:
        return spark.read.table(path)
    reader = spark.read.format(format_)
    return (reader.option("header", "true") if format_ == "csv" else reader).load(path)


def _check_exists(path: str, format_: str) -> None:
    if "://" not in path and format_ != TABLE and not set(path) & set("*?[{") and not Path(path).exists():
        raise NotFound(f"there is nothing at {path} to read records from")


def _add_positions(df: DataFrame, format_: str) -> tuple[DataFrame, tuple[str, ...]]:
    """Return the data with columns that locate each record, and the names of these columns.

    None are added if the data have columns of their own for it.
    """
    from pyspark.sql import functions as f

    own = tuple(name for name in _KAFKA if name in df.columns)
    if "offset" in own or format_ == TABLE:
        return df, own
    if format_ == "binaryFile":
        return df, ("path",)
    added = {_FILE: f.col("_metadata.file_name")}
    if format_ == "parquet":
        added[_ROW] = f.col("_metadata.row_index")
    added = {name: column for name, column in added.items() if name not in df.columns}
    return df.withColumns(added), tuple(added)
