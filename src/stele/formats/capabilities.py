"""What a format may be able to do beyond the port every format satisfies.

A format that has the methods of one of these protocols has the ability; callers ask with `isinstance`, or with
`supports` where that would take longer than the work itself. Keeping them out
of `stele.core.ports.Format` lets a plug-in begin with parsing and verdicts alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeGuard, TypeVar, cast, runtime_checkable

import msgspec

from stele.core.findings import Finding, SourcePosition
from stele.core.ports import Parsed
from stele.formats.conversion.model import Loss, Model

P_contra = TypeVar("P_contra", contravariant=True)
C = TypeVar("C")

_supported: dict[tuple[type, object], bool] = {}


def supports(fmt: object, capability: Callable[..., C]) -> TypeGuard[C]:
    """Whether a format has an ability: as `isinstance`, which looks for every method anew, but once per class."""
    key = (type(fmt), capability)
    known = _supported.get(key)
    if known is None:
        known = _supported[key] = isinstance(fmt, cast("type", capability))
    return known


@runtime_checkable
class ToModel(Protocol[P_contra]):
    """A format whose schemas can be turned into other languages."""

    def to_model(self, parsed: P_contra) -> tuple[Model, list[Loss]]:
        """Return the schema in neutral words, and what those words cannot say. Raises `TooLarge` past its limits."""
        ...


@runtime_checkable
class FromModel(Protocol):
    """A format other languages can be turned into."""

    def from_model(self, model: Model) -> tuple[bytes, list[Loss]]:
        """Return a schema document that the format's own strict `parse` accepts, and what it could not say.

        Raises `CannotConvert` when no schema of this language stands for the model.
        """
        ...


@runtime_checkable
class TakesAnyDefault(Protocol):
    """A format whose schemas can be parsed strictly but for their defaults."""

    def parse_with_any_default(self, text: bytes, references: Mapping[str, bytes]) -> Parsed:
        """As the format's strict `parse`, but take defaults that do not fit their type."""
        ...


@runtime_checkable
class ParsesQuickly(Protocol):
    """A format whose short texts are not worth a thread."""

    quick_bytes: int
    """Up to this length, a text without references is parsed, printed, digested or compared in a few milliseconds."""


@runtime_checkable
class PrintsFaithfully(Protocol):
    """A format whose printed text need not be parsed: it would give what was printed."""

    prints_faithfully: bool
    """Whether the PRINTED text of a schema that was parsed strictly is parsed to a schema that is equal to it."""


@runtime_checkable
class Lintable(Protocol[P_contra]):
    """A format with advice on schemas that are valid."""

    @property
    def lint_rules(self) -> Mapping[str, str]:
        """The rules by name (`DOC_REQUIRED`), each with one sentence on what it asks for."""
        ...

    def lint(self, parsed: P_contra, before: P_contra | None = None) -> list[Finding]:
        """Return what the rules object to, as warnings; before is the previous version, for rules about changes."""
        ...


@runtime_checkable
class HasLaxImports(Protocol[P_contra]):
    """A format that strict=False lets find types in all references, imported or not, and take undeclared options."""

    def list_unresolved(self, parsed: P_contra) -> Sequence[str]:
        """Return the types that no document declares, and what was left out because its name or number is taken.

        Only a registry that checks nothing may keep a schema that has any.
        """
        ...


@runtime_checkable
class HasIdentityText(Protocol[P_contra]):
    """A format in which schemas can be the same although their PRINTED texts differ."""

    def identity_text(self, parsed: P_contra) -> bytes:
        """Return a text that is equal for two schemas if the language's own library calls them equal."""
        ...


@runtime_checkable
class HasDigestText(Protocol[P_contra]):
    """A format whose digest `normalized` is made of another text than NORMALIZED.

    Logs hold that digest, so its text stays as it was when NORMALIZED changes.
    """

    def digest_text(self, parsed: P_contra) -> bytes:
        """Return the text that the digest `normalized` is the SHA-256 of."""
        ...


ANNOTATIONS: Final = frozenset(
    {"$comment", "appinfo", "comment", "description", "doc", "documentation", "examples", "title"}
)
"""Attributes of an `OutlineNode` that only speak to people: a change of nothing else concerns no data and no code."""

TRUNCATED: Final = "truncated"
"""Kind of the node an outline ends with when the schema declares more than is listed."""


class OutlineNode(msgspec.Struct, frozen=True):
    """One thing a schema declares: a type, a field, a symbol, a method, a subschema.

    path        unique in the outline, in the style of the format's findings
    kind        the language's word for it (`record`, `field`, `message`, `enum value`, `schema` …)
    attributes  what it says of itself, each as a short text (`type`, `default`, `doc`, `minimum` …), never ''
    identity    what makes two nodes of two versions the same below the same parent, whatever their names (a field
                number); '' for none: then it is the path, as seen from the parent
    name        what its author calls it; '' where it has no name but a position
    parent      path of the node it belongs to; None for the topmost ones
    aliases     names it went by in other versions
    ordered     whether its place among its siblings means something
    uses        paths of the nodes its attributes refer to (the type of a field)
    """

    path: str
    kind: str
    attributes: Mapping[str, str]
    identity: str = ""
    name: str = ""
    parent: str | None = None
    aliases: tuple[str, ...] = ()
    ordered: bool = False
    uses: tuple[str, ...] = ()


@runtime_checkable
class HasOutline(Protocol[P_contra]):
    """A format whose versions can be compared declaration by declaration."""

    def outline(self, parsed: P_contra) -> list[OutlineNode]:
        """Return everything the schema declares, parents before children, in the order of the text; bounded.

        What lies behind the bound is left out, and the last node is of kind `TRUNCATED`.
        """
        ...


class OutlineLocation(NamedTuple):
    """A node of an outline by its path, and the attribute in question, '' for none in particular.

    partial is whether the finding's path leads on from there to something this schema does not have.
    """

    path: str
    attribute: str = ""
    partial: bool = False


@runtime_checkable
class HasLocator(Protocol[P_contra]):
    """A format whose findings lead through the schema by other paths than those of its outline."""

    def locator(self, parsed: P_contra) -> Callable[[str], OutlineLocation | None]:
        """Return a function from a finding's path to the declaration it leads to, as far as it can be followed.

        It returns None for a path that leads nowhere.
        """
        ...


@runtime_checkable
class HasPositions(Protocol[P_contra]):
    """A format that knows where in the text the things stand that findings and outlines call by path."""

    def positions(self, parsed: P_contra, text: bytes) -> Mapping[str, SourcePosition]:
        """Return the position of every declaration by its path; text is what the schema was parsed from."""
        ...


@runtime_checkable
class HasImports(Protocol):
    """A format whose documents say which other documents they need."""

    def list_imports(self, text: bytes) -> Sequence[str]:
        """Return the names by which a document refers to others, each once, in the order of the text.

        They are the names that references of the document must have. Built-in documents are left out. Raises
        `MalformedSchema`.
        """
        ...

    def list_exports(self, text: bytes) -> Sequence[str]:
        """Return the names by which others can refer to this document, beside its path. Raises `MalformedSchema`."""
        ...


class SplitDocument(msgspec.Struct, frozen=True):
    """A document taken apart.

    text   the document, with names in place of the types that were taken out; as it was if there are none
    types  the documents of these types by the names that others use for them, dependencies first
    """

    text: str
    types: Mapping[str, str]


@runtime_checkable
class CanSplit(Protocol):
    """A format whose documents can define several types that others may refer to by name."""

    def split_types(self, text: bytes) -> SplitDocument:
        """Return a document and those of the types it defines inside. Raises `MalformedSchema`."""
        ...
