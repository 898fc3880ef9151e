"""The parts of a registry: namespaces, subjects, schema kinds, versions, contents and the ids that point at them.

Every dialect has two containers above a version. A *namespace* holds *subjects*, and a subject has the order, policy
and numbers. One registration assigns four independent numbers: the `schema_id` of the namespace, the `version_number`
of the subject, the `kind_version` of the subject's schema kind, and on request the subject's `encoding` id. Each
version also has a 128-bit `uid`. Only `State` changes these structs, because it can undo its changes (see `state`).

There are many contents, schema entries and versions. So they are small, and the cycle collector does not track them. A
purge removes them from every chain they are in, which frees them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple, NewType

import msgspec

from stele.core.id_table import IdTable
from stele.core.metadata import DataRuleSet, Metadata
from stele.core.policy import Policy
from stele.core.stored_names import STORED_NAMES
from stele.core.texts import PackedTexts
from stele.errors import TooLarge

Seq = NewType("Seq", int)
"""Position in the log, from 1."""
SchemaId = NewType("SchemaId", int)
"""Namespace-wide id of a schema with its attachments, from 1 to 2^31-1."""
VersionNumber = NewType("VersionNumber", int)
"""Version number inside a subject, from 1."""
Uid = NewType("Uid", int)
"""128-bit name of one version or subject incarnation, never reused."""

MAX_INT32 = 2**31 - 1
RECORD_ID_VERSION_BITS = 14
"""Number of low bits of a record id that hold the version number."""

DEFAULT_NAMESPACE = ""
"""Name of the namespace every dialect starts in; `.` and `default` are aliases (docs/protocols/model.md#c12)."""


OPAQUE_FORMAT = "opaque"
"""Format of schemas that are stored without being parsed, because their format is not installed."""


class SubjectKey(NamedTuple):
    """A subject's full name."""

    namespace: str
    name: str


class Mode(Enum):
    """Which writes are allowed."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    """READONLY that no lower level can lift."""
    IMPORT = "IMPORT"
    """Registrations have their own ids and numbers, and are not checked for compatibility."""
    FORWARD = "FORWARD"
    """Writes come from a replication link only; for the whole registry."""


class VersionState(Enum):
    """States of a version: ACTIVE → SOFT_DELETED (hidden, readable by id) → ARCHIVED."""

    ACTIVE = "live"
    SOFT_DELETED = "retired"
    ARCHIVED = "gone"
    """Its incarnation has ended: can be resolved by schema id, uid and encoding id only, for data already written."""

    __hash__ = object.__hash__  # That of `Enum` is slow Python code, called for every version that is read.


class Numbering(Enum):
    """What happens to the numbers of purged versions; fixed by the dialect that creates the subject."""

    CONTINUE = "continue"
    """The next number is one above the highest remaining one (a fully purged subject starts at 1)."""
    NEVER_REUSE = "never_reuse"
    """Numbers of purged versions are not reused while the subject exists."""
    NEVER_RESTART = "never_restart"
    """Numbers are never reused: a later subject of the same name continues them, because they are parts of URIs."""


class ComparisonScope(Enum):
    """Which versions of a subject a policy compares with."""

    SUBJECT = "subject"
    SCHEMA_KIND = "lane"
    ONE_TYPE = "one_type"
    """All active ones, which have one type. Another type is refused under every policy; an unnamed type is accepted."""


class Reference(msgspec.Struct, frozen=True, array_like=True):
    """A dependency on another version: `name` is its name in the text (full name, import path, `$ref` target)."""

    name: str
    namespace: str
    subject: str
    version_number: int

    @property
    def key(self) -> SubjectKey:
        """The subject referred to."""
        return SubjectKey(self.namespace, self.subject)


class Attachments(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parts of a registered schema's identity besides its text."""

    references: tuple[Reference, ...] = ()
    metadata: Metadata | None = None
    rule_set: DataRuleSet | None = None


NO_ATTACHMENTS = Attachments()


class SchemaFormat(NamedTuple):
    """Format of a schema.

    `custom_format` is the author's name of a format that is not installed: `format` is the opaque one then.
    """

    format: str
    custom_format: str = ""


class SchemaKind(NamedTuple):
    """Format and type of versions, which have numbers of their own within it.

    custom_format distinguishes formats that are not installed: all of them have the opaque format.
    """

    format: str
    type: str
    custom_format: str = ""

    @property
    def schema_format(self) -> SchemaFormat:
        """Format without the type."""
        return SchemaFormat(self.format, self.custom_format)


SHA_BYTES: Final = 32
"""Length of a SHA-256 in bytes. It ends the tag of a packed text: see `State`."""


class UnpackedText(NamedTuple):
    """A content before it is packed: text (None: purged), its SHA-256, packed digests, and the number of its record."""

    text: bytes | None
    sha: bytes
    digests: bytes = b""
    seq: int = 0


class FormatAndTwin(NamedTuple):
    """The format of a content, and the same text in another format: `{"type": "string"}` is Avro and JSON."""

    format: str
    twin: Content


class Content(msgspec.Struct, gc=False):
    """One text in one format, stored once: the text itself, or the handle of the packed text (see `State`).

    Few texts exist in several formats, so most have only the name of their format.
    """

    packed_texts: PackedTexts
    text_or_handle: UnpackedText | int
    format_and_twin: str | FormatAndTwin
    newest_entry: SchemaEntry | None = None

    @property
    def sha(self) -> bytes:
        """SHA-256 of the text."""
        text_or_handle = self.text_or_handle
        return (
            self.packed_texts.get_end_of_tag(text_or_handle, SHA_BYTES)
            if isinstance(text_or_handle, int)
            else text_or_handle.sha
        )

    @property
    def format(self) -> str:
        """Name of the format."""
        format_and_twin = self.format_and_twin
        return format_and_twin if isinstance(format_and_twin, str) else format_and_twin.format

    @property
    def same_text_in_other_format(self) -> Content | None:
        """Content of the same text in another format; None if there is none."""
        format_and_twin = self.format_and_twin
        return None if isinstance(format_and_twin, str) else format_and_twin.twin

    def join_format(self, twin: Content | None) -> str | FormatAndTwin:
        """Return the value of `format_and_twin` with another twin."""
        return self.format if twin is None else FormatAndTwin(self.format, twin)


class SchemaEntry(msgspec.Struct, gc=False):
    """A schema id of one namespace: a content with attachments.

    `older_entry` chains the entries of one content. `newest_version` begins the chain of the versions with this id.
    """

    namespace: str
    schema_id: int
    content: Content
    attachments: Attachments
    older_entry: SchemaEntry | None = None
    newest_version: Version | None = None


class VersionAttributes(msgspec.Struct, frozen=True, omit_defaults=True, rename=STORED_NAMES):
    """Rare attributes of a version.

    labels are free properties outside identity. dialect_data holds what a dialect sent and gets back unchanged, by
    dialect.
    """

    description: str = ""
    labels: dict[str, str] | None = None
    media_type: str = ""
    origin_uri: str | None = None
    created_by: str = ""
    ancestor: int | None = None
    dialect_data: dict[str, Any] | None = None


_MASK = 2**56 - 1
LATEST_TIME = _MASK
"""Milliseconds since 1970 UTC; a version's time is below."""


def pack_origin(uid: int, at: int, seq: int) -> int:
    """Return uid, time (ms) and seq of a version or subject as one number.

    One object instead of three takes half the memory.
    """
    return uid << 112 | min(max(at, 0), _MASK) << 56 | seq


class VersionDetails(msgspec.Struct, frozen=True):
    """Attributes that many versions share, especially first versions. Equal ones are stored once.

    policy is the one in force when the version was registered.
    """

    version_number: int
    kind_version: int
    policy: Policy | None = None
    state: VersionState = VersionState.ACTIVE
    attributes: VersionAttributes | None = None

    @property
    def is_sharable(self) -> bool:
        """Whether many versions are likely to have the same details: there are no individual values."""
        rare = self.attributes
        if rare is None:
            return True
        own = (rare.labels, rare.origin_uri, rare.ancestor, rare.dialect_data)
        return own == (None,) * len(own) and not rare.description


class Version(msgspec.Struct, gc=False):
    """One registration in a subject. For `origin` see `pack_origin`."""

    origin: int
    kind_or_type: SchemaKind | str
    """Only the type, if the kind has the format of the content and no custom format. Most types occur once."""
    schema: SchemaEntry
    subject: Subject
    details: VersionDetails
    older_version: Version | None = None

    @property
    def version_number(self) -> int:
        """Number in the subject, from 1."""
        return self.details.version_number

    @property
    def kind_version(self) -> int:
        """Number in its kind, from 1."""
        return self.details.kind_version

    @property
    def policy(self) -> Policy | None:
        """The policy in force when it was registered."""
        return self.details.policy

    @property
    def state(self) -> VersionState:
        """Whether it is active, soft-deleted or archived."""
        return self.details.state

    @property
    def attributes(self) -> VersionAttributes | None:
        """Attributes that few versions have; None for the others."""
        return self.details.attributes

    @property
    def uid(self) -> int:
        """128-bit name, never reused."""
        return self.origin >> 112

    @property
    def at(self) -> int:
        """Time of the registration in milliseconds since 1970 UTC."""
        return self.origin >> 56 & _MASK

    @property
    def seq(self) -> int:
        """Sequence number of the log record that registered it."""
        return self.origin & _MASK

    @property
    def content(self) -> Content:
        """Content with its text."""
        return self.schema.content

    @property
    def kind(self) -> SchemaKind:
        """Format and type."""
        kind_or_type = self.kind_or_type
        return SchemaKind(self.schema.content.format, kind_or_type) if isinstance(kind_or_type, str) else kind_or_type

    @property
    def record_id(self) -> int:
        """64-bit id with the version number in its low 14 bits (docs/protocols/rocketmq.md#ids).

        The other bits name the subject's incarnation.

        Raises `TooLarge` for a version number that does not fit: it would name another subject's version.
        """
        if self.version_number >> RECORD_ID_VERSION_BITS:
            raise TooLarge(
                f"version {self.version_number} of '{self.subject.key.name}' has no record id: 16383 is the last one"
            )
        return self.subject.record_id | self.version_number


class CreatorUsage(NamedTuple):
    """Versions that a caller registered and that are not purged, and the total length of their texts in bytes."""

    versions: int = 0
    text_bytes: int = 0


SKIPPED_ENCODING: Final = (0, "")
"""Entry of an encoding id that was never assigned here."""


class SubjectDetails(msgspec.Struct, frozen=True):
    """Attributes that many subjects share, or that most of them lack. Equal ones are stored once."""

    incarnation: int = 1
    numbering: Numbering = Numbering.CONTINUE
    comparison_scope: ComparisonScope = ComparisonScope.SUBJECT
    default_policy: Policy | None = None
    format: str = ""
    """Only schemas of this format are accepted; '' accepts all."""
    custom_format: str = ""
    """Name of that format, if it is not installed: then only that one is accepted."""
    highest_kind_versions: dict[SchemaKind, int] | None = None
    """Set only if there are several kinds; with one kind, kind numbers are the version numbers."""
    codecs: dict[str, dict[str, str]] | None = None
    encodings: list[tuple[int, str]] | None = None
    """Encoding ids from 1: (version uid, codec name), or `SKIPPED_ENCODING`."""
    default_version: int | None = None
    changed: int = 0
    """When the subject was last described or lost a version (ms); 0: never. Registrations have times of their own."""
    description: str = ""
    labels: dict[str, str] | None = None
    dialect_data: dict[str, Any] | None = None
    closed: bool = False

    @property
    def is_sharable(self) -> bool:
        """Whether many subjects are likely to have the same details: there are no individual values."""
        own = (self.highest_kind_versions, self.codecs, self.encodings, self.labels, self.dialect_data)
        return own == (None,) * len(own) and not self.changed and not self.description


class Subject(msgspec.Struct, gc=False):
    """One incarnation of a subject: a closed one keeps its numbers, a new one starts again at 1.

    There are many subjects, and most have one version. So `stored_versions` is that version itself until there are
    more, and `origin` (see `pack_origin`: uid, time, seq) is mostly the one of its first version.

    Source: docs/protocols/model.md#c5.
    """

    namespace: str
    name: str
    origin: int
    serial: int
    """Its number among all incarnations of subjects."""
    details: SubjectDetails
    highest_version_number: int = 0
    epoch: int = 0
    stored_versions: Version | list[Version] | None = None

    @property
    def key(self) -> SubjectKey:
        """Namespace and name of the subject."""
        return SubjectKey(self.namespace, self.name)

    @property
    def versions(self) -> Sequence[Version]:
        """Its versions in ascending order; must not be changed."""
        versions = self.stored_versions
        return versions if isinstance(versions, list) else () if versions is None else (versions,)

    @property
    def uid(self) -> int:
        """128-bit name of this incarnation, never reused."""
        return self.origin >> 112

    @property
    def at(self) -> int:
        """Time of its creation in milliseconds since 1970 UTC."""
        return self.origin >> 56 & _MASK

    @property
    def record_id(self) -> int:
        """Upper bits of the record ids of its versions, with zero in place of a version number."""
        return self.serial << RECORD_ID_VERSION_BITS

    @property
    def kind(self) -> SchemaKind | None:
        """The kind of its versions, the first one where there were several; None while there is no version."""
        if self.details.highest_kind_versions is not None:
            return next(iter(self.details.highest_kind_versions))
        versions = self.versions
        return versions[0].kind if versions else None

    @property
    def incarnation(self) -> int:
        """Number of subjects with this name so far, this one included."""
        return self.details.incarnation

    @property
    def numbering(self) -> Numbering:
        """What happens to the numbers of purged versions."""
        return self.details.numbering

    @property
    def comparison_scope(self) -> ComparisonScope:
        """Which versions its policy compares with."""
        return self.details.comparison_scope

    @property
    def default_policy(self) -> Policy | None:
        """The policy that the creating dialect set."""
        return self.details.default_policy

    @property
    def format(self) -> str:
        """Only schemas of this format are accepted; '' accepts all."""
        return self.details.format

    @property
    def custom_format(self) -> str:
        """Name of that format, if it is not installed: then only that one is accepted."""
        return self.details.custom_format

    @property
    def highest_kind_versions(self) -> dict[SchemaKind, int] | None:
        """The highest number of each kind if there are several kinds; else None."""
        return self.details.highest_kind_versions

    @property
    def codecs(self) -> dict[str, dict[str, str]] | None:
        """Properties of its codecs by name."""
        return self.details.codecs

    @property
    def encodings(self) -> list[tuple[int, str]] | None:
        """Encoding ids from 1: (version uid, codec name), or `SKIPPED_ENCODING`."""
        return self.details.encodings

    @property
    def default_version(self) -> int | None:
        """Number of the version that was chosen as the default; None: the newest one."""
        return self.details.default_version

    @property
    def changed_at(self) -> int:
        """When it was last described or lost a version (ms); 0: never."""
        return self.details.changed

    @property
    def description(self) -> str:
        """Description that users wrote."""
        return self.details.description

    @property
    def labels(self) -> dict[str, str] | None:
        """Free properties."""
        return self.details.labels

    @property
    def dialect_data(self) -> dict[str, Any] | None:
        """What a dialect sent and gets back unchanged, by dialect."""
        return self.details.dialect_data

    @property
    def is_closed(self) -> bool:
        """Whether this incarnation has ended."""
        return self.details.closed


class Settings(msgspec.Struct, frozen=True, omit_defaults=True, rename=STORED_NAMES):
    """Settings of one level (subject, namespace or registry). None means the value of the level above.

    ruleset        compatibility ruleset preferred if the format has it; `name@2` pins that version
    normalize      register the normalised text instead of the author's
    alias          requests for this subject apply to that one
    group          metadata property: only versions with an equal value are compared
    validate_*     stricter checks of new schemas
    default_* / override_*  metadata and rules that are merged below / above those of a registration
    """

    policy: Policy | None = None
    ruleset: str | None = None
    normalize: bool | None = None
    alias: str | None = None
    group: str | None = None
    validate_fields: bool | None = None
    validate_new_schemas: bool | None = None
    validate_rules: bool | None = None
    default_metadata: Metadata | None = None
    override_metadata: Metadata | None = None
    default_rule_set: DataRuleSet | None = None
    override_rule_set: DataRuleSet | None = None
    dialect_data: dict[str, Any] | None = None


class BindingIndexKey(NamedTuple):
    """Index key of bindings.

    kind '' has namespace and name of a subject, `id` has type and id of a resource.
    """

    kind: str
    first: str
    second: str


class Binding(msgspec.Struct, frozen=True, omit_defaults=True, rename=STORED_NAMES):
    """A resource of a data system bound to a subject. version_number None follows the latest version.

    A STRONG binding owns its subject, and may delete it when the binding is removed. guid is its name in the dialects
    that name bindings.
    """

    cluster: str
    resource_type: str
    resource: str
    role: str
    subject: SubjectKey
    version_number: int | None = None
    lifecycle: str = "WEAK"
    frozen: bool = False
    resource_id: str = ""
    guid: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """The unique key: (cluster, resource type, resource, role)."""
        return self.cluster, self.resource_type, self.resource, self.role

    @property
    def index_keys(self) -> tuple[BindingIndexKey, ...]:
        """Its index keys: its subject, and its resource's id if it has one."""
        of_subject = BindingIndexKey("", *self.subject)
        if not self.resource_id:
            return (of_subject,)
        return of_subject, BindingIndexKey("id", self.resource_type, self.resource_id)


class Collection(msgspec.Struct):
    """Named documents of one purpose, stored beside the schemas (encryption keys, exporters, subscriptions …).

    Only the owner of the collection knows their meaning; here they are JSON texts by key. revision counts changes. A
    caller passes the revision it decided on, and is refused when another writer was faster.
    """

    revision: int = 0
    items: dict[tuple[str, ...], bytes] = {}


class Namespace(msgspec.Struct):
    """Subjects with their own counter of schema ids.

    Settings and modes are stored by subject name, so they may exist before the subject.
    """

    name: str
    at: int
    subjects: dict[str, Subject] = {}
    schema_entries: IdTable[SchemaEntry] = msgspec.field(default_factory=IdTable)
    highest_schema_id: int = 0
    settings: dict[str, Settings] = {}
    modes: dict[str, Mode] = {}
    incarnations: dict[str, int] = {}
    """Number of incarnations, by names whose subject no longer exists."""
    used_version_numbers: dict[str, int] = {}
    """Highest version number, by names whose numbers never restart and whose subject no longer exists."""
    format: str = ""
    epoch: int = 0
    changed: int = 0
    """When it was last described (ms); 0: never."""
    description: str = ""
    labels: dict[str, str] | None = None
    dialect_data: dict[str, Any] | None = None
    explicit: bool = False
    """Created by a command of its own, not by the first registration."""
    hidden: bool = False
    """Deleted: only the counters are kept."""


class SettingsLevel(NamedTuple):
    """A level that can have settings and a mode; both None is the registry, subject None the namespace."""

    namespace: str | None = None
    subject: str | None = None


REGISTRY_LEVEL = SettingsLevel()


class SubmittedText(NamedTuple):
    """The author's text, and its SHA-256."""

    text: bytes
    sha: bytes


class SchemaDocument(msgspec.Struct, frozen=True):
    """A schema in a command: text, its SHA-256, the parts of its kind, and derived digests by kind.

    submitted is the author's text, if another form of it is registered. Validators read that text, including comments.
    """

    text: bytes
    sha: bytes
    format: str
    type: str = ""
    digests: Mapping[str, bytes] = {}
    custom_format: str = ""
    submitted: SubmittedText | None = None

    @property
    def texts(self) -> dict[bytes, bytes]:
        """Its texts by SHA-256: the one to register, and the author's."""
        own = {self.sha: self.text}
        return own if self.submitted is None else {self.submitted.sha: self.submitted.text, **own}

    @property
    def kind(self) -> SchemaKind:
        """The kind a version of this document belongs to."""
        return SchemaKind(self.format, self.type, self.custom_format)
