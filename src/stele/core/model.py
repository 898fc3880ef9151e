"""What a registry is made of: namespaces, subjects, schema kinds, versions, contents and the ids that point at them.

Every dialect has two containers above a version: a *namespace* holds *subjects*, and a subject owns order, policy and
numbers. One registration gives out four numbers, none computed from another: the `schema_id` of the namespace, the
`version_number` of the subject, the `kind_version` of the subject's schema kind, and on request the subject's
`encoding` id. Each version also has a 128-bit `uid`. `State` alone changes these structs, because it can undo what it
did (see `state`).

There are many contents, schema entries and versions. So they are lean, and the cycle collector does not track them. A
purge takes them out of every chain they are in, which frees them.
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
"""128-bit name of one version or subject incarnation, never given twice."""

MAX_INT32 = 2**31 - 1
RECORD_ID_VERSION_BITS = 14
"""Of a record id that are the version number."""

DEFAULT_NAMESPACE = ""
"""Name of the namespace every dialect starts in; `.` and `default` are aliases (docs/protocols/model.md#c12)."""


OPAQUE_FORMAT = "opaque"
"""Format of schemas that are kept unread: those of formats that nobody here knows."""


class SubjectKey(NamedTuple):
    """A subject's full name."""

    namespace: str
    name: str


class Mode(Enum):
    """What may be written."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    """READONLY that no lower level can lift."""
    IMPORT = "IMPORT"
    """Registrations bring their own ids and numbers and are not checked for compatibility."""
    FORWARD = "FORWARD"
    """Writes come from a replication link only; for the whole registry."""


class VersionState(Enum):
    """States of a version: ACTIVE → SOFT_DELETED (soft-deleted, still readable by id) → ARCHIVED."""

    ACTIVE = "live"
    SOFT_DELETED = "retired"
    ARCHIVED = "gone"
    """Of a closed incarnation: resolvable by schema id, uid and encoding only, for data already written."""

    __hash__ = object.__hash__  # The one of `Enum` is written in Python, and is asked of every version looked at.


class Numbering(Enum):
    """What happens to the numbers of purged versions; fixed by the dialect that creates the subject."""

    CONTINUE = "continue"
    """The next number is one above the highest that is left (a fully purged subject starts at 1)."""
    NEVER_REUSE = "never_reuse"
    """Numbers of purged versions are not given again while the subject lives."""
    NEVER_RESTART = "never_restart"
    """Nor later: a subject of the same name goes on counting, since numbers are parts of URIs."""


class ComparisonScope(Enum):
    """Which versions of a subject a policy compares with."""

    SUBJECT = "subject"
    SCHEMA_KIND = "lane"
    ONE_TYPE = "one_type"
    """All active ones, which are of one type: another type is refused under every policy; an unnamed one fits."""


class Reference(msgspec.Struct, frozen=True, array_like=True):
    """A dependency on another version: `name` is what the text calls it (full name, import path, `$ref` target)."""

    name: str
    namespace: str
    subject: str
    version_number: int

    @property
    def key(self) -> SubjectKey:
        """The subject referred to."""
        return SubjectKey(self.namespace, self.subject)


class Attachments(msgspec.Struct, frozen=True, omit_defaults=True):
    """What belongs to the identity of a registered schema beside its text."""

    references: tuple[Reference, ...] = ()
    metadata: Metadata | None = None
    rule_set: DataRuleSet | None = None


NO_ATTACHMENTS = Attachments()


class SchemaFormat(NamedTuple):
    """Format of a schema.

    `custom_format` is the name its author gave to a format that nobody here knows: `format` is then the opaque one.
    """

    format: str
    custom_format: str = ""


class SchemaKind(NamedTuple):
    """Format and type of versions, which have numbers of their own within it.

    custom_format tells apart what has a name of its own among formats nobody here knows: they share the opaque one.
    """

    format: str
    type: str
    custom_format: str = ""

    @property
    def schema_format(self) -> SchemaFormat:
        """Format without the type."""
        return SchemaFormat(self.format, self.custom_format)


SHA_BYTES: Final = 32
"""Length of a SHA-256, which ends the tag of a packed text: see `State`."""


class UnpackedText(NamedTuple):
    """A content until it is packed: text (None: purged), its SHA-256, packed digests, and the record that has it."""

    text: bytes | None
    sha: bytes
    digests: bytes = b""
    seq: int = 0


class FormatAndTwin(NamedTuple):
    """The format of a content, and what the same text is in another one: `{"type": "string"}` is Avro and JSON."""

    format: str
    twin: Content


class Content(msgspec.Struct, gc=False):
    """One text in one language, stored once: its text as it is, or the handle of what is packed (see `State`).

    Few texts are there in several languages, so most have a format alone.
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
        """The language."""
        format_and_twin = self.format_and_twin
        return format_and_twin if isinstance(format_and_twin, str) else format_and_twin.format

    @property
    def same_text_in_other_format(self) -> Content | None:
        """What the same text is in a further language."""
        format_and_twin = self.format_and_twin
        return None if isinstance(format_and_twin, str) else format_and_twin.twin

    def join_format(self, twin: Content | None) -> str | FormatAndTwin:
        """Return what `format_and_twin` is with another twin."""
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

    labels are free properties outside identity; ext holds what a dialect sent and gets back unchanged, by dialect.
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
    """uid, time (ms) and seq of a version or subject in one number: one object instead of three, half the memory."""
    return uid << 112 | min(max(at, 0), _MASK) << 56 | seq


class VersionDetails(msgspec.Struct, frozen=True):
    """What versions have in common with many others, as first versions have: equal ones are stored once.

    policy is the one in force when the version was registered.
    """

    version_number: int
    kind_version: int
    policy: Policy | None = None
    state: VersionState = VersionState.ACTIVE
    attributes: VersionAttributes | None = None

    @property
    def is_sharable(self) -> bool:
        """Whether many versions are likely to have the same details: nothing that is theirs alone."""
        rare = self.attributes
        if rare is None:
            return True
        own = (rare.labels, rare.origin_uri, rare.ancestor, rare.dialect_data)
        return own == (None,) * len(own) and not rare.description


class Version(msgspec.Struct, gc=False):
    """One registration in a subject; `origin` see `pack_origin`."""

    origin: int
    kind_or_type: SchemaKind | str
    """The type alone of a kind that has the format of its content and no name of its own: most have a type each."""
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
        """Whether it is deleted."""
        return self.details.state

    @property
    def attributes(self) -> VersionAttributes | None:
        """What few versions have."""
        return self.details.attributes

    @property
    def uid(self) -> int:
        """128-bit name, never given twice."""
        return self.origin >> 112

    @property
    def at(self) -> int:
        """Milliseconds since 1970 UTC."""
        return self.origin >> 56 & _MASK

    @property
    def seq(self) -> int:
        """Where in the log it was registered."""
        return self.origin & _MASK

    @property
    def content(self) -> Content:
        """The text's record."""
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
    """What a caller has registered and nobody has purged: versions, and the bytes of their texts, one by one."""

    versions: int = 0
    text_bytes: int = 0


SKIPPED_ENCODING: Final = (0, "")
"""In the place of an encoding id that was never given out here."""


class SubjectDetails(msgspec.Struct, frozen=True):
    """What subjects have in common with many others, or most of them lack: equal ones are stored once."""

    incarnation: int = 1
    numbering: Numbering = Numbering.CONTINUE
    comparison_scope: ComparisonScope = ComparisonScope.SUBJECT
    default_policy: Policy | None = None
    format: str = ""
    """Only schemas of this format are taken; '' takes all."""
    custom_format: str = ""
    """Of the format, where it has a name that nobody here knows: then only that one is taken."""
    highest_kind_versions: dict[SchemaKind, int] | None = None
    """Kept only once there are two kinds; with one kind, kind numbers are the version numbers."""
    codecs: dict[str, dict[str, str]] | None = None
    encodings: list[tuple[int, str]] | None = None
    """Encoding ids from 1: (version uid, codec name), or `SKIPPED_ENCODING`."""
    default_version: int | None = None
    changed: int = 0
    """When the subject was last described anew or lost a version (ms); 0: never. A registration has a time itself."""
    description: str = ""
    labels: dict[str, str] | None = None
    dialect_data: dict[str, Any] | None = None
    closed: bool = False

    @property
    def is_sharable(self) -> bool:
        """Whether many subjects are likely to have the same details: nothing that is theirs alone."""
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
        """Its full name."""
        return SubjectKey(self.namespace, self.name)

    @property
    def versions(self) -> Sequence[Version]:
        """Its versions in ascending order; to be read only."""
        versions = self.stored_versions
        return versions if isinstance(versions, list) else () if versions is None else (versions,)

    @property
    def uid(self) -> int:
        """128-bit name of this incarnation, never given twice."""
        return self.origin >> 112

    @property
    def at(self) -> int:
        """Milliseconds since 1970 UTC."""
        return self.origin >> 56 & _MASK

    @property
    def record_id(self) -> int:
        """What the record ids of its versions begin with: itself the id of no version."""
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
        """How many subjects had this name, up to this one."""
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
        """The policy that its creating dialect wrote down."""
        return self.details.default_policy

    @property
    def format(self) -> str:
        """Only schemas of this format are taken; '' takes all."""
        return self.details.format

    @property
    def custom_format(self) -> str:
        """Name of that format, where nobody here knows it: then only that one is taken."""
        return self.details.custom_format

    @property
    def highest_kind_versions(self) -> dict[SchemaKind, int] | None:
        """The highest number of each kind once there are two; None before."""
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
        """Number of the version that was chosen as the default; None: the newest is."""
        return self.details.default_version

    @property
    def changed_at(self) -> int:
        """When it was last described anew or lost a version (ms); 0: never."""
        return self.details.changed

    @property
    def description(self) -> str:
        """What people wrote about it."""
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
    """What is set at one level (subject, namespace or registry); None means "ask the level above".

    ruleset        compatibility ruleset preferred where the format knows it; `name@2` holds it at that version
    normalize      register the normalised text instead of the author's
    alias          requests for this subject act on that one
    group          metadata property: only versions with an equal value are compared
    validate_*     stricter checks of new schemas
    default_* / override_*  metadata and rules filled in below / above what a registration brings
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
    """Where bindings are looked for: kind '' has namespace and name of a subject, `id` type and id of a resource."""

    kind: str
    first: str
    second: str


class Binding(msgspec.Struct, frozen=True, omit_defaults=True, rename=STORED_NAMES):
    """A resource of a data system bound to a subject. version number None follows the latest version.

    A STRONG binding has its subject for itself, and may take it along when it ends; guid names it in the dialects that
    give bindings a name.
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
        """What is unique: (cluster, resource type, resource, role)."""
        return self.cluster, self.resource_type, self.resource, self.role

    @property
    def index_keys(self) -> tuple[BindingIndexKey, ...]:
        """Where it is looked for: at its subject, and at its resource's id if it has one."""
        of_subject = BindingIndexKey("", *self.subject)
        if not self.resource_id:
            return (of_subject,)
        return of_subject, BindingIndexKey("id", self.resource_type, self.resource_id)


class Collection(msgspec.Struct):
    """Named documents of one purpose kept beside the schemas (keys of encryption, exporters, subscriptions …).

    What they mean is known to whoever owns the collection; here they are JSON texts by key. revision counts changes:
    a caller that decided on what it saw names it, and is refused when somebody was faster.
    """

    revision: int = 0
    items: dict[tuple[str, ...], bytes] = {}


class Namespace(msgspec.Struct):
    """Subjects with a counter of schema ids of their own.

    Settings and modes are kept by subject name, so they may precede the subject.
    """

    name: str
    at: int
    subjects: dict[str, Subject] = {}
    schema_entries: IdTable[SchemaEntry] = msgspec.field(default_factory=IdTable)
    highest_schema_id: int = 0
    settings: dict[str, Settings] = {}
    modes: dict[str, Mode] = {}
    incarnations: dict[str, int] = {}
    """Of names whose subject is no more: how many it had."""
    used_version_numbers: dict[str, int] = {}
    """Of names whose version numbers never restart, and whose subject is no more: the highest one."""
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
    """A place settings and modes can be attached to; both None is the registry, subject None the namespace."""

    namespace: str | None = None
    subject: str | None = None


REGISTRY_LEVEL = SettingsLevel()


class SubmittedText(NamedTuple):
    """The author's text, and its SHA-256."""

    text: bytes
    sha: bytes


class SchemaDocument(msgspec.Struct, frozen=True):
    """A schema as a command brings it: text, its SHA-256, what its kind is made of, and derived digests by kind.

    sent is what the author wrote where another form of it is registered: validators look at that, comments and all.
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
        """Its texts by SHA-256: the one to register, and the one that was sent."""
        own = {self.sha: self.text}
        return own if self.submitted is None else {self.submitted.sha: self.submitted.text, **own}

    @property
    def kind(self) -> SchemaKind:
        """The kind a version of this document belongs to."""
        return SchemaKind(self.format, self.type, self.custom_format)
