"""Validating documents: xmlschema under a lock, with nothing loaded on the way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from elementpath import ElementPathError
from xmlschema import XMLSchemaException

from stele.formats.xsd.parse import ParsedXsd
from stele.formats.xsd.text import MalformedXml, read_document

MAX_FAULTS = 50
"""Faults of one document that are told; more are counted only."""


def find_faults(parsed: ParsedXsd, text: bytes) -> list[str]:
    """Why a document does not fit: `/path: reason`, at most `MAX_FAULTS`; empty when it fits."""
    try:
        return list(_iterate_faults(parsed, text))
    except MalformedXml as error:
        place = f"line {error.line}, column {error.column}: " if error.line else ""
        return [f"/: {place}{error.why}"]


def _iterate_faults(parsed: ParsedXsd, text: bytes) -> Iterator[str]:
    root = read_document(text)
    with parsed.lock:
        try:
            found: Any = parsed.model.iter_errors(root, use_location_hints=False)
            for count, error in enumerate(found):
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
            # The library meets something it does not expect: such a document is not known to fit.
            yield f"/: {shorten_message(str(fault))}"


def is_valid(parsed: ParsedXsd, text: bytes) -> bool:
    """Whether a document fits."""
    try:
        return next(_iterate_faults(parsed, text), None) is None
    except MalformedXml:
        return False


def shorten_message(message: str) -> str:
    """A message of the library, bounded and on one line."""
    message = " ".join(message.split())
    return message if len(message) <= 300 else message[:300] + "…"
