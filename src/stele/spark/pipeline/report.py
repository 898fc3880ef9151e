"""What a pipeline says about its work."""

from __future__ import annotations

import msgspec


class BatchReport(msgspec.Struct, frozen=True):
    """One micro-batch.

    batch           Spark's number of it, from 0
    rows            rows added to the table
    dead_letters    rows added to the dead-letter table
    tombstones      null records, which become no row
    reader_version  version of the subject whose columns the table has
    records         good records by the schema id they were written with
    columns_added   dotted paths of columns the table gained
    replayed        the batch had been committed, or written and not yet committed, by an earlier run
    seconds         how long it took
    """

    batch: int
    rows: int = 0
    dead_letters: int = 0
    tombstones: int = 0
    reader_version: int = 0
    records: dict[int, int] = {}
    columns_added: tuple[str, ...] = ()
    replayed: bool = False
    seconds: float = 0.0


class PipelineReport(msgspec.Struct, frozen=True):
    """A whole run: the sums over its batches, and the reader's versions used, in order."""

    batches: int = 0
    rows: int = 0
    dead_letters: int = 0
    tombstones: int = 0
    versions: tuple[int, ...] = ()
    columns_added: tuple[str, ...] = ()
    seconds: float = 0.0

    def plus(self, batch: BatchReport) -> PipelineReport:
        """The report with one more batch."""
        seen = (*self.versions, batch.reader_version) if batch.reader_version else self.versions
        return PipelineReport(
            batches=self.batches + 1,
            rows=self.rows + batch.rows,
            dead_letters=self.dead_letters + batch.dead_letters,
            tombstones=self.tombstones + batch.tombstones,
            versions=tuple(dict.fromkeys(seen)),
            columns_added=self.columns_added + batch.columns_added,
            seconds=self.seconds + batch.seconds,
        )
