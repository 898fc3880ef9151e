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
    SubjectKey,
    UnpackedText,
    Version,
    VersionAttributes,
    VersionState,
    pack_origin,
)
from stele.core.policy import Policy
from stele.core.state import State, uid_from_bytes, uid_to_bytes
from stele.core.texts import DumpedTexts, PackedTexts
from stele.core.traversal import list_formats_of_text

LAYOUT = 13
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


class _SubjectRow(msgspec.Struct, array_like=True):
    key: SubjectKey
    uid: bytes
    serial: int
    incarnation: int
    at: int
    numbering: Numbering
    comparison_scope: ComparisonScope
    default_policy: Policy | None
    format: str
    custom_format: str
    highest_version_number: int
    kind: int | None
    highest_kind_versions: list[tuple[int, int]] | None
    codecs: dict[str, dict[str, str]] | None
    encodings: list[tuple[bytes, str]] | None
    default_version: int | None
    epoch: int
    changed: int
    description: str
    labels: dict[str, str] | None
    dialect_data: dict[str, Any] | None
    closed: bool
    versions: list[_VersionRow]


class _VersionRow(msgspec.Struct, array_like=True):
    uid: bytes
    version_number: int
    kind: int
    kind_version: int
    schema: int
    at: int
    seq: int
    policy: int
    state: VersionState
    attributes: int


class _Dump(msgspec.Struct, array_like=True):
    layout: int
    seq: int
    serial: int
    settings: Settings | None
    mode: Mode | None
    namespaces: list[_NamespaceRow]
    kinds: list[SchemaKind]
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
        self.kinds: dict[SchemaKind, int] = {}
        self.policies: dict[Policy | None, int] = {}
        self.attributes: dict[int, tuple[int, VersionAttributes | None]] = {}

    def number_of(self, extra: VersionAttributes | None) -> int:
        """Return the number of an extra, by the object: it may hold what cannot be hashed."""
        return self.attributes.setdefault(id(extra), (len(self.attributes), extra))[0]


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
    dumped.kinds, dumped.policies = list(tables.kinds), list(tables.policies)
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
    plain = {name: getattr(subject, name) for name in _SubjectRow.__struct_fields__}
    plain["uid"] = uid_to_bytes(subject.uid)
    plain["kind"] = None if subject.kind is None else _number_of(tables.kinds, subject.kind)
    high = subject.highest_kind_versions
    plain["highest_kind_versions"] = (
        None if high is None else [(_number_of(tables.kinds, schema_kind), top) for schema_kind, top in high.items()]
    )
    plain["encodings"] = subject.encodings and [(uid_to_bytes(uid), codec) for uid, codec in subject.encodings]
    plain["versions"] = [
        _VersionRow(
            uid_to_bytes(row.uid),
            row.version_number,
            _number_of(tables.kinds, row.kind),
            row.kind_version,
            tables.schemas[id(row.schema)],
            row.at,
            row.seq,
            _number_of(tables.policies, row.policy),
            row.state,
            tables.number_of(row.attributes),
        )
        for row in subject.versions
    ]
    return _SubjectRow(**plain)


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
    contents = [_load_content(state, *row) for row in _decode_rows(dumped.contents, _contents)]
    schemas = [_load_schema(state, contents, *row) for row in _decode_rows(dumped.schemas, _schemas)]
    dumped.kinds = [
        SchemaKind(state.intern_value(kind.format), kind.type, state.intern_value(kind.custom_format))
        for kind in dumped.kinds
    ]
    dumped.policies = [state.intern_value(policy) for policy in dumped.policies]
    versions: list[Version] = []
    for subject in _decode_rows(dumped.subjects, _subjects):
        versions.extend(_load_subject(state, subject, schemas, dumped))
    versions.sort(key=lambda version: version.seq)
    for version in versions:
        _link_references(state, version)
    return state


def _decode_rows(batches: list[msgspec.Raw], decoder: msgspec.msgpack.Decoder[list[R]]) -> Iterator[R]:
    for batch in batches:
        yield from decoder.decode(batch)


def _load_content(state: State, sha: bytes, format_name: str, held: int | tuple[bytes, int]) -> Content:
    kept = held if isinstance(held, int) else UnpackedText(None, *held)
    content = Content(sha, kept, state.intern_value(format_name))
    first = state.contents.setdefault(sha, content)
    if first is not content:
        *_, last = list_formats_of_text(first)
        last.same_text_in_other_format = content
    return content


def _load_schema(
    state: State,
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
    schema = SchemaEntry(place.name, schema_id, content, attachments, older_entry=content.newest_entry)
    content.newest_entry = place.schema_entries[schema_id] = schema
    return schema


def _load_subject(state: State, row: _SubjectRow, schemas: list[SchemaEntry], dumped: _Dump) -> list[Version]:
    plain = msgspec.structs.asdict(row)
    plain["uid"] = uid_from_bytes(row.uid)
    plain["kind"] = None if row.kind is None else dumped.kinds[row.kind]
    plain["highest_kind_versions"] = (
        None
        if row.highest_kind_versions is None
        else {dumped.kinds[schema_kind]: top for schema_kind, top in row.highest_kind_versions}
    )
    plain["encodings"] = row.encodings and [(uid_from_bytes(uid), codec) for uid, codec in row.encodings]
    plain["versions"] = []
    subject = Subject(**plain)
    subject.versions = [
        Version(
            pack_origin(uid_from_bytes(v.uid), v.at, v.seq),
            v.version_number,
            dumped.kinds[v.kind],
            v.kind_version,
            schemas[v.schema],
            subject,
            dumped.policies[v.policy],
            v.state,
            dumped.attributes[v.attributes],
        )
        for v in row.versions
    ]
    if subject.closed:
        state.closed.append(subject)
    else:
        state.namespaces[subject.key.namespace].subjects[subject.key.name] = subject
    return subject.versions


def _link_references(state: State, version: Version) -> None:
    version.older_version, version.schema.newest_version = version.schema.newest_version, version
    if version.state is not VersionState.ARCHIVED:
        for reference in version.schema.attachments.references:
            state.referrers.setdefault((reference.namespace, reference.subject, reference.version_number), []).append(
                version
            )
