"""Content models as terms over element names, and sample names that can differ between two schemas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from xmlschema.validators import XsdAnyElement, XsdElement, XsdGroup, XsdSimpleType

from stele.formats.terms import Algebra, BudgetExceeded, Term
from stele.formats.xsd.xmlschema_adapter import BUILT_IN

FOREIGN: Final = "urn:x-stele:elsewhere"
"""A namespace in no schema. Its names represent all undeclared names."""

_MAX_DEPTH: Final = 40
_XML: Final = "http://www.w3.org/XML/1998/namespace"


def _in_namespaces(components: Any, namespaces: set[str]) -> dict[str, Any]:
    """Return the components of some namespaces. The library's map also holds those of the XML Schema namespace."""
    return {name: one for name, one in components.items() if name.rpartition("}")[0].lstrip("{") in namespaces}


class Particle:
    """A particle: the declaration of one element, or a wildcard.

    name         `{namespace}local` of the element, None for a wildcard
    declaration  xmlschema's element or wildcard
    hidden       names that a wildcard does not match, because declarations beside it take precedence (XSD 1.1)
    """

    __slots__ = ("declaration", "group", "hidden", "name")

    def __init__(self, name: str | None, declaration: Any, group: Any, hidden: frozenset[str] = frozenset()) -> None:
        self.name = name
        self.declaration = declaration
        self.group = group
        self.hidden = hidden

    def matches(self, name: str) -> bool:
        """Return whether the particle matches an element of that name."""
        if self.name is not None:
            return self.name == name
        return name not in self.hidden and bool(self.declaration.is_matching(name, group=self.group))


class SchemaSide:
    """One schema of a comparison.

    With strict, open content does not match declared names, so content models allow less; without it, they allow more.
    """

    def __init__(self, model: Any, algebra: Algebra, *, strict: bool) -> None:
        self.model = model
        self.algebra = algebra
        self.strict = strict
        self.any_type = model.maps.types["{http://www.w3.org/2001/XMLSchema}anyType"]
        own = {name for name in model.maps.namespaces if name not in BUILT_IN}
        self.elements = _in_namespaces(model.maps.elements, own)
        """Global elements by name, those of imported namespaces too."""
        self.attributes = _in_namespaces(model.maps.attributes, own | {_XML})
        """Global attributes by name."""
        self.types = _in_namespaces(model.maps.types, own)
        """Named types, without the built-in ones."""
        self.namespaces = frozenset(own)
        """Namespaces the schema declares something in."""
        self._terms: dict[int, Term] = {}
        self._leaves: dict[tuple[int, str], Particle] = {}

    def find_element(self, name: str) -> Any | None:
        """Return the global element of that name, None when there is none."""
        return self.elements.get(name)

    def content_term(self, kind: Any) -> Term:
        """Return the content model of a complex type. Raises `BudgetExceeded`."""
        known = self._terms.get(id(kind))
        if known is None:
            known = self._terms[id(kind)] = self._content_term(kind)
        return known

    def _content_term(self, kind: Any) -> Term:
        content = kind.content
        if isinstance(content, XsdSimpleType):
            return self.algebra.empty
        term = self._group_term(content, content, 0)
        opened = getattr(kind, "open_content", None)
        if opened is None or opened.mode == "none" or opened.any_element is None:
            return term
        names = frozenset(leaf.name for leaf in list_leaves(term) if leaf.name is not None)
        between = self.algebra.make_leaf(
            Particle(None, opened.any_element, content, names if self.strict else frozenset())
        )
        if opened.mode == "suffix":
            return self.algebra.make_sequence(term, self.algebra.make_repeat(between, 0, None))
        return self.algebra.make_open(term, between)

    def _group_term(self, group: Any, top: Any, depth: int) -> Term:
        if depth > _MAX_DEPTH:
            raise BudgetExceeded
        algebra = self.algebra
        inner = [(self._particle_term(item, top, depth), item.min_occurs, item.max_occurs) for item in group]
        if group.model == "all":
            term = algebra.make_all(inner)
        else:
            parts = [algebra.make_repeat(part, low, high) for part, low, high in inner]
            term = algebra.make_sequence(*parts) if group.model == "sequence" else algebra.make_choice(parts)
        return algebra.make_repeat(term, group.min_occurs, group.max_occurs) if group is top else term

    def _particle_term(self, item: Any, top: Any, depth: int) -> Term:
        """Return the term of one particle without its occurrences."""
        if isinstance(item, XsdGroup):
            return self._group_term(item, top, depth + 1)
        if isinstance(item, XsdAnyElement):
            return self.algebra.make_leaf(self._intern_leaf("", None, item, top))
        options = {item.name: item} if not item.abstract else {}
        if item.ref is not None:
            options = {item.name: item.ref} if not item.ref.abstract else {}
            if "substitution" not in item.ref.block:
                options |= {other.name: other for other in item.iter_substitutes() if is_substitutable(item.ref, other)}
        return self.algebra.make_choice(
            self.algebra.make_leaf(self._intern_leaf(name, name, declaration, top))
            for name, declaration in options.items()
        )

    def _intern_leaf(self, key: str, name: str | None, declaration: Any, top: Any) -> Particle:
        return self._leaves.setdefault((id(declaration), key), Particle(name, declaration, top))


