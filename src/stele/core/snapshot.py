"""Encodes a state as bytes and decodes it, to start without replaying the whole log.

Compact rows hold the facts; links are rebuilt. A snapshot begins with a head that has the lengths of the pieces that
follow: packed texts, the digests of all contents, and batches of rows. They are read one after another, and the memory
of pieces that were read is released if possible, so that loading takes little more memory than the state. A snapshot of
another layout is no error: the caller replays the log, which has everything.
"""

from __future__ import annotations

import mmap
from array import array
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any, Final, TypeVar

import msgspec

from stele.core import queries
from stele.core.content_table import ContentTable, SortedDigests
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
    VersionDetails,
    VersionState,
)
from stele.core.policy import Policy
from stele.core.state import State, uid_from_bytes, uid_to_bytes
from stele.core.texts import PackedTexts
from stele.core.traversal import list_versions_of_entry

LAYOUT = 15
"""Raised whenever a row changes its shape, or the log is read in another way."""

_BATCH = 500
"""Rows encoded together."""

T = TypeVar("T")
R = TypeVar("R")

_AttachmentRow = tuple[tuple[Reference, ...], Metadata | None, DataRuleSet | None] | None
"""References, metadata, rule set; None if all are absent."""
_ContentRow = tuple[str, int | tuple[bytes, bytes, int], bool]
"""Format, packed text, and whether the row before has the same text in another format.

The packed text is a handle. For a text that was purged from the log it is the SHA-256, the digests and the seq.
"""
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
_VersionRow = tuple[bytes, SchemaKind | str, int, int]
"""origin, kind or type, and numbers of the entry and of the details."""
_SubjectRow = tuple[str, str, bytes, int, int, int, int, list[_VersionRow]]
"""namespace, name, origin, serial, number of the details, highest version number, epoch, versions."""

_ORIGIN_BYTES = 30
"""Bytes of an origin: 16 of the uid, 7 of the time, 7 of the seq."""


class _Head(msgspec.Struct, array_like=True):
    layout: int
    seq: int
    serial: int
    settings: Settings | None
    mode: Mode | None
    namespaces: list[_NamespaceRow]
    details: list[_DetailsRow]
    version_details: list[VersionDetails]
    bindings: list[Binding]
    collections: list[tuple[str, int, list[tuple[tuple[str, ...], bytes]]]]
    rulesets: dict[tuple[str, str], int]
    latest_at: int
    skipped_schema_ids: int
    skipped_numbers: int
    blocks: list[int]
    columns: list[int]
    digests: list[int]
    contents: list[int]
    schemas: list[int]
    subjects: list[int]
    """Lengths of the pieces: blocks, columns and tags of the packed texts, digests of contents, batches of rows."""


_HEAD_LENGTH_BYTES: Final = 8
_GIVEN_BACK_BYTES: Final = 1 << 20
"""Bytes of memory that are released together."""


class _Tables:
    """Values that many versions share, numbered in the order in which they occur."""

    def __init__(self, state: State) -> None:
        self.schemas = {
            id(schema): number
            for number, schema in enumerate(
                row for namespace in state.namespaces.values() for row in namespace.schema_entries.values()
            )
        }
        self.details: dict[int, tuple[int, SubjectDetails]] = {}
        self.version_details: dict[int, tuple[int, VersionDetails]] = {}


def _number_object(table: dict[int, tuple[int, T]], value: T) -> int:
    """Return the number of a value in a table by object identity, as the value may be unhashable."""
    return table.setdefault(id(value), (len(table), value))[0]


def dump_state(state: State) -> bytes:
    """Return the state as bytes. Packs loose texts first. Must not be called within a draft."""
    state.pack_texts(rest=True)
    tables = _Tables(state)
    digests = state.contents.dump()
    contents = list(queries.list_contents(state))
    number_of = {id(content): number for number, content in enumerate(contents)}
    blocks, *columns = state.packed_texts.dump()
    batches = (
        _encode_batches(zip(contents, chain((None,), contents), strict=False), _dump_content),
        _encode_batches(
            (row for namespace in state.namespaces.values() for row in namespace.schema_entries.values()),
            lambda row: (row.namespace, row.schema_id, number_of[id(row.content)], _dump_attachments(row.attachments)),
        ),
        _encode_batches(
            (*state.closed, *(row for namespace in state.namespaces.values() for row in namespace.subjects.values())),
            lambda row: _dump_subject(row, tables),
        ),
    )
    pieces = (blocks, columns, [column.tobytes() for column in digests], *batches)
    head = _Head(
        LAYOUT,
        state.seq,
        state.serial,
        state.settings,
        state.mode,
        [
            _NamespaceRow(**{name: getattr(namespace, name) for name in _NamespaceRow.__struct_fields__})
            for namespace in state.namespaces.values()
        ],
        [_dump_details(details) for _, details in tables.details.values()],
        [details for _, details in tables.version_details.values()],
        list(state.bindings.values()),
        [(name, row.revision, list(row.items.items())) for name, row in state.collections.items()],
        state.rulesets,
        state.latest_at,
        state.skipped_schema_ids,
        state.skipped_numbers,
        *[[len(piece) for piece in rows] for rows in pieces],
    )
    encoded = msgspec.msgpack.encode(head)
    return b"".join((len(encoded).to_bytes(_HEAD_LENGTH_BYTES, "big"), encoded, *chain.from_iterable(pieces)))


