"""Compares declarations apart from the content of elements: values, attributes, nil, derived types, constraints.

Values are compared by their types, fixed values and defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from xmlschema.validators import XsdSimpleType

from stele.formats.xsd.content import FOREIGN, NameSampler, SchemaSide
from stele.formats.xsd.findings import ElementPair, FindingCollector
from stele.formats.xsd.instances import XSI, ElementContent
from stele.formats.xsd.simple_inclusion import SimpleTypeBudget, compare_simple_types, listed_texts
from stele.formats.xsd.simple_type import list_samples, shape_of, valid_samples
from stele.formats.xsd.xmlschema_adapter import accepts_text, local_name, type_name

_TRIED: Final = 6
_SAMPLES_UNITS: Final = 100
_SAMPLE_UNITS: Final = 4


class ValueConstraintChecker:
    """Compares the texts that two declarations allow, and collects facts for other checks.

    retyped   a value compares differently for the reader, so identity constraints may have another result
    ids_gone  some ID of the writer is not an ID for the reader
    refers    an IDREF of the reader occurs
    """

    def __init__(self, collector: FindingCollector) -> None:
        self._collector = collector
        self._budget = SimpleTypeBudget()
        self._known: dict[tuple[int, int], tuple[bool, tuple[str, ...]]] = {}
        self.retyped = False
        self.ids_gone = False
        self.refers = False

    @staticmethod
    def has_default(declaration: Any | None) -> bool:
        """Return whether an empty element takes a value from its declaration."""
        return declaration is not None and (declaration.default is not None or declaration.fixed is not None)

    def compare_text(self, node: ElementPair, writer: Any, reader: Any) -> None:
        """Compare the text of two elements with simple content."""

        def make_documents(texts: Iterator[str]) -> Iterator[Any]:
            return self._collector.documents_with_content(node, (ElementContent(text=text) for text in texts))

        self.compare_values(node, "", node.writer_declaration, writer, node.reader_declaration, reader, make_documents)
        if (
            self.has_default(node.writer_declaration)
            and not self.has_default(node.reader_declaration)
            and not accepts_text(reader, "")
        ):
            self._collector.report_finding(
                "DEFAULT_REMOVED",
                node,
                make_documents(iter([""])),
                exact=True,
                reader=type_name(reader),
                writer=str(node.writer_declaration.default if node.writer_declaration is not None else ""),
                why=(
                    f"An empty {local_name(node.name)!r} takes the writer's default; "
                    "the reader has no default and refuses it."
                ),
                fix="Keep the default.",
            )

    def compare_values(
        self,
        node: ElementPair,
        path: str,
        writer_declaration: Any | None,
        writer: Any,
        reader_declaration: Any | None,
        reader: Any,
        documents: Callable[[Iterator[str]], Iterator[Any]],
    ) -> None:
        """Compare the texts that two declarations allow, including their fixed values."""
        self._note_retyping(writer, reader)
        fixed = None if writer_declaration is None else writer_declaration.fixed
        holds, refused_texts = self.prove_inclusion(writer, reader)
        if not holds and fixed is not None:
            holds, refused_texts = self._fixed_inside(fixed, writer, reader)
        if not holds:
            exact = bool(refused_texts)
            self._collector.report_finding(
                "VALUE_NOT_ALLOWED",
                node,
                documents(iter(refused_texts[:_TRIED])) if exact else self._collector.documents_in_styles(node.root),
                exact=exact,
                path=path,
                reader=_describe_type(reader),
                writer=_describe_type(writer),
                why=_explain_refusal(refused_texts, writer, reader),
                fix="Allow every value that was allowed before.",
            )
        wanted = None if reader_declaration is None else reader_declaration.fixed
        if wanted is not None and not _has_only_value(fixed, writer, wanted, reader):
            others = [text for text in islice(valid_samples(writer), 20) if text.strip() != wanted.strip()]
            self._collector.report_finding(
                "FIXED_VALUE",
                node,
                documents(iter(([fixed] if fixed is not None else others)[:_TRIED])),
                exact=False,
                path=path,
                reader=wanted,
                writer=fixed or _describe_type(writer),
                why=f"The reader takes the value {wanted!r} only.",
                fix="Leave the value free, or fixed to what it was.",
            )

    def prove_inclusion(self, writer: Any, reader: Any) -> tuple[bool, tuple[str, ...]]:
        """Return whether inclusion is proved, and if not, texts that only the writer's type allows."""
        key = (id(writer), id(reader))
        if key not in self._known:
            proof = compare_simple_types(writer, reader, self._budget)
            refused_texts = (
                () if proof.holds else tuple(islice(_refused_texts(writer, reader, proof.hints, self._budget), _TRIED))
            )
            self._known[key] = proof.holds, refused_texts
        return self._known[key]

    @staticmethod
    def _fixed_inside(fixed: str, writer: Any, reader: Any) -> tuple[bool, tuple[str, ...]]:
        if not accepts_text(reader, fixed):
            return False, (fixed,)
        writer_shape, reader_shape = shape_of(writer), shape_of(reader)
        return (writer_shape.is_textual and writer_shape.white == reader_shape.white) or (
            not reader_shape.is_textual and not reader_shape.patterns
        ), ()

    def _note_retyping(self, writer: Any, reader: Any) -> None:
        writer_shape, reader_shape = shape_of(writer), shape_of(reader)
        if writer_shape.variety != reader_shape.variety or writer_shape.white != reader_shape.white:
            self.retyped = True
        elif writer_shape.base != reader_shape.base and not (writer_shape.is_textual and reader_shape.is_textual):
            exact = (writer_shape.base == "decimal" or writer_shape.is_integral) and (
                reader_shape.base == "decimal" or reader_shape.is_integral
            )
            self.retyped = self.retyped or not exact
        self.ids_gone = self.ids_gone or (writer_shape.base == "ID" and reader_shape.base != "ID")
        inner = (
            [shape_of(part).base for part in reader_shape.parts]
            if reader_shape.variety == "list"
            else [reader_shape.base]
        )
        self.refers = self.refers or "IDREF" in inner


