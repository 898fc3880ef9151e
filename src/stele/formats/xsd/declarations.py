"""What declarations of elements say beside their content: attributes, nil, derived types, constraints, assertions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from xmlschema.validators import XsdSimpleType

from stele.formats.xsd.content import FOREIGN, NameSampler, SchemaSide
from stele.formats.xsd.findings import ElementPair, FindingCollector, local_name, type_name
from stele.formats.xsd.instances import XSI, ElementContent
from stele.formats.xsd.value_constraints import ValueConstraintChecker


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


_XS: Final = "{http://www.w3.org/2001/XMLSchema}"


class DeclarationChecker:
    """Compares declarations and finds the types that may stand in for the declared ones."""

    def __init__(
        self, mine: SchemaSide, theirs: SchemaSide, court: FindingCollector, texts: ValueConstraintChecker
    ) -> None:
        self._mine = mine
        self._theirs = theirs
        self._court = court
        self._texts = texts
        self._sensitive: ElementPair | None = None
        self._derived: dict[int, list[Any]] = {}
        for kind in mine.types.values():
            if kind.is_complex():
                base = kind.base_type
                while base is not None and base.name != _XS + "anyType":
                    self._derived.setdefault(id(base), []).append(kind)
                    base = base.base_type

    def compare_declarations(self, node: ElementPair) -> Iterator[ElementPair]:
        """Check the declarations; the pairs that xsi:type and alternatives add."""
        if node.theirs is not None:
            self._compare_nillable(node)
            self._compare_identities(node)
        self._compare_assertions(node)
        yield from self._alternative_pairs(node)
        if node.mine is not None and node.writer is node.mine.type:
            yield from self._derived_pairs(node)

    def _compare_nillable(self, node: ElementPair) -> None:
        assert node.theirs is not None
        if node.mine is not None and node.mine.nillable and (not node.theirs.nillable or node.theirs.fixed is not None):
            empty = ElementContent(children=(), extra=((f"{{{XSI}}}nil", "true"),))
            self._court.report_finding(
                "NILLABLE_REMOVED",
                node,
                self._court.documents_with_content(node, [empty]),
                exact=not node.theirs.nillable and node.mine.fixed is None,
                reader="not nillable",
                writer="nillable",
                why=f"{local_name(node.name)!r} may be nil for the writer; the reader refuses xsi:nil.",
                fix="Keep the element nillable.",
            )

    def _derived_pairs(self, node: ElementPair) -> Iterator[ElementPair]:
        assert node.mine is not None
        for kind in self._derived.get(id(node.writer), ()):
            if kind.abstract or kind.is_blocked(node.mine):
                continue
            other = self._theirs.types.get(kind.name)
            there = ElementPair(node.name, node.mine, kind, node.theirs, other, node.parent, node.leaf)
            if other is not None and self._can_stand_in(other, node):
                yield there
                continue
            self._court.report_finding(
                "SUBTYPE_REMOVED",
                there,
                self._court.documents_in_styles(there),
                exact=node.theirs is not None,
                reader=type_name(node.reader),
                writer=type_name(kind),
                why=f"Documents may say xsi:type={type_name(kind)!r} here; the reader has no such type in that place.",
                fix="Keep the derived type, derived from the same base.",
            )

    @staticmethod
    def _can_stand_in(kind: Any, node: ElementPair) -> bool:
        """Whether the reader lets a type stand in for the one it declares."""
        blocked = node.theirs is not None and kind.is_blocked(node.theirs)
        return not blocked and not kind.abstract and bool(kind.is_derived(node.reader))

    def _alternative_pairs(self, node: ElementPair) -> Iterator[ElementPair]:
        mine = list(getattr(node.mine, "alternatives", ())) if node.mine is not None else []
        theirs = list(getattr(node.theirs, "alternatives", ())) if node.theirs is not None else []
        if not (mine or theirs) or (node.mine is not None and node.writer is not node.mine.type):
            return
        same = [_alternative_test(one) for one in mine] == [_alternative_test(one) for one in theirs]
        if theirs and not same:
            self._report_undecided(
                "ALTERNATIVES_CHANGED", node, "The reader chooses types of this element by other tests."
            )
            return
        if theirs:
            self._sensitive = self._sensitive or node
        for index, one in enumerate(mine):
            reader = theirs[index].type if theirs else node.reader
            if one.type.name != _XS + "error":
                yield ElementPair(node.name, node.mine, one.type, node.theirs, reader, node.parent, node.leaf)

    def _compare_identities(self, node: ElementPair) -> None:
        assert node.theirs is not None
        if not node.theirs.identities:
            return
        known = {_identity_key(one) for one in node.mine.identities} if node.mine is not None else set()
        self._sensitive = self._sensitive or node
        for one in node.theirs.identities:
            if _identity_key(one) in known:
                continue
            self._report_undecided(
                "IDENTITY_ADDED",
                node,
                f"The reader adds the constraint {local_name(one.name)!r}, which documents of the writer may break.",
                str(one.elem.tag).rpartition("}")[2],
            )

    def _compare_assertions(self, node: ElementPair) -> None:
        wanted = [one.elem.get("test", "") for one in getattr(node.reader, "assertions", ())]
        known = {one.elem.get("test", "") for one in getattr(node.writer, "assertions", ())}
        if wanted:
            self._sensitive = self._sensitive or node
        for test in wanted:
            if test not in known:
                self._report_undecided("ASSERTION_ADDED", node, f"The reader adds the assertion {test[:100]!r}.", test)

    def report_retyped_constraints(self) -> None:
        """What only the whole comparison shows. Call it last."""
        if self._sensitive is not None and self._texts.retyped:
            why = "Values have other types for the reader, so constraints and tests over them may come out differently."
            self._report_undecided("CONSTRAINT_RETYPED", self._sensitive, why)
        if self._texts.ids_gone and self._texts.refers:
            node = next(ElementPair(name, e, e.type, None, None, None, None) for name, e in self._mine.elements.items())
            self._report_undecided(
                "ID_REMOVED", node, "Identifiers are none for the reader; references to them may dangle."
            )

    def _report_undecided(self, rule: str, node: ElementPair, why: str, reader: str = "") -> None:
        self._court.report_finding(
            rule,
            node,
            self._court.documents_in_styles(node),
            exact=False,
            reader=reader,
            why=why,
            fix="Keep what the earlier schema demanded, no more.",
        )


def _alternative_test(alternative: Any) -> str:
    return str(alternative.elem.get("test", ""))


def _identity_key(one: Any) -> tuple[Any, ...]:
    """An identity constraint as a value: kind, paths with their prefixes' meaning, and what it refers to."""
    paths = [one.selector.path if one.selector is not None else "", *(field.path for field in one.fields)]
    text = " ".join(paths)
    prefixes = tuple(sorted((p, ns) for p, ns in one.schema.namespaces.items() if p and f"{p}:" in text))
    refer = getattr(one, "refer", None)
    return str(one.elem.tag), tuple(paths), prefixes, _identity_key(refer) if refer is not None else None
