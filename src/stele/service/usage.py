"""Results of censuses of data at rest: which versions' records were seen where, shown before and after deletions.

A place is anything that a census counted, by the name its owner gives it: `topic orders`, `table shop.orders`, a path.
The last census of a place replaces the one before. Versions are identified by schema id, which is never reused. So a
version number that is assigned again does not inherit old records.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from stele.core import queries
from stele.core.access import REGISTRY_RESOURCE, Operation, subject_resource
from stele.core.decide.decision import check_name
from stele.core.model import Collection, SubjectKey, Version
from stele.core.state import State
from stele.errors import InvalidName, InvalidRequest, NotFound, TooLarge
from stele.service import collections
from stele.service.registry import Registry

COLLECTION: Final = "usage"
MOST_SEEN: Final = 10_000
"""Maximum number of versions in one census."""
MOST_PLACES: Final = 100
"""Maximum number of places in one answer."""
_LONGEST_NAME: Final = 1000

Millis = Annotated[int, Meta(ge=0, le=2**63 - 1, description="milliseconds since 1970 UTC")]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class VersionUsage(msgspec.Struct, frozen=True):
    """The records of one version at a place.

    namespace        namespace of the subject, '' for the default one
    schema_id    id of the version's schema in its namespace
    bytes        size of the records with their frames
    first_seen, last_seen   when the oldest and the newest record were written; null where the census had no times
    """

    subject: Annotated[str, Meta(min_length=1)]
    version: Annotated[int, Meta(ge=1)]
    schema_id: Count
    records: Count
    namespace: str = ""
    bytes: Count = 0
    first_seen: Millis | None = None
    last_seen: Millis | None = None


class CensusRecord(msgspec.Struct, frozen=True):
    """Result of one census at a place.

    counted_at   when it was made
    whole        whether it counted the whole place, not a part or a sample of it
    records      number of all records, including those of unknown schemas and without an id
    """

    counted_at: Millis
    whole: bool = True
    records: Count = 0
    seen: Annotated[tuple[VersionUsage, ...], Meta(max_length=MOST_SEEN)] = ()


class LocationUsage(msgspec.Struct, frozen=True):
    """A place and its last census."""

    place: str
    counted_at: int
    whole: bool
    records: int
    seen: tuple[VersionUsage, ...]


class UsagePage(msgspec.Struct, frozen=True):
    """Places by name; next is the name after which to continue, null at the end."""

    places: tuple[LocationUsage, ...]
    next: str | None = None


class DeletionWarning(msgspec.Struct, frozen=True):
    """A version that is, or was, to be deleted, and a place in which records of it were seen.

    message is the warning as text.
    """

    place: str
    subject: str
    version: int
    records: int
    counted_at: int
    whole: bool
    last_seen: int | None
    message: str


class DeletionPreview(msgspec.Struct, frozen=True):
    """The versions that a deletion would delete, and warnings about their records."""

    namespace: str
    subject: str
    versions: tuple[int, ...]
    warnings: tuple[DeletionWarning, ...]


class Usage:
    """Censuses of one registry, with an index by subject that is rebuilt after a change."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._indexed: tuple[Collection, int] | None = None
        self._read: dict[bytes, CensusRecord] = {}
        self._places: dict[str, CensusRecord] = {}
        self._by_subject: dict[SubjectKey, list[tuple[str, VersionUsage]]] = {}

    async def record_census(self, place: str, census: CensusRecord, *, via: str = "") -> LocationUsage:
        """Store a census of a place, and replace the one before. Raises `InvalidName`, `TooLarge`, `ReadOnly`."""
        key = (_check_place(place),)
        for row in census.seen:
            check_name(row.namespace)
            check_name(row.subject)
        self._require_bind(census)
        most = self._registry.limits.places

        def change(items: collections.Items) -> tuple[collections.Changes, None]:
            if key in items:
                self._require_bind(_decode_census(items[key]))
            if key not in items and len(items) >= most:
                raise TooLarge(f"censuses of {most} places are stored; the limit is reached (max_places)")
            return {key: _encode_census(census)}, None

        await collections.edit_collection(self._registry, COLLECTION, change, via=via)
        return _location_usage(place, census)

    async def forget_place(self, place: str, *, via: str = "") -> LocationUsage:
        """Delete the census of a place and return it. Raises `NotFound`, `ReadOnly`."""
        key = (_check_place(place),)

        def change(items: collections.Items) -> tuple[collections.Changes, bytes]:
            if key not in items:
                raise _unknown_place(place)
            self._require_bind(_decode_census(items[key]))
            return {key: None}, items[key]

        document = await collections.edit_collection(self._registry, COLLECTION, change, via=via)
        return _location_usage(place, _decode_census(document))

    async def get_place(self, place: str) -> LocationUsage:
        """Return the last census of a place, without rows that the caller may not read. Raises `NotFound`."""
        self._refresh_index(await self._registry.fresh_state())
        census = self._places.get(place)
        usage = None if census is None else self._select_visible(place, census)
        if usage is None:
            raise _unknown_place(place)
        return usage

    def _select_visible(self, place: str, census: CensusRecord) -> LocationUsage | None:
        """Return a census without the rows that the caller may not read; None if no row is left."""
        access = self._registry.access
        if access.is_open or access.allows(Operation.READ, REGISTRY_RESOURCE):
            return _location_usage(place, census)
        rows = tuple(row for row in census.seen if access.can_read(SubjectKey(row.namespace, row.subject)))
        visible_census = msgspec.structs.replace(census, seen=rows, records=sum(row.records for row in rows))
        return _location_usage(place, visible_census) if rows else None

    def _require_bind(self, census: CensusRecord) -> None:
        """Raise `Forbidden` unless the caller may bind all subjects of a census; for an empty census, the registry."""
        access = self._registry.access
        for key in {SubjectKey(row.namespace, row.subject) for row in census.seen}:
            access.require(Operation.BIND, subject_resource(key))
        if not census.seen:
            access.require(Operation.BIND, REGISTRY_RESOURCE)

    async def list_places(
        self, after: str = "", limit: int = MOST_PLACES, *, namespace: str | None = None, subject: str | None = None
    ) -> UsagePage:
        """List the places after a name, in order of names.

        With a namespace or subject, only the places and rows with its records. Raises `InvalidRequest` for a limit out
        of bounds.
        """
        if not 1 <= limit <= MOST_PLACES:
            raise InvalidRequest(f"limit must be a whole number from 1 to {MOST_PLACES}")
        self._refresh_index(await self._registry.fresh_state())
        places: list[LocationUsage] = []
        for place in sorted(name for name in self._places if name > after):
            visible = self._select_visible(place, self._places[place])
            if visible is None:
                continue
            rows = tuple(
                row for row in visible.seen if namespace in (None, row.namespace) and subject in (None, row.subject)
            )
            if rows or (namespace is None and subject is None):
                if len(places) == limit:
                    return UsagePage(tuple(places), places[-1].place)
                places.append(msgspec.structs.replace(visible, seen=rows))
        return UsagePage(tuple(places))

    async def preview_deletion(self, key: SubjectKey, ordinal: int | None = None) -> DeletionPreview:
        """Return the versions that deleting a subject, or one version of it, would delete, with warnings.

        Raises `SubjectNotFound`, `VersionNotFound`.
        """
        state = await self._registry.fresh_state()
        if ordinal is None:
            queries.get_version(state, key, None, queries.ACTIVE_OR_SOFT_DELETED)
            rows = queries.list_versions(state.find_subject(key)) or queries.list_versions(
                state.find_subject(key), queries.ACTIVE_OR_SOFT_DELETED
            )
        else:
            rows = [queries.get_version(state, key, ordinal, queries.ACTIVE_OR_SOFT_DELETED)]
        numbers = tuple(row.version_number for row in rows)
        return DeletionPreview(key.namespace, key.name, numbers, tuple(self.list_warnings(state, rows)))

    def list_warnings(self, state: State, versions: Iterable[Version]) -> list[DeletionWarning]:
        """Return where records of these versions were seen, by version and place."""
        self._refresh_index(state)
        if not self._by_subject:
            return []
        warnings = [
            _make_warning(row.subject.key, row.version_number, place, usage, self._places[place])
            for row in versions
            for place, usage in self._by_subject.get(row.subject.key, ())
            if usage.schema_id == row.schema.schema_id and usage.records
        ]
        return sorted(warnings, key=lambda it: (it.version, it.place))

    def _refresh_index(self, state: State) -> None:
        """Update the index if the censuses changed."""
        collection = state.collections.get(COLLECTION)
        if collection is None:
            self._indexed, self._read, self._places, self._by_subject = None, {}, {}, {}
            return
        if self._indexed is not None and self._indexed[0] is collection and self._indexed[1] == collection.revision:
            return
        documents = collection.items.values()
        self._read = {it: self._read[it] if it in self._read else _decode_census(it) for it in documents}
        self._places = {key[0]: self._read[document] for key, document in collection.items.items()}
        self._by_subject = {}
        for place, census in self._places.items():
            for row in census.seen:
                self._by_subject.setdefault(SubjectKey(row.namespace, row.subject), []).append((place, row))
        self._indexed = collection, collection.revision


