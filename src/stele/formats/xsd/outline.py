"""Declarations of a document as written: elements, attributes, types and groups; and the fields of its documents.

Paths are those of findings: `/order` is a global element, `/order/@id` an attribute, `/type(Price)` a type. An
anonymous type is part of its element or attribute. The outermost model group is the attribute `content` of its
declaration; each nested group is a node. Included and imported documents are not listed: they are separate documents.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from xmlschema.validators import XsdElement, XsdSimpleType

from stele.core.findings import SourcePosition
from stele.core.ports import Field
from stele.formats.capabilities import OutlineLocation, OutlineNode
from stele.formats.outline_builder import OutlineBuilder
from stele.formats.terms import Algebra, BudgetExceeded
from stele.formats.xsd.content import SchemaSide, list_leaves
from stele.formats.xsd.parse import ParsedXsd
from stele.formats.xsd.xml_reader import list_element_starts
from stele.formats.xsd.xmlschema_adapter import local_name

if TYPE_CHECKING:
    from lxml import etree

SCHEMA: Final = "/"
"""Path of the document itself."""

_NAMESPACE: Final = "http://www.w3.org/2001/XMLSchema"
_XS: Final = f"{{{_NAMESPACE}}}"
_TYPES: Final = frozenset({"complexType", "simpleType"})
_GROUPS: Final = frozenset({"all", "choice", "sequence"})
_WRAPPERS: Final = frozenset({"complexContent", "simpleContent"})
_DERIVED: Final = frozenset({"extension", "restriction"})
_FACETS: Final = frozenset(
    [
        *("length", "minLength", "maxLength", "minInclusive", "maxInclusive", "minExclusive", "maxExclusive"),
        *("totalDigits", "fractionDigits", "whiteSpace", "explicitTimezone"),
    ]
)
_COUNTED: Final = frozenset(
    ["alternative", "any", "anyAttribute", "assert", "assertion", "defaultOpenContent", "openContent"]
)
"""Kinds of nodes without a name. They are counted from 1 within their parent."""

_LINKS: Final = frozenset({"import", "include", "override", "redefine"})
_QNAMES: Final = frozenset(["base", "itemType", "memberTypes", "ref", "refer", "substitutionGroup", "type"])
_USUAL: Final = {
    ("minOccurs", "1"),
    ("maxOccurs", "1"),
    ("use", "optional"),
    *((word, "false") for word in ("abstract", "fixed", "mixed", "nillable", "inheritable")),
}
"""Attributes with their default values, which are left out."""


def build_outline(parsed: ParsedXsd) -> list[OutlineNode]:
    """Return the document, then its declarations with all that is inside them, in the order of the text."""
    outliner = _Outliner()
    with parsed.lock:
        outliner.add_schema(parsed.root)
    return outliner.outline.nodes


def locate_declarations(parsed: ParsedXsd, text: bytes) -> dict[str, SourcePosition]:
    """Return the source positions of the declarations of the outline, by path."""
    outliner = _Outliner()
    starts = list_element_starts(text)
    with parsed.lock:
        outliner.add_schema(parsed.root)
        numbers = {element: number for number, element in enumerate(parsed.root.iter("*"))}
        return {path: SourcePosition(*starts[numbers[element]]) for path, element in outliner.elements.items()}


def build_locator(parsed: ParsedXsd) -> Callable[[str], OutlineLocation | None]:
    """Return a function that resolves paths of documents, in which the names of types and groups do not occur."""
    uses: dict[str, tuple[str, ...]] = {}
    for node in build_outline(parsed):
        uses[node.path] = node.uses
        if node.parent is not None and node.kind in ("group", "attributeGroup"):
            uses[node.parent] = (*uses.get(node.parent, ()), *node.uses)

    def locate(path: str) -> OutlineLocation | None:
        here = SCHEMA
        for step in path.strip("/").split("/"):
            child = _find_below(here, step, uses)
            if child is None:
                return OutlineLocation(here, partial=True)
            here = child
        return OutlineLocation(here)

    return locate


def _find_below(path: str, step: str, uses: dict[str, tuple[str, ...]]) -> str | None:
    """Return the path of a declaration with that name inside a declaration, its type, base types or groups."""
    waiting, seen = deque([path]), {path}
    while waiting:
        current = waiting.popleft()
        candidate = f"{current.rstrip('/')}/{step}"
        if candidate in uses:
            return candidate
        for other in uses.get(current, ()):
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return None


class _Declaration:
    """Content of one declaration before it becomes a node, including the parts of an anonymous type."""

    def __init__(self, element: etree._Element) -> None:
        self.attributes: dict[str, str] = {}
        self.uses: list[str] = []
        self.members: list[tuple[etree._Element, str]] = []
        self.target = element.getroottree().getroot().get("targetNamespace", "")

    def take_attributes(self, element: etree._Element, prefix: str = "") -> None:
        """Add the XML attributes of an element. Names of types are resolved."""
        for key, value in sorted(element.attrib.items()):
            word, text = str(key), str(value)
            if word == "name" or (word, text) in _USUAL:
                continue
            if word in _QNAMES:
                names = [self._readable_name(element, name) for name in text.split()]
                text = " ".join(names)
                self.uses += [_used_path(word, element, name) for name in names]
            self.add_text(prefix + word, text)

    def add_text(self, word: str, text: str) -> None:
        """Add a text. A second text for the same word is appended to the first."""
        known = self.attributes.get(word)
        self.attributes[word] = text if known is None else f"{known} | {text}"

    def _readable_name(self, element: etree._Element, name: str) -> str:
        """Return a name without prefix. Another namespace is put in braces; names of XML Schema begin with `xs:`."""
        prefix, colon, local = name.rpartition(":")
        space = element.nsmap.get(prefix if colon else None, "")
        if space == _NAMESPACE:
            return f"xs:{local}"
        return local if space in ("", self.target) else f"{{{space}}}{local}"


class _Outliner:
    """Builds the outline. Documents nest at most `xml_reader.MAX_DEPTH` deep, so recursion is safe."""

    def __init__(self) -> None:
        self.outline = OutlineBuilder()
        self.elements: dict[str, etree._Element] = {}

    def add_schema(self, root: etree._Element) -> None:
        declaration = _Declaration(root)
        declaration.take_attributes(root)
        self._gather_annotations(root, declaration)
        self.elements[self.outline.add_node(SCHEMA, "schema", declaration.attributes)] = root
        counts: defaultdict[str, int] = defaultdict(int)
        for element in self.outline.until_full(_child_elements(root)):
            self._add_declaration(element, SCHEMA, "", counts)

    def _add_declaration(
        self, element: etree._Element, parent: str, inside: str, counts: defaultdict[str, int]
    ) -> None:
        """Add a node for an element of the schema language, and nodes for its content. `inside` names its group."""
        kind = _element_kind(element)
        if kind == "annotation":
            return
        declaration = _Declaration(element)
        if inside:
            declaration.add_text("in", inside)
        declaration.take_attributes(element)
        self._gather_parts(element, declaration)
        name = (element.get("name") or element.get("ref", "").rpartition(":")[2]).strip()
        path = self.outline.add_node(
            f"{parent.rstrip('/')}/{_path_step(element, kind, name, counts)}",
            kind,
            declaration.attributes,
            parent=parent,
            name=name or element.get("value", "") if kind not in _GROUPS else "",
            ordered=kind in ("element", "any") or kind in _GROUPS,
            uses=declaration.uses,
        )
        self.elements[path] = element
        below: defaultdict[str, int] = defaultdict(int)
        for member, group in self.outline.until_full(declaration.members):
            if _element_kind(member) in _GROUPS:
                self._add_group(member, path, group, below)
            else:
                self._add_declaration(member, path, group, below)

    def _add_group(self, element: etree._Element, owner: str, inside: str, counts: defaultdict[str, int]) -> None:
        """Add a nested model group. Its members belong to the same declaration, and name their group."""
        kind = _element_kind(element)
        declaration = _Declaration(element)
        if inside:
            declaration.add_text("in", inside)
        declaration.take_attributes(element)
        self._gather_annotations(element, declaration)
        step = _path_step(element, kind, "", counts)
        path = self.outline.add_node(
            f"{owner}/{step}", "model group", declaration.attributes, parent=owner, ordered=True
        )
        self.elements[path] = element
        for member in self.outline.until_full(_child_elements(element)):
            if _element_kind(member) in _GROUPS:
                self._add_group(member, owner, step, counts)
            else:
                self._add_declaration(member, owner, step, counts)

    # --- content of one declaration ---------------------------------------------------------------------------------

    def _gather_parts(self, element: etree._Element, declaration: _Declaration) -> None:
        """Collect the content of a declaration, except for members, which get nodes of their own."""
        self._gather_annotations(element, declaration)
        for inner in _child_elements(element):
            kind = _element_kind(inner)
            if kind in _WRAPPERS or (kind in _TYPES and _element_kind(element) not in _LINKS):
                declaration.take_attributes(inner, "type ")
                self._gather_parts(inner, declaration)
            elif kind in _DERIVED:
                declaration.add_text("derivation", kind)
                declaration.take_attributes(inner)
                self._gather_parts(inner, declaration)
            elif kind in ("list", "union"):
                declaration.add_text("variety", kind)
                declaration.take_attributes(inner)
                declaration.members += [
                    (member, "") for member in _child_elements(inner) if _element_kind(member) == "simpleType"
                ]
            elif kind in _GROUPS:
                self._gather_content(inner, declaration)
            elif kind in _FACETS or kind == "pattern":
                fixed = " (fixed)" if inner.get("fixed") in ("true", "1") else ""
                declaration.add_text(kind, inner.get("value", "") + fixed)
            elif kind in ("selector", "field"):
                declaration.add_text(kind, inner.get("xpath", ""))
            elif kind != "annotation":
                declaration.members.append((inner, ""))

    def _gather_content(self, group: etree._Element, declaration: _Declaration) -> None:
        """Collect the outermost model group of a declaration as its attribute `content`."""
        bounds = [f"{word} {group.get(word)}" for word in ("minOccurs", "maxOccurs") if group.get(word, "1") != "1"]
        declaration.add_text("content", " ".join([_element_kind(group), *bounds]))
        self._gather_annotations(group, declaration)
        declaration.members += [
            (member, "") for member in _child_elements(group) if _element_kind(member) != "annotation"
        ]

    def _gather_annotations(self, element: etree._Element, declaration: _Declaration) -> None:
        """Collect the annotations of an element."""
        for note in element.iterchildren(f"{_XS}annotation"):
            for part in note.iterchildren(f"{_XS}documentation", f"{_XS}appinfo"):
                text = " ".join("".join(str(piece) for piece in part.itertext()).split())
                if text:
                    declaration.add_text(_element_kind(part), text)


def _child_elements(element: etree._Element) -> Iterator[etree._Element]:
    return (child for child in element.iterchildren("*") if isinstance(child.tag, str))


def _element_kind(element: etree._Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _path_step(element: etree._Element, kind: str, name: str, counts: defaultdict[str, int]) -> str:
    """Return the last part of a declaration's path."""
    if kind == "element" and name:
        return name
    if kind == "attribute" and name:
        return f"@{name}"
    if kind in _TYPES and name:
        return f"type({name})"
    if kind in _LINKS:
        return f"{kind}({element.get('schemaLocation') or element.get('namespace', '')})"
    if kind == "enumeration":
        return f"value({element.get('value', '')})"
    if name and kind not in _COUNTED:
        return f"{kind}({name})"
    counts[kind] += 1
    return f"{kind}({counts[kind]})"


