"""The kinds of tables a pipeline writes: one module for each, all the same to it (`base.Sink`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stele.spark.pipeline.config import TableConfig
from stele.spark.pipeline.sinks.base import Sink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Sink", "open_sink"]


def open_sink(spark: SparkSession, config: TableConfig, name: str) -> Sink:
    """Return a table of the configured kind, which need not exist yet.

    name   `namespace.table`
    Raises `NotInstalled` when its library is missing here, `Invalid`, with what to set, when the session lacks what it
    needs, `StoreError` when its catalogue cannot be reached.
    """
    match config.kind:
        case "iceberg":
            from stele.spark.pipeline.sinks.iceberg import IcebergSink

            return IcebergSink(spark, config, name)
        case "iceberg-spark":
            from stele.spark.pipeline.sinks.iceberg_spark import IcebergSparkSink

            return IcebergSparkSink(spark, config, name)
        case "delta":
            from stele.spark.pipeline.sinks.delta import DeltaSink

            return DeltaSink(spark, config, name)
        case "parquet":
            from stele.spark.pipeline.sinks.parquet import ParquetSink

            return ParquetSink(spark, config, name)