def _encode_batches(items: Iterable[T], row: Callable[[T], object]) -> list[bytes]:
    rest = iter(items)
    batches = []
    while rows := [row(item) for item in islice(rest, _BATCH)]:
        batches.append(msgspec.msgpack.encode(rows))
    return batches


def _dump_content(content_and_before: tuple[Content, Content | None]) -> _ContentRow:
    content, before = content_and_before
    text_or_handle = content.text_or_handle
    is_twin = before is not None and before.same_text_in_other_format is content
    return (
        content.format,
        text_or_handle
        if isinstance(text_or_handle, int)
        else (text_or_handle.sha, text_or_handle.digests, text_or_handle.seq),
        is_twin,
    )


def _dump_attachments(attachments: Attachments) -> _AttachmentRow:
    if attachments is NO_ATTACHMENTS:
        return None
    return attachments.references, attachments.metadata, attachments.rule_set


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
                row.kind_or_type,
                tables.schemas[id(row.schema)],
                _number_object(tables.version_details, row.details),
            )
            for row in subject.versions
        ],
    )


def _dump_details(details: SubjectDetails) -> _DetailsRow:
    plain = msgspec.structs.asdict(details)
    plain["encodings"] = details.encodings and [(uid_to_bytes(uid), codec) for uid, codec in details.encodings]
    return tuple(plain.values())  # in the order of the fields


_heads = msgspec.msgpack.Decoder(_Head)
_contents = msgspec.msgpack.Decoder(list[_ContentRow])
_schemas = msgspec.msgpack.Decoder(list[_SchemaRow])
_subjects = msgspec.msgpack.Decoder(list[_SubjectRow])


class _Pieces:
    """Reads a snapshot from its beginning to its end.

    If the memory is a private map of the snapshot, pages that were read are returned to the system.
    """

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = memoryview(data)
        self._at = self._given_back = 0
        owner = self._data.obj
        self._pages: mmap.mmap | None = None
        if isinstance(owner, mmap.mmap) and len(owner) == len(self._data) and hasattr(mmap, "MADV_DONTNEED"):
            self._pages = owner

    def read(self, length: int) -> memoryview:
        """Return the next piece, and release those before. Raises ValueError if too few bytes are left."""
        self._give_back()
        start, self._at = self._at, self._at + length
        if self._at > len(self._data):
            raise ValueError("a snapshot ends too early")
        return self._data[start : self._at]

    def _give_back(self) -> None:
        end = self._at // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        if self._pages is not None and end - self._given_back >= _GIVEN_BACK_BYTES:
            self._pages.madvise(mmap.MADV_DONTNEED, self._given_back, end - self._given_back)
            self._given_back = end


class _SharedNumbers:
    """One object per number: handles, ids and serials have the same values, and an int takes 32 bytes."""

    def __init__(self, size: int) -> None:
        self._row = [*range(size)]
        self._others: dict[int, int] = {}

    def share(self, number: int) -> int:
        """Return the shared object of a number."""
        return self._row[number] if number < len(self._row) else self._others.setdefault(number, number)


def load_state(data: bytes | memoryview) -> State | None:
    """Return the state from the bytes of `dump_state`; None when the bytes have another layout.

    Pages of a memory map are returned to the system while it is read. Such data can be read only once.
    """
    pieces = _Pieces(data)
    try:
        head = _heads.decode(pieces.read(int.from_bytes(pieces.read(_HEAD_LENGTH_BYTES), "big")))
        return _load_pieces(head, pieces) if head.layout == LAYOUT else None
    except (msgspec.MsgspecError, ValueError):
        return None


