"""Small documents of a schema: to show an author what breaks, and as examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from lxml import etree
from xmlschema.validators import XsdSimpleType

from stele.formats.xsd.content import FOREIGN, Leaf, Side, leaves
from stele.formats.xsd.library import accepts
from stele.formats.xsd.samples import valid_samples
from stele.formats.xsd.terms import Term, sequence

XSI: Final = "http://www.w3.org/2001/XMLSchema-instance"
MAX_DEPTH: Final = 24
"""Deepest documents that are made."""

MAX_CHILDREN: Final = 2_000
"""Most children of one element that is made."""


class NoInstance(Exception):
    """There is no small document of the type."""


class Style(NamedTuple):
    """How much of what is optional is written: copies of what repeats (0: as few as allowed), and attributes."""

    copies: int = 0
    attributes: bool = False


MINIMAL: Final = Style()
_RICH_DEPTH: Final = 5
_MOST_TYPES: Final = 2_000


class Content(NamedTuple):
    """What one element of a document must be like; None leaves it to the builder.

    children  elements in order
    text      character data; before the first child where there are children
    extra     attributes to add; a value of None removes one
    """

    children: Sequence[etree._Element] | None = None
    text: str | None = None
    extra: tuple[tuple[str, str | None], ...] = ()


ANY: Final = Content()
"""Whatever fits."""


class Builder:
    """Makes elements of one schema."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self._productive: dict[tuple[int, int], bool] = {}
        self._values: dict[int, str | None] = {}
        self._ids = 0
        self._size = 0

    def element(
        self, name: str, declaration: Any | None, kind: Any, content: Content = ANY, style: Style = MINIMAL
    ) -> etree._Element:
        """An element of a type. Raises `NoInstance`."""
        self._size = 0
        depth = next((depth for depth in range(MAX_DEPTH) if self._can(kind, depth)), None)
        if depth is None and content.children is None:
            raise NoInstance
        return self._element(name, declaration, kind, content, style, MAX_DEPTH if depth is None else depth, 0)

    def _element(
        self, name: str, declaration: Any | None, kind: Any, content: Content, style: Style, depth: int, level: int
    ) -> etree._Element:
        self._size += 1
        if self._size > MAX_CHILDREN:
            raise NoInstance
        made = etree.Element(name)
        if declaration is not None and declaration.type is not kind and kind.name:
            made = _typed(name, kind)
        self._set_attributes(made, kind, content, style)
        simple = simple_content(kind)
        if content.text is not None:
            made.text = content.text
        elif simple is not None and content.children is None:
            made.text = self._text(declaration, simple)
        if content.children is not None:
            made.extend(content.children)
        elif simple is None:
            for leaf in self._word(kind, style if level < _RICH_DEPTH else MINIMAL, depth):
                made.append(self._child(leaf, style, depth - 1, level + 1))
        return made

    def _set_attributes(self, made: etree._Element, kind: Any, content: Content, style: Style) -> None:
        extra = dict(content.extra)
        for name, attribute in _attributes(kind).items():
            if name is None or name in extra or attribute.use == "prohibited":
                continue
            if attribute.use == "required" or style.attributes:
                value = attribute.fixed if attribute.fixed is not None else self.value(attribute.type)
                if value is None:
                    raise NoInstance
                made.set(name, value)
        for name, value in extra.items():
            if value is not None:
                made.set(name, value)

    def _text(self, declaration: Any | None, kind: Any) -> str:
        if declaration is not None and declaration.fixed is not None:
            return str(declaration.fixed)
        value = self.value(kind)
        if value is None:
            raise NoInstance
        return value

    def value(self, kind: Any) -> str | None:
        """A valid text of a simple type, another one each time for identifiers; None when none was found."""
        if getattr(kind, "is_key", lambda: False)() and accepts(kind, "id0"):
            self._ids += 1
            return f"id{self._ids}"
        if id(kind) not in self._values:
            self._values[id(kind)] = next(islice(valid_samples(kind), 1), None)
        return self._values[id(kind)]

    def child(self, leaf: Leaf, style: Style = MINIMAL) -> etree._Element:
        """An element for a particle. Raises `NoInstance`."""
        depth = next((depth for depth in range(MAX_DEPTH) if self._can_leaf(leaf, depth)), None)
        if depth is None:
            raise NoInstance
        self._size = 0
        return self._child(leaf, style, depth - 1, 0)

    def _child(self, leaf: Leaf, style: Style, depth: int, level: int) -> etree._Element:
        name, declaration = self._declaration(leaf)
        if declaration is None:
            return etree.Element(name)
        kind = self.concrete(declaration.type)
        if kind is None:
            raise NoInstance
        return self._element(name, declaration, kind, Content(), style, max(depth, 0), level)

    def _declaration(self, leaf: Leaf) -> tuple[str, Any | None]:
        if leaf.name is not None:
            return leaf.name, leaf.declaration
        if leaf.declaration.process_contents != "strict":
            for space in (
                f"{{{FOREIGN}}}x-any",
                "x-any",
                *(f"{{{ns}}}x-any" for ns in leaf.declaration.namespace if ns),
            ):
                if leaf.matches(space) and self._side.declared(space) is None:
                    return space, None
        for name, declaration in self._side.elements.items():
            if leaf.matches(name) and not declaration.abstract:
                return name, declaration
        raise NoInstance

    def concrete(self, kind: Any) -> Any | None:
        """The type itself, or one derived from it that is not abstract, or None."""
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

    def inhabited(self, kind: Any) -> bool:
        """False when every document of the type would be infinite: nothing can be lost then."""
        reached = {id(kind): kind}
        waiting = [kind]
        while waiting and len(reached) < _MOST_TYPES:
            for leaf in self._leaves(waiting.pop()):
                if leaf.name is not None and id(leaf.declaration.type) not in reached:
                    reached[id(leaf.declaration.type)] = leaf.declaration.type
                    waiting.append(leaf.declaration.type)
        if waiting:
            return True
        possible: set[int] = set()

        def can(leaf: Leaf) -> bool:
            return leaf.name is None or id(leaf.declaration.type) in possible

        grown = True
        while grown and id(kind) not in possible:
            new = [
                key
                for key, one in reached.items()
                if key not in possible
                and (one.abstract or simple_content(one) is not None or _has_word(self._side.term(one), can))
            ]
            possible.update(new)
            grown = bool(new)
        return id(kind) in possible

    def _leaves(self, kind: Any) -> list[Leaf]:
        return [] if simple_content(kind) is not None else list(leaves(self._side.term(kind)))

    # --- which words there are --------------------------------------------------------------------------------------

    def _can(self, kind: Any, depth: int) -> bool:
        """Whether elements of the type can be made with at most depth levels below."""
        if simple_content(kind) is not None:
            return True
        key = (id(kind), depth)
        if key not in self._productive:
            self._productive[key] = False
            self._productive[key] = _has_word(self._side.term(kind), lambda leaf: self._can_leaf(leaf, depth))
        return self._productive[key]

    def _can_leaf(self, leaf: Leaf, depth: int) -> bool:
        if depth <= 0:
            return False
        try:
            _, declaration = self._declaration(leaf)
        except NoInstance:
            return False
        if declaration is None:
            return True
        kind = self.concrete(declaration.type)
        return kind is not None and self._can(kind, depth - 1)

    def _word(self, kind: Any, style: Style, depth: int) -> list[Leaf]:
        return _Words(lambda leaf: self._can_leaf(leaf, depth), style.copies).shortest(self._side.term(kind))

    def through(self, kind: Any, target: Leaf) -> tuple[list[Leaf], list[Leaf]]:
        """Particles before and after target in a short word of the type. Raises `NoInstance`."""
        words = _Words(lambda leaf: self._can_leaf(leaf, MAX_DEPTH), 0)
        found = words.through(self._side.term(kind), target)
        if found is None:
            raise NoInstance
        return found

    def rest(self, term: Term) -> list[Leaf]:
        """A short word of a term. Raises `NoInstance`."""
        return _Words(lambda leaf: self._can_leaf(leaf, MAX_DEPTH), 0).shortest(term)


