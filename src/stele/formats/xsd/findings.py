"""From a place where two schemas differ to a finding, with a document as proof wherever one can be made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from lxml import etree

from stele.core.findings import Finding, Severity
from stele.formats.xsd.codec import is_valid
from stele.formats.xsd.content import Leaf, SchemaSide
from stele.formats.xsd.instances import MINIMAL, DocumentBuilder, ElementContent, InstanceStyle, NoDocument
from stele.formats.xsd.parse import ParsedXsd

MAX_DOCUMENTS: Final = 400
"""Documents made and validated in one check."""

MAX_FINDINGS: Final = 100
"""Findings of one check."""


class ElementPair:
    """A pair of elements to compare, and how a document gets there.

    name         of the element
    mine, theirs declarations of writer and reader, None for elements only a wildcard let in
    writer       the writer's type in force, reader the reader's
    parent, leaf the pair above, and the writer's particle of its content that leads here
    free         the writer looks at nothing here (`skip`)
    path         names from the root
    """

    __slots__ = ("free", "leaf", "mine", "name", "parent", "path", "reader", "theirs", "writer")

    def __init__(
        self,
        name: str,
        mine: Any | None,
        writer: Any,
        theirs: Any | None,
        reader: Any,
        parent: ElementPair | None,
        leaf: Leaf | None,
        *,
        free: bool = False,
    ) -> None:
        self.name = name
        self.mine = mine
        self.writer = writer
        self.theirs = theirs
        self.reader = reader
        self.parent = parent
        self.leaf = leaf
        self.free = free
        self.path: str = f"{parent.path if parent else ''}/{local_name(name)}"

    @property
    def root(self) -> ElementPair:
        """The pair the document starts with."""
        node = self
        while node.parent is not None:
            node = node.parent
        return node

    @property
    def key(self) -> tuple[int, int, int, int, bool]:
        """What makes a comparison the same as another."""
        return id(self.mine), id(self.writer), id(self.theirs), id(self.reader), self.free


def local_name(name: str) -> str:
    """A name without its namespace."""
    return name.rpartition("}")[2]


def type_name(kind: Any) -> str:
    """A type in a word."""
    if kind is None:
        return ""
    return local_name(kind.name) if kind.name else "anonymous type"


class FindingCollector:
    """Collects findings and tries documents as their proofs."""

    def __init__(self, writer: ParsedXsd, reader: ParsedXsd, mine: SchemaSide) -> None:
        self._writer = writer
        self._reader = reader
        self._mine = mine
        self._tried = 0
        self.builder = DocumentBuilder(mine)
        self.findings: dict[tuple[str, str, str], Finding] = {}

    @property
    def is_full(self) -> bool:
        """Whether more findings would not be kept."""
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
        """Keep a finding; True when it breaks, or is kept already.

        exact: the rule decides by itself. Otherwise only a document that the writer's schema allows and the reader's
        refuses makes it an error. A type without any document breaks nothing.
        """
        where = node.path + path
        key = (rule, where, writer)
        if key in self.findings or self.is_full:
            return True
        if not self.builder.is_inhabited(node.writer):
            return False
        try:
            witness, accepted = self._find_witness(documents)
        except NoDocument:
            witness, accepted = None, False
        level = Severity.ERROR if witness is not None or (exact and not accepted) else Severity.UNKNOWN
        if level is Severity.UNKNOWN:
            why += " No document that proves it was found, nor could it be shown that there is none."
        self.findings[key] = Finding(rule, where or "/", reader, writer, why, fix, witness, level=level)
        return level is Severity.ERROR

    def _find_witness(self, documents: Iterator[etree._Element]) -> tuple[str | None, bool]:
        """The first document that only the writer's schema allows; else whether both allowed one."""
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
        """A document around an element for a node. Raises `NoInstance`."""
        while node.parent is not None:
            assert node.leaf is not None
            before, after = self.builder.particles_around(node.parent.writer, node.leaf)
            children = [self.builder.build_child(leaf) for leaf in before]
            children += [element, *(self.builder.build_child(leaf) for leaf in after)]
            node = node.parent
            element = self.builder.build_element(node.name, node.mine, node.writer, ElementContent(children=children))
        return element

    def documents_with_content(self, node: ElementPair, contents: Iterable[ElementContent]) -> Iterator[etree._Element]:
        """Documents in which the node's element has some content."""
        for content in contents:
            yield self.build_document(node, self.builder.build_element(node.name, node.mine, node.writer, content))

    def documents_in_styles(self, node: ElementPair) -> Iterator[etree._Element]:
        """Documents in which the node's element is poor or rich."""
        for style in (
            MINIMAL,
            InstanceStyle(0, True),
            InstanceStyle(1, True),
            InstanceStyle(2, True),
            InstanceStyle(2, False),
            InstanceStyle(1, False),
        ):
            yield self.build_document(
                node, self.builder.build_element(node.name, node.mine, node.writer, ElementContent(), style)
            )

    def documents_with_children(
        self, node: ElementPair, word: Iterable[tuple[Leaf, str]], rest: Any
    ) -> Iterator[etree._Element]:
        """Documents in which the node's element has children of those names, then a short rest."""
        children = []
        for leaf, name in word:
            if leaf.name is not None:
                children.append(self.builder.build_child(leaf))
                continue
            declaration = self._mine.find_element(name)
            plain = declaration is None or leaf.declaration.process_contents == "skip"
            one = Leaf(name, declaration, leaf.group)
            children.append(etree.Element(name) if plain else self.builder.build_child(one))
        children += [self.builder.build_child(leaf) for leaf in self.builder.shortest_rest(rest)]
        yield self.build_document(
            node, self.builder.build_element(node.name, node.mine, node.writer, ElementContent(children=children))
        )
