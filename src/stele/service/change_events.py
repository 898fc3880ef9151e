"""Changes of the registry as events, derived from the log, for followers that update their copies.

Each element that a record changes gives one event: a version, else its subject, else its namespace, else the registry.
An event has a position in the log, so a follower that lost its connection continues where it was.

Source: docs/protocols/cncf.md#events
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from stele.core import events as ev
from stele.core.access import REGISTRY_RESOURCE, Operation, Resource, namespace_resource, subject_resource
from stele.core.model import SettingsLevel, SubjectKey
from stele.errors import InvalidRequest
from stele.protocol.cncf import DELETED, UPDATED, CloudEvent, format_path
from stele.service.access import AccessControl
from stele.service.filters import passes_filters
from stele.service.registry import Registry
from stele.service.times import format_time

MOST_RECORDS: Final = 1000
"""Maximum number of log records that one page covers."""


class EventPosition(NamedTuple):
    """A position among all events: behind the change `part` (from 0) of record `seq`; part -1 is before the first."""

    seq: int = 1
    part: int = -1

    def __str__(self) -> str:
        return f"{self.seq}-{self.part}" if self.part >= 0 else str(self.seq - 1)


class ElementChange(NamedTuple):
    """One element that was created, changed or deleted.

    namespace None means the registry itself, subject None the namespace.
    """

    is_deleted: bool
    namespace: str | None = None
    subject: str | None = None
    version_number: int | None = None

    @property
    def resource(self) -> Resource:
        """Resource that a caller must be allowed to list and to read to receive the change."""
        if self.namespace is None:
            return REGISTRY_RESOURCE
        if self.subject is None:
            return namespace_resource(self.namespace)
        return subject_resource(SubjectKey(self.namespace, self.subject))


class ChangeEvent(NamedTuple):
    """A change, its position in the log, and its time (milliseconds since 1970 UTC)."""

    position: EventPosition
    at: int
    change: ElementChange

    def to_cloud_event(self, source: str) -> CloudEvent:
        """Return the event in the form of CloudEvents 1.0; source is the base URI of the registry."""
        change = self.change
        return CloudEvent(
            id=str(self.position),
            source=source,
            type=DELETED if change.is_deleted else UPDATED,
            subject=format_path(change.namespace, change.subject, change.version_number),
            time=format_time(self.at),
        )


class FoundEvents(NamedTuple):
    """Events in order, and the position after all records that were read, from which to continue."""

    events: list[ChangeEvent]
    next: EventPosition


def can_see_change(access: AccessControl, change: ElementChange) -> bool:
    """Return whether the caller may learn of a change.

    That needs the right to list, because a change shows that an element exists, and the right to read its history.
    """
    resource = change.resource
    return access.is_open or (access.allows(Operation.LIST, resource) and access.allows(Operation.READ, resource))


def parse_position(text: str) -> EventPosition:
    """Return the position that a text means: the number of a record (after that record), or the id of an event.

    Raises `InvalidRequest`.
    """
    seq, dash, part = text.partition("-")
    if not all(number.isascii() and number.isdigit() and len(number) < 19 for number in (seq, part or "0")):
        raise InvalidRequest("a position among events must be the number of a record or the id of an event")
    if dash and not part:
        raise InvalidRequest("a position among events must be the number of a record or the id of an event")
    return EventPosition(max(int(seq), 1), int(part)) if dash else EventPosition(int(seq) + 1)


async def read_events(
    registry: Registry, after: EventPosition, limit: int = MOST_RECORDS, *, is_fresh: bool = True
) -> FoundEvents:
    """Return the events after a position that the caller may see, from at most `limit` records.

    Without is_fresh, the newest records may be missing. Raises `StoreError`.
    """
    state = await registry.fresh_state() if is_fresh else registry.state
    if after.seq > state.seq:
        return FoundEvents([], after)
    records = await registry.read_log(after.seq - 1, min(limit, MOST_RECORDS, state.seq - after.seq + 1))
    events = [
        event
        for seq, record in records
        for event in list_events(seq, record)
        if event.position > after and can_see_change(registry.access, event.change)
    ]
    return FoundEvents(events, EventPosition(records[-1][0] + 1) if records else after)


async def wait_for_events(
    registry: Registry,
    after: EventPosition,
    seconds: float,
    is_wanted: Callable[[ChangeEvent], bool] = lambda event: True,
    limit: int = MOST_RECORDS,
) -> FoundEvents:
    """Return the wanted events, as `read_events` does. If there is none, wait for one.

    It waits for at most `seconds`.
    """
    clock = asyncio.get_running_loop().time
    deadline = clock() + seconds
    while True:
        page = await read_events(registry, after, limit)
        wanted = [event for event in page.events if is_wanted(event)]
        after = page.next
        left = deadline - clock()
        if wanted or (left <= 0 and after.seq > registry.state.seq):
            return FoundEvents(wanted, after)
        if after.seq > registry.state.seq:
            await registry.wait_for_record(after.seq, left)
        elif left <= 0:
            return FoundEvents(wanted, after)


def choose_events(
    source: str, types: Sequence[str] = (), filters: Iterable[Mapping[str, Any]] = ()
) -> Callable[[ChangeEvent], bool]:
    """Return a test for events of these types that pass all filters of CloudEvents Subscriptions."""
    wanted = list(filters)

    def is_wanted(event: ChangeEvent) -> bool:
        if not types and not wanted:
            return True
        attributes = msgspec.to_builtins(event.to_cloud_event(source))
        return (not types or attributes["type"] in types) and passes_filters(attributes, wanted)

    return is_wanted


# --- events of a record ---------------------------------------------------------------------------------------------


def list_events(seq: int, record: ev.LogRecord) -> list[ChangeEvent]:
    """Return the events of a log record, in order."""
    changes = [change for event in record.events for change in _CHANGES.get(type(event), _no_changes)(event)]
    changes = _keep_narrowest(dict.fromkeys(changes))
    at = record.metadata.at
    return [ChangeEvent(EventPosition(seq, part), at, change) for part, change in enumerate(changes)]


def _keep_narrowest(changes: Iterable[ElementChange]) -> list[ElementChange]:
    """Drop an element whose only change is one inside it, so that one change gives one event."""
    rows = list(changes)
    with_versions = {(row.namespace, row.subject) for row in rows if row.version_number is not None}
    with_subjects = {row.namespace for row in rows if row.subject is not None}
    return [
        row
        for row in rows
        if row.is_deleted
        or row.version_number is not None
        or (row.subject is not None and (row.namespace, row.subject) not in with_versions)
        or (row.subject is None and row.namespace not in with_subjects)
    ]


def _no_changes(event: Any) -> Iterator[ElementChange]:
    return iter(())


def _namespace_change(is_deleted: bool) -> Callable[[Any], Iterator[ElementChange]]:
    def list_changes(event: Any) -> Iterator[ElementChange]:
        yield ElementChange(is_deleted, event.namespace)

    return list_changes


def _subject_change(is_deleted: bool) -> Callable[[Any], Iterator[ElementChange]]:
    def list_changes(event: Any) -> Iterator[ElementChange]:
        yield ElementChange(is_deleted, *event.key)

    return list_changes


def _registration_changes(event: ev.VersionRegistered) -> Iterator[ElementChange]:
    replaced_numbers = sorted(set(event.replaces) - {event.version_number})
    yield from (ElementChange(True, *event.key, number) for number in replaced_numbers)
    yield ElementChange(False, *event.key, event.version_number)


def _deletion_changes(event: ev.VersionsSoftDeleted | ev.VersionsPurged) -> Iterator[ElementChange]:
    yield from (ElementChange(True, *event.key, number) for number in event.version_numbers or (None,))


def _level_changes(event: Any) -> Iterator[ElementChange]:
    level: SettingsLevel = event.level
    yield ElementChange(False, level.namespace, level.subject)


def _registry_change(event: Any) -> Iterator[ElementChange]:
    yield ElementChange(False)


_CHANGES: Final[dict[type, Callable[[Any], Iterator[ElementChange]]]] = {
    ev.NamespaceCreated: _namespace_change(False),
    ev.NamespaceChanged: _namespace_change(False),
    ev.NamespaceDeleted: _namespace_change(True),
    ev.SubjectCreated: _subject_change(False),
    ev.SubjectChanged: _subject_change(False),
    ev.IncarnationEnded: _subject_change(True),
    ev.VersionRegistered: _registration_changes,
    ev.VersionsSoftDeleted: _deletion_changes,
    ev.VersionsPurged: _deletion_changes,
    ev.SettingsChanged: _level_changes,
    ev.ModeChanged: _level_changes,
    ev.CodecAdded: _subject_change(False),
    ev.RulesetAdopted: _registry_change,
}
"""The elements that each kind of log event changes.

Other kinds (keys, bindings, encoding ids) have no path in that API.
"""
