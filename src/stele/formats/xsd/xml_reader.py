"""Reads untrusted XML: no document type, no entity, no file, no network, and all sizes are limited."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final
from xml.parsers import expat

from stele.errors import MalformedSchema, NotInstalled, UnresolvedReference

if TYPE_CHECKING:
    from lxml import etree

MAX_BYTES: Final = 8 * 1024 * 1024
"""Longest document that is parsed, in bytes."""

MAX_DEPTH: Final = 100
"""Deepest nesting of elements; keeps recursive walks far from the interpreter's limit."""

MAX_ELEMENTS: Final = 300_000
"""Most elements of a document."""

MAX_ATTRIBUTES: Final = 500
"""Most attributes of an element, declarations of namespaces included."""


class MalformedXml(ValueError):
    """Raised for bytes that are not XML, or XML that is refused here. Line and column count from 1, None if unknown."""

    def __init__(self, why: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.line = line
        self.column = column


class _SafetyScan:
    """One pass of expat, which knows positions and opens no file: refuses documents before a tree is built."""

    def __init__(self, text: bytes) -> None:
        self._parser = expat.ParserCreate()
        self._parser.StartDoctypeDeclHandler = self._on_doctype
        self._parser.StartElementHandler = self._on_start
        self._parser.EndElementHandler = self._on_end
        self._depth = 0
        self._open: list[str] = []
        self.starts: list[tuple[int, int]] = []
        try:
            self._parser.Parse(text, True)
        except expat.ExpatError as error:
            raise MalformedXml(self._explain_error(error.code), error.lineno, error.offset + 1) from None
        except (ValueError, LookupError) as error:
            raise error if isinstance(error, MalformedXml) else MalformedXml(f"not readable: {error}", 1, 1) from None

    def _explain_error(self, code: int) -> str:
        """Return a description of the error, and in which element it is."""
        reason = expat.ErrorString(code).removeprefix("not well-formed ").strip("()")
        inside = f" inside <{self._open[-1][:100]}>" if self._open else ""
        if reason == "mismatched tag":
            expected = self._open[-1][:100]
            return f"not well-formed: this does not close the innermost open element: </{expected}> is expected"
        if reason == "no element found":
            return f"not well-formed: the document ends{inside}" if inside else "there is no XML element"
        return f"not well-formed: {reason}{inside}"

    def _build_refusal(self, why: str) -> MalformedXml:
        return MalformedXml(why, self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1)

    def _on_doctype(self, *_declaration: object) -> None:
        raise self._build_refusal("a document type declaration (DTD) is not allowed: it could define entities")

    def _on_start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._open.append(name)
        self.starts.append((self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1))
        if self._depth > MAX_DEPTH:
            raise self._build_refusal(f"elements are nested deeper than {MAX_DEPTH} levels")
        if len(self.starts) > MAX_ELEMENTS:
            raise self._build_refusal(f"the document has more than {MAX_ELEMENTS} elements")
        if len(attributes) > MAX_ATTRIBUTES:
            raise self._build_refusal(f"an element has more than {MAX_ATTRIBUTES} attributes")

    def _on_end(self, _name: str) -> None:
        self._depth -= 1
        self._open.pop()


def read_document(text: bytes) -> etree._Element:
    """Return the root element of a document, with comments. Raises `MalformedXml`, `NotInstalled`."""
    try:
        from lxml import etree
    except ImportError:
        raise NotInstalled("lxml", "xsd") from None
    if len(text) > MAX_BYTES:
        raise MalformedXml(f"the document has {len(text)} bytes; the limit is {MAX_BYTES}")
    if not text.strip():
        raise MalformedXml("the document is empty", 1, 1)
    text = _strip_leading_blanks(text)
    _SafetyScan(text)
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, dtd_validation=False, huge_tree=False, remove_pis=True
    )
    try:
        return etree.fromstring(text, parser)
    except etree.XMLSyntaxError as error:
        line, column = error.position
        raise MalformedXml(f"not well-formed: {error.msg}", line, column) from None
    except (ValueError, LookupError) as error:
        raise MalformedXml(f"not readable: {error}") from None


def _strip_leading_blanks(text: bytes) -> bytes:
    """Return the text without blanks before its XML declaration, which pasted documents often have."""
    bare = text.lstrip(b" \t\r\n")
    return bare if bare.startswith(b"<?xml") else text


def list_element_starts(text: bytes) -> list[tuple[int, int]]:
    """Return line and column, from 1, of every element of a well-formed document, in the order of the text."""
    bare = _strip_leading_blanks(text)
    skipped = text[: len(text) - len(bare)].count(b"\n")
    return [(line + skipped, column) for line, column in _SafetyScan(bare).starts]


def read_schema(text: bytes) -> etree._Element:
    """Return the root of a schema document. Raises `MalformedSchema` with line and column."""
    try:
        root = read_document(text)
    except MalformedXml as error:
        raise MalformedSchema(error.why, line=error.line, column=error.column) from None
    if root.tag != "{http://www.w3.org/2001/XMLSchema}schema":
        raise MalformedSchema(
            f"the root element is {root.tag[:100]!r}",
            line=_source_line(root),
            column=1,
            expected="schema of the namespace http://www.w3.org/2001/XMLSchema",
        )
    return root


def _source_line(element: etree._Element) -> int | None:
    line: Any = element.sourceline
    return line if isinstance(line, int) else None


def shorten_message(message: str) -> str:
    """Return a message of the library, shortened and on one line."""
    message = " ".join(message.split())
    return message if len(message) <= 300 else message[:300] + "…"


class SourcePositions:
    """Start positions of the elements of several documents, computed on demand."""

    def __init__(self, documents: Iterable[tuple[etree._Element, bytes]]) -> None:
        self._texts = {id(root): text for root, text in documents}
        self._roots: dict[str, etree._Element] = {}

    def document_text(self, root: etree._Element) -> str:
        """Return a document as text for the library, which cannot use lxml's trees."""
        from lxml import etree

        for known, other in self._roots.items():
            if other is root:
                return known
        text = etree.tostring(root, encoding="unicode")
        self._roots[text] = root
        return text

    def find_twin(self, resource: Any, element: Any) -> etree._Element | None:
        """Return the lxml element for an element of the library's resource."""
        root = self._roots.get(resource.source) if isinstance(getattr(resource, "source", None), str) else None
        if root is None:
            return None
        mine = (one for one in root.iter("*"))
        theirs = (one for one in resource.root.iter() if isinstance(one.tag, str))
        return next((one for one, other in zip(mine, theirs, strict=False) if other is element), None)

    def find_position(self, element: etree._Element) -> tuple[int | None, int | None]:
        """Return line and column, from 1; None for an element of an unknown document."""
        root = element.getroottree().getroot()
        text = self._texts.get(id(root))
        if text is None:
            return None, None
        for index, other in enumerate(root.iter("*")):
            if other is element:
                return list_element_starts(text)[index]
        return _source_line(element), None

    def build_fault(self, element: etree._Element, why: str, expected: str | None = None) -> MalformedSchema:
        """Return the error for a refused element."""
        line, column = self.find_position(element)
        path = element.getroottree().getpath(element)
        return MalformedSchema(why, line=line, column=column, path=path, expected=expected)

    def build_unresolved(self, element: etree._Element, why: str) -> UnresolvedReference:
        """Return the error for a reference without target."""
        line, column = self.find_position(element)
        expected = "a reference named by that schemaLocation or by its namespace"
        return UnresolvedReference(why, line=line, column=column, expected=expected)
