"""Ruleset `containment`: whether every document valid under the writer's schema is valid under the reader's.

A worklist holds pairs of elements (see `findings.ElementPair`). Each pair is compared once, so recursive types end: a
pair under comparison counts as contained. An element's content is compared as a language over names (`content`,
`terms`), its text and attributes as sets of texts (`simple_inclusion`). A difference is an error when a rule is exact
or a document proves it, else a finding of level UNKNOWN. Every undecided difference is reported.

`xsi:type` is considered if it names a complex type derived from the declared one. Documents that name the declared type
itself, or a simple type, need no comparison of their own. Types of the writer whose names the reader lacks give a
warning.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from xmlschema.validators import XsdSimpleType

from stele.core.findings import Finding, Severity
from stele.formats.terms import Algebra, BudgetExceeded, MissingWord, find_missing_word, share_budget
from stele.formats.xsd.content import NameSampler, Particle, SchemaSide, ShapeProver
from stele.formats.xsd.declarations import AttributeChecker, DeclarationChecker, ValueConstraintChecker
from stele.formats.xsd.findings import ElementPair, FindingCollector
from stele.formats.xsd.instances import ElementContent, simple_content
from stele.formats.xsd.parse import ParsedXsd
from stele.formats.xsd.simple_type import valid_samples
from stele.formats.xsd.xmlschema_adapter import accepts_text, local_name, type_name

MAX_NODES: Final = 20_000
"""Most pairs of elements compared in one check."""

MAX_STEPS: Final = 400_000
"""Budget for content models in one check, in steps."""

MAX_SHARED_STEPS: Final = 1_500_000
"""Budget in steps for all of one check: content models, types and matching of samples with patterns. 3 to 5 seconds."""


def check_containment(reader: ParsedXsd, writer: ParsedXsd) -> list[Finding]:
    """Return findings in document order. Without an ERROR or UNKNOWN, the writer's schema is contained."""
    with writer.lock, reader.lock, share_budget(MAX_SHARED_STEPS):
        checker = _Checker(reader, writer)
        try:
            checker.compare_schemas()
        except (BudgetExceeded, RecursionError):
            checker.report_too_complex()
        return [*checker.collector.findings.values(), *checker.warn_of_lost_names()]


