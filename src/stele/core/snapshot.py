"""A state as bytes and back: start-up without replaying the whole log.

Compact rows hold the facts; indexes and links are rebuilt. Rows are written and read in batches, so that neither side
ever holds all of them beside the state. A snapshot of another layout is no error for the caller: the
log has everything, so it replays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

import msgspec

from stele.core import queries
from stele.core.metadata import DataRuleSet, Metadata
from stele.core.model import (
    NO_ATTACHMENTS,
    Attachments,
    Binding,
    Collection,
    ComparisonScope,
    Content,
    Mode,
    Namespace,
    Numbering,
    Reference,
    SchemaEntry,
    SchemaKind,
    Settings,
    Subject,
    SubjectDetails,
    UnpackedText,
    Version,
    VersionAttributes,
    VersionState,
)
from stele.core.policy import Policy
from stele.core.state import State, uid_from_bytes, uid_to_bytes
from stele.core.texts import DumpedTexts, PackedTexts
from stele.core.traversal import list_formats_of_text, list_versions_of_entry

LAYOUT = 14
"""Raised whenever a row changes its shape, or the log is read in another way."""

_BATCH = 500
"""Rows encoded together."""

T = TypeVar("T")
R = TypeVar("R")

_AttachmentRow = tuple[tuple[Reference, ...], Metadata | None, DataRuleSet | None] | None
"""References, metadata, rule set; None for none of them."""
_ContentRow = tuple[bytes, str, int | tuple[bytes, int]]
"""sha, format, handle of the packed text; digests and seq of one whose text was purged from the log."""
_SchemaRow = tuple[str, int, int, _AttachmentRow]
"""namespace, schema id, number of the content, attachments."""


class _NamespaceRow(msgspec.Struct, array_like=True):
    name: str
    at: int
    highest_schema_id: int
    settings: dict[str, Settings]
    modes: dict[str, Mode]
    incarnations: dict[str, int]
    used_version_numbers: dict[str, int]
    format: str
    epoch: int
    changed: int
    description: str
    labels: dict[str, str] | None
    dialect_data: dict[str, Any] | None
    explicit: bool
    hidden: bool


_DetailsRow = tuple[
    int,
    Numbering,
    ComparisonScope,
    Policy | None,
    str,
    str,
    dict[SchemaKind, int] | None,
    dict[str, dict[str, str]] | None,
    list[tuple[bytes, str]] | None,
    int | None,
    int,
    str,
    dict[str, str] | None,
    dict[str, Any] | None,
    bool,
]
"""The fields of `SubjectDetails`, with bytes for the uids of versions."""
_VersionRow = tuple[bytes, int, SchemaKind | str, int, int, int, VersionState, int]
"""origin, number, kind or type, kind version, and numbers of entry, policy, and attributes around the state."""
_SubjectRow = tuple[str, str, bytes, int, int, int, int, list[_VersionRow]]
"""namespace, name, origin, serial, number of the details, highest version number, epoch, versions."""

_ORIGIN_BYTES = 30
"""Of an origin: 16 of the uid, 7 of the time, 7 of the seq."""


class _Dump(msgspec.Struct, array_like=True):
    layout: int
    seq: int
    serial: int
    settings: Settings | None
    mode: Mode | None
    namespaces: list[_NamespaceRow]
    details: list[_DetailsRow]
    policies: list[Policy | None]
    attributes: list[VersionAttributes | None]
    contents: list[msgspec.Raw]
    schemas: list[msgspec.Raw]
    subjects: list[msgspec.Raw]
    bindings: list[Binding]
    collections: list[tuple[str, int, list[tuple[tuple[str, ...], bytes]]]]
    rulesets: dict[tuple[str, str], int]
    texts: DumpedTexts
    latest_at: int = 0
    skipped_schema_ids: int = 0
    skipped_numbers: int = 0


class _Tables:
    """Values many versions share, numbered in the order they are met."""

    def __init__(self, state: State) -> None:
        self.schemas = {
            id(schema): number
            for number, schema in enumerate(
                row for namespace in state.namespaces.values() for row in namespace.schema_entries.values()
            )
        }
        self.details: dict[int, tuple[int, SubjectDetails]] = {}
        self.policies: dict[Policy | None, int] = {}
        self.attributes: dict[int, tuple[int, VersionAttributes | None]] = {}


def _number_object(table: dict[int, tuple[int, T]], value: T) -> int:
    """Return the number of a value in a table by the object: it may hold what cannot be hashed."""
    return table.setdefault(id(value), (len(table), value))[0]


def dump_state(state: State) -> bytes:
    """Return the state as bytes. Packs loose texts first; not within a draft."""
    state.pack_texts(rest=True)
    tables = _Tables(state)
    contents = list(queries.list_contents(state))
    number_of = {id(content): number for number, content in enumerate(contents)}
    dumped = _Dump(
        LAYOUT,
        state.seq,
        state.serial,
        state.settings,
        state.mode,
        [
            _NamespaceRow(**{name: getattr(namespace, name) for name in _NamespaceRow.__struct_fields__})
            for namespace in state.namespaces.values()
        ],
        [],
        [],
        [],
        _encode_batches(contents, _dump_content),
        _encode_batches(
            (row for namespace in state.namespaces.values() for row in namespace.schema_entries.values()),
            lambda row: (row.namespace, row.schema_id, number_of[id(row.content)], _dump_attachments(row.attachments)),
        ),
        _encode_batches(
            (*state.closed, *(row for namespace in state.namespaces.values() for row in namespace.subjects.values())),
            lambda row: _dump_subject(row, tables),
        ),
        list(state.bindings.values()),
        [(name, row.revision, list(row.items.items())) for name, row in state.collections.items()],
        state.rulesets,
        state.packed_texts.dump(),
        state.latest_at,
        state.skipped_schema_ids,
        state.skipped_numbers,
    )
    dumped.details = [_dump_details(details) for _, details in tables.details.values()]
    dumped.policies = list(tables.policies)
    dumped.attributes = [extra for _, extra in tables.attributes.values()]
    return msgspec.msgpack.encode(dumped)


def _encode_batches(items: Iterable[T], row: Callable[[T], object]) -> list[msgspec.Raw]:
    rest = iter(items)
    batches = []
    while rows := [row(item) for item in islice(rest, _BATCH)]:
        batches.append(msgspec.Raw(msgspec.msgpack.encode(rows)))
    return batches


def _dump_content(content: Content) -> _ContentRow:
    held = content.text_or_handle
    return content.sha, content.format, held if isinstance(held, int) else (held.digests, held.seq)


def _dump_attachments(attachments: Attachments) -> _AttachmentRow:
    if attachments is NO_ATTACHMENTS:
        return None
    return attachments.references, attachments.metadata, attachments.rule_set


def _number_of(table: dict[T, int], value: T) -> int:
    return table.setdefault(value, len(table))


def _dump_subject(subject: Subject, tables: _Tables) -> _SubjectRow:
    return (
        subject.namespace,
        subject.name,
        subject.origin.to_bytes(_ORIGIN_BYTES, "big"),
        subject.serial,
        _number_object(tables.details, subject.details),
        subject.highest_version_number,
        subject.epoch,
        [
            (
                row.origin.to_bytes(_ORIGIN_BYTES, "big"),
                row.version_number,
                row.kind_or_type,
                row.kind_version,
                tables.schemas[id(row.schema)],
                _number_of(tables.policies, row.policy),
                row.state,
                _number_object(tables.attributes, row.attributes),
            )
            for row in subject.versions
        ],
    )


def _dump_details(details: SubjectDetails) -> _DetailsRow:
    plain = msgspec.structs.asdict(details)
    plain["encodings"] = details.encodings and [(uid_to_bytes(uid), codec) for uid, codec in details.encodings]
    return tuple(plain.values())  # in the order of the fields


_decoder = msgspec.msgpack.Decoder(_Dump)
_contents = msgspec.msgpack.Decoder(list[_ContentRow])
_schemas = msgspec.msgpack.Decoder(list[_SchemaRow])
_subjects = msgspec.msgpack.Decoder(list[_SubjectRow])


def load_state(data: bytes | memoryview) -> State | None:
    """Inverse of `dump_state`; None when the bytes have another layout."""
    try:
        dumped = _decoder.decode(data)
        return _load_dump(dumped) if dumped.layout == LAYOUT else None
    except msgspec.MsgspecError:
        return None


def _load_dump(dumped: _Dump) -> State:
    state = State()
    state.seq, state.serial = dumped.seq, dumped.serial
    state.latest_at = dumped.latest_at
    state.skipped_schema_ids, state.skipped_numbers = dumped.skipped_schema_ids, dumped.skipped_numbers
    state.settings, state.mode = dumped.settings, dumped.mode
    state.packed_texts = PackedTexts.load(dumped.texts)
    state.text_bytes = state.packed_texts.text_bytes
    state.bindings = {binding.key: binding for binding in dumped.bindings}
    state.collections = {name: Collection(revision, dict(items)) for name, revision, items in dumped.collections}
    state.rulesets = dumped.rulesets
    for row in dumped.namespaces:
        state.namespaces[row.name] = Namespace(**msgspec.structs.asdict(row))
    numbers: dict[int, int] = {}
    """One object for each handle, id and serial: they count the same things, and an int takes 32 bytes."""
    contents = [_load_content(state, numbers, *row) for row in _decode_rows(dumped.contents, _contents)]
    schemas = [_load_schema(state, numbers, contents, *row) for row in _decode_rows(dumped.schemas, _schemas)]
    contents.clear()
    _load_subjects(state, numbers, dumped, schemas)
    return state


def _decode_rows(batches: list[msgspec.Raw], decoder: msgspec.msgpack.Decoder[list[R]]) -> Iterator[R]:
    for batch in batches:
        yield from decoder.decode(batch)


def _load_content(
    state: State, numbers: dict[int, int], sha: bytes, format_name: str, held: int | tuple[bytes, int]
) -> Content:
    kept = numbers.setdefault(held, held) if isinstance(held, int) else UnpackedText(None, *held)
    content = Content(sha, kept, state.intern_value(format_name))
    first = state.contents.setdefault(sha, content)
    if first is not content:
        *_, last = list_formats_of_text(first)
        last.same_text_in_other_format = content
    return content


def _load_schema(
    state: State,
    numbers: dict[int, int],
    contents: list[Content],
    namespace: str,
    schema_id: int,
    content_number: int,
    attached: _AttachmentRow,
) -> SchemaEntry:
    attachments = NO_ATTACHMENTS if attached is None else Attachments(*attached)
    if attached is not None and attachments.metadata is None and attachments.rule_set is None:
        attachments = state.intern_value(attachments)
    content, place = contents[content_number], state.namespaces[namespace]
    schema_id = numbers.setdefault(schema_id, schema_id)
    schema = SchemaEntry(place.name, schema_id, content, attachments, older_entry=content.newest_entry)
    content.newest_entry = place.schema_entries[schema_id] = schema
    return schema


def _load_subjects(state: State, numbers: dict[int, int], dumped: _Dump, schemas: list[SchemaEntry]) -> None:
    # Long because it runs for every version: calls would take a third of the time of a start.
    details = [_load_details(state, row) for row in dumped.details]
    policies = [state.intern_value(policy) for policy in dumped.policies]
    attributes, namespaces, to_int = dumped.attributes, state.namespaces, int.from_bytes
    referring: list[Version] = []
    reused: dict[int, SchemaEntry] = {}
    """Entries with several versions."""
    for name_of_namespace, name, place, serial, details_number, highest, epoch, rows in _decode_rows(
        dumped.subjects, _subjects
    ):
        namespace, first_origin = namespaces[name_of_namespace], to_int(place, "big")
        shared_serial = numbers.setdefault(serial, serial)
        subject = Subject(namespace.name, name, first_origin, shared_serial, details[details_number], highest, epoch)
        versions = []
        shared: SchemaKind | str | None = None
        for version_place, number, kind, kind_version, schema_number, policy, life, attributes_number in rows:
            schema = schemas[schema_number]
            if kind != shared:
                shared = kind if schema.newest_version is None else _share_kind(state, kind, schema.newest_version)
            version = Version(
                first_origin if version_place == place else to_int(version_place, "big"),
                number,
                shared,
                kind_version,
                schema,
                subject,
                policies[policy],
                life,
                attributes[attributes_number],
                schema.newest_version,
            )
            if schema.newest_version is not None:
                reused[id(schema)] = schema
            schema.newest_version = version
            if schema.attachments is not NO_ATTACHMENTS and life is not VersionState.ARCHIVED:
                referring.append(version)
            versions.append(version)
        subject.stored_versions = versions if len(versions) > 1 else versions[0] if versions else None
        if subject.details.closed:
            state.closed.append(subject)
        else:
            namespace.subjects[name] = subject
    for schema in reused.values():
        _sort_versions(schema)
    for version in sorted(referring, key=lambda row: row.seq):
        for reference in version.schema.attachments.references:
            key = (reference.namespace, reference.subject, reference.version_number)
            state.referrers.setdefault(key, []).append(version)


def _load_details(state: State, row: _DetailsRow) -> SubjectDetails:
    details = SubjectDetails(*row)  # type: ignore[arg-type]  # but for the uids, which follow
    if details.encodings is not None:
        encodings = [(uid_from_bytes(uid), codec) for uid, codec in details.encodings]  # type: ignore[arg-type]
        details = msgspec.structs.replace(details, encodings=encodings)
    return state.share_details(details)


def _share_kind(state: State, kind: SchemaKind | str, other: Version) -> SchemaKind | str:
    """Return the kind as the object that another version with its schema has of it."""
    if kind == other.kind_or_type:
        return other.kind_or_type
    return kind if isinstance(kind, str) else state.intern_value(kind)


def _sort_versions(schema: SchemaEntry) -> None:
    """Chain the versions of an entry newest first."""
    versions = sorted(list_versions_of_entry(schema), key=lambda row: row.seq)
    schema.newest_version = None
    for version in versions:
        version.older_version, schema.newest_version = schema.newest_version, version
