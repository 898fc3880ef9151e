"""Bodies by which registries replicate versions, with all their attributes and later states.

A version keeps its uid, its URI and its authority in every registry that has a replica of it. Its state changes in one
direction only: active, soft-deleted, archived, purged. So two registries that exchange their states agree in the end,
in whatever order these arrive. A replica of a replica is a replica of the original.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta

from stele.core.metadata import DataRuleSet, Metadata

Uid = Annotated[str, Meta(pattern=r"^[0-9a-f]{32}$")]
"""Name of a version in all registries: 32 hexadecimal digits."""

READ_PATH: Final = "/api/versions/read"
IMPORT_PATH: Final = "/api/versions/import"


class ReplicaState(StrEnum):
    """State of a version; later ones win."""

    ACTIVE = "active"
    DELETED = "deleted"
    """Soft-deleted: hidden, readable by id."""
    ARCHIVED = "archived"
    """The incarnation of its subject ended; readable by id."""
    PURGED = "purged"
    """Deleted permanently."""

    @property
    def rank(self) -> int:
        """Position in the order of the states."""
        return _RANKS[self]

    @property
    def is_listed(self) -> bool:
        """Whether the version still belongs to its subject."""
        return self in (ReplicaState.ACTIVE, ReplicaState.DELETED)


_RANKS: Final = {state: rank for rank, state in enumerate(ReplicaState)}


class SubjectName(NamedTuple):
    """A subject: name of its namespace ('' is the default one), and its own."""

    namespace: str
    subject: str


class ReplicaReference(msgspec.Struct, frozen=True):
    """A reference of a schema: name in its text, and the version of a subject."""

    name: str
    namespace: str
    subject: str
    version: int

    @property
    def place(self) -> SubjectName:
        """The subject referred to."""
        return SubjectName(self.namespace, self.subject)


class ReplicaVersion(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A version in the form that registries exchange.

    Attributes:
        uid: 32 hexadecimal digits, the same in every registry.
        state: Its state.
        namespace: Namespace of its subject; '' is the default one.
        subject: Name of its subject.
        version: Number in its subject.
        schema_id: Id in its namespace.
        uri: Absolute URI.
        authority: URI of the registry or body that controls its subject.
        format: Format of the schema, `opaque` for a format that is not installed.
        type: Type within the format.
        custom_format: Author's name of an opaque format.
        sha256: SHA-256 of the text, in hexadecimal.
        text: The text; None if it was not requested, or is not UTF-8.
        base64: The bytes of a text that is not UTF-8.
        references: Its references.
        metadata: Tags and properties.
        rule_set: Rules about its data.
        media_type: Content type of the request that registered it.
        description: Description of the version.
        labels: Labels of the version.
        at: When it was registered (milliseconds since 1970 UTC).
        numbering: How the subject treats numbers of purged versions.
        subject_description: Description of the subject.
        written_format: Name of the format as its author wrote it.
    """

    uid: Uid
    state: ReplicaState = ReplicaState.ACTIVE
    namespace: str = ""
    subject: str = ""
    version: int = 0
    schema_id: int = 0
    uri: str = ""
    authority: str = ""
    format: str = ""
    type: str = ""
    custom_format: str = ""
    sha256: str = ""
    text: str | None = None
    base64: bytes | None = None
    references: tuple[ReplicaReference, ...] = ()
    metadata: Metadata | None = None
    rule_set: DataRuleSet | None = None
    media_type: str = ""
    description: str = ""
    labels: dict[str, str] | None = None
    at: int = 0
    numbering: Literal["continue", "never_reuse", "never_restart"] = "continue"
    subject_description: str = ""
    written_format: str = ""

    @property
    def place(self) -> SubjectName:
        """The subject of the version."""
        return SubjectName(self.namespace, self.subject)

    @property
    def key(self) -> tuple[str, str, int]:
        """Namespace, subject and number, which identify the version in its registry."""
        return self.namespace, self.subject, self.version

    def referenced_keys(self) -> list[tuple[str, str, int]]:
        """Return the keys of the versions it refers to."""
        return [(row.namespace, row.subject, row.version) for row in self.references]

    @property
    def has_text(self) -> bool:
        """Whether the text is included."""
        return self.text is not None or self.base64 is not None

    def get_text(self) -> bytes:
        """Return the bytes of the text; empty if it is not included."""
        return self.base64 if self.base64 is not None else (self.text or "").encode()


class SettingsScope(StrEnum):
    """Whose settings are replicated."""

    NONE = "none"
    SUBJECTS = "subjects"
    """Settings of subjects with replicas."""
    ALL = "all"
    """Also settings of the registry, and of the namespaces of replicas."""