class _Checker:
    """Comparison of two schemas."""

    def __init__(self, reader: ParsedXsd, writer: ParsedXsd) -> None:
        algebra = Algebra(steps=MAX_STEPS)
        self.algebra = algebra
        self.writer_side = SchemaSide(writer.model, algebra, strict=False)
        self.reader_side = SchemaSide(reader.model, algebra, strict=True)
        self.collector = FindingCollector(writer, reader, self.writer_side)
        self.names = NameSampler(self.writer_side, self.reader_side)
        self.cover = ShapeProver(algebra)
        self.texts = ValueConstraintChecker(self.collector)
        self.attributes = AttributeChecker(self.writer_side, self.reader_side, self.names, self.collector, self.texts)
        self.declarations = DeclarationChecker(self.writer_side, self.reader_side, self.collector, self.texts)
        self.seen: set[tuple[int, int, int, int, bool]] = set()
        self.waiting: list[ElementPair] = []

    def compare_schemas(self) -> None:
        """Compare every pair of elements that documents can reach."""
        for name, element in self.writer_side.elements.items():
            if element.abstract:
                continue
            other = self.reader_side.find_element(name)
            if other is not None and not other.abstract:
                self.add_pair(ElementPair(name, element, element.type, other, other.type, None, None))
            else:
                self.report_missing_root(name, element)
        for node in self._next_pairs():
            self.compare_pair(node)
        self.declarations.report_retyped_constraints()

    def _next_pairs(self) -> Iterator[ElementPair]:
        done = 0
        while done < len(self.waiting) and not self.collector.is_full:
            if done >= MAX_NODES:
                raise BudgetExceeded
            yield self.waiting[done]
            done += 1

    def add_pair(self, node: ElementPair) -> None:
        """Queue a pair, once."""
        if node.key not in self.seen:
            self.seen.add(node.key)
            self.waiting.append(node)

    def compare_pair(self, node: ElementPair) -> None:
        """Compare one pair."""
        for derived in self.declarations.compare_declarations(node):
            self.add_pair(derived)
        if node.writer_type.abstract and node.writer_declaration is not None:
            return  # only types derived from it occur, and they are queued
        if node.reader_type.abstract and node.reader_declaration is not None:
            self.report_abstract(node)
            return
        self.attributes.compare_attributes(node)
        self.compare_content(node)

    def compare_content(self, node: ElementPair) -> None:
        """Compare text and children."""
        writer_text, reader_text = simple_content(node.writer_type), simple_content(node.reader_type)
        if writer_text is not None and reader_text is not None:
            self.texts.compare_text(node, writer_text, reader_text)
        elif writer_text is not None:
            self.compare_text_with_elements(node, writer_text)
        elif reader_text is not None:
            self.compare_elements_with_text(node, reader_text)
        else:
            if node.writer_type.mixed and not node.reader_type.mixed:
                self.report_refused_text(node, ["text"])
            self.compare_children(node)

    def compare_text_with_elements(self, node: ElementPair, kind: Any) -> None:
        """Compare text on the writer's side with elements on the reader's."""
        if not node.reader_type.mixed:
            self.report_refused_text(node, [text for text in islice(valid_samples(kind), 20) if text.strip()] or [""])
            return
        self.compare_models(node)

    def compare_elements_with_text(self, node: ElementPair, kind: Any) -> None:
        """Compare elements on the writer's side with text on the reader's."""
        term = self.writer_side.content_term(node.writer_type)
        first = next(iter(self.algebra.first_steps(term)), None)
        if first is not None:
            self.report_refused_child(
                node, MissingWord(((first[0], self._sample_name(first[0])),), first[1], False, ())
            )
        elif node.writer_type.mixed:
            self.texts.compare_text(
                node, self.reader_side.model.maps.types["{http://www.w3.org/2001/XMLSchema}string"], kind
            )
        elif not (self.texts.has_default(node.reader_declaration) or accepts_text(kind, "")):
            self.report_refused_text(node, [""])

    def _sample_name(self, leaf: Particle) -> str:
        return leaf.name or next(iter(self.names.list_names(leaf, (), free=False)), "x-any")

    # --- children -----------------------------------------------------------------------------------------------------

    def compare_children(self, node: ElementPair) -> None:
        """Compare content models."""
        if _is_any_type(node.writer_type) and _is_any_type(node.reader_type) and node.free is False:
            self.add_global_pairs(node)
            return
        self.compare_models(node)

    def compare_models(self, node: ElementPair) -> None:
        """Compare two content models and queue the pairs of particles that match the same name."""
        writer_term = (
            self.algebra.empty
            if isinstance(node.writer_type, XsdSimpleType)
            else self.writer_side.content_term(node.writer_type)
        )
        reader_term = self.reader_side.content_term(node.reader_type)
        met: dict[tuple[Particle, str, Particle], None] = {}

        def is_covered(other: Any, term: Any) -> bool:
            meetings = self.cover.prove_meetings(other, term)
            if meetings is None:
                return False
            met.update(dict.fromkeys(sorted(meetings, key=lambda meeting: meeting[1])))
            return True

        miss = find_missing_word(
            self.algebra,
            writer_term,
            reader_term,
            lambda label, others: self._split_names(label, others, free=node.free),
            met=lambda *meeting: met.setdefault(meeting, None),
            covered=is_covered,
        )
        for leaf, name, other in met:
            self.add_particle_pair(node, leaf, name, other)
        if miss is not None:
            self.report_refused_child(node, miss)

    def _split_names(self, label: Particle, others: Any, *, free: bool) -> list[tuple[str, list[Particle]]]:
        pieces = []
        for name in self.names.list_names(label, others, free=free):
            matching = [other for other in others if other.matches(name)]
            declared = [other for other in matching if other.name is not None]
            pieces.append((name, declared or matching))
        return pieces

    def add_particle_pair(self, node: ElementPair, leaf: Particle, name: str, other: Particle) -> None:
        """Queue the pair of an element that the writer's particle and the reader's both match."""
        if other.name is None and other.declaration.process_contents == "skip":
            return
        free = node.free or (leaf.name is None and leaf.declaration.process_contents == "skip")
        writer_declaration = (
            leaf.declaration if leaf.name is not None else None if free else self.writer_side.find_element(name)
        )
        reader_declaration = other.declaration if other.name is not None else self.reader_side.find_element(name)
        if reader_declaration is None and other.declaration.process_contents == "strict":
            self.report_refused_child(
                node, MissingWord(((leaf, name),), self.algebra.empty, False, (other,)), alone=True
            )
            return
        writer = self.writer_side.any_type if writer_declaration is None else writer_declaration.type
        reader = self.reader_side.any_type if reader_declaration is None else reader_declaration.type
        self.add_pair(ElementPair(name, writer_declaration, writer, reader_declaration, reader, node, leaf, free=free))

    def add_global_pairs(self, node: ElementPair) -> None:
        """Queue all global elements, which may occur below two `anyType`s."""
        term = self.writer_side.content_term(node.writer_type)
        for leaf, _ in self.algebra.first_steps(term):
            for name, reader_declaration in self.reader_side.elements.items():
                if leaf.matches(name):
                    writer_declaration = self.writer_side.find_element(name)
                    kind = self.writer_side.any_type if writer_declaration is None else writer_declaration.type
                    self.add_pair(
                        ElementPair(
                            name, writer_declaration, kind, reader_declaration, reader_declaration.type, node, leaf
                        )
                    )

    # --- findings -----------------------------------------------------------------------------------------------------

    def report_missing_root(self, name: str, element: Any) -> None:
        """Report a global element of the writer that the reader lacks."""
        node = ElementPair(name, element, element.type, None, self.reader_side.any_type, None, None)
        kind = self.collector.builder.concrete_type(element.type)
        self.collector.report_finding(
            "ROOT_ELEMENT_REMOVED",
            node,
            iter(())
            if kind is None
            else self._root_documents(ElementPair(name, element, kind, None, None, None, None)),
            exact=kind is not None,
            writer=local_name(name),
            why=(
                f"Documents whose root is {local_name(name)!r} are valid for the writer; the reader knows no such root."
            ),
            fix=f"Keep the global element {local_name(name)!r}.",
        )

    def _root_documents(self, node: ElementPair) -> Iterator[Any]:
        yield self.collector.builder.build_element(node.name, node.writer_declaration, node.writer_type)

    def report_abstract(self, node: ElementPair) -> None:
        """Report that the reader's type became abstract."""
        self.collector.report_finding(
            "TYPE_ABSTRACT",
            node,
            self.collector.documents_in_styles(node),
            exact=True,
            reader=type_name(node.reader_type),
            writer=type_name(node.writer_type),
            why=(
                f"The reader's type of {local_name(node.name)!r} is abstract, so elements without xsi:type are refused."
            ),
            fix="Let the type be concrete.",
        )

    def report_refused_text(self, node: ElementPair, texts: list[str]) -> None:
        """Report text where the reader allows none."""
        self.collector.report_finding(
            "TEXT_NOT_ALLOWED",
            node,
            self.collector.documents_with_content(node, (ElementContent(text=text) for text in texts)),
            exact=True,
            reader=type_name(node.reader_type),
            writer=type_name(node.writer_type),
            why=f"{local_name(node.name)!r} may {'hold text' if texts[0] else 'be empty'} for the writer only.",
            fix="Keep the content mixed, or of a type with text." if texts[0] else "Let the text be empty.",
        )

    def report_refused_child(self, node: ElementPair, miss: MissingWord, *, alone: bool = False) -> None:
        """Report a sequence of children that the reader's content model does not allow."""
        wanted = ", ".join(dict.fromkeys(_particle_label(leaf) for leaf in miss.wanted)) or "nothing"
        if miss.early:
            rule, writer = "CHILD_REQUIRED", " ".join(local_name(name) for _, name in miss.word[-4:]) or "(empty)"
            why = f"{local_name(node.name)!r} may end after {writer} for the writer; the reader wants {wanted} then."
            fix = "Make what was added optional (minOccurs=0)."
        else:
            rule, writer = "CHILD_NOT_ALLOWED", local_name(miss.word[-1][1])
            before = " ".join(local_name(name) for _, name in miss.word[-4:-1])
            place = f"after {before}" if before else "at the start"
            why = (
                f"{writer!r} may come {place} in {local_name(node.name)!r} for the writer; "
                f"the reader allows {wanted} there."
            )
            fix = f"Let {writer!r} stay possible at that place."
        refused = (
            self._single_child_documents(node, miss.word[0])
            if alone
            else self.collector.documents_with_children(node, miss.word, miss.rest)
        )
        path = "" if miss.early else f"/{writer}"
        self.collector.report_finding(
            rule, node, refused, exact=True, path=path, reader=wanted, writer=writer, why=why, fix=fix
        )

    def _single_child_documents(self, node: ElementPair, symbol: tuple[Particle, str]) -> Iterator[Any]:
        leaf = symbol[0]
        before, after = self.collector.builder.particles_around(node.writer_type, leaf)
        word = (
            [(one, self._sample_name(one)) for one in before]
            + [symbol]
            + [(one, self._sample_name(one)) for one in after]
        )
        yield from self.collector.documents_with_children(node, word, self.algebra.empty)

    def report_too_complex(self) -> None:
        """Report that a limit of the comparison was reached."""
        self.collector.findings["TOO_COMPLEX", "/", ""] = Finding(
            "TOO_COMPLEX",
            "/",
            why="The two schemas are too large, or their content models too entangled, to be compared in bounded time.",
            fix="Split the schema, or write its content models in the same shape as before.",
            level=Severity.UNKNOWN,
        )

    def warn_of_lost_names(self) -> Iterator[Finding]:
        """Yield warnings for missing types that documents could name in xsi:type."""
        known = self.collector.findings.values()
        lost_names = [name for name in self.writer_side.types if name not in self.reader_side.types]
        for name in sorted(lost_names)[:20]:
            if any(finding.rule == "SUBTYPE_REMOVED" and finding.writer == local_name(name) for finding in known):
                continue
            yield Finding(
                "TYPE_NAME_REMOVED",
                f"/type({local_name(name)})",
                writer=local_name(name),
                why=f"The reader has no type {local_name(name)!r}; documents that name it in xsi:type are refused.",
                fix="Keep the named type if documents may name it.",
                level=Severity.WARNING,
            )


def _particle_label(leaf: Particle) -> str:
    return local_name(leaf.name) if leaf.name is not None else "any element"


def _is_any_type(kind: Any) -> bool:
    return bool(kind.name == "{http://www.w3.org/2001/XMLSchema}anyType")
