"""Encodes, decodes and validates XML documents. The payload is a UTF-8 document without an XML declaration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from elementpath import ElementPathError
from lxml import etree
from xmlschema import XMLSchemaException

from stele.errors import DecodeError, EncodeError
from stele.formats.terms import Algebra, BudgetExceeded
from stele.formats.xsd.content import SchemaSide
from stele.formats.xsd.instances import DocumentBuilder, ElementContent, InstanceStyle, NoDocument
from stele.formats.xsd.parse import ParsedXsd
from stele.formats.xsd.xml_reader import MalformedXml, read_document, shorten_message

MAX_FAULTS = 50
"""Most faults of one document that are listed. Further ones are only counted."""


def find_faults(parsed: ParsedXsd, text: bytes) -> list[str]:
    """Return why a document is invalid: `/path: reason`, at most `MAX_FAULTS`. Empty when it is valid."""
    try:
        return list(_iterate_faults(parsed, text))
    except MalformedXml as error:
        place = f"line {error.line}, column {error.column}: " if error.line else ""
        return [f"/: {place}{error.why}"]


def _iterate_faults(parsed: ParsedXsd, text: bytes) -> Iterator[str]:
    root = read_document(text)
    with parsed.lock:
        try:
            errors: Any = parsed.model.iter_errors(root, use_location_hints=False)
            for count, error in enumerate(errors):
                if count == MAX_FAULTS:
                    yield "and more"
                    return
                yield f"{error.path or '/'}: {shorten_message(error.reason or error.message)}"
        except RecursionError:
            yield "/: the document is nested too deep"
        except (
            XMLSchemaException,
            ElementPathError,
            ValueError,
            TypeError,
            KeyError,
            AttributeError,
            ArithmeticError,
        ) as fault:
            # The library failed on unexpected content: such a document does not count as valid.
            yield f"/: {shorten_message(str(fault))}"


def is_valid(parsed: ParsedXsd, text: bytes) -> bool:
    """Return whether a document fits."""
    try:
        return next(_iterate_faults(parsed, text), None) is None
    except MalformedXml:
        return False


_FAULTS: Final = (
    XMLSchemaException,
    ElementPathError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""Exceptions that the library raises on unexpected data."""

_DEPTH: Final = 60


class XsdCodec:
    """Codec of one schema.

    writer  written data must be valid for it
    reader  data that is read must be valid for it (the writer's when None)

    A datum is a document (str or bytes), or a dict with the root's name as its only key, in xmlschema's default
    convention: attributes `@name`, text `$`, repeated elements as lists, prefixes as declared by `@xmlns:prefix`.
    Decoded numbers are int, Decimal or float; dates stay text. Schema locations in documents are ignored.
    """

    def __init__(self, writer: ParsedXsd, reader: ParsedXsd | None = None) -> None:
        self._writer = writer
        self._reader = reader or writer

    def encode(self, datum: Any) -> bytes:
        """Return the valid document of a datum. Raises `EncodeError`."""
        text = self._to_document(datum)
        faults = find_faults(self._writer, text)
        if faults:
            raise EncodeError("; ".join(faults))
        return text

    def decode(self, data: bytes) -> Any:
        """Return the dict of a valid document. Raises `DecodeError`."""
        faults = find_faults(self._reader, data)
        if faults:
            raise DecodeError("; ".join(faults))
        try:
            root = read_document(data)
            with self._reader.lock:
                return self._reader.model.to_dict(
                    root, use_location_hints=False, preserve_root=True, decimal_type=None, datetime_types=False
                )
        except MalformedXml as error:
            raise DecodeError(error.why) from None
        except _FAULTS as error:
            raise DecodeError(shorten_message(str(error))) from None

    def validate(self, datum: Any) -> list[str]:
        """Return why a datum does not fit the writer's schema: `/path: reason`, some fifty at most."""
        try:
            return find_faults(self._writer, self._to_document(datum))
        except EncodeError as error:
            return [f"/: {error}"]

    def example(self) -> Any:
        """Return a small valid document as text. Raises `EncodeError` when none is found."""
        side = SchemaSide(self._writer.model, Algebra(), strict=False)
        builder = DocumentBuilder(side)
        with self._writer.lock:
            for name, element in side.elements.items():
                kind = None if element.abstract else builder.concrete_type(element.type)
                if kind is None:
                    continue
                for style in (InstanceStyle(1, True), InstanceStyle()):
                    try:
                        root = builder.build_element(name, element, kind, ElementContent(), style)
                    except (NoDocument, BudgetExceeded):
                        continue
                    text = etree.tostring(root, encoding="unicode")
                    if is_valid(self._writer, text.encode()):
                        return text
        raise EncodeError("no small document was found that fits the schema")

    def _to_document(self, datum: Any) -> bytes:
        """Return the document of a datum, not yet validated. Raises `EncodeError`."""
        if isinstance(datum, str):
            return datum.encode("utf-8", "replace")
        if isinstance(datum, bytes | bytearray | memoryview):
            return bytes(datum)
        if not isinstance(datum, dict) or len(datum) != 1:
            raise EncodeError("a datum is a document as text or bytes, or a dict with the root's name as its only key")
        if _is_deeper_than(datum, _DEPTH):
            raise EncodeError(f"the datum is nested deeper than {_DEPTH} levels")
        return self._from_dict(datum)

    def _from_dict(self, datum: dict[str, Any]) -> bytes:
        name = next(iter(datum))
        inner = datum[name]
        namespaces = {}
        if isinstance(inner, dict):
            namespaces = {
                key.partition(":")[2]: value
                for key, value in inner.items()
                if isinstance(value, str) and (key == "@xmlns" or str(key).startswith("@xmlns:"))
            }
        try:
            with self._writer.lock:
                root = self._writer.model.encode(
                    datum,
                    path=_expand_name(str(name), namespaces),
                    namespaces=namespaces,
                    preserve_root=True,
                    indent=0,
                    etree_element_class=etree.Element,
                )
            return etree.tostring(root, encoding="utf-8", xml_declaration=False)
        except _FAULTS as error:
            raise EncodeError(shorten_message(str(error))) from None


def _expand_name(name: str, namespaces: dict[str, str]) -> str:
    if name.startswith("{"):
        return name
    prefix, colon, rest = name.rpartition(":")
    space = namespaces.get(prefix if colon else "", "")
    return f"{{{space}}}{rest}" if space else rest


def _is_deeper_than(datum: Any, limit: int) -> bool:
    """Return whether containers are nested deeper than limit, without recursion; also True for cycles."""
    level: list[Any] = [datum]
    for _ in range(limit + 1):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item.values())
            elif isinstance(item, list | tuple):
                below.extend(item)
        if not below:
            return False
        level = below[:100_000]
    return True