def _refused_texts(writer: Any, reader: Any, hints: tuple[str, ...], budget: SimpleTypeBudget) -> Iterator[str]:
    """Yield texts that only the writer's type allows, until the budget is spent."""
    if not budget.try_spend(_SAMPLES_UNITS):
        return
    collapsed = shape_of(writer).white == "collapse" and shape_of(reader).white != "collapse"
    for text in [*list_samples(writer, hints=hints), *list_samples(reader)]:
        for spelling in (text, f" {text} ", f"{text}{' ' * 300}") if collapsed else (text,):
            if not budget.try_spend(_SAMPLE_UNITS):
                return
            if accepts_text(writer, spelling) and not accepts_text(reader, spelling):
                yield spelling


def _has_only_value(fixed: str | None, writer: Any, wanted: str, reader: Any) -> bool:
    """Return whether the writer's values are all equal to the one that the reader requires."""
    texts = (fixed,) if fixed is not None else listed_texts(writer)
    if texts is None or not accepts_text(reader, wanted):
        return False
    value = reader.decode(wanted)
    return all(accepts_text(reader, text) and reader.decode(text) == value for text in texts)


def _explain_refusal(witness: tuple[str, ...], writer: Any, reader: Any) -> str:
    if witness:
        text = repr(witness[0][:60])
        return f"{text} is {_describe_type(writer)} for the writer, not {_describe_type(reader)} for the reader."
    return f"Not every value of {_describe_type(writer)} is sure to be one of {_describe_type(reader)}."


def _describe_type(kind: Any) -> str:
    """Return a short description of a simple type."""
    shape = shape_of(kind)
    base = shape.base or shape.variety
    facets = [f"pattern {' | '.join(step)[:60]}" for step in shape.patterns[:2]]
    facets += [f"{name} {text}" for name, text in shape.bounds[:4]]
    if shape.enumeration is not None:
        listed = ", ".join(shape.enumeration[:6])
        facets.append(f"one of {listed}{'…' if len(shape.enumeration) > 6 else ''}")
    for name, count in zip(("minLength", "maxLength"), shape.lengths, strict=True):
        if count is not None:
            facets.append(f"{name} {count}")
    for name, count in zip(("totalDigits", "fractionDigits"), shape.digits, strict=True):
        if count is not None:
            facets.append(f"{name} {count}")
    return f"{base} ({'; '.join(facets)})" if facets else base


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
        """Return names that the writer's attribute wildcard allows: one for each case that the reader distinguishes."""
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
    """Compares declarations and finds types that may replace the declared ones."""

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
        """Return whether the reader allows a type in place of the declared one."""
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
        """Report findings that need the whole comparison. Call it last."""
        if self._sensitive is not None and self._texts.retyped:
            why = "Values have other types for the reader, so constraints and tests over them may come out differently."
            self._report_undecided("CONSTRAINT_RETYPED", self._sensitive, why)
        if self._texts.ids_gone and self._texts.refers:
            node = next(
                ElementPair(name, e, e.type, None, None, None, None) for name, e in self._writer_side.elements.items()
            )
            self._report_undecided(
                "ID_REMOVED",
                node,
                "The writer's IDs are not IDs for the reader, so references to them may have no target.",
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
    """Return an identity constraint as a comparable value: kind, paths, namespaces of prefixes, and reference."""
    paths = [one.selector.path if one.selector is not None else "", *(field.path for field in one.fields)]
    text = " ".join(paths)
    prefixes = tuple(sorted((p, ns) for p, ns in one.schema.namespaces.items() if p and f"{p}:" in text))
    refer = getattr(one, "refer", None)
    return str(one.elem.tag), tuple(paths), prefixes, _identity_key(refer) if refer is not None else None
