"""A state as bytes and back: start-up without replaying the whole log.

Compact rows hold the facts; indexes and links are rebuilt. A snapshot of another layout is no error for the caller: the
log has everything, so it replays.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from stele.core.governance import Metadata, RuleSet
from stele.core.model import (
    PLAIN,
    Attachments,
    Binding,
    Content,
    Extra,
    GlobalId,
    Lane,
    Life,
    Mode,
    Numbering,
    Reference,
    Scope,
    Settings,
    Space,
    Subject,
    SubjectKey,
    Version,
    origin_of,
)
from stele.core.policy import Policy
from stele.core.state import State, uid_bytes, uid_of
from stele.core.texts import Texts

LAYOUT = 2
"""Raised whenever a row changes its shape."""

T = TypeVar("T")


class _Space(msgspec.Struct, array_like=True):
    name: str
    at: int
    gid_high: int
    settings: dict[str, Settings]
    modes: dict[str, Mode]
    incarnations: dict[str, int]
    format: str
    epoch: int
    description: str
    labels: dict[str, str] | None
    ext: dict[str, Any] | None
    explicit: bool
    hidden: bool


class _Subject(msgspec.Struct, array_like=True):
    key: SubjectKey
    uid: bytes
    serial: int
    incarnation: int
    at: int
    numbering: Numbering
    scope: Scope
    default_policy: Policy | None
    format: str
    ordinal_high: int
    lane: Lane | None
    lane_high: list[tuple[Lane, int]] | None
    codecs: dict[str, dict[str, str]] | None
    encodings: list[tuple[bytes, str]] | None
    default_version: int | None
    epoch: int
    description: str
    labels: dict[str, str] | None
    ext: dict[str, Any] | None
    closed: bool
    versions: list[_Version]


class _Version(msgspec.Struct, array_like=True):
    uid: bytes
    ordinal: int
    lane: int
    lane_version: int
    schema: int
    at: int
    seq: int
    policy: int
    life: Life
    extra: Extra | None


class _Dump(msgspec.Struct, array_like=True):
    layout: int
    seq: int
    serial: int
    settings: Settings | None
    mode: Mode | None
    spaces: list[_Space]
    lanes: list[Lane]
    policies: list[Policy | None]
    contents: list[tuple[bytes, int, str, bytes, int]]
    schemas: list[tuple[str, int, int, tuple[tuple[Reference, ...], Metadata | None, RuleSet | None] | None]]
    subjects: list[_Subject]
    bindings: list[Binding]
    texts: tuple[list[bytes], bytes, bytes, bytes]


def dump_state(state: State) -> bytes:
    """The state as bytes. Packs loose texts first; not within a draft."""
    state.pack(rest=True)
    contents = list(state.contents.values())
    schemas = [schema for space in state.spaces.values() for schema in space.gids.values()]
    number_of = {id(content): number for number, content in enumerate(contents)}
    schema_of = {id(schema): number for number, schema in enumerate(schemas)}
    lanes: dict[Lane, int] = {}
    policies: dict[Policy | None, int] = {}
    subjects = [*state.closed, *(row for space in state.spaces.values() for row in space.subjects.values())]
    dumped = _Dump(
        LAYOUT,
        state.seq,
        state.serial,
        state.settings,
        state.mode,
        [
            _Space(**{name: getattr(space, name) for name in _Space.__struct_fields__})
            for space in state.spaces.values()
        ],
        [],
        [],
        [(c.sha, c.text if isinstance(c.text, int) else -1, c.format, c.digests, c.seq) for c in contents],
        [(s.space, s.gid, number_of[id(s.content)], _loose(s.attachments)) for s in schemas],
        [_dump_subject(subject, schema_of, lanes, policies) for subject in subjects],
        list(state.bindings.values()),
        state.texts.dump(),
    )
    dumped.lanes, dumped.policies = list(lanes), list(policies)
    return msgspec.msgpack.encode(dumped)


def _loose(attachments: Attachments) -> tuple[tuple[Reference, ...], Metadata | None, RuleSet | None] | None:
    if attachments is PLAIN:
        return None
    return attachments.references, attachments.metadata, attachments.rule_set


def _index(table: dict[T, int], value: T) -> int:
    return table.setdefault(value, len(table))


def _dump_subject(
    subject: Subject, schema_of: dict[int, int], lanes: dict[Lane, int], policies: dict[Policy | None, int]
) -> _Subject:
    plain = {name: getattr(subject, name) for name in _Subject.__struct_fields__}
    plain["uid"] = uid_bytes(subject.uid)
    plain["lane_high"] = None if subject.lane_high is None else list(subject.lane_high.items())
    plain["encodings"] = subject.encodings and [(uid_bytes(uid), codec) for uid, codec in subject.encodings]
    plain["versions"] = [
        _Version(
            uid_bytes(row.uid),
            row.ordinal,
            _index(lanes, row.lane),
            row.lane_version,
            schema_of[id(row.schema)],
            row.at,
            row.seq,
            _index(policies, row.policy),
            row.life,
            row.extra,
        )
        for row in subject.versions
    ]
    return _Subject(**plain)


_decoder = msgspec.msgpack.Decoder(_Dump)


def load_state(data: bytes) -> State | None:
    """Inverse of `dump_state`; None when the bytes have another layout."""
    try:
        dumped = _decoder.decode(data)
    except msgspec.MsgspecError:
        return None
    if dumped.layout != LAYOUT:
        return None
    state = State()
    state.seq, state.serial = dumped.seq, dumped.serial
    state.settings, state.mode = dumped.settings, dumped.mode
    state.texts = Texts.load(dumped.texts)
    state.bindings = {binding.key: binding for binding in dumped.bindings}
    for row in dumped.spaces:
        state.spaces[row.name] = Space(**msgspec.structs.asdict(row))
    contents = [_load_content(state, *row) for row in dumped.contents]
    schemas = [_load_schema(state, contents, *row) for row in dumped.schemas]
    lanes = [state.intern(lane) for lane in dumped.lanes]
    policies = [state.intern(policy) for policy in dumped.policies]
    versions: list[Version] = []
    for subject_row in dumped.subjects:
        versions.extend(_load_subject(state, subject_row, schemas, lanes, policies))
    versions.sort(key=lambda version: version.seq)
    for version in versions:
        _link(state, version)
    return state


def _load_content(state: State, sha: bytes, handle: int, format_name: str, digests: bytes, seq: int) -> Content:
    text = handle if handle >= 0 else None
    content = state.contents[sha] = Content(sha, text, state.intern(format_name), digests, seq=seq)
    return content


def _load_schema(
    state: State,
    contents: list[Content],
    space: str,
    gid: int,
    content_number: int,
    loose: tuple[tuple[Reference, ...], Metadata | None, RuleSet | None] | None,
) -> GlobalId:
    attachments = PLAIN if loose is None else Attachments(*loose)
    if loose is not None and attachments.metadata is None and attachments.rule_set is None:
        attachments = state.intern(attachments)
    content, place = contents[content_number], state.spaces[space]
    schema = GlobalId(place.name, gid, content, attachments, next=content.ids)
    content.ids = place.gids[gid] = schema
    return schema


def _load_subject(
    state: State, row: _Subject, schemas: list[GlobalId], lanes: list[Lane], policies: list[Policy | None]
) -> list[Version]:
    plain = msgspec.structs.asdict(row)
    plain["uid"] = uid_of(row.uid)
    plain["lane_high"] = None if row.lane_high is None else dict(row.lane_high)
    plain["encodings"] = row.encodings and [(uid_of(uid), codec) for uid, codec in row.encodings]
    plain["versions"] = []
    subject = Subject(**plain)
    subject.versions = [
        Version(
            origin_of(uid_of(v.uid), v.at, v.seq),
            v.ordinal,
            lanes[v.lane],
            v.lane_version,
            schemas[v.schema],
            subject,
            policies[v.policy],
            v.life,
            v.extra,
        )
        for v in row.versions
    ]
    if subject.closed:
        state.closed.append(subject)
    else:
        state.spaces[subject.key.space].subjects[subject.key.name] = subject
    return subject.versions


def _link(state: State, version: Version) -> None:
    version.next_use, version.schema.uses = version.schema.uses, version
    if version.life is not Life.GONE:
        for reference in version.schema.attachments.references:
            state.referrers.setdefault((reference.space, reference.subject, reference.ordinal), []).append(version)
