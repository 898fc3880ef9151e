"""The stream of raw records, with the same columns for every kind of source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import pyarrow as pa

from stele.errors import Invalid, NotInstalled
from stele.spark.engines.arrow import ArrowType
from stele.spark.functions import to_spark_types
from stele.spark.pipeline.config import PipelineConfig, SourceConfig
from stele.spark.session import MISSING_KAFKA
from stele.spark.types.names import quote_name
from stele.spark.wires.base import HEADERS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RAW: Final[Mapping[str, ArrowType]] = {
    "value": pa.binary(),
    "key": pa.binary(),
    "headers": HEADERS,
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "source": pa.string(),
}
"""Columns of raw records with their types. `source` is the file. Columns that a source does not have are null."""


def read_raw_stream(spark: SparkSession, config: PipelineConfig) -> DataFrame:
    """Return the stream with the columns of `RAW`. Raises `NotInstalled` if the session has no Kafka connector."""
    return _read_kafka(spark, config.source) if config.source.kind == "kafka" else _read_files(spark, config.source)


def _read_files(spark: SparkSession, source: SourceConfig) -> DataFrame:
    from pyspark.sql import functions as f

    reader = spark.readStream.format(source.format)
    if source.max_files_per_trigger:
        reader = reader.option("maxFilesPerTrigger", source.max_files_per_trigger)
    if source.format == "binaryFile":
        files = reader.load(source.path)
        return _select_raw_columns(files.select(f.col("content").alias("value"), f.col("path").alias("source")))
    column = quote_name(source.column)
    files = reader.options(**source.options).schema(f"{column} binary").load(source.path)
    return _select_raw_columns(files.select(f.col(column).alias("value"), f.col("_metadata.file_path").alias("source")))


def _read_kafka(spark: SparkSession, source: SourceConfig) -> DataFrame:
    from pyspark.errors import AnalysisException

    which = ("subscribePattern", source.pattern) if source.pattern else ("subscribe", ",".join(source.topics))
    options = {
        "kafka.bootstrap.servers": source.bootstrap,
        which[0]: which[1],
        "startingOffsets": source.starting,
        "includeHeaders": "true",
    }
    if source.max_records_per_trigger:
        options["maxOffsetsPerTrigger"] = str(source.max_records_per_trigger)
    try:
        return _select_raw_columns(spark.readStream.format("kafka").options(**(options | source.options)).load())
    except AnalysisException as error:
        if error.getCondition() not in MISSING_KAFKA:
            raise
        package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark.version}"
        raise NotInstalled(
            f"Spark's connector for Kafka in the session (spark.packages = [{package!r}] in the pipeline's file)",
            "spark",
        ) from error


def _select_raw_columns(df: DataFrame) -> DataFrame:
    """Return the columns of `RAW`, null where the source does not have them."""
    from pyspark.sql import functions as f

    columns = {name: f.col(name) if name in df.columns else f.lit(None) for name in RAW}
    types = to_spark_types(list(RAW.values()))
    return df.select(*(columns[name].cast(type_).alias(name) for name, type_ in zip(RAW, types, strict=True)))


def find_file_without_column(spark: SparkSession, source: SourceConfig, files: Iterable[str]) -> str | None:
    """Return the first of the files that lacks the binary column, or None.

    Spark reads the records of such a file as null, so they look like tombstones.
    """
    for file in sorted(files):
        columns = spark.read.format(source.format).load(unquote(file)).columns
        if source.column.casefold() not in (name.casefold() for name in columns):
            return file
    return None


def check_files(df: DataFrame, source: SourceConfig) -> None:
    """Raise `Invalid` when a file of a batch lacks the binary column."""
    from pyspark.sql import functions as f

    if source.kind != "files" or source.format == "binaryFile":
        return
    blank = df.groupBy("source").agg(f.count("value").alias("filled")).where("filled = 0")
    missing = find_file_without_column(df.sparkSession, source, (row.source for row in blank.collect()))
    if missing is not None:
        raise Invalid(f"{missing} has no column {source.column!r}")