def _used_path(word: str, element: etree._Element, name: str) -> str:
    """Return the path of what a name refers to, if it is in this document."""
    if word in ("ref", "substitutionGroup"):
        kind = _element_kind(element)
        return f"/{name}" if kind == "element" else f"/@{name}" if kind == "attribute" else f"/{kind}({name})"
    return f"/type({name})"


MAX_FIELDS: Final = 10_000
"""Most fields that are listed."""

_MAX_DEPTH: Final = 40
_JSON_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?\Z")


def list_fields(parsed: ParsedXsd) -> list[Field]:
    """Return elements and attributes depth first. Paths begin with the root's name.

    Repeated elements end in `[]`, attributes start with `@`. A type inside itself is not entered again.
    """
    side = SchemaSide(parsed.model, Algebra(), strict=False)
    fields: dict[str, Field] = {}
    with parsed.lock:
        stack = [
            (local_name(name), element, frozenset[int]()) for name, element in reversed(list(side.elements.items()))
        ]
        while stack and len(fields) < MAX_FIELDS:
            path, element, above = stack.pop()
            kind = element.type
            default, doc = _default_json(element), documentation_text(element)
            optional = (
                True if element.nillable or element.min_occurs == 0 else None
            )  # a choice around it may leave it out
            fields.setdefault(path, Field(path, type_word(kind), default, doc, optional))
            if isinstance(kind, XsdSimpleType) or id(kind) in above or len(above) > _MAX_DEPTH:
                continue
            for name, use in kind.attributes.items():
                if name is not None and use.use != "prohibited":
                    inner = f"{path}.@{local_name(name)}"
                    word = type_word(use.type)
                    default, doc = _default_json(use), documentation_text(use)
                    fields.setdefault(inner, Field(inner, word, default, doc, use.use != "required"))
            below = [(f"{path}.{name}", child, above | {id(kind)}) for name, child in _fields_inside(side, kind)]
            stack.extend(reversed(below))
    return list(fields.values())[:MAX_FIELDS]