def is_substitutable(head: XsdElement, member: XsdElement) -> bool:
    """Return whether the head's `block` allows a member of its substitution group in its place."""
    blocked = set(head.block.split()) | set(getattr(head.type, "block", "").split())
    current: Any = member.type
    while current is not None and current is not head.type:
        if getattr(current, "derivation", None) in blocked:
            return False
        current = current.base_type
    return True


def list_leaves(term: Term) -> Iterator[Particle]:
    """Yield all particles of a term, each once."""
    seen: set[Term] = set()
    waiting = [term]
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        if current.kind == "leaf":
            yield current.label
        waiting.extend(reversed(current.parts))


class NameSampler:
    """Samples of element names for wildcards, which match more names than can be tried."""

    def __init__(self, writer: SchemaSide, reader: SchemaSide) -> None:
        self._writer = writer
        self._reader = reader
        spaces = {"", FOREIGN}
        for side in (writer, reader):
            spaces |= side.namespaces
        fresh = "x-any"
        self._fresh = [f"{{{space}}}{fresh}" if space else fresh for space in sorted(spaces)]

    def list_names(self, leaf: Particle, others: Iterable[Particle], *, free: bool) -> list[str]:
        """Return names that a writer's particle matches: one for each case that the reader's particles distinguish.

        free: the writer does not validate content below, so a strict wildcard needs no declaration.
        """
        if leaf.name is not None:
            return [leaf.name]
        strict = leaf.declaration.process_contents == "strict" and not free
        names = list(self._writer.elements)
        if not strict:
            names += [other.name for other in others if other.name is not None]
            names += list(self._reader.elements)
            names += (
                self._fresh
                + self._namespace_samples(leaf)
                + [name for other in others for name in self._namespace_samples(other)]
            )
        names = [name for name in dict.fromkeys(names) if leaf.matches(name)]
        return [name for name in names if not _is_abstract(self._writer.find_element(name))] if strict else names

    @staticmethod
    def _namespace_samples(leaf: Particle) -> list[str]:
        """Return new names in the namespaces that a wildcard lists."""
        if leaf.name is not None:
            return []
        spaces = [*leaf.declaration.namespace, *leaf.declaration.not_namespace]
        return [f"{{{space}}}x-any" if space else "x-any" for space in spaces if not space.startswith("##")]


def _is_abstract(declaration: Any | None) -> bool:
    return declaration is not None and bool(declaration.abstract)


# --- proofs by shape ------------------------------------------------------------------------------------------------