def _typed(name: str, kind: Any) -> etree._Element:
    """An element with `xsi:type`."""
    space, _, local = kind.name.rpartition("}")
    prefixes = {"xsi": XSI, **({"t": space.lstrip("{")} if space else {})}
    made = etree.Element(name, nsmap=prefixes)
    made.set(f"{{{XSI}}}type", f"t:{local}" if space else local)
    return made


def simple_content(kind: Any) -> Any | None:
    """The simple type of the content, None for element content."""
    if isinstance(kind, XsdSimpleType):
        return kind
    return kind.content if isinstance(kind.content, XsdSimpleType) else None


def _attributes(kind: Any) -> Any:
    return {} if isinstance(kind, XsdSimpleType) else kind.attributes


def _has_word(term: Term, can: Callable[[Leaf], bool]) -> bool:
    match term.kind:
        case "empty":
            return True
        case "leaf":
            return can(term.label)
        case "seq":
            return all(_has_word(part, can) for part in sequence(term))
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
    """Short words of content models over the particles that can be made."""

    def __init__(self, can: Callable[[Leaf], bool], copies: int) -> None:
        self._can = can
        self._copies = copies

    def shortest(self, term: Term) -> list[Leaf]:
        """One of the shortest words, or a richer one when copies are asked for. Raises `NoInstance`."""
        match term.kind:
            case "leaf":
                return [term.label]
            case "seq":
                return [leaf for part in sequence(term) for leaf in self.shortest(part)]
            case "choice":
                words = [self.shortest(part) for part in term.parts if _has_word(part, self._can)]
                return (max if self._copies else min)(words, key=len)
            case "repeat":
                return self._repeated(term.parts[0], *term.bounds[0])
            case "all":
                pairs = zip(term.parts, term.bounds, strict=True)
                return [leaf for part, bounds in pairs for leaf in self._repeated(part, *bounds)]
            case "open":
                return self.shortest(term.parts[0])
        return []

    def _repeated(self, body: Term, low: int, high: int | None) -> list[Leaf]:
        count = max(low, self._copies) if high is None else min(max(low, self._copies), high)
        if not count or not _has_word(body, self._can):
            return []
        word = self.shortest(body)
        if count * len(word) > MAX_CHILDREN:
            raise NoInstance
        return word * count

    def through(self, term: Term, target: Leaf) -> tuple[list[Leaf], list[Leaf]] | None:
        """What stands before and after target."""
        match term.kind:
            case "leaf":
                return ([], []) if term.label is target else None
            case "seq":
                return self._through_sequence(term, target)
            case "choice":
                return next((found for part in term.parts if (found := self.through(part, target)) is not None), None)
            case "repeat":
                found = self.through(term.parts[0], target)
                low = term.bounds[0][0]
                more = self._repeated(term.parts[0], low - 1, low - 1) if found is not None and low > 1 else []
                return None if found is None else (found[0], found[1] + more)
            case "all":
                return self._through_all(term, target)
            case "open":
                if term.parts[1].label is target:
                    return [], self.shortest(term.parts[0])
                return self.through(term.parts[0], target)
        return None

    def _through_sequence(self, term: Term, target: Leaf) -> tuple[list[Leaf], list[Leaf]] | None:
        before: list[Leaf] = []
        while term.kind == "seq":
            head, tail = term.parts
            found = self.through(head, target)
            if found is not None:
                return before + found[0], found[1] + self.shortest(tail)
            before += self.shortest(head)
            term = tail
        found = self.through(term, target)
        return None if found is None else (before + found[0], found[1])

    def _through_all(self, term: Term, target: Leaf) -> tuple[list[Leaf], list[Leaf]] | None:
        members = list(zip(term.parts, term.bounds, strict=True))
        for index, (part, (low, _)) in enumerate(members):
            found = self.through(part, target)
            if found is not None:
                others = [*members[:index], *members[index + 1 :], (part, (max(low - 1, 0), None))]
                rest = [leaf for other, bounds in others for leaf in self._repeated(other, bounds[0], bounds[0])]
                return found[0], found[1] + rest
        return None
