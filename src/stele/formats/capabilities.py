"""Optional capabilities of a format, beyond the port `stele.core.ports.Format` that every format satisfies.

A format that has the methods of one of these protocols has that capability. Callers test with `isinstance`, or with
`supports` where `isinstance` would take longer than the work itself. The capabilities are not part of the port, so a
plug-in can begin with parsing and verdicts alone.
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
    """Return whether a format has a capability.

    The result is that of `isinstance`, but it is cached per class: `isinstance` looks up every method on each call.
    """
    key = (type(fmt), capability)
    known = _supported.get(key)
    if known is None:
        known = _supported[key] = isinstance(fmt, cast("type", capability))
    return known


@runtime_checkable
class ToModel(Protocol[P_contra]):
    """A format whose schemas can be turned into other languages."""

    def to_model(self, parsed: P_contra) -> tuple[Model, list[Loss]]:
        """Return the neutral model of the schema and the losses. Raises `TooLarge` past its limits."""
        ...


@runtime_checkable
class FromModel(Protocol):
    """A format that schemas of other languages can be converted to."""

    def from_model(self, model: Model) -> tuple[bytes, list[Loss]]:
        """Return a schema document and the losses. The format's own strict `parse` accepts the document.

        Raises `CannotConvert` when no schema of this language can express the model.
        """
        ...


@runtime_checkable
class TakesAnyDefault(Protocol):
    """A format that can parse schemas strictly except for their default values."""

    def parse_with_any_default(self, text: bytes, references: Mapping[str, bytes]) -> Parsed:
        """Parse as the format's strict `parse` does, but accept defaults that do not fit their type."""
        ...


@runtime_checkable
class ParsesQuickly(Protocol):
    """A format whose short texts are parsed in the calling thread, because a worker thread would cost more."""

    quick_bytes: int
    """Length in bytes up to which a text is quick, if it has no references.

    It is then parsed, printed, digested or compared in a few milliseconds.
    """


@runtime_checkable
class PrintsFaithfully(Protocol):
    """A format whose printed text need not be parsed again: parsing it gives the schema that was printed."""

    prints_faithfully: bool
    """Whether the PRINTED text of a schema that was parsed strictly is parsed to a schema that is equal to it."""


@runtime_checkable
class Lintable(Protocol[P_contra]):
    """A format that has lint rules for valid schemas."""

    @property
    def lint_rules(self) -> Mapping[str, str]:
        """The rules by name (`DOC_REQUIRED`), each with one sentence on what it asks for."""
        ...

    def lint(self, parsed: P_contra, before: P_contra | None = None) -> list[Finding]:
        """Return the findings of the rules, as warnings. before is the previous version, for rules about changes."""
        ...


@runtime_checkable
class HasLaxImports(Protocol[P_contra]):
    """A format that can parse leniently, with strict=False.

    It then finds types in all references, imported or not, and accepts undeclared options.
    """

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
    """A format whose digest `normalized` is computed from a text other than NORMALIZED.

    Logs hold that digest, so this text must not change when NORMALIZED changes.
    """

    def digest_text(self, parsed: P_contra) -> bytes:
        """Return the text that the digest `normalized` is the SHA-256 of."""
        ...


ANNOTATIONS: Final = frozenset(
    {"$comment", "appinfo", "comment", "description", "doc", "documentation", "examples", "title"}
)
"""Attributes of an `OutlineNode` that only document the schema. A change in them alone affects no data and no code."""

TRUNCATED: Final = "truncated"
"""Kind of the node an outline ends with when the schema declares more than is listed."""


class OutlineNode(msgspec.Struct, frozen=True):
    """One declaration of a schema: a type, a field, a symbol, a method, a subschema.

    path        unique in the outline, in the style of the format's findings
    kind        the language's word for it (`record`, `field`, `message`, `enum value`, `schema` …)
    attributes  its properties, each as a short text (`type`, `default`, `doc`, `minimum` …), never ''
    identity    what identifies the node below its parent across versions, whatever its name (a field number); '' when
                the path relative to the parent identifies it
    name        its name in the schema; '' where it has only a position
    parent      path of the node that contains it; None for top-level nodes
    aliases     names it had in other versions
    ordered     whether its position among its siblings is significant
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
        """Return the declarations of the schema, parents before children, in the order of the text.

        Their number is bounded. Declarations past the bound are left out, and the last node is then of kind
        `TRUNCATED`.
        """
        ...


class OutlineLocation(NamedTuple):
    """The path of a node in an outline, and the name of one of its attributes, '' for none in particular.

    partial is whether the finding's path continues below this node to something that this schema does not have.
    """

    path: str
    attribute: str = ""
    partial: bool = False


@runtime_checkable
class HasLocator(Protocol[P_contra]):
    """A format whose findings use other paths than its outline."""

    def locator(self, parsed: P_contra) -> Callable[[str], OutlineLocation | None]:
        """Return a function that maps the path of a finding to a declaration.

        It follows the path as far as possible, and returns None for a path that leads to no declaration.
        """
        ...


@runtime_checkable
class HasPositions(Protocol[P_contra]):
    """A format that can return the position in the text of each path that findings and outlines use."""

    def positions(self, parsed: P_contra, text: bytes) -> Mapping[str, SourcePosition]:
        """Return the position of every declaration by its path; text is what the schema was parsed from."""
        ...


@runtime_checkable
class HasImports(Protocol):
    """A format whose documents say which other documents they need."""

    def list_imports(self, text: bytes) -> Sequence[str]:
        """Return the names by which a document refers to other documents, each once, in the order of the text.

        The references of the document must have these names. Built-in documents are left out. Raises `MalformedSchema`.
        """
        ...

    def list_exports(self, text: bytes) -> Sequence[str]:
        """Return the names by which other documents can refer to this one, in addition to its path.

        Raises `MalformedSchema`.
        """
        ...


class SplitDocument(msgspec.Struct, frozen=True):
    """A document whose inner types were moved into documents of their own.

    text   the document, with names in place of the types that were moved; unchanged if there are none
    types  the documents of these types by the names that references use for them, dependencies first
    """

    text: str
    types: Mapping[str, str]


@runtime_checkable
class CanSplit(Protocol):
    """A format whose documents can define several types that others may refer to by name."""

    def split_types(self, text: bytes) -> SplitDocument:
        """Return a document without the named types it defines inside, and these types.

        Raises `MalformedSchema`.
        """
        ...
