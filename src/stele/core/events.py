"""Events: the facts in the log. They are complete, so that folding needs no parser, clock or random numbers.

Events are stored as msgpack. A tag names the event, members are stored by name, and a member with its default is
omitted, so an old log stays readable when members are added. Tags and names in the log never change. If the code uses a
better word now, the class gives its tag and `stored_names` the name of the member.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final, get_args

import msgspec

from stele.core.metadata import DataRuleSet, Metadata
from stele.core.model import Binding, ComparisonScope, Mode, Numbering, Reference, Settings, SettingsLevel, SubjectKey
from stele.core.policy import Policy
from stele.core.stored_names import STORED_NAMES

RECORD_FORMAT: Final = 2
"""The newest format of records that this release reads.

It rises with every new event, and with every new member that an older release must not ignore. A record states the
oldest format that has all it needs, unless that is 1.
"""


class _Event(msgspec.Struct, frozen=True, tag=True, tag_field="event", omit_defaults=True, rename=STORED_NAMES):
    """Base of all events. The name of the tag must not be that of a member (`type` is one)."""


class NamespaceCreated(_Event, frozen=True, tag="SpaceCreated"):
    """A namespace was created explicitly, before any subject in it."""

    namespace: str
    format: str = ""
    description: str = ""
    labels: dict[str, str] | None = None
    dialect_data: dict[str, Any] | None = None


class NamespaceChanged(_Event, frozen=True, tag="SpaceChanged"):
    """The descriptive attributes of a namespace were replaced."""

    namespace: str
    format: str = ""
    description: str = ""
    labels: dict[str, str] | None = None
    dialect_data: dict[str, Any] | None = None


class NamespaceDeleted(_Event, frozen=True, tag="SpaceDeleted"):
    """An empty namespace was deleted, with its settings. Its schema id counter stays, so no id is ever reused."""

    namespace: str


class SubjectCreated(_Event, frozen=True):
    """A new incarnation of a subject.

    serial is unique in the registry, and forms the upper part of 64-bit record ids.
    """

    key: SubjectKey
    uid: bytes
    serial: int
    incarnation: int
    numbering: Numbering = Numbering.CONTINUE
    comparison_scope: ComparisonScope = ComparisonScope.SUBJECT
    default_policy: Policy | None = None
    format: str = ""
    description: str = ""
    labels: dict[str, str] | None = None
    dialect_data: dict[str, Any] | None = None
    custom_format: str = ""


class SubjectChanged(_Event, frozen=True):
    """The descriptive attributes of a subject were replaced."""

    key: SubjectKey
    description: str = ""
    labels: dict[str, str] | None = None
    dialect_data: dict[str, Any] | None = None
    default_version: int | None = None


class IncarnationEnded(_Event, frozen=True, tag="SubjectClosed"):
    """The incarnation ended: its versions can be resolved only by uid, schema id and encoding id."""

    key: SubjectKey


class VersionRegistered(_Event, frozen=True, tag="Registered"):
    """A version was registered. text is absent if the content is already stored, or was purged from the log since."""

    key: SubjectKey
    uid: bytes
    version_number: int
    kind_version: int
    schema_id: int
    sha: bytes
    format: str
    type: str = ""
    custom_format: str = ""
    text: bytes | None = None
    digests: dict[str, bytes] = {}
    references: tuple[Reference, ...] = ()
    metadata: Metadata | None = None
    rule_set: DataRuleSet | None = None
    policy: Policy | None = None
    replaces: tuple[int, ...] = ()
    """Version numbers that this registration replaces: soft-deleted ones of the same schema, its own in an import."""
    description: str = ""
    labels: dict[str, str] | None = None
    media_type: str = ""
    origin_uri: str | None = None
    ancestor: int | None = None
    dialect_data: dict[str, Any] | None = None
    at: int | None = None
    """When an imported version was registered at its source; None: the time in the record's metadata."""


class VersionsSoftDeleted(_Event, frozen=True, tag="VersionsRetired"):
    """Versions were soft-deleted."""

    key: SubjectKey
    version_numbers: tuple[int, ...]


class VersionsPurged(_Event, frozen=True):
    """Versions were deleted permanently. A subject is deleted with its last version, and so are its settings."""

    key: SubjectKey
    version_numbers: tuple[int, ...]


class SettingsChanged(_Event, frozen=True):
    """The settings of a level were replaced; None removes them."""

    level: SettingsLevel
    settings: Settings | None = None


class ModeChanged(_Event, frozen=True):
    """The mode of a level was replaced; None removes it."""

    level: SettingsLevel
    mode: Mode | None = None


class CodecAdded(_Event, frozen=True):
    """A codec was added to a subject."""

    key: SubjectKey
    name: str
    properties: dict[str, str] = {}


class EncodingAssigned(_Event, frozen=True):
    """An encoding id of the subject was assigned to this version with this codec; ids count from 1."""

    key: SubjectKey
    encoding: int
    version: bytes
    codec: str


class BindingAdded(_Event, frozen=True, tag="Bound"):
    """A resource was bound to a subject, or bound again."""

    binding: Binding


class BindingRemoved(_Event, frozen=True, tag="Unbound"):
    """A binding was removed; key is (cluster, resource type, resource, role)."""

    key: tuple[str, str, str, str]


class ItemsChanged(_Event, frozen=True):
    """Documents of a collection were replaced; None removes one. sealed: some have secret members, encrypted."""

    collection: str
    changes: tuple[tuple[tuple[str, ...], bytes | None], ...]
    sealed: bool = False


