"""Validating documents: xmlschema under a lock, with nothing loaded on the way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from elementpath import ElementPathError
from xmlschema import XMLSchemaException

from stele.formats.xsd.parse import ParsedXsd
from stele.formats.xsd.text import NotXml, read

MAX_FAULTS = 50
"""Faults of one document that are told; more are counted only."""


def faults(parsed: ParsedXsd, text: bytes) -> list[str]:
    """Why a document does not fit: `/path: reason`, at most `MAX_FAULTS`; empty when it fits."""
    try:
        return list(_faults(parsed, text))
    except NotXml as error:
        place = f"line {error.line}, column {error.column}: " if error.line else ""
        return [f"/: {place}{error.why}"]


def _faults(parsed: ParsedXsd, text: bytes) -> Iterator[str]:
    root = read(text)
    with parsed.lock:
        try:
            found: Any = parsed.model.iter_errors(root, use_location_hints=False)
            for count, error in enumerate(found):
                if count == MAX_FAULTS:
                    yield "and more"
                    return
                yield f"{error.path or '/'}: {short(error.reason or error.message)}"
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
            yield f"/: {short(str(fault))}"


def is_valid(parsed: ParsedXsd, text: bytes) -> bool:
    """Whether a document fits."""
    try:
        return next(_faults(parsed, text), None) is None
    except NotXml:
        return False


def short(message: str) -> str:
    """A message of the library, bounded and on one line."""
    message = " ".join(message.split())
    return message if len(message) <= 300 else message[:300] + "…"
