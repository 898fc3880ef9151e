"""Lint rules for XML Schemas; see `stele.formats.lint` for common rules and how to silence one.

Types and groups are UpperCamelCase; elements and attributes may be lowerCamelCase or UpperCamelCase: both are common. A
path consists of the names of declarations: `/Order/line/@id`. Only the document itself is checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from stele.core.findings import Finding
from stele.formats import lint as common
from stele.formats.graph import strongly_connected
from stele.formats.lint import LintReport
from stele.formats.xsd.parse import ParsedXsd

if TYPE_CHECKING:
    from lxml import etree

RULES: Final[Mapping[str, str]] = common.select_rules(
    *("DOC_REQUIRED", "ELEMENT_FORM", "FIELD_DEFAULT", "LINT_INCOMPLETE", "NAMESPACE_REQUIRED", "NAMING"),
    *("RECURSIVE_TYPE", "TYPE_DECLARED", "UNBOUNDED_RECURSION", "WILDCARD_LIMITED"),
)

_XS: Final = "{http://www.w3.org/2001/XMLSchema}"
_TYPES: Final = frozenset((_XS + "complexType", _XS + "simpleType", _XS + "group", _XS + "attributeGroup"))
_ELEMENT: Final = _XS + "element"
_ATTRIBUTE: Final = _XS + "attribute"
_DECLARED: Final = _TYPES | {_ELEMENT, _ATTRIBUTE}
_INLINE: Final = frozenset((_XS + "complexType", _XS + "simpleType", _XS + "alternative"))
_WILDCARDS: Final = frozenset((_XS + "any", _XS + "anyAttribute"))
_NAMES: Final[common.Styles] = {"lowerCamelCase": common.LOWER_CAMEL, "UpperCamelCase": common.UPPER_CAMEL}


class _LintedDeclaration(NamedTuple):
    """A declaration: its element, its path, the rules silenced there, and the global declaration it is in."""

    node: etree._Element
    path: str
    ignored: frozenset[str]
    scope: tuple[str, str]


def lint(parsed: ParsedXsd, before: ParsedXsd | None) -> list[Finding]:
    """Return the findings, in the order of the document."""
    notes = LintReport()
    root = parsed.root
    quiet = _ignored_rules(root)
    _check_document(notes, root, quiet)
    scopes: dict[tuple[str, str], _LintedDeclaration] = {}
    for place in _walk_declarations(root, quiet):
        if not notes.count_declaration():
            break
        scopes.setdefault(place.scope, place)
        tag = place.node.tag
        if tag in _WILDCARDS:
            _check_wildcard(notes, place)
        elif place.node.get("name"):
            _check_declaration(notes, place)
    _check_recursion(notes, root, scopes)
    if before is not None:
        _check_changes(notes, root, before.root, quiet)
    return notes.list_findings("/")


def _check_document(notes: LintReport, root: etree._Element, quiet: frozenset[str]) -> None:
    if not root.get("targetNamespace"):
        why = "The schema has no target namespace: its names meet those of every other schema without one."
        notes.add_finding("NAMESPACE_REQUIRED", "/", why, "Add a targetNamespace.", ignored=quiet)
    elif root.get("elementFormDefault") != "qualified" and next(_local_elements(root), None) is not None:
        why = "Local elements are in no namespace, global ones in the target namespace: documents have to mix both."
        fix = 'Add elementFormDefault="qualified".'
        current = root.get("elementFormDefault", "unqualified")
        notes.add_finding("ELEMENT_FORM", "/", why, fix, current=current, ignored=quiet)


def _local_elements(root: etree._Element) -> Iterator[etree._Element]:
    return (node for node in root.iter(_ELEMENT) if node.getparent() is not root and node.get("name"))


def _walk_declarations(root: etree._Element, quiet: frozenset[str]) -> Iterator[_LintedDeclaration]:
    """Yield declarations and wildcards in the order of the document."""
    waiting = [
        _LintedDeclaration(child, "", quiet, (_symbol_space(child), child.get("name", "")))
        for child in _child_elements(root)
    ]
    waiting.reverse()
    while waiting:
        node, path, ignored, scope = waiting.pop()
        if node.tag == _XS + "annotation":
            continue
        ignored |= _ignored_rules(node)
        if node.tag in _DECLARED and node.get("name"):
            path += f"/{'@' if node.tag == _ATTRIBUTE else ''}{node.get('name')}"
        if node.tag in _DECLARED or node.tag in _WILDCARDS:
            yield _LintedDeclaration(node, path or "/", ignored, scope)
        waiting += reversed([_LintedDeclaration(child, path, ignored, scope) for child in _child_elements(node)])


def _child_elements(node: etree._Element) -> Iterator[etree._Element]:
    return (child for child in node if isinstance(child.tag, str))


def _check_declaration(notes: LintReport, place: _LintedDeclaration) -> None:
    node, path, ignored, _ = place
    name, kind = node.get("name", ""), node.tag.rpartition("}")[2]
    what = f"{kind} {common.shorten_text(name, 60)}"
    styles = common.TYPE_NAME if node.tag in _TYPES else _NAMES
    common.check_name(notes, path, name, f"the {what}", styles, ignored)
    if not _annotation_text(node, "documentation"):
        common.report_missing_doc(notes, path, f"The {what}", "Add xs:annotation/xs:documentation.", ignored)
    typed = node.get("type") or node.get("substitutionGroup") or any(child.tag in _INLINE for child in node)
    if node.tag in (_ELEMENT, _ATTRIBUTE) and not typed:
        why = f"The {what} has no type, so it accepts any content."
        notes.add_finding("TYPE_DECLARED", path, why, "Give it a type.", ignored=ignored)


def _check_wildcard(notes: LintReport, place: _LintedDeclaration) -> None:
    node = place.node
    many = node.tag.endswith("}anyAttribute") or node.get("maxOccurs") == "unbounded"
    spaces = node.get("namespace", "##any")
    lenient = node.get("processContents", "strict") != "strict"
    if many and lenient and spaces == "##any" and not node.get("notNamespace"):
        current = f"{node.tag.rpartition('}')[2]} {spaces} {node.get('processContents')}"
        why = (
            "The wildcard takes any number of things from anywhere, declared or not: the schema promises nothing here."
        )
        fix = 'Limit it: namespace="##other", a maxOccurs, or processContents="strict".'
        notes.add_finding("WILDCARD_LIMITED", place.path, why, fix, current=current, ignored=place.ignored)


# --- notes of the author --------------------------------------------------------------------------------------------


def _annotation_text(node: etree._Element, kind: str) -> str:
    """Return the text of a declaration's own documentation or appinfo."""
    parts = (part for note in node.findall(_XS + "annotation") for part in note.findall(_XS + kind))
    return "\n".join("".join(map(str, part.itertext())) for part in parts).strip()


