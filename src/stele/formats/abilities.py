"""What a format may be able to do beyond the port every format satisfies.

A format that has the methods of one of these protocols has the ability; callers ask with `isinstance`. Keeping them out
of `stele.core.ports.Format` lets a plug-in begin with parsing and verdicts alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar, runtime_checkable

import msgspec

from stele.core.findings import Finding
from stele.formats.conversion.model import Loss, Model

P_contra = TypeVar("P_contra", contravariant=True)


@runtime_checkable
class Readable(Protocol[P_contra]):
    """A format whose schemas can be turned into other languages."""

    def to_model(self, parsed: P_contra) -> tuple[Model, list[Loss]]:
        """The schema in neutral words, and what those words cannot say. Raises `TooLarge` past its limits."""
        ...


@runtime_checkable
class Writable(Protocol):
    """A format other languages can be turned into."""

    def from_model(self, model: Model) -> tuple[bytes, list[Loss]]:
        """A schema document that the format's own strict `parse` accepts, and what it could not say.

        Raises `CannotConvert` when no schema of this language stands for the model.
        """
        ...


@runtime_checkable
class Lintable(Protocol[P_contra]):
    """A format with advice on schemas that are valid."""

    @property
    def lint_rules(self) -> Mapping[str, str]:
        """The rules by name (`DOC_REQUIRED`), each with one sentence on what it asks for."""
        ...

    def lint(self, parsed: P_contra, before: P_contra | None = None) -> list[Finding]:
        """What any of the rules objects to, as warnings; before is the previous version, for rules about changes."""
        ...


class Node(msgspec.Struct, frozen=True):
    """One thing a schema declares: a type, a field, a symbol, a method, a subschema.

    path        unique in the outline, stable between versions, in the style of the format's findings
    kind        the language's word for it (`record`, `field`, `message`, `enum value`, `schema` …)
    attributes  what it says of itself, each as a short text (`type`, `default`, `doc`, `minimum` …)
    identity    what makes two nodes of two versions the same even when the path differs (a field number); '' for none
    """

    path: str
    kind: str
    attributes: Mapping[str, str]
    identity: str = ""


@runtime_checkable
class Outlined(Protocol[P_contra]):
    """A format whose versions can be compared declaration by declaration."""

    def outline(self, parsed: P_contra) -> list[Node]:
        """Everything the schema declares, parents before children, in the order of the text; bounded."""
        ...
