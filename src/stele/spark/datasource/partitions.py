"""The parts of a read that go to tasks, and how a stretch of the journal is cut into them and read."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql.datasource import InputPartition

from stele.spark.datasource.feed import JournalFeed
from stele.spark.datasource.history import KnownVersion
from stele.spark.datasource.tables import (
    Row,
    Scope,
    journal_row,
)

RECORDS = 10_000
"""Records of the journal one task reads."""


class JournalPartition(InputPartition):
    """Changes behind one sequence number up to another."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope


class RowsPartition(InputPartition):
    """Rows that are known already."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows


class VersionsPartition(InputPartition):
    """Versions whose texts are to be fetched."""

    def __init__(self, versions: list[KnownVersion]) -> None:
        self.versions = versions


def split_scope(scope: Scope, until: int) -> list[InputPartition]:
    """A scope of the journal up to a sequence number, in parts for tasks."""
    return [
        JournalPartition(scope.between(after, min(after + RECORDS, until)))
        for after in range(scope.after, until, RECORDS)
    ]


def read_stretch(feed: JournalFeed, scope: Scope) -> Iterator[Row]:
    """Its changes as rows."""
    return (journal_row(entry) for entry in feed.changes(scope) if scope.ids is None or entry.schema_id in scope.ids)
