"""Adapter to `xmlschema`: the object model and the validator, without access to files, network and backtracking.

Its error messages are rephrased for schema authors only in this module.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from xmlschema.loaders import SchemaLoader
from xmlschema.validators import XMLSchema10, XMLSchema11
from xmlschema.validators.builders import XsdBuilders
from xmlschema.validators.facets import XsdPatternFacets

from stele.formats.regex import PatternError
from stele.formats.xsd.regex import Pattern
from stele.formats.xsd.xml_reader import SourcePositions


class Rephrased(NamedTuple):
    """A sentence about a fault, and the expected content if known."""

    why: str
    expected: str | None = None


_NUMBER: Final = r"attribute (?P<name>\w+)='(?P<value>.*?)': invalid literal for int\(\).*"
_RULES: Final = tuple(
    (re.compile(pattern, re.DOTALL), Rephrased(why, expected))
    for pattern, why, expected in (
        (_NUMBER, r"\g<value> is not a number for \g<name>", "a whole number, 0 or more"),
        (r"attribute (\w+)='(.*?)': value must be one of \[(.*)\]", r"\2 is not a value of \1", r"one of \3"),
        (
            r"attribute (name|id)='(.*?)': value doesn't match.*",
            r"'\2' is not a name",
            "a name without colon and blanks",
        ),
        (r"duplicated value \('(.*)',\) for XsdKey\(name='(.*)'\)", r"\2 '\1' is declared twice", "another name"),
        (r"failed decoding '(.*)' with XsdAtomic\w*\(name='(.*?)'\).*", r"'\1' is not a valid \2", r"a value of \2"),
        (
            r"unknown (type|element|attribute|group|attributeGroup) ('.*')",
            r"unknown \1 \2",
            r"a \1 declared or built in",
        ),
        (r"missing base type ('.*')", r"unknown base type \1", "a type declared or built in"),
        (r"missing required attribute '(.*)'", r"missing required attribute '\1'", r"\1=…"),
        (r"Unexpected child with tag '(.*?)'.*", r"the element \1 is not allowed here", "what XML Schema allows here"),
        (
            r"one or more facets are not applicable, admitted set is .*",
            "a facet of another kind of type",
            "other facets",
        ),
        (r"'default' value ('.*') is not compatible.*", r"the default \1 does not fit the type", "a value of the type"),
        (
            r"'fixed' value ('.*') is not compatible.*",
            r"the fixed value \1 does not fit the type",
            "a value of the type",
        ),
        (
            r"'default' and 'fixed' attributes are mutually exclusive",
            "there is a default and a fixed value",
            "one of them",
        ),
        (
            r"Unique Particle Attribution violation between \w+\(name='(.*?)'.*?\w+\(name='(.*?)'.*",
            r"it is ambiguous which of the declarations \1 and \2 an element belongs to",
            "different names, or something between them that has to occur",
        ),
        (
            r"maxOccurs must be 'unbounded' or greater.*",
            "maxOccurs is less than minOccurs",
            "a number as great, or unbounded",
        ),
        (r"Circular definition detected for (.*)", r"\1 contains itself", None),
        (
            r"the attribute 'type' and a (.*) local declaration are mutually exclusive",
            r"there is the attribute type and a \1 inside",
            "one of them",
        ),
        (
            r"(an unexpected end|.+) at character (\d+) of the pattern (.*)",
            r"\1 at character \2 of the pattern \3",
            "a pattern",
        ),
    )
)


def rephrase_message(message: str) -> Rephrased:
    """Return a message of the library in words for schema authors; the message itself if no rule matches."""
    for pattern, words in _RULES:
        match = pattern.fullmatch(message)
        if match is not None:
            return Rephrased(match.expand(words.why), words.expected and match.expand(words.expected))
    return Rephrased(message)


XS: Final = "{http://www.w3.org/2001/XMLSchema}"
BUILT_IN: Final = frozenset(
    {
        "http://www.w3.org/2001/XMLSchema",
        "http://www.w3.org/XML/1998/namespace",
        "http://www.w3.org/2001/XMLSchema-instance",
        "http://www.w3.org/2007/XMLSchema-versioning",
    }
)
"""Namespaces every schema knows without a reference."""

Tree = Any
"""An lxml element."""

ReferenceTrees = Mapping[str, Tree]
"""Parsed references by name: a schemaLocation or a namespace."""


class BoundedPatterns(XsdPatternFacets):
    """The pattern facet with Stele's own matcher: user patterns never reach a backtracking engine."""

    patterns: list[Any]

    def _parse_value(self, elem: Any) -> Any:
        try:
            return Pattern(elem.attrib.get("value", ""), version=self.xsd_version)
        except PatternError as error:
            self.parse_error(str(error), elem)
            return Pattern("")


