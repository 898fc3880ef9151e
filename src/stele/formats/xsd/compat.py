"""Ruleset `containment`: whether every document valid under the writer's schema is valid under the reader's.

A worklist of pairs of elements (see `witness.Node`), each looked at once, so recursive types end: what is still being
compared counts as contained. An element's content is compared as a language over names (`content`, `terms`), its text
and attributes as sets of texts (`simple`). A difference becomes an error when a rule is exact or a document proves it,
and a finding of level UNKNOWN when neither is possible; nothing undecided passes in silence.

`xsi:type` counts where it names a complex type derived from the declared one. A document that names the declared type
itself, or a simple type, says nothing new; types of the writer whose names the reader lacks give a warning.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from xmlschema.validators import XsdSimpleType

from stele.core.findings import Finding, Severity
from stele.formats.xsd.attributes import Attributes
from stele.formats.xsd.content import Cover, Leaf, Names, Side
from stele.formats.xsd.declarations import Declarations
from stele.formats.xsd.instances import Content, simple_content
from stele.formats.xsd.library import accepts
from stele.formats.xsd.parse import ParsedXsd
from stele.formats.xsd.samples import valid_samples
from stele.formats.xsd.terms import Algebra, Miss, TooMuch, included
from stele.formats.xsd.texts import Texts
from stele.formats.xsd.witness import Court, Node, local, words

MAX_NODES: Final = 20_000
"""Pairs of elements looked at in one check."""

MAX_STEPS: Final = 400_000
"""Budget for content models in one check."""


def check(reader: ParsedXsd, writer: ParsedXsd) -> list[Finding]:
    """Findings, in the order documents lead to them; none of level ERROR or UNKNOWN means contained."""
    with writer.lock, reader.lock:
        checker = _Checker(reader, writer)
        try:
            checker.run()
        except (TooMuch, RecursionError):
            checker.too_complex()
        return [*checker.court.findings.values(), *checker.lost_names()]


class _Checker:
    """One comparison."""

    def __init__(self, reader: ParsedXsd, writer: ParsedXsd) -> None:
        algebra = Algebra(steps=MAX_STEPS)
        self.algebra = algebra
        self.mine = Side(writer.model, algebra, strict=False)
        self.theirs = Side(reader.model, algebra, strict=True)
        self.court = Court(writer, reader, self.mine)
        self.names = Names(self.mine, self.theirs)
        self.cover = Cover(algebra)
        self.texts = Texts(self.court)
        self.attributes = Attributes(self.mine, self.theirs, self.names, self.court, self.texts)
        self.declarations = Declarations(self.mine, self.theirs, self.court, self.texts)
        self.seen: set[tuple[int, int, int, int, bool]] = set()
        self.waiting: list[Node] = []

    def run(self) -> None:
        """Look at every pair documents can reach."""
        for name, element in self.mine.elements.items():
            if element.abstract:
                continue
            other = self.theirs.declared(name)
            if other is not None and not other.abstract:
                self.meet(Node(name, element, element.type, other, other.type, None, None))
            else:
                self.root_gone(name, element)
        for node in self._work():
            self.visit(node)
        self.declarations.finish()

    def _work(self) -> Iterator[Node]:
        done = 0
        while done < len(self.waiting) and not self.court.full:
            if done >= MAX_NODES:
                raise TooMuch
            yield self.waiting[done]
            done += 1

    def meet(self, node: Node) -> None:
        """Put a pair on the list, once."""
        if node.key not in self.seen:
            self.seen.add(node.key)
            self.waiting.append(node)

    def visit(self, node: Node) -> None:
        """Compare one pair."""
        for derived in self.declarations.pairs(node):
            self.meet(derived)
        if node.writer.abstract and node.mine is not None:
            return  # only types derived from it occur, and they were put on the list
        if node.reader.abstract and node.theirs is not None:
            self.abstract(node)
            return
        self.attributes.compare(node)
        self.content(node)

    def content(self, node: Node) -> None:
        """Compare text and children."""
        mine, theirs = simple_content(node.writer), simple_content(node.reader)
        if mine is not None and theirs is not None:
            self.texts.compare(node, mine, theirs)
        elif mine is not None:
            self.into_elements(node, mine)
        elif theirs is not None:
            self.into_text(node, theirs)
        else:
            if node.writer.mixed and not node.reader.mixed:
                self.text_refused(node, ["text"])
            self.children(node)

    def into_elements(self, node: Node, kind: Any) -> None:
        """Text on the writer's side, elements on the reader's."""
        if not node.reader.mixed:
            self.text_refused(node, [text for text in islice(valid_samples(kind), 20) if text.strip()] or [""])
            return
        self.compare_models(node)

    def into_text(self, node: Node, kind: Any) -> None:
        """Elements on the writer's side, text on the reader's."""
        term = self.mine.term(node.writer)
        first = next(iter(self.algebra.steps(term)), None)
        if first is not None:
            self.child_refused(node, Miss(((first[0], self._name(first[0])),), first[1], False, ()))
        elif node.writer.mixed:
            self.texts.compare(node, self.theirs.model.maps.types["{http://www.w3.org/2001/XMLSchema}string"], kind)
        elif not (self.texts.has_default(node.theirs) or accepts(kind, "")):
            self.text_refused(node, [""])

    def _name(self, leaf: Leaf) -> str:
        return leaf.name or next(iter(self.names.of(leaf, (), free=False)), "x-any")

    # --- children -----------------------------------------------------------------------------------------------------

    def children(self, node: Node) -> None:
        """Compare content models."""
        if _anything(node.writer) and _anything(node.reader) and node.free is False:
            self.compare_globals(node)
            return
        self.compare_models(node)

    def compare_models(self, node: Node) -> None:
        """Compare two content models; the particles that meet are put on the list."""
        mine = self.algebra.empty if isinstance(node.writer, XsdSimpleType) else self.mine.term(node.writer)
        theirs = self.theirs.term(node.reader)
        met: dict[tuple[Leaf, str, Leaf], None] = {}

        def covered(other: Any, term: Any) -> bool:
            found = self.cover.meetings(other, term)
            if found is None:
                return False
            met.update(dict.fromkeys(sorted(found, key=lambda meeting: meeting[1])))
            return True

        miss = included(
            self.algebra,
            mine,
            theirs,
            lambda label, others: self._split(label, others, free=node.free),
            met=lambda *meeting: met.setdefault(meeting, None),
            covered=covered,
        )
        for leaf, name, other in met:
            self.particles(node, leaf, name, other)
        if miss is not None:
            self.child_refused(node, miss)

    def _split(self, label: Leaf, others: Any, *, free: bool) -> list[tuple[str, list[Leaf]]]:
        pieces = []
        for name in self.names.of(label, others, free=free):
            matching = [other for other in others if other.matches(name)]
            declared = [other for other in matching if other.name is not None]
            pieces.append((name, declared or matching))
        return pieces

    def particles(self, node: Node, leaf: Leaf, name: str, other: Leaf) -> None:
        """An element the writer's particle lets in meets the reader's particle."""
        if other.name is None and other.declaration.process_contents == "skip":
            return
        free = node.free or (leaf.name is None and leaf.declaration.process_contents == "skip")
        mine = leaf.declaration if leaf.name is not None else None if free else self.mine.declared(name)
        theirs = other.declaration if other.name is not None else self.theirs.declared(name)
        if theirs is None and other.declaration.process_contents == "strict":
            self.child_refused(node, Miss(((leaf, name),), self.algebra.empty, False, (other,)), alone=True)
            return
        writer = self.mine.any_type if mine is None else mine.type
        reader = self.theirs.any_type if theirs is None else theirs.type
        self.meet(Node(name, mine, writer, theirs, reader, node, leaf, free=free))

    def compare_globals(self, node: Node) -> None:
        """Below two `anyType`s every global element may come up, looked at where it is declared."""
        term = self.mine.term(node.writer)
        for leaf, _ in self.algebra.steps(term):
            for name, theirs in self.theirs.elements.items():
                if leaf.matches(name):
                    mine = self.mine.declared(name)
                    kind = self.mine.any_type if mine is None else mine.type
                    self.meet(Node(name, mine, kind, theirs, theirs.type, node, leaf))

    # --- findings -----------------------------------------------------------------------------------------------------

    def root_gone(self, name: str, element: Any) -> None:
        """A global element of the writer the reader has not."""
        node = Node(name, element, element.type, None, self.theirs.any_type, None, None)
        kind = self.court.builder.concrete(element.type)
        self.court.report(
            "ROOT_ELEMENT_REMOVED",
            node,
            iter(()) if kind is None else self._rooted(Node(name, element, kind, None, None, None, None)),
            exact=kind is not None,
            writer=local(name),
            why=f"Documents whose root is {local(name)!r} are valid for the writer; the reader knows no such root.",
            fix=f"Keep the global element {local(name)!r}.",
        )

    def _rooted(self, node: Node) -> Iterator[Any]:
        yield self.court.builder.element(node.name, node.mine, node.writer)

    def abstract(self, node: Node) -> None:
        """The reader's type became abstract."""
        self.court.report(
            "TYPE_ABSTRACT",
            node,
            self.court.in_styles(node),
            exact=True,
            reader=words(node.reader),
            writer=words(node.writer),
            why=f"The reader's type of {local(node.name)!r} is abstract, so elements without xsi:type are refused.",
            fix="Let the type be concrete.",
        )

    def text_refused(self, node: Node, texts: list[str]) -> None:
        """Text where the reader takes none."""
        self.court.report(
            "TEXT_NOT_ALLOWED",
            node,
            self.court.with_content(node, (Content(text=text) for text in texts)),
            exact=True,
            reader=words(node.reader),
            writer=words(node.writer),
            why=f"{local(node.name)!r} may {'hold text' if texts[0] else 'be empty'} for the writer only.",
            fix="Keep the content mixed, or of a type with text." if texts[0] else "Let the text be empty.",
        )

    def child_refused(self, node: Node, miss: Miss, *, alone: bool = False) -> None:
        """A sequence of children the reader's content model has not."""
        wanted = ", ".join(dict.fromkeys(_label(leaf) for leaf in miss.wanted)) or "nothing"
        if miss.early:
            rule, writer = "CHILD_REQUIRED", " ".join(local(name) for _, name in miss.word[-4:]) or "(empty)"
            why = f"{local(node.name)!r} may end after {writer} for the writer; the reader wants {wanted} then."
            fix = "Make what was added optional (minOccurs=0)."
        else:
            rule, writer = "CHILD_NOT_ALLOWED", local(miss.word[-1][1])
            before = " ".join(local(name) for _, name in miss.word[-4:-1])
            place = f"after {before}" if before else "at the start"
            why = (
                f"{writer!r} may come {place} in {local(node.name)!r} for the writer; the reader allows {wanted} there."
            )
            fix = f"Let {writer!r} stay possible at that place."
        refused = self._single(node, miss.word[0]) if alone else self.court.with_children(node, miss.word, miss.rest)
        path = "" if miss.early else f"/{writer}"
        self.court.report(rule, node, refused, exact=True, path=path, reader=wanted, writer=writer, why=why, fix=fix)

    def _single(self, node: Node, symbol: tuple[Leaf, str]) -> Iterator[Any]:
        leaf = symbol[0]
        before, after = self.court.builder.through(node.writer, leaf)
        word = [(one, self._name(one)) for one in before] + [symbol] + [(one, self._name(one)) for one in after]
        yield from self.court.with_children(node, word, self.algebra.empty)

    def too_complex(self) -> None:
        """A limit was reached: say so."""
        self.court.findings["TOO_COMPLEX", "/", ""] = Finding(
            "TOO_COMPLEX",
            "/",
            why="The two schemas are too large, or their content models too entangled, to be compared in bounded time.",
            fix="Split the schema, or write its content models in the same shape as before.",
            level=Severity.UNKNOWN,
        )

    def lost_names(self) -> Iterator[Finding]:
        """Warnings for named types that documents could name in xsi:type."""
        known = self.court.findings.values()
        gone = [name for name in self.mine.types if name not in self.theirs.types]
        for name in sorted(gone)[:20]:
            if any(finding.rule == "SUBTYPE_REMOVED" and finding.writer == local(name) for finding in known):
                continue
            yield Finding(
                "TYPE_NAME_REMOVED",
                f"/type({local(name)})",
                writer=local(name),
                why=f"The reader has no type {local(name)!r}; documents that name it in xsi:type are refused.",
                fix="Keep the named type if documents may name it.",
                level=Severity.WARNING,
            )


def _label(leaf: Leaf) -> str:
    return local(leaf.name) if leaf.name is not None else "any element"


def _anything(kind: Any) -> bool:
    return bool(kind.name == "{http://www.w3.org/2001/XMLSchema}anyType")
