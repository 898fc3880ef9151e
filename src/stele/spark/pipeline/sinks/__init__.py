"""What a pipeline asks of a table (`Sink`), and the kinds of tables there are: one module for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from stele.spark.pipeline.config import TableConfig
from stele.spark.pipeline.schema_evolution import ColumnChange, TableCapabilities

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["Sink", "open_sink"]


class Sink(Protocol):
    """One table. Other writers may change it at any time; only one pipeline at a time has one application's name."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def capabilities(self) -> TableCapabilities:
        """Which changes it can take."""
        ...

    def load_columns(self) -> StructType | None:
        """Its columns now, None while there is no table."""
        ...

    def apply_changes(self, changes: Sequence[ColumnChange], wanted: StructType) -> None:
        """Apply planned changes (`create`, `add`, `widen`, `rename`), so that it holds what is wanted.

        Changes that another writer made meanwhile are no error. Columns that are created or added are nullable, at
        every depth: old rows have nothing in them. Raises `Conflict` when the table cannot take them.
        """
        ...

    def append_batch(self, rows: DataFrame, application: str, batch: int) -> None:
        """Add a batch's rows, all or none, and once: nothing happens when that batch is in the table already.

        rows have exactly the columns of the table (`columns()`), in its order. Batches of one application come in
        order; the last one may come again, also after a crash in the middle of this call, also in another process.
        """
        ...

    def read_table(self) -> DataFrame:
        """Return the table. Raises `NotFound` while there is none."""
        ...


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
