"""Parsed schemas: from a registry's answer to a form that a format can use."""

from __future__ import annotations

from typing import Any, NamedTuple

from stele.client.snapshot import ResolvedSchema
from stele.core.ports import Format
from stele.errors import FormatMismatch, MalformedSchema
from stele.formats.registry import get_format


class ParsedSchema(NamedTuple):
    """A schema, its format, and the parsed form only that format understands."""

    schema: ResolvedSchema
    format: Format[Any]
    parsed: Any


def parse_schema(schema: ResolvedSchema) -> ParsedSchema:
    """Parse a schema. A schema that a registry has accepted is parsed even if current rules are stricter.

    Raises `UnknownFormat`, `MalformedSchema`.
    """
    schema_format = get_format(schema.schema_type)
    references = {name: _encode_utf8(text) for name, text in schema.references.items()}
    return ParsedSchema(schema, schema_format, schema_format.parse(_encode_utf8(schema.text), references, strict=False))


def _encode_utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise MalformedSchema(f"the text cannot be written in UTF-8: {error.reason}") from None


def require_type(schema: ResolvedSchema, schema_type: str) -> None:
    """Raise `FormatMismatch` unless the schema is of that type."""
    if schema.schema_type != schema_type:
        what = f"schema {schema.id or schema.guid or schema.subject}"
        raise FormatMismatch(f"{what} is of type {schema.schema_type}, not {schema_type}")
