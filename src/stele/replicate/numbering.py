"""Version numbers for versions of sources that have names instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from msgspec.structs import replace

from stele.protocol.replication import ReplicaVersion, SubjectName


def number_versions(rows: Sequence[ReplicaVersion], there: Mapping[str, ReplicaVersion]) -> list[ReplicaVersion]:
    """Return the rows with a number for each one that has none (0).

    A version that the target has keeps the number it has there. New ones get numbers after the highest of their
    subject, in the order of their times and then of their URIs.

    Args:
        rows: Versions of the source, under the target's names.
        there: Versions of the target, by uid.
    """
    if all(row.version for row in rows):
        return list(rows)
    highest: dict[SubjectName, int] = {}
    for row in chain(rows, there.values()):
        highest[row.place] = max(row.version, highest.get(row.place, 0))
    numbers: dict[str, int] = {}
    for row in sorted((row for row in rows if not row.version), key=lambda row: (row.at, row.uri)):
        if row.uid in there:
            numbers[row.uid] = there[row.uid].version
        else:
            highest[row.place] += 1
            numbers[row.uid] = highest[row.place]
    return [row if row.version else replace(row, version=numbers[row.uid]) for row in rows]
