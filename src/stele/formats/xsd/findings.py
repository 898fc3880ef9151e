"""Collects findings where two schemas differ, with a document as proof if one can be built."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from lxml import etree

from stele.core.findings import Finding, Severity
from stele.formats.xsd.codec import is_valid
from stele.formats.xsd.content import Particle, SchemaSide
from stele.formats.xsd.instances import MINIMAL, DocumentBuilder, ElementContent, InstanceStyle, NoDocument
from stele.formats.xsd.parse import ParsedXsd
from stele.formats.xsd.xmlschema_adapter import local_name

MAX_DOCUMENTS: Final = 400
"""Most documents that are built and validated in one check."""

MAX_FINDINGS: Final = 100
"""Most findings of one check."""


class ElementPair:
    """A pair of elements to compare, and how a document reaches it.

    Attributes:
        name: Name of the element, as `{namespace}local`.
        writer_declaration: The writer's declaration, None for an element that only a wildcard allows.
        writer_type: The writer's effective type: the declared one, one derived from it, or an alternative.
        reader_declaration: The reader's declaration, None for an element that only a wildcard allows.
        reader_type: The reader's effective type.
        parent: The pair of the enclosing elements, None for a root.
        particle: The particle of the parent's content, in the writer's schema, that leads here.
        free: Whether the writer's schema validates nothing here (`processContents="skip"`).
        path: Local names from the root, each after a slash.
    """

    __slots__ = (
        "free",
        "name",
        "parent",
        "particle",
        "path",
        "reader_declaration",
        "reader_type",
        "writer_declaration",
        "writer_type",
    )

    def __init__(
        self,
        name: str,
        writer_declaration: Any | None,
        writer_type: Any,
        reader_declaration: Any | None,
        reader_type: Any,
        parent: ElementPair | None,
        particle: Particle | None,
        *,
        free: bool = False,
    ) -> None:
        self.name = name
        self.writer_declaration = writer_declaration
        self.writer_type = writer_type
        self.reader_declaration = reader_declaration
        self.reader_type = reader_type
        self.parent = parent
        self.particle = particle
        self.free = free
        self.path: str = f"{parent.path if parent else ''}/{local_name(name)}"

    @property
    def root(self) -> ElementPair:
        """The pair of root elements above this pair."""
        node = self
        while node.parent is not None:
            node = node.parent
        return node

    @property
    def key(self) -> tuple[int, int, int, int, bool]:
        """Identity of the comparison. Of several pairs with the same key only one is compared."""
        return (
            id(self.writer_declaration),
            id(self.writer_type),
            id(self.reader_declaration),
            id(self.reader_type),
            self.free,
        )


class FindingCollector:
    """Collects findings and tries to prove them with documents."""

    def __init__(self, writer: ParsedXsd, reader: ParsedXsd, writer_side: SchemaSide) -> None:
        self._writer = writer
        self._reader = reader
        self._writer_side = writer_side
        self._tried = 0
        self.builder = DocumentBuilder(writer_side)
        self.findings: dict[tuple[str, str, str], Finding] = {}

    @property
    def is_full(self) -> bool:
        """Whether further findings would be dropped."""
        return len(self.findings) >= MAX_FINDINGS

    def report_finding(
        self,
        rule: str,
        node: ElementPair,
        documents: Iterator[etree._Element],
        *,
        exact: bool,
        why: str,
        fix: str,
        path: str = "",
        reader: str = "",
        writer: str = "",
    ) -> bool:
        """Add a finding. Return True when it is an error, or exists already.

        A type without any valid document breaks nothing, so nothing is added for it.

        Args:
            rule: Identifier of the rule.
            node: The pair of elements where the schemas differ.
            documents: Documents that may prove the difference, best first.
            exact: Whether the rule decides by itself. Otherwise only a document that the writer's schema allows and
                the reader's refuses makes the finding an error.
            why: What breaks, as a sentence.
            fix: What the author can do, as a sentence.
            path: Path below the pair, such as `/@name`.
            reader: What the reader's schema has there.
            writer: What the writer's schema has there.
        """
        where = node.path + path
        key = (rule, where, writer)
        if key in self.findings or self.is_full:
            return True
        if not self.builder.is_inhabited(node.writer_type):
            return False
        try:
            witness, accepted = self._find_witness(documents)
        except NoDocument:
            witness, accepted = None, False
        level = Severity.ERROR if witness is not None or (exact and not accepted) else Severity.UNKNOWN
        if level is Severity.UNKNOWN:
            why += " No document that proves it was found, and there is no proof that none exists."
        self.findings[key] = Finding(rule, where or "/", reader, writer, why, fix, witness, level=level)
        return level is Severity.ERROR

    def _find_witness(self, documents: Iterator[etree._Element]) -> tuple[str | None, bool]:
        """Return the first document that only the writer's schema allows, else None and whether both allowed one."""
        accepted = False
        for document in documents:
            if self._tried >= MAX_DOCUMENTS:
                break
            self._tried += 1
            text = etree.tostring(document, encoding="unicode")
            if is_valid(self._writer, text.encode()):
                if not is_valid(self._reader, text.encode()):
                    return text, False
                accepted = True
        return None, accepted

    # --- documents ----------------------------------------------------------------------------------------------------

    def build_document(self, node: ElementPair, element: etree._Element) -> etree._Element:
        """Return a document that contains an element at the position of a node. Raises `NoDocument`."""
        while node.parent is not None:
            assert node.particle is not None
            before, after = self.builder.particles_around(node.parent.writer_type, node.particle)
            children = [self.builder.build_child(leaf) for leaf in before]
            children += [element, *(self.builder.build_child(leaf) for leaf in after)]
            node = node.parent
            element = self.builder.build_element(
                node.name, node.writer_declaration, node.writer_type, ElementContent(children=children)
            )
        return element

    def documents_with_content(self, node: ElementPair, contents: Iterable[ElementContent]) -> Iterator[etree._Element]:
        """Yield documents in which the pair's element has each of the given contents."""
        for content in contents:
            yield self.build_document(
                node, self.builder.build_element(node.name, node.writer_declaration, node.writer_type, content)
            )

    def documents_in_styles(self, node: ElementPair) -> Iterator[etree._Element]:
        """Yield documents in which the pair's element has few or many optional parts."""
        for style in (
            MINIMAL,
            InstanceStyle(0, True),
            InstanceStyle(1, True),
            InstanceStyle(2, True),
            InstanceStyle(2, False),
            InstanceStyle(1, False),
        ):
            yield self.build_document(
                node,
                self.builder.build_element(
                    node.name, node.writer_declaration, node.writer_type, ElementContent(), style
                ),
            )

    def documents_with_children(
        self, node: ElementPair, word: Iterable[tuple[Particle, str]], rest: Any
    ) -> Iterator[etree._Element]:
        """Yield a document in which the pair's element has children of those names, then a short rest."""
        children = []
        for leaf, name in word:
            if leaf.name is not None:
                children.append(self.builder.build_child(leaf))
                continue
            declaration = self._writer_side.find_element(name)
            plain = declaration is None or leaf.declaration.process_contents == "skip"
            one = Particle(name, declaration, leaf.group)
            children.append(etree.Element(name) if plain else self.builder.build_child(one))
        children += [self.builder.build_child(leaf) for leaf in self.builder.shortest_rest(rest)]
        yield self.build_document(
            node,
            self.builder.build_element(
                node.name, node.writer_declaration, node.writer_type, ElementContent(children=children)
            ),
        )