def _ignored_rules(node: etree._Element) -> frozenset[str]:
    if node.find(_XS + "annotation") is None:
        return frozenset()
    return common.ignored_rules_in_comment(_annotation_text(node, "appinfo"))


# --- recursion ------------------------------------------------------------------------------------------------------


def _check_recursion(
    notes: LintReport, root: etree._Element, scopes: Mapping[tuple[str, str], _LintedDeclaration]
) -> None:
    """Report types, groups and global elements inside themselves. They are identified by kind and local name."""
    nodes = {
        (_symbol_space(child), child.get("name", "")): child
        for child in _child_elements(root)
        if child.tag in _DECLARED
    }
    for rule, demanded in (("RECURSIVE_TYPE", False), ("UNBOUNDED_RECURSION", True)):

        def list_edges(key: tuple[str, str], demanded: bool = demanded) -> list[tuple[str, str]]:
            return [inner for inner in _list_references(nodes[key], demanded=demanded) if inner in nodes]

        for group in strongly_connected(nodes, list_edges):
            place = scopes.get(group[0])
            if place is not None:
                common.report_recursion(notes, rule, place.path, [name for _, name in group], place.ignored)


def _symbol_space(node: etree._Element) -> str:
    """Return the symbol space of a declaration: types of both kinds share one."""
    kind = str(node.tag).rpartition("}")[2]
    return "type" if kind in ("complexType", "simpleType") else kind


def _list_references(node: etree._Element, *, demanded: bool) -> Iterator[tuple[str, str]]:
    """Yield the names that a declaration refers to. With `demanded`: only those that every content must have."""
    waiting = [node]
    while waiting:
        at = waiting.pop()
        kind = str(at.tag).rpartition("}")[2]
        if demanded and (at.get("minOccurs") == "0" or kind == "choice"):
            continue
        if kind in ("element", "group") and at.get("ref"):
            yield kind, _local_name(at.get("ref", ""))
        if kind == "element" and at.get("type"):
            yield "type", _local_name(at.get("type", ""))
        if kind == "extension" or (kind == "restriction" and not demanded):
            yield "type", _local_name(at.get("base", ""))
        waiting += [child for child in _child_elements(at) if child.tag != _XS + "annotation"]


def _local_name(name: str) -> str:
    return name.rpartition(":")[2]


# --- changes --------------------------------------------------------------------------------------------------------


def _check_changes(notes: LintReport, root: etree._Element, before: etree._Element, quiet: frozenset[str]) -> None:
    """Report new required elements and attributes in a global declaration that existed before."""
    old = {place.path for place in _walk_declarations(before, quiet)}
    for place in _walk_declarations(root, quiet):
        node = place.node
        scope = "/" + place.path.split("/")[1]
        if place.path in old or scope not in old or node.get("default") is not None or node.get("fixed") is not None:
            continue
        optional = node.get("use") != "required" if node.tag == _ATTRIBUTE else node.get("minOccurs") == "0"
        if node.tag not in (_ELEMENT, _ATTRIBUTE) or optional or _in_choice(node):
            continue
        why = f"{node.get('name')} is new and demanded, so documents written before are not valid any more."
        notes.add_finding("FIELD_DEFAULT", place.path, why, "Make it optional.", ignored=place.ignored)


def _in_choice(node: etree._Element) -> bool:
    parent = node.getparent()
    while parent is not None and str(parent.tag).rpartition("}")[2] in ("choice", "sequence", "all"):
        if parent.tag == _XS + "choice" or parent.get("minOccurs") == "0":
            return True
        parent = parent.getparent()
    return False