class LevelName(NamedTuple):
    """A level that has settings: a subject, a namespace (subject None), or the registry (both None)."""

    namespace: str | None = None
    subject: str | None = None


class LevelSettings(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Settings of a level.

    Attributes:
        namespace: Namespace of the level.
        subject: Subject of the level.
        values: Values by name; None if nothing is set.
        brought: Values that a replication set here last; None if it cleared them, or if no replication set any.
        brought_from: Authority of the registry they came from; '' if no replication set any.
    """

    namespace: str | None = None
    subject: str | None = None
    values: dict[str, Any] | None = None
    brought: dict[str, Any] | None = None
    brought_from: str = ""

    @property
    def level(self) -> LevelName:
        """The level of the settings."""
        return LevelName(self.namespace, self.subject)


class SettingsChange(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The wanted settings of a level.

    Attributes:
        namespace: Namespace of the level.
        subject: Subject of the level.
        values: Values to set, by name; None: nothing.
        seen: Condition: the values that were set when this was decided. If others are set now, they stay.
        source: Authority of the registry where they come from.
    """

    namespace: str | None = None
    subject: str | None = None
    values: dict[str, Any] | None = None
    seen: dict[str, Any] | None = None
    source: str = ""


class ReadRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Versions to return: those of subjects, those with uids, or else all that are listed, page by page.

    Attributes:
        namespace: Only of this namespace; None: of all.
        subjects: Only of these subjects.
        uids: Only these versions, in any state.
        after: Subject after which a page begins.
        texts: Whether to return their texts.
        levels: Levels whose settings to return, too.
    """

    namespace: str | None = None
    subjects: tuple[SubjectName, ...] | None = None
    uids: tuple[Uid, ...] | None = None
    after: tuple[str, str] | None = None
    texts: bool = False
    levels: tuple[LevelName, ...] = ()


class ReadAnswer(msgspec.Struct, frozen=True):
    """Versions by subject and number.

    Attributes:
        authority: Base URI of the registry, which is the authority of subjects without another one.
        position: Position among its events at which this was the state.
        versions: The versions; whole subjects.
        next: Namespace and name of the subject after which the next page begins; None: this is the last one.
        settings: Settings of the requested levels, in their order; None if none were requested.
    """

    authority: str
    position: str
    versions: list[ReplicaVersion]
    next: tuple[str, str] | None = None
    settings: list[LevelSettings] | None = None


class ReplicaImportRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Changes of replicas, in this order.

    Attributes:
        removed: Versions that were removed: uid and `archived` or `purged`; each before those it refers to.
        versions: Versions to register with all their attributes; each after those it refers to.
        deleted: uids of versions to soft-delete.
        settings: Settings of levels.
    """

    removed: list[tuple[Uid, ReplicaState]] = []
    versions: list[ReplicaVersion] = []
    deleted: list[Uid] = []
    settings: list[SettingsChange] = []


class ImportedVersionRefusal(msgspec.Struct, frozen=True):
    """A version that was not imported; code is a `ConflictCode`, why an explanation for users."""

    uid: str
    code: str
    why: str


class MappedId(msgspec.Struct, frozen=True):
    """A version whose schema id was taken: the id it has in this registry."""

    uid: str
    schema_id: int


class ImportAnswer(msgspec.Struct, frozen=True):
    """Result of an import.

    Attributes:
        registered: Number of new versions.
        removed: Number of versions that were removed or soft-deleted.
        refused: Versions that were not imported.
        mapped: Versions that got another schema id.
        settings: Number of levels whose settings changed.
        refused_settings: Levels whose settings cannot be set.
    """

    registered: int
    removed: int
    refused: list[ImportedVersionRefusal]
    mapped: list[MappedId]
    settings: int = 0
    refused_settings: list[LevelName] = []


class ConflictCode(StrEnum):
    """Why a version was not replicated."""

    AUTHORITY_DIFFERS = "authority_differs"
    """A subject of that name exists, under another authority."""
    NUMBER_TAKEN = "number_taken"
    """The subject has another version with that number."""
    ID_TAKEN = "id_taken"
    """The schema id belongs to another schema there, and that registry assigns no other id."""
    URI_TAKEN = "uri_taken"
    """Another version has that URI."""
    DELETED_AT_TARGET = "deleted_at_target"
    """The replica was deleted at the target, but the original still exists."""
    IN_USE = "in_use"
    """The original was removed, but another schema at the target refers to the replica."""
    REFUSED = "refused"
    """The other registry refuses the schema."""
    SETTINGS_DIFFER = "settings_differ"
    """The target has settings that no replication set, or it cannot have those of the source."""
    REFERENCE_MISSING = "reference_missing"
    """A schema that it refers to does not exist there."""