def _fields_inside(side: SchemaSide, kind: Any) -> Iterator[tuple[str, XsdElement]]:
    try:
        term = side.content_term(kind)
    except BudgetExceeded:
        return
    many = repeated_names(term)
    for leaf in list_leaves(term):
        if leaf.name is not None:
            yield local_name(leaf.name) + ("[]" if leaf.name in many else ""), leaf.declaration


def _default_json(component: Any) -> str | None:
    """Return the default or fixed value of an element or attribute as JSON: a number, a boolean, else a string."""
    text = component.default if component.default is not None else component.fixed
    if text is None:
        return None
    kind = component.type if isinstance(component.type, XsdSimpleType) else component.type.content
    if isinstance(kind, XsdSimpleType) and kind.is_boolean():
        return "true" if text.strip() in ("true", "1") else "false"
    if isinstance(kind, XsdSimpleType) and kind.is_decimal() and _JSON_NUMBER.match(text.strip()):
        return str(text.strip())
    return json.dumps(text, ensure_ascii=False)


def repeated_names(term: Any) -> set[str]:
    """Return the names of the elements in a content model that occur, or seem to occur, more than once."""
    counts: dict[str, int] = {}
    waiting = [(term, 1)]
    steps = 0
    while waiting and steps < 100_000:
        current, times = waiting.pop()
        steps += 1
        if current.kind == "leaf" and current.label.name is not None:
            counts[current.label.name] = counts.get(current.label.name, 0) + times
        bounds = current.bounds if current.kind in ("repeat", "all") else [(1, 1)] * len(current.parts)
        for part, (_, high) in zip(current.parts, bounds, strict=True):
            waiting.append((part, 2 if high is None or high > 1 else times))
    return {name for name, count in counts.items() if count > 1}


def type_word(kind: Any) -> str:
    """Return the name of a type, or a description of an anonymous one."""
    if kind.name:
        return local_name(kind.name)
    if isinstance(kind, XsdSimpleType):
        base: Any = kind
        while base is not None and not base.name:
            base = base.base_type
        return local_name(base.name) if base is not None else "simple"
    return "complex"


def documentation_text(component: Any) -> str:
    """Return the text of a component's documentation, or ''."""
    note = component.annotation
    if note is None:
        return ""
    return " ".join(" ".join(part.itertext()).strip() for part in note.documentation if part is not None).strip()
