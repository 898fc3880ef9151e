"""Commands: requested changes of the registry. `decide` turns each into events or an error."""

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
    """Whether the policy in force is checked."""

    POLICY = "policy"
    SKIP = "skip"


class DeleteMode(Enum):
    """Kinds of deletion."""

    SOFT = "retire"
    """Soft: hidden, but readable by id; numbers are not reused."""
    HARD = "purge"
    """Hard: only versions that are already soft-deleted."""
    END_INCARNATION = "close"
    """The whole incarnation ends; a next one starts at number 1 (Pravega, CNCF, RocketMQ)."""


class SubjectDefaults(msgspec.Struct, frozen=True):
    """Attributes with which a dialect creates subjects. The creating event stores them once, and they never change."""

    numbering: Numbering = Numbering.CONTINUE
    comparison_scope: ComparisonScope = ComparisonScope.SUBJECT
    policy: Policy | None = None
    format: str = ""
    create: bool = True
    """False: registering in a subject that does not exist is an error."""
    custom_format: str = ""
    """Name of a format that is not installed; see `SchemaKind`."""


CONTINUE_NUMBERING = SubjectDefaults()


class SubjectUpdate(msgspec.Struct, frozen=True):
    """Changes to the description of a subject.

    description None leaves the description as it is; dialect_data is merged by dialect and name.
    """

    description: str | None = None
    dialect_data: Mapping[str, Mapping[str, Any]] = {}


class RegisterSchema(msgspec.Struct, frozen=True):
    """Register a document as the next version of a subject.

    document         the schema; None takes text, format and references of the newest active version (only attachments
                     change)
    version_number   None or the next one; in IMPORT mode any number
    schema_id        id of the schema, in IMPORT mode only
    expected_latest  condition: the newest active version number that the caller knows of (0: none)
    compared_seq     condition: the caller compared the document with every version up to that record of the log, and
                     found no equal one. A later version that may be the same schema in another spelling fails the
                     command
    policy           becomes the subject's own when the registration succeeds, and decides on this registration, too
    ruleset          decides where the settings name none; '' leaves that to the format
    origin_uri       names the version among all active ones. A command with the URI of an existing version is equal to
                     that version only, which must have the same subject, text and type (`AlreadyExists`)
    subject_update   changes the description of the subject, also when the version existed before
    at               time of the first registration at the source, in milliseconds since 1970 UTC; in IMPORT mode only
    bindings         are bound to the new version in the same record; none are bound when the version existed before
    uid              uid of the original of a replica. Only a version with that uid counts as equal, and nothing is
                     replaced (`AlreadyExists`); in IMPORT mode only, with both numbers
    lineage          version numbers that the policy compares with, closest ancestor first; None: all, newest first
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
    """Delete one version; version_number None is the newest active one.

    expected_bindings is a condition, like `expected` of `ChangeBindings`, for the bindings of the subject.
    """

    key: SubjectKey
    version_number: int | None
    mode: DeleteMode = DeleteMode.SOFT
    expected_bindings: frozenset[Binding] | None = None


class DeleteSubject(msgspec.Struct, frozen=True):
    """Delete all versions of a subject.

    expected_bindings is a condition, like `expected` of `ChangeBindings`, for the bindings of the subject;
    expected_latest is the same as in `RegisterSchema`.
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
    """Treatment of the subjects in a namespace that is deleted."""

    REFUSE = "refuse"
    """Any subject, even a soft-deleted one, prevents the deletion."""
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
    """Replace the descriptive attributes of a subject."""

    key: SubjectKey
    description: str = ""
    labels: dict[str, str] | None = None
    dialect_data: dict[str, Any] | None = None
    default_version: int | None = None


class ChangeSettings(msgspec.Struct, frozen=True):
    """Merge changes into a level's settings: a name present replaces the value, None clears it.

    Only `dialect_data` is merged one level deeper: its members by dialect and name. expected is a condition: the policy
    that must be in force at that level now. prune removes the level's settings when nothing is left in them. Otherwise
    an empty level remains, which some dialects distinguish from an absent one.
    """

    level: SettingsLevel
    changes: Mapping[str, Any]
    expected: Policy | None = None
    prune: bool = False


class ClearSettings(msgspec.Struct, frozen=True):
    """Remove all of a level's settings."""

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
    """Add a codec to a subject."""

    key: SubjectKey
    name: str
    properties: dict[str, str] = {}


class AssignEncoding(msgspec.Struct, frozen=True):
    """Assign or return the encoding id of a version with a codec. The same pair always gets the same id."""

    key: SubjectKey
    version_number: int
    codec: str = ""


class AddBinding(msgspec.Struct, frozen=True):
    """Bind a resource to a subject."""

    binding: Binding


class RemoveBinding(msgspec.Struct, frozen=True):
    """Remove a binding; key is (cluster, resource type, resource, role)."""

    key: tuple[str, str, str, str]


class ChangeBindings(msgspec.Struct, frozen=True):
    """Bind resources and remove bindings, all or none.

    expected is a condition: all bindings of the subjects concerned, and of the resources concerned by type and id, as
    the caller saw them. None sets no condition.
    """

    added: tuple[Binding, ...]
    removed: tuple[tuple[str, str, str, str], ...] = ()
    expected: frozenset[Binding] | None = None


class ChangeItems(msgspec.Struct, frozen=True):
    """Change documents of a collection, all or none: JSON text by key, None removes it.

    expected is a condition: the collection's revision that the caller saw; None sets no condition. sealed: some
    documents have secret members, encrypted.
    """

    collection: str
    changes: Mapping[tuple[str, ...], bytes | None]
    expected: int | None = None
    sealed: bool = False


class AdoptRulesets(msgspec.Struct, frozen=True):
    """Adopt versions of rulesets, which decide from now on: (format, bare name, version), all or none.

    first=True does so only in a registry whose log is empty.
    """

    versions: tuple[tuple[str, str, int], ...]
    first: bool = False


class SkipIds(msgspec.Struct, frozen=True):
    """Skip ids that the original of a restored registry may have assigned: see `IdsSkipped`."""

    schema_ids: int
    numbers: int


class SeenNamespace(msgspec.Struct, frozen=True):
    """A namespace as a caller saw it: its creation time and number of changes; at None: it did not exist."""

    name: str
    at: int | None = None
    epoch: int = 0


class SeenSubject(msgspec.Struct, frozen=True):
    """A subject as a caller saw it: its incarnation and number of changes; uid None: it did not exist."""

    key: SubjectKey
    uid: int | None = None
    epoch: int = 0


class Transaction(msgspec.Struct, frozen=True):
    """Execute commands, each on the result of the ones before, all or none, in one record.

    namespaces and subjects are conditions: what the caller saw when it made the commands. If one differs, all fail.
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
    """Outcome of a deletion: the numbers of the deleted versions, ascending."""

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
    """Outcome of a command without a result."""


class TransactionOutcome(msgspec.Struct, frozen=True):
    """Outcome of `Transaction`: those of its commands, in order."""

    outcomes: tuple[Any, ...]


Outcome = (
    Registration | DeletedVersions | SettingsOutcome | ModeOutcome | EncodingOutcome | EmptyOutcome | TransactionOutcome
)
