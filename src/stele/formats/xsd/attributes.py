"""Attributes of two types: those declared, those required, and wildcards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from xmlschema.validators import XsdSimpleType

from stele.formats.xsd.content import FOREIGN, Names, Side
from stele.formats.xsd.instances import Content
from stele.formats.xsd.texts import Texts
from stele.formats.xsd.witness import Court, Node, local


class _Uses(NamedTuple):
    """The attributes of a type: declared ones that may occur, and the wildcard."""

    declared: dict[str, Any]
    rest: Any | None


class Attributes:
    """Compares the attributes of pairs of elements."""

    def __init__(self, mine: Side, theirs: Side, names: Names, court: Court, texts: Texts) -> None:
        self._mine = mine
        self._theirs = theirs
        self._names = names
        self._court = court
        self._texts = texts
        self._any = mine.model.maps.types["{http://www.w3.org/2001/XMLSchema}anySimpleType"]

    def compare(self, node: Node) -> None:
        """Compare the attributes of one pair."""
        mine, theirs = _uses(node.writer), _uses(node.reader)
        for name, use in mine.declared.items():
            self._one(node, name, use, use.type, theirs)
        for name, use in theirs.declared.items():
            if use.use == "required" and (name not in mine.declared or mine.declared[name].use != "required"):
                self._required(node, name)
        if mine.rest is not None:
            for name in self._open_names(mine, theirs):
                declaration = self._mine.attributes.get(name)
                known = declaration if mine.rest.process_contents != "skip" and not node.free else None
                if known is None and mine.rest.process_contents == "strict":
                    continue
                self._one(node, name, known, self._any if known is None else known.type, theirs)

    def _open_names(self, mine: _Uses, theirs: _Uses) -> list[str]:
        """Names of attributes the writer's wildcard lets in, as far as the reader could tell them apart."""
        assert mine.rest is not None
        spaces = {"", FOREIGN, *self._mine.namespaces, *self._theirs.namespaces}
        for rest in (mine.rest, theirs.rest):
            if rest is not None:
                spaces |= {space for space in (*rest.namespace, *rest.not_namespace) if not space.startswith("##")}
        names = [*theirs.declared, *self._theirs.attributes, *self._mine.attributes]
        names += [f"{{{space}}}x-any" if space else "x-any" for space in sorted(spaces)]
        return [
            name
            for name in dict.fromkeys(names)
            if name not in mine.declared and not name.startswith(_XSI) and mine.rest.is_matching(name)
        ]

    def _one(self, node: Node, name: str, use: Any | None, kind: Any, theirs: _Uses) -> None:
        """An attribute of the writer meets what the reader says about its name."""

        def documents(texts: Iterator[str]) -> Iterator[Any]:
            return self._court.with_content(node, (Content(extra=((name, text),)) for text in texts))

        other = theirs.declared.get(name)
        if other is None:
            rest = theirs.rest
            if rest is None or not rest.is_matching(name):
                self._refused(node, name, use, kind, documents)
                return
            if rest.process_contents == "skip":
                return
            other = self._theirs.attributes.get(name)
            if other is None:
                if rest.process_contents == "strict":
                    self._refused(node, name, use, kind, documents)
                return
        self._texts.places(node, f"/@{local(name)}", use, kind, other, other.type, documents)

    def _refused(self, node: Node, name: str, use: Any | None, kind: Any, documents: Any) -> None:
        value = use.fixed if use is not None and use.fixed is not None else self._court.builder.value(kind)
        self._court.report(
            "ATTRIBUTE_NOT_ALLOWED",
            node,
            documents(iter([value if value is not None else "a"])),
            exact=True,
            path=f"/@{local(name)}",
            writer=local(name),
            why=f"{local(node.name)!r} may have the attribute {local(name)!r} for the writer; the reader refuses it.",
            fix="Keep the attribute, as optional.",
        )

    def _required(self, node: Node, name: str) -> None:
        self._court.report(
            "ATTRIBUTE_REQUIRED",
            node,
            self._court.with_content(node, [Content(extra=((name, None),))]),
            exact=True,
            path=f"/@{local(name)}",
            reader=local(name),
            why=f"{local(node.name)!r} may lack the attribute {local(name)!r} for the writer; the reader requires it.",
            fix="Make the attribute optional.",
        )


_XSI = "{http://www.w3.org/2001/XMLSchema-instance}"


def _uses(kind: Any) -> _Uses:
    if isinstance(kind, XsdSimpleType):
        return _Uses({}, None)
    declared = {name: use for name, use in kind.attributes.items() if name is not None and use.use != "prohibited"}
    return _Uses(declared, kind.attributes.get(None))