Meetings = frozenset[tuple[Particle, str, Particle]]
"""Pairs of particles that match the same name: the writer's particle, the name, the reader's particle."""


class ShapeProver:
    """Proves inclusion by comparing the structure of two terms. Large occurrence bounds do not slow it down."""

    def __init__(self, algebra: Algebra) -> None:
        self._algebra = algebra
        self._known: dict[tuple[Term, Term], Meetings | None] = {}

    def prove_meetings(self, reader: Term, writer: Term) -> Meetings | None:
        """Return the matching particles if the structure proves inclusion, else None. Raises `BudgetExceeded`."""
        key = (reader, writer)
        if key not in self._known:
            self._algebra.budget.spend_steps(4)
            self._known[key] = None  # a proof must not depend on itself
            self._known[key] = self._prove_pair(reader, writer)
        return self._known[key]

    def _prove_all(self, pairs: Iterable[tuple[Term, Term]]) -> Meetings | None:
        meetings: Meetings = frozenset()
        for reader, writer in pairs:
            more = self.prove_meetings(reader, writer)
            if more is None:
                return None
            meetings |= more
        return meetings

    def _prove_pair(self, reader: Term, writer: Term) -> Meetings | None:
        if writer.kind == "never" or (writer.kind == "empty" and reader.nullable):
            return frozenset()
        if writer.kind == "choice":
            return self._prove_all((reader, part) for part in writer.parts)
        if writer.kind == reader.kind == "leaf":
            return self._prove_leaves(reader.label, writer.label)
        if writer.kind == reader.kind == "all":
            return self._prove_alls(reader, writer)
        if reader.kind == "repeat":
            meetings = self._prove_repeat(reader, writer)
            if meetings is not None:
                return meetings
        if reader.kind == "seq":
            return self._prove_sequence(reader, writer)
        if reader.kind == "choice":
            return next(
                (meetings for part in reader.parts if (meetings := self.prove_meetings(part, writer)) is not None), None
            )
        return None

    @staticmethod
    def _prove_leaves(reader: Any, writer: Any) -> Meetings | None:
        if writer.name is None or not reader.matches(writer.name):
            return None
        if reader.name is None and reader.declaration.xsd_version != "1.0":
            return None  # a declaration elsewhere in the model may win over the wildcard
        return frozenset({(writer, writer.name, reader)})

    def _prove_repeat(self, reader: Term, writer: Term) -> Meetings | None:
        body, (low, high) = reader.parts[0], reader.bounds[0]
        if writer.kind == "repeat":
            mine_low, mine_high = writer.bounds[0]
            if mine_low >= low and (high is None or (mine_high is not None and mine_high <= high)):
                meetings = self.prove_meetings(body, writer.parts[0])
                if meetings is not None:
                    return meetings
        if low == 0 and high is None and writer.kind in ("seq", "all", "repeat"):
            return self._prove_all((reader, part) for part in writer.parts)
        return self.prove_meetings(body, writer) if low <= 1 and (high is None or high >= 1) else None

    def _prove_sequence(self, reader: Term, writer: Term) -> Meetings | None:
        head, tail = reader.parts
        mine, rest = writer.parts if writer.kind == "seq" else (writer, self._algebra.empty)
        meetings = self._prove_all([(head, mine), (tail, rest)])
        if meetings is None and head.nullable:
            meetings = self.prove_meetings(tail, writer)
        return meetings

    def _prove_alls(self, reader: Term, writer: Term) -> Meetings | None:
        theirs = dict(zip(reader.parts, reader.bounds, strict=True))
        meetings: Meetings = frozenset()
        for part, (low, high) in zip(writer.parts, writer.bounds, strict=True):
            for other, (least, most) in list(theirs.items()):
                more = self.prove_meetings(other, part)
                if more is not None and low >= least and (most is None or (high is not None and high <= most)):
                    meetings |= more
                    del theirs[other]
                    break
            else:
                return None
        return meetings if all(low == 0 for low, _ in theirs.values()) else None