def _load_pieces(head: _Head, pieces: _Pieces) -> State:
    state = State()
    state.seq, state.serial = head.seq, head.serial
    state.latest_at = head.latest_at
    state.skipped_schema_ids, state.skipped_numbers = head.skipped_schema_ids, head.skipped_numbers
    state.settings, state.mode = head.settings, head.mode
    state.bindings = {binding.key: binding for binding in head.bindings}
    state.collections = {name: Collection(revision, dict(items)) for name, revision, items in head.collections}
    state.rulesets = head.rulesets
    for row in head.namespaces:
        state.namespaces[row.name] = Namespace(**msgspec.structs.asdict(row))
    blocks = [bytes(pieces.read(length)) for length in head.blocks]
    state.packed_texts = PackedTexts.load(blocks, map(pieces.read, head.columns))
    state.text_bytes = state.packed_texts.text_bytes
    digests = SortedDigests(array("Q"), array("I"))
    for column, length in zip(digests, head.digests, strict=True):
        column.frombytes(pieces.read(length))
    numbers = _SharedNumbers(len(state.packed_texts) + 1)
    contents = _load_contents(state, numbers, _decode_rows(pieces, head.contents, _contents), digests)
    entries = [_load_schema(state, numbers, contents, *row) for row in _decode_rows(pieces, head.schemas, _schemas)]
    contents.clear()
    _load_subjects(state, numbers, head, _decode_rows(pieces, head.subjects, _subjects), entries)
    return state


def _decode_rows(pieces: _Pieces, lengths: list[int], decoder: msgspec.msgpack.Decoder[list[R]]) -> Iterator[R]:
    for length in lengths:
        yield from decoder.decode(pieces.read(length))


def _load_contents(
    state: State, numbers: _SharedNumbers, rows: Iterable[_ContentRow], digests: SortedDigests
) -> list[Content]:
    """Return all contents by their numbers, and add them to the state."""
    contents: list[Content] = []
    first_ones: list[Content] = []
    packed_texts, intern_value = state.packed_texts, state.intern_value
    for format_name, stored_text, is_twin in rows:
        text_or_handle = (
            numbers.share(stored_text) if isinstance(stored_text, int) else UnpackedText(None, *stored_text)
        )
        content = Content(packed_texts, text_or_handle, intern_value(format_name))
        if is_twin:
            contents[-1].format_and_twin = contents[-1].join_format(content)
        else:
            first_ones.append(content)
        contents.append(content)
    state.contents = ContentTable.load(first_ones, digests)
    return contents


def _load_schema(
    state: State,
    numbers: _SharedNumbers,
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
    schema_id = numbers.share(schema_id)
    schema = SchemaEntry(place.name, schema_id, content, attachments, older_entry=content.newest_entry)
    content.newest_entry = place.schema_entries[schema_id] = schema
    return schema


def _load_subjects(
    state: State, numbers: _SharedNumbers, head: _Head, subject_rows: Iterable[_SubjectRow], schemas: list[SchemaEntry]
) -> None:
    # Not split up, because it runs for every version: calls would take a third of the start-up time.
    details = [_load_details(state, row) for row in head.details]
    version_details = [_share_version_details(state, row) for row in head.version_details]
    namespaces, to_int = state.namespaces, int.from_bytes
    referring: list[Version] = []
    reused: dict[int, SchemaEntry] = {}
    """Entries with several versions."""
    for name_of_namespace, name, place, serial, details_number, highest, epoch, rows in subject_rows:
        namespace, first_origin = namespaces[name_of_namespace], to_int(place, "big")
        shared_serial = numbers.share(serial)
        subject = Subject(namespace.name, name, first_origin, shared_serial, details[details_number], highest, epoch)
        versions = []
        shared: SchemaKind | str | None = None
        for version_place, kind, schema_number, version_details_number in rows:
            schema = schemas[schema_number]
            if kind != shared:
                shared = kind if schema.newest_version is None else _share_kind(state, kind, schema.newest_version)
            version = Version(
                first_origin if version_place == place else to_int(version_place, "big"),
                shared,
                schema,
                subject,
                version_details[version_details_number],
                schema.newest_version,
            )
            if schema.newest_version is not None:
                reused[id(schema)] = schema
            schema.newest_version = version
            if schema.attachments is not NO_ATTACHMENTS and version.state is not VersionState.ARCHIVED:
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


def _share_version_details(state: State, details: VersionDetails) -> VersionDetails:
    policy, attributes = details.policy, details.attributes
    if policy is not None:
        policy = state.intern_value(policy)
    if attributes is not None and details.is_sharable:
        attributes = state.intern_value(attributes)
    return state.share_version_details(msgspec.structs.replace(details, policy=policy, attributes=attributes))


def _share_kind(state: State, kind: SchemaKind | str, other: Version) -> SchemaKind | str:
    """Return the kind as the object that another version with its schema already has."""
    if kind == other.kind_or_type:
        return other.kind_or_type
    return kind if isinstance(kind, str) else state.intern_value(kind)


def _sort_versions(schema: SchemaEntry) -> None:
    """Chain the versions of an entry newest first."""
    versions = sorted(list_versions_of_entry(schema), key=lambda row: row.seq)
    schema.newest_version = None
    for version in versions:
        version.older_version, schema.newest_version = schema.newest_version, version
