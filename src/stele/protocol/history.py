"""Bodies of the native API about the history of a subject, and about its neighbours.

The server makes them, the client reads them, and `stele.pictures` draws them. A verdict is null where nothing could be
compared: another format, a format without rulesets, a text that was purged, or no time left (then `complete` is false).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from stele.core.findings import Verdict

MOST_VERSIONS: Final = 1000
"""Versions in one answer about a subject's history."""
MOST_COLUMNS: Final = 500
"""Versions in one answer about fields."""
MOST_FIELDS: Final = 5000
"""Field paths in one answer about fields."""
MOST_COMPARED: Final = 40
"""Versions in one matrix: 1,560 comparisons."""
MOST_DEPTH: Final = 5
"""References that are followed from a subject, in each direction."""
MOST_NEIGHBOURS: Final = 300
"""Subjects in one neighbourhood."""
MOST_SUBJECTS: Final = 1000
"""Subjects in one atlas."""


class VersionLink(msgspec.Struct, frozen=True):
    """Compatibility of a version with the one before it.

    Attributes:
        before: Number of the version before: the nearest earlier one that is active, else the nearest earlier one.
        backward: Whether the version reads data of the one before; null: not compared.
        forward: Whether the one before reads data of the version; null: not compared.
        forced: Whether the policy in force at the registration required a direction that is broken. The version was
            imported, or was compared with a version that is deleted now.
        findings: Number of findings that break one of the directions.
        reasons: The first of them, as `RULE at path`.
    """

    before: int
    backward: Verdict | None = None
    forward: Verdict | None = None
    forced: bool = False
    findings: int = 0
    reasons: tuple[str, ...] = ()

    @property
    def is_harmless(self) -> bool:
        """Whether each of the two reads the other's data."""
        return self.backward is Verdict.COMPATIBLE and self.forward is Verdict.COMPATIBLE

    @property
    def is_broken(self) -> bool:
        """Whether one of the two cannot read the other's data."""
        return Verdict.INCOMPATIBLE in (self.backward, self.forward)


class HistoryVersion(msgspec.Struct, frozen=True):
    """One version in a history.

    Attributes:
        version: Number in the subject.
        schema_id: Id of its schema in the namespace.
        content_id: SHA-256 of its text in hexadecimal.
        format: Format of the schema; for an unknown format, the author's name of it.
        at: When it was registered, milliseconds since 1970 UTC.
        author: Name of the caller that registered it, '' for an anonymous caller.
        note: Description by its author.
        deleted: Whether it is soft-deleted.
        policy: Common name of the policy in force at the registration, or of the nearest stricter one; '' if unknown.
        link: Its compatibility with the version before; null for the first one.
        newest_reads: Whether the newest active version reads its data; null for that version, and if not compared.
    """

    version: int
    schema_id: int
    content_id: str
    format: str
    at: int
    author: str = ""
    note: str = ""
    deleted: bool = False
    policy: str = ""
    link: VersionLink | None = None
    newest_reads: Verdict | None = None


class SubjectHistory(msgspec.Struct, frozen=True):
    """The versions of a subject, oldest first, each with its verdicts against the one before.

    Attributes:
        namespace: Namespace of the subject, '' for the default one.
        subject: Its name.
        policy: Common name of the policy in force now, or of the nearest stricter one.
        versions: Versions that are not purged, oldest first.
        earlier: Number of older versions that this page leaves out.
        complete: Whether there was time for every verdict; the next answer has more of them.
        newest: Number of the newest active version of the subject, on this page or not; 0: none is active.
    """

    namespace: str
    subject: str
    policy: str
    versions: tuple[HistoryVersion, ...]
    earlier: int = 0
    complete: bool = True
    newest: int = 0


class FieldSpan(msgspec.Struct, frozen=True):
    """Consecutive versions in which a field has the same declaration.

    Attributes:
        first: Number of the first version.
        last: Number of the last one.
        type: Type in the terms of the format.
        default: Default as JSON text; null for none.
        doc: Documentation by its author.
        optional: Whether data may lack the field or have null for it; null if the format does not say.
    """

    first: int
    last: int
    type: str
    default: str | None = None
    doc: str = ""
    optional: bool | None = None


