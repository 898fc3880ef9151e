"""Attributes of two types: those declared, those required, and wildcards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from xmlschema.validators import XsdSimpleType

from stele.formats.xsd.content import FOREIGN, NameSampler, SchemaSide
from stele.formats.xsd.instances import ElementContent
from stele.formats.xsd.texts import ValueConstraintChecker
from stele.formats.xsd.witness import ElementPair, FindingCollector, local_name


class _AttributeUses(NamedTuple):
    """The attributes of a type: declared ones that may occur, and the wildcard."""

    declared: dict[str, Any]
    rest: Any | None


class AttributeChecker:
    """Compares the attributes of pairs of elements."""

    def __init__(
        self,
        mine: SchemaSide,
        theirs: SchemaSide,
        names: NameSampler,
        court: FindingCollector,
        texts: ValueConstraintChecker,
    ) -> None:
        self._mine = mine
        self._theirs = theirs
        self._names = names
        self._court = court
        self._texts = texts
        self._any = mine.model.maps.types["{http://www.w3.org/2001/XMLSchema}anySimpleType"]

    def compare_attributes(self, node: ElementPair) -> None:
        """Compare the attributes of one pair."""
        mine, theirs = _attribute_uses(node.writer), _attribute_uses(node.reader)
        for name, use in mine.declared.items():
            self._compare_attribute(node, name, use, use.type, theirs)
        for name, use in theirs.declared.items():
            if use.use == "required" and (name not in mine.declared or mine.declared[name].use != "required"):
                self._report_required(node, name)
        if mine.rest is not None:
            for name in self._open_names(mine, theirs):
                declaration = self._mine.attributes.get(name)
                known = declaration if mine.rest.process_contents != "skip" and not node.free else None
                if known is None and mine.rest.process_contents == "strict":
                    continue
                self._compare_attribute(node, name, known, self._any if known is None else known.type, theirs)

    def _open_names(self, mine: _AttributeUses, theirs: _AttributeUses) -> list[str]:
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

    def _compare_attribute(
        self, node: ElementPair, name: str, use: Any | None, kind: Any, theirs: _AttributeUses
    ) -> None:
        """An attribute of the writer meets what the reader says about its name."""

        def make_documents(texts: Iterator[str]) -> Iterator[Any]:
            return self._court.documents_with_content(node, (ElementContent(extra=((name, text),)) for text in texts))

        other = theirs.declared.get(name)
        if other is None:
            rest = theirs.rest
            if rest is None or not rest.is_matching(name):
                self._report_refused(node, name, use, kind, make_documents)
                return
            if rest.process_contents == "skip":
                return
            other = self._theirs.attributes.get(name)
            if other is None:
                if rest.process_contents == "strict":
                    self._report_refused(node, name, use, kind, make_documents)
                return
        self._texts.compare_values(node, f"/@{local_name(name)}", use, kind, other, other.type, make_documents)

    def _report_refused(self, node: ElementPair, name: str, use: Any | None, kind: Any, documents: Any) -> None:
        value = use.fixed if use is not None and use.fixed is not None else self._court.builder.sample_value(kind)
        self._court.report_finding(
            "ATTRIBUTE_NOT_ALLOWED",
            node,
            documents(iter([value if value is not None else "a"])),
            exact=True,
            path=f"/@{local_name(name)}",
            writer=local_name(name),
            why=(
                f"{local_name(node.name)!r} may have the attribute {local_name(name)!r} for the writer; "
                "the reader refuses it."
            ),
            fix="Keep the attribute, as optional.",
        )

    def _report_required(self, node: ElementPair, name: str) -> None:
        self._court.report_finding(
            "ATTRIBUTE_REQUIRED",
            node,
            self._court.documents_with_content(node, [ElementContent(extra=((name, None),))]),
            exact=True,
            path=f"/@{local_name(name)}",
            reader=local_name(name),
            why=(
                f"{local_name(node.name)!r} may lack the attribute {local_name(name)!r} for the writer; "
                "the reader requires it."
            ),
            fix="Make the attribute optional.",
        )


_XSI = "{http://www.w3.org/2001/XMLSchema-instance}"


def _attribute_uses(kind: Any) -> _AttributeUses:
    if isinstance(kind, XsdSimpleType):
        return _AttributeUses({}, None)
    declared = {name: use for name, use in kind.attributes.items() if name is not None and use.use != "prohibited"}
    return _AttributeUses(declared, kind.attributes.get(None))
