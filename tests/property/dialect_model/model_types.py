"""The plain objects of the model: policies, subjects with their versions, namespaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.property.dialect_model.schemas import Draft, interpret_bytes


class Policy(NamedTuple):
    """A policy: kind allow, deny or compare. A direction is none, latest, all or the version number it begins at."""

    kind: str
    backward: str | int = "none"
    forward: str | int = "none"
    reject: bool = False

    def list_compared(self, rows: Iterable[Row]) -> Iterator[tuple[Row, bool, bool]]:
        """Yield the active rows to compare with, newest first, each with whether to compare backward and forward."""
        for position, row in enumerate(rows):
            yield row, _reaches(self.backward, position, row), _reaches(self.forward, position, row)

    @property
    def level(self) -> str:
        """The nearest level that is at least as strict, of the seven that most dialects have."""
        if self.kind == "deny":
            return "FULL_TRANSITIVE"
        far = any(way not in {"none", "latest"} for way in (self.backward, self.forward))
        ways = [name for name, way in (("BACKWARD", self.backward), ("FORWARD", self.forward)) if way != "none"]
        name = "FULL" if len(ways) == 2 else ways[0] if ways else "NONE"
        return f"{name}_TRANSITIVE" if far else name

    @property
    def directions(self) -> tuple[tuple[str, str | int], tuple[str, str | int]]:
        """Both directions with their names."""
        return ("backward", self.backward), ("forward", self.forward)

    @property
    def exact(self) -> bool:
        """Whether one of the seven levels is exactly this policy."""
        return LEVELS.get(self.level) == self


def _reaches(way: str | int, position: int, row: Row) -> bool:
    if isinstance(way, int):
        return row.version_number >= way
    return way == "all" or (way == "latest" and position == 0)


ALLOW, BACKWARD = Policy("allow"), Policy("compare", "latest")
LEVELS = {
    "NONE": ALLOW,
    "BACKWARD": BACKWARD,
    "FORWARD": Policy("compare", "none", "latest"),
    "FULL": Policy("compare", "latest", "latest"),
    "BACKWARD_TRANSITIVE": Policy("compare", "all"),
    "FORWARD_TRANSITIVE": Policy("compare", "none", "all"),
    "FULL_TRANSITIVE": Policy("compare", "all", "all"),
}


class Key(NamedTuple):
    """A subject's full name."""

    namespace: str
    name: str


class KindOfSchema(NamedTuple):
    """Format and type. custom_format is the name of a format that the registry does not know."""

    format: str
    type: str
    custom_format: str = ""


class Schema(NamedTuple):
    """What a schema id identifies: text, format and other parts of the identity."""

    text: bytes
    format: str


@dataclass
class Row:
    """A version.

    policy is the effective policy when it was registered. uid identifies it for ever. by is the dialect that registered
    it, if that dialect marks its own versions.
    """

    version_number: int
    schema_kind: KindOfSchema
    number: int
    schema: Schema
    schema_id: int
    policy: Policy
    uid: int
    live: bool = True
    media: str = ""
    by: str = ""

    @property
    def draft(self) -> Draft:
        """The draft that its text belongs to."""
        draft = interpret_bytes(self.schema.text, self.schema_kind.format)
        assert draft is not None
        return draft


@dataclass
class Creation:
    """How a dialect creates a subject: whether numbers of purged versions, and of earlier subjects, are reused."""

    reuses: bool = True
    scope: str = "subject"
    policy: Policy | None = None
    format: str = ""
    custom_format: str = ""
    restarts: bool = True


@dataclass
class Subject:
    """One incarnation of a subject. kept are the dialects that created it and show it without an active version."""

    made: Creation
    serial: int
    rows: list[Row] = field(default_factory=list)
    high: int = 0
    schema_kinds: dict[KindOfSchema, int] = field(default_factory=dict)
    codecs: list[str] = field(default_factory=list)
    encodings: list[tuple[Row, str]] = field(default_factory=list)
    kept: set[str] = field(default_factory=set)
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def live(self) -> list[Row]:
        """Active versions, oldest first."""
        return [row for row in self.rows if row.live]

    @property
    def latest(self) -> Row | None:
        """The newest active version."""
        return next((row for row in reversed(self.rows) if row.live), None)

    def row(self, version_number: int) -> Row | None:
        """Return the version with that number, soft-deleted or not."""
        return next((row for row in self.rows if row.version_number == version_number), None)

    def is_visible(self, dialect: str) -> bool:
        """Return whether a dialect without soft deletion shows it: not if other dialects deleted all its versions."""
        return dialect in self.kept or not self.rows or bool(self.live)


@dataclass
class NamespaceModel:
    """A namespace with its own schema ids."""

    subjects: dict[str, Subject] = field(default_factory=dict)
    schema_ids: dict[Schema, int] = field(default_factory=dict)
    highest_schema_id: int = 0
    past: list[tuple[str, Subject]] = field(default_factory=list)
    used: dict[str, int] = field(default_factory=dict)
    made: bool = False

    @property
    def is_visible(self) -> bool:
        """Whether it contains or contained something."""
        return self.made or bool(self.highest_schema_id or self.subjects)