class FieldLifeline(msgspec.Struct, frozen=True):
    """One field path through the versions.

    Attributes:
        path: Dotted path from the root; `[]` enters an array, `{}` a map.
        spans: Spans of versions that have it, oldest first; a gap between two spans means versions without it.
        renamed_from: Path it had in the version before its first one.
    """

    path: str
    spans: tuple[FieldSpan, ...]
    renamed_from: str | None = None


class FieldLifelines(msgspec.Struct, frozen=True):
    """All fields that a subject ever had, in the order of the newest version.

    A removed field follows the field that it used to follow.

    Attributes:
        namespace: Namespace of the subject, '' for the default one.
        subject: Its name.
        versions: Numbers of the versions that were read, ascending.
        fields: One lifeline for each field path.
        earlier: Number of older versions that were left out.
        omitted: Number of field paths that were left out.
        complete: Whether there was time for every version; the next answer has more of them.
    """

    namespace: str
    subject: str
    versions: tuple[int, ...]
    fields: tuple[FieldLifeline, ...]
    earlier: int = 0
    omitted: int = 0
    complete: bool = True


class CompatibilityMatrix(msgspec.Struct, frozen=True):
    """Which version reads data of which.

    Attributes:
        namespace: Namespace of the subject, '' for the default one.
        subject: Its name.
        versions: Numbers of the versions, ascending.
        reads: One row for each reader, one verdict for each writer, both in the order of `versions`; null: not
            compared. A version reads its own data.
        policy: Common name of the policy whose required comparisons are marked, or of the nearest stricter one.
        demands: Pairs (reader, writer) that the policy would have required at the registration of the later one.
        earlier: Number of older versions that were left out.
        complete: Whether there was time for every verdict; the next answer has more of them.
    """

    namespace: str
    subject: str
    versions: tuple[int, ...]
    reads: tuple[tuple[Verdict | None, ...], ...]
    policy: str = ""
    demands: tuple[tuple[int, int], ...] = ()
    earlier: int = 0
    complete: bool = True


class SubjectNode(msgspec.Struct, frozen=True):
    """A subject in a graph of references.

    Attributes:
        namespace: Namespace of the subject, '' for the default one.
        subject: Its name.
        version: Number of the version concerned: the one in the middle, the one in use, or the newest.
        latest: Number of the newest active version; 0: none is active.
        versions: Number of active versions.
        format: Format of the version.
        distance: Steps from the subject in the middle: below 0 for what it uses, above 0 for what uses it.
    """

    namespace: str
    subject: str
    version: int
    latest: int
    versions: int = 1
    format: str = ""
    distance: int = 0

    @property
    def name(self) -> tuple[str, str]:
        """Namespace and subject."""
        return self.namespace, self.subject


class SubjectReference(msgspec.Struct, frozen=True):
    """A version of one subject that refers to a version of another one.

    Attributes:
        user: Namespace and name of the subject that refers.
        user_version: Its newest version with that reference.
        used: Namespace and name of the subject it refers to.
        used_version: The version it refers to.
        stale: Whether that is an older version than the newest one.
        past: Whether the user's newest version no longer refers to the subject.
    """

    user: tuple[str, str]
    user_version: int
    used: tuple[str, str]
    used_version: int
    stale: bool = False
    past: bool = False


class Neighbourhood(msgspec.Struct, frozen=True):
    """A subject, the subjects that it uses, and those that use it, up to a depth.

    Attributes:
        center: The subject in the middle.
        nodes: All subjects, the one in the middle first, then by distance and name.
        references: References between subjects of `nodes`.
        depth: Number of references that were followed in each direction.
        omitted: Number of direct neighbours of these subjects that were left out.
    """

    center: SubjectNode
    nodes: tuple[SubjectNode, ...]
    references: tuple[SubjectReference, ...]
    depth: int = 1
    omitted: int = 0


class NamespaceAtlas(msgspec.Struct, frozen=True):
    """All subjects of a namespace that have an active version, and the references between them.

    Attributes:
        namespace: '' for the default one.
        nodes: Subjects by name.
        references: References of the newest versions.
        omitted: Number of subjects that were left out, after the last one by name.
    """

    namespace: str
    nodes: tuple[SubjectNode, ...]
    references: tuple[SubjectReference, ...]
    omitted: int = 0


def count_broken(versions: Sequence[HistoryVersion]) -> int:
    """Return the number of versions that are incompatible with the one before."""
    return sum(version.link is not None and version.link.is_broken for version in versions)
