"""The interface of a pipeline's table (`Sink`), and one module for each kind of table."""

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
    """One table. Other writers can change it at any time; only one pipeline at a time uses an application name."""

    @property
    def name(self) -> str:
        """Name of the table in messages and reports."""
        ...

    @property
    def capabilities(self) -> TableCapabilities:
        """The changes that the table supports."""
        ...

    def load_columns(self) -> StructType | None:
        """Return its columns now, or None if the table does not exist."""
        ...

    def apply_changes(self, changes: Sequence[ColumnChange], wanted: StructType) -> None:
        """Apply planned changes (`create`, `add`, `widen`, `rename`, `comment`), so that the wanted columns fit.

        Changes that another writer made meanwhile are no error. Columns that are created or added are nullable, at
        every depth, because old rows have no value in them. Raises `Conflict` when the table cannot take the changes.
        """
        ...

    def append_batch(self, rows: DataFrame, application: str, batch: int) -> None:
        """Append a batch's rows, all or none, and only once. Does nothing if the batch is in the table already.

        `rows` has exactly the columns of the table (`load_columns()`), in its order. Batches of one application come in
        order. The last one can come again, also after a crash in the middle of this call, and also from another
        process.
        """
        ...

    def read_table(self) -> DataFrame:
        """Return the table. Raises `NotFound` if it does not exist."""
        ...


def open_sink(spark: SparkSession, config: TableConfig, name: str) -> Sink:
    """Return the sink of a table of the configured kind. The table need not exist yet.

    name   `namespace.table`
    Raises `NotInstalled` when its library is missing, `Invalid` with the settings to add when the session lacks what
    the table needs, and `StoreError` when its catalogue cannot be reached.
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
