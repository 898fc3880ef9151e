"""Ways along the chains of the model: from an ordinal to its version, a content to its gids, a gid to its uses."""

from __future__ import annotations

from collections.abc import Iterator

from stele.core.model import Content, GlobalId, Lane, Subject, Version


def find_version(subject: Subject, ordinal: int) -> Version | None:
    """The version of that number in this incarnation, whatever its life; versions are kept in ascending order."""
    rows = subject.versions
    if 0 < ordinal <= len(rows) and rows[ordinal - 1].ordinal == ordinal:
        return rows[ordinal - 1]
    low, high = 0, len(rows)
    while low < high:
        middle = (low + high) // 2
        if rows[middle].ordinal < ordinal:
            low = middle + 1
        else:
            high = middle
    return rows[low] if low < len(rows) and rows[low].ordinal == ordinal else None


def next_lane_version(subject: Subject | None, lane: Lane, ordinal: int) -> int:
    """The number a new version gets in its lane: its ordinal while there is one lane, else one above the highest."""
    if subject is None or subject.lane is None or (subject.lane == lane and subject.lane_high is None):
        return ordinal
    return 1 if subject.lane_high is None else subject.lane_high.get(lane, 0) + 1


def twins_of(content: Content | None) -> Iterator[Content]:
    """The content and what the same text is in further languages."""
    while content is not None:
        yield content
        content = content.twin


def ids_of(content: Content) -> list[GlobalId]:
    """Every gid of a content, in all spaces, newest first."""
    found, schema = [], content.ids
    while schema is not None:
        found.append(schema)
        schema = schema.next
    return found


def uses_of(schema: GlobalId) -> list[Version]:
    """Every version a gid stands for, newest first."""
    found, version = [], schema.uses
    while version is not None:
        found.append(version)
        version = version.next_use
    return found


def uses_in(subject: Subject | None, schema: GlobalId) -> list[Version]:
    """The versions of a subject a gid stands for, ascending, in as many steps as the shorter way to them has."""
    if subject is None:
        return []
    found: list[Version] = []
    use = schema.uses
    for _ in subject.versions:
        if use is None:
            return sorted(found, key=lambda row: row.ordinal)
        if use.subject is subject:
            found.append(use)
        use = use.next_use
    return [row for row in subject.versions if row.schema is schema]
