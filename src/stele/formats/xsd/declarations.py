"""What declarations of elements say beside their content: attributes, nil, derived types, constraints, assertions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from xmlschema.validators import XsdSimpleType

from stele.formats.xsd.content import FOREIGN, NameSampler, SchemaSide
from stele.formats.xsd.findings import ElementPair, FindingCollector
from stele.formats.xsd.instances import XSI, ElementContent
from stele.formats.xsd.value_constraints import ValueConstraintChecker
from stele.formats.xsd.xmlschema_adapter import local_name, type_name


class _AttributeUses(NamedTuple):
    """The attributes of a type: declared ones that may occur, and the wildcard."""

    declared: dict[str, Any]
    rest: Any | None


class AttributeChecker:
    """Compares the attributes of pairs of elements."""

    def __init__(
        self,
        writer_side: SchemaSide,
        reader_side: SchemaSide,
        names: NameSampler,
        collector: FindingCollector,
        texts: ValueConstraintChecker,
    ) -> None:
        self._writer_side = writer_side
        self._reader_side = reader_side
        self._names = names
        self._collector = collector
        self._texts = texts
        self._any = writer_side.model.maps.types["{http://www.w3.org/2001/XMLSchema}anySimpleType"]

    def compare_attributes(self, node: ElementPair) -> None:
        """Compare the attributes of one pair."""
        writer, reader = _attribute_uses(node.writer_type), _attribute_uses(node.reader_type)
        for name, use in writer.declared.items():
            self._compare_attribute(node, name, use, use.type, reader)
        for name, use in reader.declared.items():
            if use.use == "required" and (name not in writer.declared or writer.declared[name].use != "required"):
                self._report_required(node, name)
        if writer.rest is not None:
            for name in self._open_names(writer, reader):
                declaration = self._writer_side.attributes.get(name)
                known = declaration if writer.rest.process_contents != "skip" and not node.free else None
                if known is None and writer.rest.process_contents == "strict":
                    continue
                self._compare_attribute(node, name, known, self._any if known is None else known.type, reader)

    def _open_names(self, writer: _AttributeUses, reader: _AttributeUses) -> list[str]:
        """Return names of attributes that the writer's wildcard allows, as many as the reader tells apart."""
        assert writer.rest is not None
        spaces = {"", FOREIGN, *self._writer_side.namespaces, *self._reader_side.namespaces}
        for rest in (writer.rest, reader.rest):
            if rest is not None:
                spaces |= {space for space in (*rest.namespace, *rest.not_namespace) if not space.startswith("##")}
        names = [*reader.declared, *self._reader_side.attributes, *self._writer_side.attributes]
        names += [f"{{{space}}}x-any" if space else "x-any" for space in sorted(spaces)]
        return [
            name
            for name in dict.fromkeys(names)
            if name not in writer.declared and not name.startswith(_XSI) and writer.rest.is_matching(name)
        ]

    def _compare_attribute(
        self, node: ElementPair, name: str, use: Any | None, kind: Any, reader: _AttributeUses
    ) -> None:
        """Compare an attribute of the writer with what the reader declares for its name."""

        def make_documents(texts: Iterator[str]) -> Iterator[Any]:
            return self._collector.documents_with_content(
                node, (ElementContent(extra=((name, text),)) for text in texts)
            )

        other = reader.declared.get(name)
        if other is None:
            rest = reader.rest
            if rest is None or not rest.is_matching(name):
                self._report_refused(node, name, use, kind, make_documents)
                return
            if rest.process_contents == "skip":
                return
            other = self._reader_side.attributes.get(name)
            if other is None:
                if rest.process_contents == "strict":
                    self._report_refused(node, name, use, kind, make_documents)
                return
        self._texts.compare_values(node, f"/@{local_name(name)}", use, kind, other, other.type, make_documents)

    def _report_refused(self, node: ElementPair, name: str, use: Any | None, kind: Any, documents: Any) -> None:
        value = use.fixed if use is not None and use.fixed is not None else self._collector.builder.sample_value(kind)
        self._collector.report_finding(
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
        self._collector.report_finding(
            "ATTRIBUTE_REQUIRED",
            node,
            self._collector.documents_with_content(node, [ElementContent(extra=((name, None),))]),
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
        self,
        writer_side: SchemaSide,
        reader_side: SchemaSide,
        collector: FindingCollector,
        texts: ValueConstraintChecker,
    ) -> None:
        self._writer_side = writer_side
        self._reader_side = reader_side
        self._collector = collector
        self._texts = texts
        self._sensitive: ElementPair | None = None
        self._derived: dict[int, list[Any]] = {}
        for kind in writer_side.types.values():
            if kind.is_complex():
                base = kind.base_type
                while base is not None and base.name != _XS + "anyType":
                    self._derived.setdefault(id(base), []).append(kind)
                    base = base.base_type

    def compare_declarations(self, node: ElementPair) -> Iterator[ElementPair]:
        """Compare the declarations of a pair, and yield the pairs that xsi:type and alternatives add."""
        if node.reader_declaration is not None:
            self._compare_nillable(node)
            self._compare_identities(node)
        self._compare_assertions(node)
        yield from self._alternative_pairs(node)
        if node.writer_declaration is not None and node.writer_type is node.writer_declaration.type:
            yield from self._derived_pairs(node)

    def _compare_nillable(self, node: ElementPair) -> None:
        assert node.reader_declaration is not None
        if (
            node.writer_declaration is not None
            and node.writer_declaration.nillable
            and (not node.reader_declaration.nillable or node.reader_declaration.fixed is not None)
        ):
            empty = ElementContent(children=(), extra=((f"{{{XSI}}}nil", "true"),))
            self._collector.report_finding(
                "NILLABLE_REMOVED",
                node,
                self._collector.documents_with_content(node, [empty]),
                exact=not node.reader_declaration.nillable and node.writer_declaration.fixed is None,
                reader="not nillable",
                writer="nillable",
                why=f"{local_name(node.name)!r} may be nil for the writer; the reader refuses xsi:nil.",
                fix="Keep the element nillable.",
            )

    def _derived_pairs(self, node: ElementPair) -> Iterator[ElementPair]:
        assert node.writer_declaration is not None
        for kind in self._derived.get(id(node.writer_type), ()):
            if kind.abstract or kind.is_blocked(node.writer_declaration):
                continue
            other = self._reader_side.types.get(kind.name)
            there = ElementPair(
                node.name, node.writer_declaration, kind, node.reader_declaration, other, node.parent, node.particle
            )
            if other is not None and self._can_stand_in(other, node):
                yield there
                continue
            self._collector.report_finding(
                "SUBTYPE_REMOVED",
                there,
                self._collector.documents_in_styles(there),
                exact=node.reader_declaration is not None,
                reader=type_name(node.reader_type),
                writer=type_name(kind),
                why=f"Documents may say xsi:type={type_name(kind)!r} here; the reader has no such type in that place.",
                fix="Keep the derived type, derived from the same base.",
            )

    @staticmethod
    def _can_stand_in(kind: Any, node: ElementPair) -> bool:
        """Return whether the reader lets a type stand in for the one it declares."""
        blocked = node.reader_declaration is not None and kind.is_blocked(node.reader_declaration)
        return not blocked and not kind.abstract and bool(kind.is_derived(node.reader_type))

    def _alternative_pairs(self, node: ElementPair) -> Iterator[ElementPair]:
        writer_tests = (
            list(getattr(node.writer_declaration, "alternatives", ())) if node.writer_declaration is not None else []
        )
        reader_tests = (
            list(getattr(node.reader_declaration, "alternatives", ())) if node.reader_declaration is not None else []
        )
        if not (writer_tests or reader_tests) or (
            node.writer_declaration is not None and node.writer_type is not node.writer_declaration.type
        ):
            return
        same = [_alternative_test(one) for one in writer_tests] == [_alternative_test(one) for one in reader_tests]
        if reader_tests and not same:
            self._report_undecided(
                "ALTERNATIVES_CHANGED", node, "The reader chooses types of this element by other tests."
            )
            return
        if reader_tests:
            self._sensitive = self._sensitive or node
        for index, one in enumerate(writer_tests):
            reader = reader_tests[index].type if reader_tests else node.reader_type
            if one.type.name != _XS + "error":
                yield ElementPair(
                    node.name,
                    node.writer_declaration,
                    one.type,
                    node.reader_declaration,
                    reader,
                    node.parent,
                    node.particle,
                )

    def _compare_identities(self, node: ElementPair) -> None:
        assert node.reader_declaration is not None
        if not node.reader_declaration.identities:
            return
        known = (
            {_identity_key(one) for one in node.writer_declaration.identities}
            if node.writer_declaration is not None
            else set()
        )
        self._sensitive = self._sensitive or node
        for one in node.reader_declaration.identities:
            if _identity_key(one) in known:
                continue
            self._report_undecided(
                "IDENTITY_ADDED",
                node,
                f"The reader adds the constraint {local_name(one.name)!r}, which documents of the writer may break.",
                str(one.elem.tag).rpartition("}")[2],
            )

    def _compare_assertions(self, node: ElementPair) -> None:
        wanted = [one.elem.get("test", "") for one in getattr(node.reader_type, "assertions", ())]
        known = {one.elem.get("test", "") for one in getattr(node.writer_type, "assertions", ())}
        if wanted:
            self._sensitive = self._sensitive or node
        for test in wanted:
            if test not in known:
                self._report_undecided("ASSERTION_ADDED", node, f"The reader adds the assertion {test[:100]!r}.", test)

    def report_retyped_constraints(self) -> None:
        """Report what only the whole comparison shows. Call it last."""
        if self._sensitive is not None and self._texts.retyped:
            why = "Values have other types for the reader, so constraints and tests over them may come out differently."
            self._report_undecided("CONSTRAINT_RETYPED", self._sensitive, why)
        if self._texts.ids_gone and self._texts.refers:
            node = next(
                ElementPair(name, e, e.type, None, None, None, None) for name, e in self._writer_side.elements.items()
            )
            self._report_undecided(
                "ID_REMOVED", node, "Identifiers are none for the reader; references to them may dangle."
            )

    def _report_undecided(self, rule: str, node: ElementPair, why: str, reader: str = "") -> None:
        self._collector.report_finding(
            rule,
            node,
            self._collector.documents_in_styles(node),
            exact=False,
            reader=reader,
            why=why,
            fix="Keep what the earlier schema demanded, no more.",
        )


def _alternative_test(alternative: Any) -> str:
    return str(alternative.elem.get("test", ""))


def _identity_key(one: Any) -> tuple[Any, ...]:
    """Return an identity constraint as a value: kind, paths with their prefixes' meaning, and what it refers to."""
    paths = [one.selector.path if one.selector is not None else "", *(field.path for field in one.fields)]
    text = " ".join(paths)
    prefixes = tuple(sorted((p, ns) for p, ns in one.schema.namespaces.items() if p and f"{p}:" in text))
    refer = getattr(one, "refer", None)
    return str(one.elem.tag), tuple(paths), prefixes, _identity_key(refer) if refer is not None else None
