"""Parsing: turns the text of a schema into a valid model, using only the given references."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from stele.errors import MalformedSchema, NotInstalled, UnresolvedReference
from stele.formats.xsd.xml_reader import SourcePositions, read_schema, shorten_message

if TYPE_CHECKING:
    from lxml import etree

MAX_SCHEMA_ELEMENTS: Final = 20_000
"""Most elements of a schema and its references together."""

MAX_SIZE: Final = 6_000
"""Most components of a schema and its references together: elements outside annotations, and members of unions.

The library takes about a quarter of a millisecond for each; patterns count by their length (see `_component_weight`).
"""

MAX_PARTICLES: Final = 1_500
"""Most particles of one content model, groups and base types expanded: checking a model takes quadratic time."""

MAX_DERIVATIONS: Final = 60
"""Longest chain of types derived from one another, and deepest nesting of groups through references."""

MAX_PATTERN_STEPS: Final = 500_000
"""Budget for reading the patterns of a schema and for matching defaults, fixed values and enumerations with them."""

_RETRIED: Final = 2_000
"""Most elements of a schema that is tried as 1.1 after it failed as 1.0."""

_XS: Final = "{http://www.w3.org/2001/XMLSchema}"
_NEW_IN_11: Final = frozenset(
    _XS + name
    for name in (
        *("assert", "assertion", "alternative", "openContent", "defaultOpenContent", "override", "explicitTimezone"),
    )
)
_NEW_ATTRIBUTES: Final = frozenset({"notNamespace", "notQName", "defaultAttributes", "xpathDefaultNamespace"})
_VERSION: Final = "{http://www.w3.org/2007/XMLSchema-versioning}minVersion"


class ParsedXsd:
    """A parsed schema. Immutable by convention, safe to share: `lock` guards the mutable state of xmlschema.

    model       xmlschema's object for the document with everything it includes and imports
    root        the document itself as a tree
    references  the reference texts' trees by name
    version     `1.0` or `1.1`
    """

    __slots__ = ("lock", "model", "references", "root", "version")

    def __init__(
        self, model: Any, root: etree._Element, references: Mapping[str, etree._Element], version: str
    ) -> None:
        self.model = model
        self.root = root
        self.references = references
        self.version = version
        self.lock = threading.RLock()

    @property
    def type_name(self) -> str:
        """`{namespace}name` of the first global element of the document, or ''."""
        for child in self.root:
            if child.tag == _XS + "element":
                namespace = self.root.get("targetNamespace")
                return f"{{{namespace}}}{child.get('name')}" if namespace else child.get("name", "")
        return ""


def parse(text: bytes, references: Mapping[str, bytes], *, name: str = "") -> ParsedXsd:
    """Parse one document. `references` map a schemaLocation or a namespace to a text.

    Raises `MalformedSchema` and `UnresolvedReference`, with line and column if the position is known.
    """
    root = read_schema(text)
    roots = {label: _read_reference(label, body) for label, body in references.items()}
    places = SourcePositions([(root, text), *((tree, references[label]) for label, tree in roots.items())])
    try:
        import xmlschema  # noqa: F401 - to tell what is missing
    except ImportError:
        raise NotInstalled("xmlschema", "xsd") from None
    size = _check_limits([root, *roots.values()], places)
    newer = any(_is_newer(tree) for tree in (root, *roots.values()))
    try:
        return _build_parsed(root, roots, places, name, "1.1" if newer else "1.0")
    except UnresolvedReference:
        raise
    except MalformedSchema as error:
        if newer or size > _RETRIED:
            raise
        try:
            return _build_parsed(root, roots, places, name, "1.1")
        except MalformedSchema:
            raise error from None


def _read_reference(label: str, text: bytes) -> etree._Element:
    try:
        return read_schema(text)
    except MalformedSchema as error:
        why = f"reference {label!r}: {error.why}"
        raise MalformedSchema(why, line=error.line, column=error.column, expected=error.expected) from None


def _is_newer(root: etree._Element) -> bool:
    if root.get(_VERSION, "1.0") > "1.0":
        return True
    return any(
        element.tag in _NEW_IN_11 or not _NEW_ATTRIBUTES.isdisjoint(element.keys()) for element in root.iter("*")
    )


def _build_parsed(
    root: etree._Element, roots: Mapping[str, etree._Element], places: SourcePositions, name: str, version: str
) -> ParsedXsd:
    from elementpath import ElementPathError
    from xmlschema import XMLSchemaException
    from xmlschema.validators import XMLSchemaModelDepthError

    from stele.formats.terms import BudgetExceeded, share_budget
    from stele.formats.xsd.xmlschema_adapter import build_schema

    try:
        with share_budget(MAX_PATTERN_STEPS):
            model = build_schema(root, roots, places, name=name, version=version)
        return ParsedXsd(model, root, roots, version)
    except BudgetExceeded:
        raise MalformedSchema("the patterns are too entangled to be checked against the values next to them") from None
    except XMLSchemaModelDepthError:
        raise MalformedSchema("groups are nested too deep") from None
    except XMLSchemaException as error:
        raise _explain_error(error, places) from None
    except RecursionError:
        raise MalformedSchema("definitions are nested, or derived from one another, too deep") from None
    except (
        ElementPathError,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        ArithmeticError,
        AssertionError,
    ) as error:
        # The library fails with these on invalid schemas that it does not check: refuse the schema.
        raise MalformedSchema(f"the schema cannot be understood: {shorten_message(str(error))}") from None


def _explain_error(error: Any, places: SourcePositions) -> MalformedSchema:
    from stele.formats.xsd.xmlschema_adapter import rephrase_message

    element = getattr(error, "elem", None)
    message = shorten_message((getattr(error, "message", None) or str(error)).partition("Schema component:")[0])
    twin = None if element is None else places.find_twin(getattr(error, "source", None), element)
    why, expected = rephrase_message(message)
    return MalformedSchema(why, expected=expected) if twin is None else places.build_fault(twin, why, expected)


# --- limits that are checked before a model is built ------------------------------------------------------------------


def _check_limits(roots: list[etree._Element], places: SourcePositions) -> int:
    """Raise `MalformedSchema` for a schema that would take the library too long, else return the number of elements."""
    from stele.formats.xsd.xmlschema_adapter import explain_unsafe_test

    count = sum(1 for root in roots for _ in root.iter("*"))
    if count > MAX_SCHEMA_ELEMENTS:
        raise MalformedSchema(f"the schema has {count} elements; the limit is {MAX_SCHEMA_ELEMENTS}")
    size = sum(_component_weight(element) for root in roots for element in root.iter("*"))
    size -= sum(1 for root in roots for note in root.iter(_XS + "annotation") for _ in note.iter("*"))
    if size > MAX_SIZE:
        raise MalformedSchema(
            f"the schema has {size} components, counting patterns by their length; the limit is {MAX_SIZE}"
        )
    for root in roots:
        for element in root.iter("*"):
            _limit_element(element, explain_unsafe_test(element.get("test") or ""), places)
    _ContentSizes(roots, places).check_sizes()
    return count


def _component_weight(element: etree._Element) -> int:
    """Return how much of `MAX_SIZE` an element takes."""
    if element.tag == _XS + "pattern":
        return 10 + len(element.get("value") or "") // 10
    return 1 + len((element.get("memberTypes") or "").split())


def _limit_element(element: etree._Element, unsafe: str | None, places: SourcePositions) -> None:
    if unsafe:
        raise places.build_fault(element, f"the test is not evaluated here: {unsafe}", "simple comparisons in XPath")
    if len(element.get("xpath") or "") > 1000:
        raise places.build_fault(element, "the path is longer than 1000 characters")
    for bound in ("minOccurs", "maxOccurs"):
        if len(element.get(bound) or "") > 12:
            raise places.build_fault(element, f"{bound} is too great")
    if element.tag in _ENDS and len(element.get("value") or "") > 400:
        raise places.build_fault(element, "the value is too long")
    if element.tag in _COUNTS and len((element.get("value") or "").strip()) > 12:
        raise places.build_fault(element, "the value is too great")


_ENDS: Final = frozenset(_XS + end + kind for end in ("min", "max") for kind in ("Inclusive", "Exclusive"))
_COUNTS: Final = frozenset(_XS + name for name in ("length", "minLength", "maxLength", "totalDigits", "fractionDigits"))


class _ContentSizes:
    """Sizes of content models after expansion. Names are compared without namespace, which can only overestimate."""

    def __init__(self, roots: list[etree._Element], places: SourcePositions) -> None:
        self._places = places
        self._named: dict[tuple[str, str], list[etree._Element]] = {}
        for root in roots:
            for element in self._list_definitions(root):
                kind = element.tag.rpartition("}")[2]
                kind = "type" if kind.endswith("Type") else kind
                self._named.setdefault((kind, element.get("name", "")), []).append(element)
        self._known: dict[tuple[str, str], tuple[int, int]] = {}
        self._roots = roots

    @staticmethod
    def _list_definitions(root: etree._Element) -> Iterator[etree._Element]:
        kinds = {_XS + kind for kind in ("group", "complexType", "simpleType", "attributeGroup")}
        for child in root:
            if child.tag in kinds:
                yield child
            elif child.tag in (_XS + "redefine", _XS + "override"):
                yield from (inner for inner in child if inner.tag in kinds)

    def check_sizes(self) -> None:
        """Raise `MalformedSchema` for a content model beyond the limits."""
        for key, elements in self._named.items():
            size, depth = self._named_size(key, ())
            if size > MAX_PARTICLES:
                raise self._places.build_fault(
                    elements[0], f"{key[1]!r} has more than {MAX_PARTICLES} particles when expanded"
                )
            if depth > MAX_DERIVATIONS:
                raise self._places.build_fault(
                    elements[0], f"{key[1]!r} is derived over more than {MAX_DERIVATIONS} steps"
                )
        for root in self._roots:
            for element in root.iter(_XS + "complexType"):
                if self._definition_size(element, ())[0] > MAX_PARTICLES:
                    raise self._places.build_fault(
                        element, f"a type has more than {MAX_PARTICLES} particles when expanded"
                    )

    def _named_size(self, key: tuple[str, str], above: tuple[tuple[str, str], ...]) -> tuple[int, int]:
        if key in above or key not in self._named:
            return 0, 0
        if key not in self._known:
            if len(above) > MAX_DERIVATIONS:
                return 0, MAX_DERIVATIONS + 1
            sizes = [self._definition_size(element, (*above, key)) for element in self._named[key]]
            self._known[key] = max(size for size, _ in sizes), 1 + max(depth for _, depth in sizes)
        return self._known[key]

    def _definition_size(self, element: etree._Element, above: tuple[tuple[str, str], ...]) -> tuple[int, int]:
        """Return particles and depth inside one definition; elements are counted but not entered."""
        size, depth = 0, 0
        pending = list(element)
        while pending:
            inner = pending.pop()
            kind = inner.tag.rpartition("}")[2] if isinstance(inner.tag, str) else ""
            if kind in ("element", "any", "attribute"):
                size += 1
                continue
            key = None
            if kind in ("group", "attributeGroup"):
                key = (kind, inner.get("ref", "").rpartition(":")[2])
            elif kind in ("extension", "restriction"):
                key = ("type", inner.get("base", "").rpartition(":")[2])
            if key is not None:
                more, deeper = self._named_size(key, above)
                size += more
                depth = max(depth, deeper)
            pending.extend(inner)
        return size, depth


_LINKS = tuple(f"{{http://www.w3.org/2001/XMLSchema}}{word}" for word in ("import", "include", "override", "redefine"))


def list_imports(text: bytes) -> list[str]:
    """Return the schema locations in the document."""
    locations = (element.get("schemaLocation", "").strip() for element in read_schema(text).iterchildren(*_LINKS))
    return list(dict.fromkeys(location for location in locations if location))


def list_exports(text: bytes) -> list[str]:
    """Return the target namespace, by which an import without a location refers to the document."""
    namespace = read_schema(text).get("targetNamespace", "")
    return [namespace] if namespace else []