class RulesetAdopted(_Event, frozen=True):
    """The registry adopted this version of a ruleset for schemas of a format; name is the bare name."""

    format: str
    name: str
    version: int


class IdsSkipped(_Event, frozen=True):
    """The registry was restored. Ids that its original may have assigned after the backup are skipped.

    schema_ids   skipped schema ids of every namespace, and skipped serials of subjects
    numbers      skipped encoding ids of every subject, and version numbers of subjects that never reuse one
    """

    schema_ids: int
    numbers: int


Event = (
    NamespaceCreated
    | NamespaceChanged
    | NamespaceDeleted
    | SubjectCreated
    | SubjectChanged
    | IncarnationEnded
    | VersionRegistered
    | VersionsSoftDeleted
    | VersionsPurged
    | SettingsChanged
    | ModeChanged
    | CodecAdded
    | EncodingAssigned
    | BindingAdded
    | BindingRemoved
    | ItemsChanged
    | RulesetAdopted
    | IdsSkipped
)


class EventMetadata(msgspec.Struct, frozen=True, omit_defaults=True):
    """The caller, time and API of a command. It is passed in with the command, so that deciding stays pure.

    uid is 16 random bytes that name the command (and the version it creates). at is milliseconds since 1970 UTC, and
    never before the time of an earlier record of the log. clock is the time of the clock, if that was earlier. address,
    agent and request_id are those of the request, as far as known.
    """

    uid: bytes
    at: int
    actor: str = ""
    via: str = ""
    clock: int | None = None
    address: str = ""
    agent: str = ""
    request_id: str = ""

    def not_before(self, at: int) -> EventMetadata:
        """Return the metadata with this time, or unchanged if its time is not earlier."""
        return self if self.at >= at else msgspec.structs.replace(self, at=at, clock=self.at)


class LogRecord(msgspec.Struct, frozen=True, omit_defaults=True, rename={"metadata": "stamp"}):
    """One entry of the log: the events of one command, all or none."""

    metadata: EventMetadata
    events: tuple[Event, ...]
    format: int = 1


_SEALED_FORMAT: Final = 2
"""The format of records with sealed documents. A release that does not support it would lose their secrets."""


def make_record(metadata: EventMetadata, events: tuple[Event, ...]) -> LogRecord:
    """Return a record with the oldest format that has all it needs."""
    is_sealed = any(isinstance(event, ItemsChanged) and event.sealed for event in events)
    return LogRecord(metadata, events, _SEALED_FORMAT if is_sealed else 1)


class NewerRecord(msgspec.DecodeError):
    """Raised for a record that a newer release has written. The message names the unknown format or event."""


class _EventTag(msgspec.Struct):
    event: str


class _RecordOutline(msgspec.Struct):
    """The parts of a record that every release writes."""

    stamp: msgspec.Raw
    events: list[_EventTag]
    format: int = 1


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(LogRecord)
_outline_decoder = msgspec.msgpack.Decoder(_RecordOutline)
_TAGS: Final = frozenset(event.__struct_config__.tag for event in get_args(Event))


def encode_record(record: LogRecord) -> bytes:
    """Return the bytes of a record in the log."""
    return _encoder.encode(record)


def decode_record(data: bytes) -> LogRecord:
    """Return a record from its bytes in the log. Raises `NewerRecord`, and `msgspec.DecodeError` for anything else."""
    try:
        record = _decoder.decode(data)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(f"a text in the record is not UTF-8: {error}") from None
    except msgspec.ValidationError:
        _refuse_newer(data)
        raise
    if record.format > RECORD_FORMAT:
        _refuse_newer(data)
    return record


def _refuse_newer(data: bytes) -> None:
    """Raise `NewerRecord` if a newer release wrote the record."""
    try:
        outline = _outline_decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return
    if outline.format > RECORD_FORMAT:
        raise NewerRecord(f"its format is {outline.format}, and this release reads formats up to {RECORD_FORMAT}")
    for row in outline.events:
        if row.event not in _TAGS:
            raise NewerRecord(f"this release does not know the event {row.event!r}")


_printer = msgspec.json.Encoder(order="deterministic")
_reader = msgspec.json.Decoder(LogRecord)


def print_record(record: LogRecord) -> bytes:
    """Return the record as one line of JSON, bytes in base64. Archives use this form, because it is long-lived."""
    return _printer.encode(record)


def read_record(line: bytes) -> LogRecord:
    """Return a record from a line of JSON. Raises `msgspec.DecodeError`, also for members that would be ignored."""
    record = _reader.decode(line)
    if _printer.encode(record) != line:
        raise msgspec.DecodeError("has members that this version does not know, or another encoding")
    return record


def has_intact_texts(record: LogRecord) -> bool:
    """Return whether every text in the record matches its SHA-256."""
    return all(
        event.text is None or sha256(event.text).digest() == event.sha
        for event in record.events
        if isinstance(event, VersionRegistered)
    )


def redact_texts(record: LogRecord, shas: frozenset[bytes]) -> LogRecord:
    """Return the record without the texts of those contents; everything that keeps numbers and order stays."""
    events = tuple(
        msgspec.structs.replace(event, text=None)
        if isinstance(event, VersionRegistered) and event.sha in shas
        else event
        for event in record.events
    )
    return msgspec.structs.replace(record, events=events)
