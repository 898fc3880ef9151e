"""What a pipeline says about its work."""

from __future__ import annotations

import msgspec

MOST_REASONS = 20
"""Reasons told apart in the report of one batch."""


class BatchReport(msgspec.Struct, frozen=True):
    """One micro-batch.

    batch           Spark's number of it, from 0; of a replay its own number
    at              when it was done, seconds since 1970
    rows            rows added to the tables
    dead_letters    rows added to the dead-letter table
    tombstones      null records, which become no row
    tables          rows by table
    versions        version by subject whose columns the tables have
    records         good records by what names their writer's schema: its id, or what the wire has instead
    codes           dead letters by the name of their `ErrorCode`
    reasons         dead letters by reason; of very many different ones the most frequent
    columns_added   dotted paths of columns the tables gained
    replayed        the batch had been begun, perhaps finished, by an earlier run
    seconds         how long it took
    """

    batch: int
    at: float = 0.0
    rows: int = 0
    dead_letters: int = 0
    tombstones: int = 0
    tables: dict[str, int] = {}
    versions: dict[str, int] = {}
    records: dict[str, int] = {}
    codes: dict[str, int] = {}
    reasons: dict[str, int] = {}
    columns_added: tuple[str, ...] = ()
    replayed: bool = False
    seconds: float = 0.0


class PipelineReport(msgspec.Struct, frozen=True):
    """The sums over batches: of one run, or of all that a checkpoint has seen.

    versions   versions used, in order, by subject
    first      when the first batch was done, seconds since 1970; last: the newest one
    through    number of the newest batch, -1 for none
    """

    batches: int = 0
    rows: int = 0
    dead_letters: int = 0
    tombstones: int = 0
    tables: dict[str, int] = {}
    versions: dict[str, tuple[int, ...]] = {}
    records: dict[str, int] = {}
    columns_added: tuple[str, ...] = ()
    seconds: float = 0.0
    first: float = 0.0
    last: float = 0.0
    through: int = -1

    def add_batch(self, batch: BatchReport) -> PipelineReport:
        """The report with one more batch."""
        seen = {
            subject: tuple(dict.fromkeys((*self.versions.get(subject, ()), version)))
            for subject, version in batch.versions.items()
        }
        return PipelineReport(
            batches=self.batches + 1,
            rows=self.rows + batch.rows,
            dead_letters=self.dead_letters + batch.dead_letters,
            tombstones=self.tombstones + batch.tombstones,
            tables=summed(self.tables, batch.tables),
            versions=self.versions | seen,
            records=summed(self.records, batch.records),
            columns_added=self.columns_added + batch.columns_added,
            seconds=self.seconds + batch.seconds,
            first=self.first or batch.at,
            last=batch.at,
            through=batch.batch,
        )


def summed(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    """The sums by key."""
    return {key: one.get(key, 0) + other.get(key, 0) for key in (*one, *(key for key in other if key not in one))}
