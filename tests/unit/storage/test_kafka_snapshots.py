"""Snapshots among the messages of their topic."""

from __future__ import annotations

import pytest

from stele.storage.kafka import snapshots
from stele.storage.kafka.client import TopicMessage
from stele.storage.kafka.snapshots import cut_snapshot, find_whole


@pytest.fixture
def older_and_newer(monkeypatch: pytest.MonkeyPatch) -> list[TopicMessage]:
    """The messages of two complete snapshots."""
    monkeypatch.setattr(snapshots, "PART_BYTES", 4)
    rows = [*cut_snapshot(10, b"an older one", "a", 1), *cut_snapshot(20, b"a newer one", "b", 1)]
    return [TopicMessage(offset, key, value, None) for offset, (key, value) in enumerate(rows)]


def test_only_the_newest_keeps_its_text(older_and_newer: list[TopicMessage]) -> None:
    """Older snapshots keep only their keys, for the tombstones, and not their data."""
    older, newer = find_whole(older_and_newer, "here")
    assert (older.seq, older.pieces, len(older.keys)) == (10, [], 4)
    assert (newer.seq, b"".join(newer.pieces)) == (20, b"a newer one")


def test_the_order_of_writers_does_not_matter(older_and_newer: list[TopicMessage]) -> None:
    """An older snapshot that a slow node writes after a newer one does not replace it."""
    older, newer = find_whole([*older_and_newer[4:], *older_and_newer[:4]], "here")
    assert (older.seq, older.pieces) == (10, [])
    assert b"".join(newer.pieces) == b"a newer one"


def test_a_snapshot_counts_when_its_end_is_there(older_and_newer: list[TopicMessage]) -> None:
    """Parts without an end, an end without all parts, and a snapshot with a tombstone do not count."""
    (older,) = find_whole(older_and_newer[:-1], "here")
    assert b"".join(older.pieces) == b"an older one"
    assert [row.seq for row in find_whole(older_and_newer[1:], "here")] == [20]
    tombstone = TopicMessage(99, older_and_newer[3].key, None, None)
    assert [row.seq for row in find_whole([*older_and_newer, tombstone], "here")] == [20]
