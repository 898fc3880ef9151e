"""What registries tell each other to stay in step: versions with everything they have, and what becomes of them.

A version keeps its uid, its URI and its authority in every registry that has a replica of it. What happens to it goes
one way only: active, soft-deleted, archived, purged. So two registries that tell each other what they know agree in
the end, whatever came first, and a replica of a replica is one of the original.
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
    """What became of a version; later ones win."""

    ACTIVE = "active"
    DELETED = "deleted"
    """Soft-deleted: hidden, readable by id."""
    ARCHIVED = "archived"
    """Its subject ended; readable by id."""
    PURGED = "purged"
    """Gone for good."""

    @property
    def rank(self) -> int:
        """Where it stands in the order of their coming."""
        return _RANKS[self]

    @property
    def is_listed(self) -> bool:
        """Whether the version is still one of its subject."""
        return self in (ReplicaState.ACTIVE, ReplicaState.DELETED)


_RANKS: Final = {state: rank for rank, state in enumerate(ReplicaState)}


class SubjectName(NamedTuple):
    """A subject: name of its namespace ('' is the default one), and its own."""

    namespace: str
    subject: str


class ReplicaReference(msgspec.Struct, frozen=True):
    """What a schema refers to: name in its text, and the version of a subject."""

    name: str
    namespace: str
    subject: str
    version: int

    @property
    def place(self) -> SubjectName:
        """The subject referred to."""
        return SubjectName(self.namespace, self.subject)


class ReplicaVersion(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A version as one registry tells another.

    Attributes:
        uid: 32 hexadecimal digits, the same in every registry.
        state: What became of it.
        namespace: Of its subject; '' is the default one.
        subject: Name of its subject.
        version: Number in its subject.
        schema_id: Id in its namespace.
        uri: Absolute URI.
        authority: URI of the registry or body that controls its subject.
        format: Format of the schema, `opaque` for one that nobody here knows.
        type: Type within the format.
        custom_format: Name that its author gave to an opaque format.
        sha256: Of the text, in hexadecimal.
        text: The text; None where it was not asked for, or is no UTF-8.
        base64: The text where it is no UTF-8.
        references: What it refers to.
        metadata: Tags and properties.
        rule_set: Rules about its data.
        media_type: Content type it was posted with.
        description: Description of the version.
        labels: Labels of the version.
        at: When it was registered (milliseconds since 1970 UTC).
        numbering: What the subject does with numbers of purged versions.
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
        """The subject it belongs to."""
        return SubjectName(self.namespace, self.subject)

    @property
    def key(self) -> tuple[str, str, int]:
        """What names it in its registry."""
        return self.namespace, self.subject, self.version

    def referenced_keys(self) -> list[tuple[str, str, int]]:
        """Return the keys of the versions it refers to."""
        return [(row.namespace, row.subject, row.version) for row in self.references]

    @property
    def has_text(self) -> bool:
        """Whether the text came along."""
        return self.text is not None or self.base64 is not None

    def get_text(self) -> bytes:
        """Return the bytes of the text; empty where it did not come along."""
        return self.base64 if self.base64 is not None else (self.text or "").encode()


class SettingsScope(StrEnum):
    """Whose settings are replicated."""

    NONE = "none"
    SUBJECTS = "subjects"
    """Those of subjects with replicas."""
    ALL = "all"
    """Those of the registry, and of the namespaces of replicas, too."""


class LevelName(NamedTuple):
    """A level that has settings: a subject, a namespace (subject None), or the registry (both None)."""

    namespace: str | None = None
    subject: str | None = None


class LevelSettings(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Settings of a level.

    Attributes:
        namespace: Of the level.
        subject: Of the level.
        values: What is set, by name; None where nothing is.
        brought: What a replication set here last; None where that was nothing, or none did.
        brought_from: Authority of the registry where that came from; '' where no replication set anything.
    """

    namespace: str | None = None
    subject: str | None = None
    values: dict[str, Any] | None = None
    brought: dict[str, Any] | None = None
    brought_from: str = ""

    @property
    def level(self) -> LevelName:
        """Whose they are."""
        return LevelName(self.namespace, self.subject)


class SettingsChange(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What the settings of a level are to be.

    Attributes:
        namespace: Of the level.
        subject: Of the level.
        values: What is to be set, by name; None: nothing.
        seen: What was set when that was decided; other settings are left as they are.
        source: Authority of the registry where they come from.
    """

    namespace: str | None = None
    subject: str | None = None
    values: dict[str, Any] | None = None
    seen: dict[str, Any] | None = None
    source: str = ""


class ReadRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which versions to tell: those of subjects, those with uids, or else all that are listed, page by page.

    Attributes:
        namespace: Only of this namespace; None: of all.
        subjects: Only of these subjects.
        uids: Only these versions, whatever became of them.
        after: Subject after which a page begins.
        texts: Whether their texts are wanted.
        levels: Levels whose settings are wanted, too.
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
        authority: Base URI of the registry: the authority of whatever has no other one.
        position: Position among its events at which it was like this.
        versions: The versions; whole subjects.
        next: Namespace and name of the subject after which the next page begins; None: this is the last one.
        settings: Settings of the levels that were asked for, in their order; None where none were.
    """

    authority: str
    position: str
    versions: list[ReplicaVersion]
    next: tuple[str, str] | None = None
    settings: list[LevelSettings] | None = None


class ReplicaImportRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """What to do with replicas, in this order.

    Attributes:
        removed: Versions that are gone: uid and `archived` or `purged`; each before those it refers to.
        versions: Versions to register with all they have; each after those it refers to.
        deleted: uids of versions to soft-delete.
        settings: Settings of levels.
    """

    removed: list[tuple[Uid, ReplicaState]] = []
    versions: list[ReplicaVersion] = []
    deleted: list[Uid] = []
    settings: list[SettingsChange] = []


class ImportedVersionRefusal(msgspec.Struct, frozen=True):
    """A version that was left as it is; code is a `ConflictCode`, why says more to people."""

    uid: str
    code: str
    why: str


class MappedId(msgspec.Struct, frozen=True):
    """A version whose schema id was taken: the id it has in this registry."""

    uid: str
    schema_id: int


class ImportAnswer(msgspec.Struct, frozen=True):
    """What became of an import.

    Attributes:
        registered: How many versions are new.
        removed: How many are gone or soft-deleted.
        refused: Versions that were left as they are.
        mapped: Versions that got another schema id.
        settings: Levels that have other settings now.
        refused_settings: Settings that cannot be set.
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
    """A subject of that name is there, under another authority."""
    NUMBER_TAKEN = "number_taken"
    """The subject has another version with that number."""
    ID_TAKEN = "id_taken"
    """The schema id stands for another schema there, and that registry gives no other one."""
    URI_TAKEN = "uri_taken"
    """Another version has that URI."""
    DELETED_AT_TARGET = "deleted_at_target"
    """Somebody deleted the replica, and the original is still there."""
    IN_USE = "in_use"
    """The original is gone, and another schema there refers to the replica."""
    REFUSED = "refused"
    """The other registry refuses the schema."""
    SETTINGS_DIFFER = "settings_differ"
    """Settings at the target are somebody else's, or it cannot have those of the source."""
    REFERENCE_MISSING = "reference_missing"
    """A schema it refers to is not there."""
