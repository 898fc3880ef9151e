"""The facts in the log: what happened, complete enough that folding needs no parser, clock or chance.

Events are msgpack on the log. A tag names the event, members go by name, and a member that holds its default is not
written; so an old log stays readable when members are added. Tags and names in the log never change. Where the code
has a better word by now, the class gives its tag and `stored_names` the name of the member.
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

It rises with every event, and with every member that an older release must not leave out. A record says its format
unless that is 1, and says the oldest one that has all it needs.
"""


class _Event(msgspec.Struct, frozen=True, tag=True, tag_field="event", omit_defaults=True, rename=STORED_NAMES):
    """What all events share; the tag's name must not be that of a member (`type` is one)."""


class NamespaceCreated(_Event, frozen=True, tag="SpaceCreated"):
    """A namespace was created by itself, before anything in it."""

    namespace: str
    format: str = ""
    description: str = ""
    labels: dict[str, str] | None = None
    dialect_data: dict[str, Any] | None = None


class NamespaceChanged(_Event, frozen=True, tag="SpaceChanged"):
    """A namespace's describing attributes are now these."""

    namespace: str
    format: str = ""
    description: str = ""
    labels: dict[str, str] | None = None
    dialect_data: dict[str, Any] | None = None


class NamespaceDeleted(_Event, frozen=True, tag="SpaceDeleted"):
    """An empty namespace went away, with its settings; its schema id counter stays, so no id is ever given twice."""

    namespace: str


class SubjectCreated(_Event, frozen=True):
    """A new incarnation of a subject; serial is registry-wide and gives 64-bit record ids their upper part."""

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
    """A subject's describing attributes are now these."""

    key: SubjectKey
    description: str = ""
    labels: dict[str, str] | None = None
    dialect_data: dict[str, Any] | None = None
    default_version: int | None = None


class IncarnationEnded(_Event, frozen=True, tag="SubjectClosed"):
    """The incarnation ended: its versions stay resolvable by uid, schema id and encoding only."""

    key: SubjectKey


class VersionRegistered(_Event, frozen=True, tag="Registered"):
    """A version came to be. text is absent when the content is known already (or was purged from the log since)."""

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
    """Ordinals this registration takes the place of: soft-deleted ones of the same schema, its own in an import."""
    description: str = ""
    labels: dict[str, str] | None = None
    media_type: str = ""
    origin_uri: str | None = None
    ancestor: int | None = None
    dialect_data: dict[str, Any] | None = None
    at: int | None = None
    """When it was registered where an import has it from; None: when the record's stamp says."""


class VersionsSoftDeleted(_Event, frozen=True, tag="VersionsRetired"):
    """Versions were soft-deleted."""

    key: SubjectKey
    version_numbers: tuple[int, ...]


class VersionsPurged(_Event, frozen=True):
    """Versions are gone for good; a subject without versions goes with the last one, and so do its settings."""

    key: SubjectKey
    version_numbers: tuple[int, ...]


class SettingsChanged(_Event, frozen=True):
    """The settings of a level are now these; None removes them."""

    level: SettingsLevel
    settings: Settings | None = None


class ModeChanged(_Event, frozen=True):
    """The mode of a level is now this; None removes it."""

    level: SettingsLevel
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


class BindingAdded(_Event, frozen=True, tag="Bound"):
    """A resource is bound to a subject (again)."""

    binding: Binding


class BindingRemoved(_Event, frozen=True, tag="Unbound"):
    """A binding ended; key is (cluster, resource type, resource, role)."""

    key: tuple[str, str, str, str]


class ItemsChanged(_Event, frozen=True):
    """Documents of a collection are now these; None removes one. sealed: some have secret members, encrypted."""

    collection: str
    changes: tuple[tuple[tuple[str, ...], bytes | None], ...]
    sealed: bool = False


class RulesetAdopted(_Event, frozen=True):
    """The registry judges schemas of a format by this version of a ruleset from now on; name is the bare one."""

    format: str
    name: str
    version: int


class IdsSkipped(_Event, frozen=True):
    """The registry was restored, and its original may have gone on: ids it may have given out are left out.

    schema_ids   of every namespace, and as many serials of subjects
    numbers      encoding ids of every subject, and version numbers of those that never reuse one
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
    """Who asked for a command, when and through what; comes in with the command, so that deciding stays pure.

    uid is 16 random bytes naming the command (and the version it creates); at is milliseconds since 1970 UTC, and in
    the log never before that of an earlier record. clock is what the clock said where it was behind. address, agent and
    request_id are those of the request, as far as the server knew them.
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
        """Return the same at this time, unless it is later already."""
        return self if self.at >= at else msgspec.structs.replace(self, at=at, clock=self.at)


class LogRecord(msgspec.Struct, frozen=True, omit_defaults=True, rename={"metadata": "stamp"}):
    """One entry of the log: the events of one command, all or none."""

    metadata: EventMetadata
    events: tuple[Event, ...]
    format: int = 1


_SEALED_FORMAT: Final = 2
"""The format of records with sealed documents: a release that does not know them would lose what is in them."""


def make_record(metadata: EventMetadata, events: tuple[Event, ...]) -> LogRecord:
    """Return a record that says the oldest format that has all it needs."""
    is_sealed = any(isinstance(event, ItemsChanged) and event.sealed for event in events)
    return LogRecord(metadata, events, _SEALED_FORMAT if is_sealed else 1)


class NewerRecord(msgspec.DecodeError):
    """A record that a newer release has written; the message says how that shows."""


class _EventTag(msgspec.Struct):
    event: str


class _RecordOutline(msgspec.Struct):
    """What every release writes into a record."""

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
    """Inverse of `encode_record`. Raises `NewerRecord`, and `msgspec.DecodeError` for anything else."""
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
    """Raise `NewerRecord` for the record of a newer release."""
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
    """Return the record as one line of JSON, bytes in base64: for archives, which outlive programs and stores."""
    return _printer.encode(record)


def read_record(line: bytes) -> LogRecord:
    """Inverse of `print_record`. Raises `msgspec.DecodeError`, also for what this version would silently leave out."""
    record = _reader.decode(line)
    if _printer.encode(record) != line:
        raise msgspec.DecodeError("says more than this version knows, or says it in other words than it would")
    return record


def has_intact_texts(record: LogRecord) -> bool:
    """Whether every text in the record is the one its SHA-256 is of."""
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