class OfflineLoader(SchemaLoader):
    """Finds included and imported documents only among the references."""

    roots: ReferenceTrees
    own_name: str
    own_root: Tree
    places: SourcePositions

    def _find_document(self, *names: str | None) -> Tree | None:
        for name in names:
            if not name:
                continue
            for spelling in (name, posixpath.normpath(name), _join_location(self.own_name, name)):
                if spelling in self.roots:
                    return self.roots[spelling]
                if spelling == self.own_name:
                    return self.own_root
        return None

    def load_declared_schemas(self, schema: Any, other_sources: Any = None) -> None:
        """Load what a document includes, redefines, overrides and imports. Raises `UnresolvedReference`."""
        schema.imported_namespaces.clear()
        for element in _list_links(schema.source.root):
            location = element.get("schemaLocation")
            if element.tag == XS + "import":
                self._load_import(schema, element, element.get("namespace", "").strip(), location)
            elif location is not None:
                self._load_include(schema, element, location.strip())

    def _find_twin(self, schema: Any, element: Any) -> Tree:
        return self.places.find_twin(schema.source, element)

    def _load_import(self, schema: Any, element: Tree, namespace: str, location: str | None) -> None:
        if namespace == schema.target_namespace:
            schema.parse_error("a schema imports its own namespace; include is for that", element)
            return
        schema.imported_namespaces.append(namespace)
        root = self._find_document(location and location.strip(), namespace)
        if root is None:
            if location and namespace not in self.namespaces and namespace not in BUILT_IN:
                raise self.places.build_unresolved(
                    self._find_twin(schema, element), f"imports {location!r}, which is not among the references"
                )
            return
        if root.get("targetNamespace", "") != namespace:
            schema.parse_error(f"the imported document is not of the namespace {namespace!r}", element)
            return
        schema.imports[location or namespace] = self.load_schema(self.places.document_text(root), namespace)

    def _load_include(self, schema: Any, element: Tree, location: str) -> None:
        root = self._find_document(location)
        operation = element.tag.rpartition("}")[2]
        if root is None:
            raise self.places.build_unresolved(
                self._find_twin(schema, element), f"{operation}s {location!r}, which is not among the references"
            )
        included_schema = self.load_schema(self.places.document_text(root), schema.target_namespace)
        if included_schema is schema:
            if operation != "include":
                schema.parse_error(f"a document cannot {operation} itself", element)
            return
        schema.includes[location] = included_schema
        if operation == "redefine":
            included_schema.redefine = schema
        elif operation == "override":
            included_schema.override = schema

    def load_namespace(self, namespace: str, build: bool = True) -> bool:
        """Return whether the namespace is loaded already; nothing is loaded while data is read."""
        return namespace in self.namespaces


def _join_location(name: str, location: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), location))


def _list_links(root: Tree) -> Iterator[Tree]:
    kinds = {XS + kind for kind in ("import", "include", "redefine", "override")}
    return (child for child in root if child.tag in kinds)


class Schema10(XMLSchema10):
    """XSD 1.0 with bounded patterns."""

    builders = XsdBuilders("1.0", BoundedPatterns)


class Schema11(XMLSchema11):
    """XSD 1.1 with bounded patterns."""

    builders = XsdBuilders("1.1", BoundedPatterns)


def build_schema(root: Tree, roots: ReferenceTrees, places: SourcePositions, *, name: str, version: str) -> Any:
    """Return the model of a document. Raises the errors of xmlschema, and `UnresolvedReference`."""
    loader = type("Loader", (OfflineLoader,), {"roots": roots, "own_name": name, "own_root": root, "places": places})
    kind: Callable[..., Any] = Schema11 if version == "1.1" else Schema10
    return kind(places.document_text(root), loader_class=loader, use_fallback=False, allow="none")


_SAFE_WORDS: Final = (
    "not count exists empty string-length starts-with ends-with contains sum min max avg abs number string concat "
    "substring substring-before substring-after normalize-space true false boolean position last name local-name data "
    "text node round floor ceiling distinct-values upper-case lower-case translate string-join "
    "if and or in return satisfies then else div mod eq ne lt le gt ge is"
)
_SAFE_CALLS: Final = frozenset(_SAFE_WORDS.split())
_LITERAL: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
_CALL: Final = re.compile(r"([\w:.-]+)\s*\(")
_LOOP: Final = re.compile(r"\b(?:for|some|every)\s+\$")


def explain_unsafe_test(test: str) -> str | None:
    """Return what makes an assertion or alternative unsafe: long run time or outside access; None if it is safe.

    Only safe XPath is evaluated: no regular expressions, no ranges, no documents, one loop at most.
    """
    if len(test) > 4000:
        return "it is longer than 4000 characters"
    plain = _LITERAL.sub("''", test)
    for call in _CALL.findall(plain):
        if call.removeprefix("fn:") not in _SAFE_CALLS and not call.startswith(("xs:", "xsd:")):
            return f"it calls {call[:40]}"
    if re.search(r"[\w)\]]\s+to\s+[\w$(]", plain):
        return "it counts through a range"
    if len(_LOOP.findall(plain)) > 1:
        return "it has more than one loop"
    if plain.count("//") > 2:
        return "it searches all descendants more than twice"
    return None


def accepts_text(kind: Any, text: str) -> bool:
    """Return whether a simple type accepts a text.

    False also if the library fails on it, for example on a number that no float can hold.
    """
    try:
        return bool(kind.is_valid(text))
    except (ValueError, TypeError, ArithmeticError, KeyError, AttributeError):
        return False


def local_name(name: str) -> str:
    """Return a name without its namespace: `{urn:a}b` is `b`."""
    return name.rpartition("}")[2]


def type_name(kind: Any) -> str:
    """Return the local name of a type, `anonymous type` where it has none, '' for no type."""
    if kind is None:
        return ""
    return local_name(kind.name) if kind.name else "anonymous type"
