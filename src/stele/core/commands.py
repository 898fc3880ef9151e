"""What callers ask of the registry. A command carries wishes; `decide` turns it into events or an error."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import msgspec

from stele.core.metadata import DataRuleSet, Metadata
from stele.core.model import (
    Binding,
    ComparisonScope,
    Mode,
    Numbering,
    Reference,
    SchemaDocument,
    Settings,
    SettingsLevel,
    SubjectKey,
)
from stele.core.policy import Policy


class Equality(Enum):
    """When a registration is the same as an earlier one of its subject (docs/protocols/model.md#c7)."""

    IDENTITY = "identity"
    """Text and attachments are equal."""
    TEXT = "text"
    """The raw text is equal."""
    TEXT_AND_TYPE = "typed"
    """The raw text, the format and the media type are equal; a version without a media type has any."""
    DIGEST = "digest"
    """A digest of `equality_digest` kind is equal, in the same kind."""
    NEVER = "never"
    """Every registration is a new version."""


class CompatibilityCheck(Enum):
    """Whether the policy in force is asked."""

    POLICY = "policy"
    SKIP = "skip"


class DeleteMode(Enum):
    """Ways to delete."""

    SOFT = "retire"
    """Soft: hidden, still readable by id, numbers not reused."""
    HARD = "purge"
    """Hard: only what is soft-deleted already."""
    END_INCARNATION = "close"
    """The whole incarnation ends; a next one starts at number 1 (Pravega, CNCF, RocketMQ)."""


class SubjectDefaults(msgspec.Struct, frozen=True):
    """How a dialect creates subjects: written into the creating event once, in force for ever."""

    numbering: Numbering = Numbering.CONTINUE
    comparison_scope: ComparisonScope = ComparisonScope.SUBJECT
    policy: Policy | None = None
    format: str = ""
    create: bool = True
    """False: registering in a subject that does not exist is an error."""
    custom_format: str = ""
    """Name of a format nobody here knows, see `Lane`."""


CONTINUE_NUMBERING = SubjectDefaults()


class SubjectUpdate(msgspec.Struct, frozen=True):
    """Changes to what describes a subject: None leaves the description; ext merges by dialect and name."""

    description: str | None = None
    dialect_data: Mapping[str, Mapping[str, Any]] = {}


class RegisterSchema(msgspec.Struct, frozen=True):
    """Register a document as the next version of a subject.

    document None takes text, format and references of the newest active version (only attachments change).
    version_number and schema_id are explicit: version_number is None or the next one, schema_id is set in IMPORT mode
    only.
    expected_latest is a condition: the newest active version number the caller knows of (0: none).
    compared_seq is a condition: the caller compared the document with every version up to that record of the log, and
    none was the same schema; a later one that may be the same, spelt otherwise, fails the command.
    policy becomes the subject's own when the registration succeeds, and is the one that judges it.
    ruleset judges where the settings name none; '' leaves that to the format.
    origin_uri names the version among all active ones: one that brings it is the same as the version that has it, which
    must be of that subject, text and type (`AlreadyExists`), and as no other.
    about describes the subject from then on, also when the version was there before.
    at is when it was first registered where it comes from, in milliseconds since 1970 UTC; only in IMPORT mode.
    bindings are bound to the version this makes, in one with it; nothing is bound when the version was there before.
    uid is the one of the version in the registry it is a replica of: nothing counts as the same but a version with that
    uid, and nothing is replaced (`AlreadyExists`); only in IMPORT mode, with both numbers.
    lineage are the version numbers the policy compares with, closest ancestor first; None: all, newest first.
    """

    key: SubjectKey
    document: SchemaDocument | None
    references: tuple[Reference, ...] = ()
    metadata: Metadata | None = None
    rule_set: DataRuleSet | None = None
    equality: Equality = Equality.IDENTITY
    equality_digest: str = ""
    check: CompatibilityCheck = CompatibilityCheck.POLICY
    version_number: int | None = None
    schema_id: int | None = None
    expected_latest: int | None = None
    compared_seq: int | None = None
    policy: Policy | None = None
    ruleset: str = ""
    defaults: SubjectDefaults = CONTINUE_NUMBERING
    description: str = ""
    labels: dict[str, str] | None = None
    media_type: str = ""
    origin_uri: str | None = None
    ancestor: int | None = None
    dialect_data: dict[str, Any] | None = None
    subject_update: SubjectUpdate | None = None
    bindings: tuple[Binding, ...] = ()
    at: int | None = None
    uid: bytes | None = None
    lineage: tuple[int, ...] | None = None


class DeleteVersion(msgspec.Struct, frozen=True):
    """Delete one version: version_number None is the newest active one.

    expected_bindings are those of the subject, as `expected` of `ChangeBindings`.
    """

    key: SubjectKey
    version_number: int | None
    mode: DeleteMode = DeleteMode.SOFT
    expected_bindings: frozenset[Binding] | None = None


class DeleteSubject(msgspec.Struct, frozen=True):
    """Delete all versions of a subject.

    expected_bindings is as `expected` in `ChangeBindings`, of the subject; expected_latest is as in `RegisterSchema`.
    """

    key: SubjectKey
    mode: DeleteMode = DeleteMode.SOFT
    expected_bindings: frozenset[Binding] | None = None
    expected_latest: int | None = None


class CreateNamespace(msgspec.Struct, frozen=True):
    """Create a namespace, or change its attributes when it exists and `replace` is set."""

    namespace: str
    replace: bool = False
    format: str = ""
    description: str = ""
    labels: dict[str, str] | None = None
    dialect_data: dict[str, Any] | None = None


class SubjectsPresent(Enum):
    """What becomes of the subjects of a namespace that is to go."""

    REFUSE = "refuse"
    """They keep it, soft-deleted ones too."""
    END_INCARNATIONS = "close"
    """Their incarnations end with it, all or none."""


class DeleteNamespace(msgspec.Struct, frozen=True):
    """Remove a namespace."""

    namespace: str
    when_subjects: SubjectsPresent = SubjectsPresent.REFUSE


class EndIncarnations(msgspec.Struct, frozen=True):
    """End the incarnations of all subjects of a namespace, all or none."""

    namespace: str


class CreateSubject(msgspec.Struct, frozen=True):
    """Create a subject before its first version."""

    key: SubjectKey
    defaults: SubjectDefaults = CONTINUE_NUMBERING
    description: str = ""
    labels: dict[str, str] | None = None
    dialect_data: dict[str, Any] | None = None


class ChangeSubject(msgspec.Struct, frozen=True):
    """Replace a subject's describing attributes."""

    key: SubjectKey
    description: str = ""
    labels: dict[str, str] | None = None
    dialect_data: dict[str, Any] | None = None
    default_version: int | None = None


class ChangeSettings(msgspec.Struct, frozen=True):
    """Merge changes into a level's settings: a name present replaces the value, None clears it.

    `ext` alone merges one level deeper: its members by dialect and name.
    expected, when given, is the policy that must be in force at that level now. prune removes the level's settings
    when nothing is left in them; otherwise a level that sets nothing remains, which some dialects tell apart.
    """

    level: SettingsLevel
    changes: Mapping[str, Any]
    expected: Policy | None = None
    prune: bool = False


class ClearSettings(msgspec.Struct, frozen=True):
    """Remove a level's settings altogether."""

    level: SettingsLevel


class SetMode(msgspec.Struct, frozen=True):
    """Set or (None) remove a level's mode. force allows IMPORT over existing versions."""

    level: SettingsLevel
    mode: Mode | None
    force: bool = False


class ClearMode(msgspec.Struct, frozen=True):
    """Remove a level's mode, and with recursive those of every subject below it."""

    level: SettingsLevel
    recursive: bool = False


class AddCodec(msgspec.Struct, frozen=True):
    """Make a codec known to a subject."""

    key: SubjectKey
    name: str
    properties: dict[str, str] = {}


class AssignEncoding(msgspec.Struct, frozen=True):
    """Ask for the encoding id of a version with a codec; the same pair gets the same id for ever."""

    key: SubjectKey
    version_number: int
    codec: str = ""


class AddBinding(msgspec.Struct, frozen=True):
    """Bind a resource to a subject."""

    binding: Binding


class RemoveBinding(msgspec.Struct, frozen=True):
    """End a binding; key is (cluster, resource type, resource, role)."""

    key: tuple[str, str, str, str]


class ChangeBindings(msgspec.Struct, frozen=True):
    """Bind resources and end bindings, all or none.

    expected is a condition: the bindings the caller decided on, that is all of the subjects bound to, and all of the
    resources they are of by type and id; None takes whatever is there.
    """

    added: tuple[Binding, ...]
    removed: tuple[tuple[str, str, str, str], ...] = ()
    expected: frozenset[Binding] | None = None


class ChangeItems(msgspec.Struct, frozen=True):
    """Change documents of a collection, all or none: JSON text by key, None removes it.

    expected is the collection's revision the changes were decided on; None changes whatever is there. sealed: some
    documents have secret members, encrypted.
    """

    collection: str
    changes: Mapping[tuple[str, ...], bytes | None]
    expected: int | None = None
    sealed: bool = False


class AdoptRulesets(msgspec.Struct, frozen=True):
    """Judge by these versions of rulesets from now on: (format, bare name, version), all or none.

    first=True does so only in a registry in which nothing was ever written.
    """

    versions: tuple[tuple[str, str, int], ...]
    first: bool = False


class SkipIds(msgspec.Struct, frozen=True):
    """Leave out ids that the original of a restored registry may have given out: see `IdsSkipped`."""

    schema_ids: int
    numbers: int


class SeenNamespace(msgspec.Struct, frozen=True):
    """A namespace as a caller saw it: when it was created and how often it was described; at None: there was none."""

    name: str
    at: int | None = None
    epoch: int = 0


class SeenSubject(msgspec.Struct, frozen=True):
    """A subject as a caller saw it: its incarnation and how often it was changed; uid None: there was none."""

    key: SubjectKey
    uid: int | None = None
    epoch: int = 0


class Transaction(msgspec.Struct, frozen=True):
    """Carry out commands one on top of the other, all or none, in one record.

    namespaces and subjects are conditions: what the caller saw when it made the commands; another one fails them all.
    """

    commands: tuple[Any, ...]
    namespaces: tuple[SeenNamespace, ...] = ()
    subjects: tuple[SeenSubject, ...] = ()


Command = (
    RegisterSchema
    | DeleteVersion
    | DeleteSubject
    | CreateNamespace
    | DeleteNamespace
    | EndIncarnations
    | CreateSubject
    | ChangeSubject
    | ChangeSettings
    | ClearSettings
    | SetMode
    | ClearMode
    | AddCodec
    | AssignEncoding
    | AddBinding
    | RemoveBinding
    | ChangeBindings
    | ChangeItems
    | AdoptRulesets
    | SkipIds
    | Transaction
)


# --- what a decision answers ----------------------------------------------------------------------------------------


class Registration(msgspec.Struct, frozen=True):
    """Outcome of `RegisterSchema`: the numbers of the version, and whether this command made it."""

    key: SubjectKey
    version_number: int
    schema_id: int
    uid: int
    created: bool


class DeletedVersions(msgspec.Struct, frozen=True):
    """Outcome of a deletion: the version numbers that went, ascending."""

    version_numbers: tuple[int, ...]


class SettingsOutcome(msgspec.Struct, frozen=True):
    """Outcome of a settings command: the settings after it (before it, for `ClearSettings`)."""

    settings: Settings | None


class ModeOutcome(msgspec.Struct, frozen=True):
    """Outcome of a mode command: the mode after it (before it, for `ClearMode`)."""

    mode: Mode | None


class EncodingOutcome(msgspec.Struct, frozen=True):
    """Outcome of `AssignEncoding`."""

    encoding: int


class EmptyOutcome(msgspec.Struct, frozen=True):
    """Outcome of a command that has nothing to tell."""


class TransactionOutcome(msgspec.Struct, frozen=True):
    """Outcome of `Transaction`: those of its commands, in order."""

    outcomes: tuple[Any, ...]


Outcome = (
    Registration | DeletedVersions | SettingsOutcome | ModeOutcome | EncodingOutcome | EmptyOutcome | TransactionOutcome
)
