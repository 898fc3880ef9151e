"""Builds small documents of a schema, as examples and to show what a change breaks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from lxml import etree
from xmlschema.validators import XsdSimpleType

from stele.formats.terms import Term, sequence_items
from stele.formats.xsd.content import FOREIGN, Particle, SchemaSide, list_leaves
from stele.formats.xsd.simple_type import valid_samples
from stele.formats.xsd.xmlschema_adapter import accepts_text

XSI: Final = "http://www.w3.org/2001/XMLSchema-instance"
MAX_DEPTH: Final = 24
"""Most levels of elements in a built document."""

MAX_CHILDREN: Final = 2_000
"""Most children of a built element."""


class NoDocument(Exception):
    """Raised when the type has no small document."""


class InstanceStyle(NamedTuple):
    """How much optional content is written: copies of repeatable parts (0: as few as allowed), and attributes."""

    copies: int = 0
    attributes: bool = False


MINIMAL: Final = InstanceStyle()
_RICH_DEPTH: Final = 5
_MOST_TYPES: Final = 2_000


class ElementContent(NamedTuple):
    """Required content of one element of a document. None leaves it to the builder.

    children  elements in order
    text      character data; before the first child where there are children
    extra     attributes to add; a value of None removes one
    """

    children: Sequence[etree._Element] | None = None
    text: str | None = None
    extra: tuple[tuple[str, str | None], ...] = ()


ANY_CONTENT: Final = ElementContent()
"""Any content that is valid."""


class DocumentBuilder:
    """Builds elements of one schema."""

    def __init__(self, side: SchemaSide) -> None:
        self._side = side
        self._productive: dict[tuple[int, int], bool] = {}
        self._values: dict[int, str | None] = {}
        self._ids = 0
        self._size = 0

    def build_element(
        self,
        name: str,
        declaration: Any | None,
        kind: Any,
        content: ElementContent = ANY_CONTENT,
        style: InstanceStyle = MINIMAL,
    ) -> etree._Element:
        """Return an element of a type. Raises `NoDocument`."""
        self._size = 0
        depth = next((depth for depth in range(MAX_DEPTH) if self._can_build(kind, depth)), None)
        if depth is None and content.children is None:
            raise NoDocument
        return self._build_element(name, declaration, kind, content, style, MAX_DEPTH if depth is None else depth, 0)

    def _build_element(
        self,
        name: str,
        declaration: Any | None,
        kind: Any,
        content: ElementContent,
        style: InstanceStyle,
        depth: int,
        level: int,
    ) -> etree._Element:
        self._size += 1
        if self._size > MAX_CHILDREN:
            raise NoDocument
        element = etree.Element(name)
        if declaration is not None and declaration.type is not kind and kind.name:
            element = _element_with_type(name, kind)
        self._set_attributes(element, kind, content, style)
        simple = simple_content(kind)
        if content.text is not None:
            element.text = content.text
        elif simple is not None and content.children is None:
            element.text = self._make_text(declaration, simple)
        if content.children is not None:
            element.extend(content.children)
        elif simple is None:
            for leaf in self._choose_word(kind, style if level < _RICH_DEPTH else MINIMAL, depth):
                element.append(self._build_child(leaf, style, depth - 1, level + 1))
        return element

    def _set_attributes(
        self, xml_element: etree._Element, kind: Any, content: ElementContent, style: InstanceStyle
    ) -> None:
        extra = dict(content.extra)
        for name, attribute in _attributes_of(kind).items():
            if name is None or name in extra or attribute.use == "prohibited":
                continue
            if attribute.use == "required" or style.attributes:
                value = attribute.fixed if attribute.fixed is not None else self.sample_value(attribute.type)
                if value is None:
                    raise NoDocument
                xml_element.set(name, value)
        for name, value in extra.items():
            if value is not None:
                xml_element.set(name, value)

    def _make_text(self, declaration: Any | None, kind: Any) -> str:
        if declaration is not None and declaration.fixed is not None:
            return str(declaration.fixed)
        value = self.sample_value(kind)
        if value is None:
            raise NoDocument
        return value

    def sample_value(self, kind: Any) -> str | None:
        """Return a valid text of a simple type, a new one for each ID; None when none was found."""
        if getattr(kind, "is_key", lambda: False)() and accepts_text(kind, "id0"):
            self._ids += 1
            return f"id{self._ids}"
        if id(kind) not in self._values:
            self._values[id(kind)] = next(islice(valid_samples(kind), 1), None)
        return self._values[id(kind)]

    def build_child(self, leaf: Particle, style: InstanceStyle = MINIMAL) -> etree._Element:
        """Return an element for a particle. Raises `NoDocument`."""
        depth = next((depth for depth in range(MAX_DEPTH) if self._can_leaf(leaf, depth)), None)
        if depth is None:
            raise NoDocument
        self._size = 0
        return self._build_child(leaf, style, depth - 1, 0)

    def _build_child(self, leaf: Particle, style: InstanceStyle, depth: int, level: int) -> etree._Element:
        name, declaration = self._choose_declaration(leaf)
        if declaration is None:
            return etree.Element(name)
        kind = self.concrete_type(declaration.type)
        if kind is None:
            raise NoDocument
        return self._build_element(name, declaration, kind, ElementContent(), style, max(depth, 0), level)

    def _choose_declaration(self, leaf: Particle) -> tuple[str, Any | None]:
        if leaf.name is not None:
            return leaf.name, leaf.declaration
        if leaf.declaration.process_contents != "strict":
            for space in (
                f"{{{FOREIGN}}}x-any",
                "x-any",
                *(f"{{{ns}}}x-any" for ns in leaf.declaration.namespace if ns),
            ):
                if leaf.matches(space) and self._side.find_element(space) is None:
                    return space, None
        for name, declaration in self._side.elements.items():
            if leaf.matches(name) and not declaration.abstract:
                return name, declaration
        raise NoDocument

    def concrete_type(self, kind: Any) -> Any | None:
        """Return the type itself, or one derived from it that is not abstract, or None."""
        if not kind.abstract:
            return kind
        return next(
            (
                other
                for other in self._side.types.values()
                if other.is_complex() and not other.abstract and other.is_derived(kind)
            ),
            None,
        )

    def is_inhabited(self, kind: Any) -> bool:
        """Return whether the type has any finite document."""
        reached = {id(kind): kind}
        waiting = [kind]
        while waiting and len(reached) < _MOST_TYPES:
            for leaf in self._element_leaves(waiting.pop()):
                if leaf.name is not None and id(leaf.declaration.type) not in reached:
                    reached[id(leaf.declaration.type)] = leaf.declaration.type
                    waiting.append(leaf.declaration.type)
        if waiting:
            return True
        possible: set[int] = set()

        def can_build(leaf: Particle) -> bool:
            return leaf.name is None or id(leaf.declaration.type) in possible

        grown = True
        while grown and id(kind) not in possible:
            new = [
                key
                for key, one in reached.items()
                if key not in possible
                and (
                    one.abstract
                    or simple_content(one) is not None
                    or _has_word(self._side.content_term(one), can_build)
                )
            ]
            possible.update(new)
            grown = bool(new)
        return id(kind) in possible

    def _element_leaves(self, kind: Any) -> list[Particle]:
        return [] if simple_content(kind) is not None else list(list_leaves(self._side.content_term(kind)))

    # --- sequences of particles -------------------------------------------------------------------------------------

    def _can_build(self, kind: Any, depth: int) -> bool:
        """Return whether elements of the type can be built with at most `depth` levels below."""
        if simple_content(kind) is not None:
            return True
        key = (id(kind), depth)
        if key not in self._productive:
            self._productive[key] = False
            self._productive[key] = _has_word(self._side.content_term(kind), lambda leaf: self._can_leaf(leaf, depth))
        return self._productive[key]

    def _can_leaf(self, leaf: Particle, depth: int) -> bool:
        if depth <= 0:
            return False
        try:
            _, declaration = self._choose_declaration(leaf)
        except NoDocument:
            return False
        if declaration is None:
            return True
        kind = self.concrete_type(declaration.type)
        return kind is not None and self._can_build(kind, depth - 1)

    def _choose_word(self, kind: Any, style: InstanceStyle, depth: int) -> list[Particle]:
        return _Words(lambda leaf: self._can_leaf(leaf, depth), style.copies).shortest_word(
            self._side.content_term(kind)
        )

    def particles_around(self, kind: Any, target: Particle) -> tuple[list[Particle], list[Particle]]:
        """Return the particles before and after target in a short valid sequence of the type. Raises `NoDocument`."""
        words = _Words(lambda leaf: self._can_leaf(leaf, MAX_DEPTH), 0)
        halves = words.word_through(self._side.content_term(kind), target)
        if halves is None:
            raise NoDocument
        return halves

    def shortest_rest(self, term: Term) -> list[Particle]:
        """Return a short sequence that a term allows. Raises `NoDocument`."""
        return _Words(lambda leaf: self._can_leaf(leaf, MAX_DEPTH), 0).shortest_word(term)


def _element_with_type(name: str, kind: Any) -> etree._Element:
    """Return an element with `xsi:type`."""
    space, _, local = kind.name.rpartition("}")
    prefixes = {"xsi": XSI, **({"t": space.lstrip("{")} if space else {})}
    element = etree.Element(name, nsmap=prefixes)
    element.set(f"{{{XSI}}}type", f"t:{local}" if space else local)
    return element


def simple_content(kind: Any) -> Any | None:
    """Return the simple type of the content, None for element content."""
    if isinstance(kind, XsdSimpleType):
        return kind
    return kind.content if isinstance(kind.content, XsdSimpleType) else None


def _attributes_of(kind: Any) -> Any:
    return {} if isinstance(kind, XsdSimpleType) else kind.attributes


def _has_word(term: Term, can: Callable[[Particle], bool]) -> bool:
    match term.kind:
        case "empty":
            return True
        case "leaf":
            return can(term.label)
        case "seq":
            return all(_has_word(part, can) for part in sequence_items(term))
        case "choice":
            return any(_has_word(part, can) for part in term.parts)
        case "repeat":
            return term.nullable or _has_word(term.parts[0], can)
        case "all":
            pairs = zip(term.parts, term.bounds, strict=True)
            return all(low == 0 or _has_word(part, can) for part, (low, _) in pairs)
        case "open":
            return _has_word(term.parts[0], can)
    return False


class _Words:
    """Finds short sequences of particles that content models allow, among the particles that can be built."""

    def __init__(self, can: Callable[[Particle], bool], copies: int) -> None:
        self._can = can
        self._copies = copies

    def shortest_word(self, term: Term) -> list[Particle]:
        """Return a shortest sequence, or a longer one if the style asks for copies. Raises `NoDocument`."""
        match term.kind:
            case "leaf":
                return [term.label]
            case "seq":
                return [leaf for part in sequence_items(term) for leaf in self.shortest_word(part)]
            case "choice":
                words = [self.shortest_word(part) for part in term.parts if _has_word(part, self._can)]
                return (max if self._copies else min)(words, key=len)
            case "repeat":
                return self._repeat_word(term.parts[0], *term.bounds[0])
            case "all":
                pairs = zip(term.parts, term.bounds, strict=True)
                return [leaf for part, bounds in pairs for leaf in self._repeat_word(part, *bounds)]
            case "open":
                return self.shortest_word(term.parts[0])
        return []

    def _repeat_word(self, body: Term, low: int, high: int | None) -> list[Particle]:
        count = max(low, self._copies) if high is None else min(max(low, self._copies), high)
        if not count or not _has_word(body, self._can):
            return []
        word = self.shortest_word(body)
        if count * len(word) > MAX_CHILDREN:
            raise NoDocument
        return word * count

    def word_through(self, term: Term, target: Particle) -> tuple[list[Particle], list[Particle]] | None:
        """Return the particles before and after target, None where target is not in the term."""
        match term.kind:
            case "leaf":
                return ([], []) if term.label is target else None
            case "seq":
                return self._word_through_sequence(term, target)
            case "choice":
                return next(
                    (halves for part in term.parts if (halves := self.word_through(part, target)) is not None), None
                )
            case "repeat":
                halves = self.word_through(term.parts[0], target)
                low = term.bounds[0][0]
                more = self._repeat_word(term.parts[0], low - 1, low - 1) if halves is not None and low > 1 else []
                return None if halves is None else (halves[0], halves[1] + more)
            case "all":
                return self._word_through_all(term, target)
            case "open":
                if term.parts[1].label is target:
                    return [], self.shortest_word(term.parts[0])
                return self.word_through(term.parts[0], target)
        return None

    def _word_through_sequence(self, term: Term, target: Particle) -> tuple[list[Particle], list[Particle]] | None:
        before: list[Particle] = []
        while term.kind == "seq":
            head, tail = term.parts
            halves = self.word_through(head, target)
            if halves is not None:
                return before + halves[0], halves[1] + self.shortest_word(tail)
            before += self.shortest_word(head)
            term = tail
        halves = self.word_through(term, target)
        return None if halves is None else (before + halves[0], halves[1])

    def _word_through_all(self, term: Term, target: Particle) -> tuple[list[Particle], list[Particle]] | None:
        members = list(zip(term.parts, term.bounds, strict=True))
        for index, (part, (low, _)) in enumerate(members):
            halves = self.word_through(part, target)
            if halves is not None:
                others = [*members[:index], *members[index + 1 :], (part, (max(low - 1, 0), None))]
                rest = [leaf for other, bounds in others for leaf in self._repeat_word(other, bounds[0], bounds[0])]
                return halves[0], halves[1] + rest
        return None
