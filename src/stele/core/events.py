"""The facts in the log: what happened, complete enough that folding needs no parser, clock or chance.

Events are msgpack on the log, tagged by class name, members by name: old logs stay readable when members are added.
Members that hold their default are not written.
"""

from __future__ import annotations

from typing import Any

import msgspec

from stele.core.governance import Metadata, RuleSet
from stele.core.model import Binding, Level, Mode, Numbering, Reference, Scope, Settings, SubjectKey
from stele.core.policy import Policy


class _Event(msgspec.Struct, frozen=True, tag=True, tag_field="event", omit_defaults=True):
    """What all events share; the tag's name must not be that of a member (`type` is one)."""


class SpaceCreated(_Event, frozen=True):
    """A space was created by itself, before anything in it."""

    space: str
    format: str = ""
    description: str = ""
    labels: dict[str, str] | None = None
    ext: dict[str, Any] | None = None


class SpaceChanged(_Event, frozen=True):
    """A space's describing attributes are now these."""

    space: str
    format: str = ""
    description: str = ""
    labels: dict[str, str] | None = None
    ext: dict[str, Any] | None = None


class SpaceDeleted(_Event, frozen=True):
    """An empty space went away, with its settings; its gid counter stays, so no id is ever given twice."""

    space: str


class SubjectCreated(_Event, frozen=True):
    """A new incarnation of a subject; serial is registry-wide and gives 64-bit record ids their upper part."""

    key: SubjectKey
    uid: bytes
    serial: int
    incarnation: int
    numbering: Numbering = Numbering.CONTINUE
    scope: Scope = Scope.SUBJECT
    default_policy: Policy | None = None
    format: str = ""
    description: str = ""
    labels: dict[str, str] | None = None
    ext: dict[str, Any] | None = None
    variety: str = ""


class SubjectChanged(_Event, frozen=True):
    """A subject's describing attributes are now these."""

    key: SubjectKey
    description: str = ""
    labels: dict[str, str] | None = None
    ext: dict[str, Any] | None = None
    default_version: int | None = None


class SubjectClosed(_Event, frozen=True):
    """The incarnation ended: its versions stay resolvable by uid, gid and encoding only."""

    key: SubjectKey


class Registered(_Event, frozen=True):
    """A version came to be. text is absent when the content is known already (or was purged from the log since)."""

    key: SubjectKey
    uid: bytes
    ordinal: int
    lane_version: int
    gid: int
    sha: bytes
    format: str
    type: str = ""
    variety: str = ""
    text: bytes | None = None
    digests: dict[str, bytes] = {}
    references: tuple[Reference, ...] = ()
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    policy: Policy | None = None
    replaces: tuple[int, ...] = ()
    """Ordinals this registration takes the place of: retired ones of the same schema, its own in an import."""
    description: str = ""
    labels: dict[str, str] | None = None
    media_type: str = ""
    origin_uri: str | None = None
    ancestor: int | None = None
    ext: dict[str, Any] | None = None
    at: int | None = None
    """When it was registered where an import has it from; None: when the record's stamp says."""


class VersionsRetired(_Event, frozen=True):
    """Versions were soft-deleted."""

    key: SubjectKey
    ordinals: tuple[int, ...]


class VersionsPurged(_Event, frozen=True):
    """Versions are gone for good; a subject without versions goes with the last one, and so do its settings."""

    key: SubjectKey
    ordinals: tuple[int, ...]


class SettingsChanged(_Event, frozen=True):
    """The settings of a level are now these; None removes them."""

    level: Level
    settings: Settings | None = None


class ModeChanged(_Event, frozen=True):
    """The mode of a level is now this; None removes it."""

    level: Level
    mode: Mode | None = None


class CodecAdded(_Event, frozen=True):
    """A subject knows one more codec for its data."""

    key: SubjectKey
    name: str
    properties: dict[str, str] = {}


class EncodingAssigned(_Event, frozen=True):
    """An encoding id of the subject stands for this version with this codec; ids count from 1."""

    key: SubjectKey
    encoding: int
    version: bytes
    codec: str


class Bound(_Event, frozen=True):
    """A resource is bound to a subject (again)."""

    binding: Binding


class Unbound(_Event, frozen=True):
    """A binding ended; key is (cluster, resource type, resource, role)."""

    key: tuple[str, str, str, str]


class ItemsChanged(_Event, frozen=True):
    """Documents of a collection are now these; None removes one."""

    collection: str
    changes: tuple[tuple[tuple[str, ...], bytes | None], ...]


class RulesetAdopted(_Event, frozen=True):
    """The registry judges schemas of a format by this version of a ruleset from now on; name is the bare one."""

    format: str
    name: str
    version: int


Event = (
    SpaceCreated
    | SpaceChanged
    | SpaceDeleted
    | SubjectCreated
    | SubjectChanged
    | SubjectClosed
    | Registered
    | VersionsRetired
    | VersionsPurged
    | SettingsChanged
    | ModeChanged
    | CodecAdded
    | EncodingAssigned
    | Bound
    | Unbound
    | ItemsChanged
    | RulesetAdopted
)


class Stamp(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who asked for a command, when and through what; comes in with the command, so that deciding stays pure.

    uid is 16 random bytes naming the command (and the version it creates); at is milliseconds since 1970 UTC.
    """

    uid: bytes
    at: int
    actor: str = ""
    via: str = ""


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry of the log: the events of one command, all or none."""

    stamp: Stamp
    events: tuple[Event, ...]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Record)


def encode_record(record: Record) -> bytes:
    """The bytes of a record in the log."""
    return _encoder.encode(record)


def decode_record(data: bytes) -> Record:
    """Inverse of `encode_record`. Raises `msgspec.DecodeError` for anything else."""
    return _decoder.decode(data)


_printer = msgspec.json.Encoder(order="deterministic")
_reader = msgspec.json.Decoder(Record)


def print_record(record: Record) -> bytes:
    """The record as one line of JSON, bytes in base64: for archives, which outlive programs and stores."""
    return _printer.encode(record)


def read_record(line: bytes) -> Record:
    """Inverse of `print_record`. Raises `msgspec.DecodeError`, also for what this version would silently leave out."""
    record = _reader.decode(line)
    if _printer.encode(record) != line:
        raise msgspec.DecodeError("says more than this version knows, or says it in other words than it would")
    return record


def redact(record: Record, shas: frozenset[bytes]) -> Record:
    """The record without the texts of those contents; everything that keeps numbers and order stays."""
    events = tuple(
        msgspec.structs.replace(event, text=None) if isinstance(event, Registered) and event.sha in shas else event
        for event in record.events
    )
    return Record(record.stamp, events)
