"""What a pipeline asks of a table, whatever keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from stele.spark.pipeline.schema_evolution import ColumnChange, TableCapabilities

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


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