def _check_place(place: str) -> str:
    if not place or len(place) > _LONGEST_NAME or not place.isprintable() or "\ufffd" in place:
        raise InvalidName(
            place[:_LONGEST_NAME], f"is not a name of a place: it must have 1 to {_LONGEST_NAME} printable characters"
        )
    return place


def _unknown_place(place: str) -> NotFound:
    return NotFound(f"no census of '{place}' was recorded")


def _encode_census(census: CensusRecord) -> bytes:
    """Encode a census as the log stores it, where namespaces have been called `space` from the beginning."""
    document = msgspec.to_builtins(census)
    for row in document["seen"]:
        row["space"] = row.pop("namespace")
    return msgspec.json.encode(document)


def _decode_census(document: bytes) -> CensusRecord:
    """Decode a census that `_encode_census` encoded."""
    stored = msgspec.json.decode(document)
    for row in stored.get("seen", ()):
        row["namespace"] = row.pop("space", "")
    return msgspec.convert(stored, CensusRecord)


def _location_usage(place: str, census: CensusRecord) -> LocationUsage:
    return LocationUsage(place, census.counted_at, census.whole, census.records, census.seen)


def _make_warning(
    key: SubjectKey, version: int, place: str, usage: VersionUsage, census: CensusRecord
) -> DeletionWarning:
    name = f":.{key.namespace}:{key.name}" if key.namespace else key.name
    part = "" if census.whole else ", in a part of it"
    message = (
        f"{usage.records:,} record{'' if usage.records == 1 else 's'} with version {version} of {name} "
        f"{'was' if usage.records == 1 else 'were'} seen in {place} on {_format_day(census.counted_at)}{part}"
    )
    if usage.last_seen is not None:
        message += f"; the newest is of {_format_day(usage.last_seen)}"
    return DeletionWarning(
        place, name, version, usage.records, census.counted_at, census.whole, usage.last_seen, message
    )


def _format_day(milliseconds: int) -> str:
    """Return a calendar day, or the milliseconds if they are outside of the calendar."""
    try:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)).strftime("%Y-%m-%d")
    except OverflowError:
        return f"{milliseconds} ms"
