"""Names of formats and content types of documents. Pure.

The API leaves the names of formats open, so common spellings of installed formats are understood. Any other name is a
custom format, whose documents are kept unread.
"""

from __future__ import annotations

import re
from collections.abc import Container

from stele.apis.http.media_types import bare_media_type
from stele.core.decide.decision import check_name
from stele.core.model import OPAQUE_FORMAT, SchemaFormat, SchemaKind
from stele.errors import InvalidRequest

CUSTOM = "custom"
"""Name of the format of which nothing is known but that its documents are kept unread."""

_MAX_FORMAT_LENGTH = 200
_MAX_TYPE_LENGTH = 500
"""Characters of a format's name and of a content type."""

_ALIASES = {
    "jsonschema": "json",
    "proto": "protobuf",
    "xmlschema": "xsd",
    CUSTOM: OPAQUE_FORMAT,
}
_OUTPUT_NAMES = {"json": "json-schema", OPAQUE_FORMAT: CUSTOM}
_MEDIA_TYPES = {
    "application/vnd.apache.avro+json": "avro",
    "application/vnd.apache.avro.schema+json": "avro",
    "application/schema+json": "json",
    "text/vnd.ms.protobuf": "protobuf",
    "application/protobuf": "protobuf",
    "application/vnd.google.protobuf": "protobuf",
    "application/x-protobuf": "protobuf",
    "text/x-protobuf": "protobuf",
    "application/xsd+xml": "xsd",
    "application/x-thrift": "thrift",
    "text/x-thrift": "thrift",
}
"""Media types that mean one format; `application/json` and the like mean several."""

_CONTENT_TYPES = {
    "avro": "application/json;format=avro",
    "json": "application/schema+json",
    "xsd": "application/xml;format=xsd",
    OPAQUE_FORMAT: "application/octet-stream",
}
_AZURE_TYPES = {
    "avro": "application/json; serialization=Avro",
    "json": "application/json; serialization=Json",
    "protobuf": "text/vnd.ms.protobuf",
}
_AZURE_CUSTOM = "text/plain; charset=utf-8"

_PARAMETER = re.compile(r';\s*(?:format|serialization)\s*=\s*"?([^";]*)"?', re.IGNORECASE)
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_TYPE = re.compile(r"[\x20-\x7e\xa0-\xff]+\Z")


def parse_format_name(name: str, installed: Container[str]) -> SchemaFormat:
    """Return the format of a name such as `Avro`, `avro/1.11`, `json-schema`, `xsd11`, `proto3`, or a custom one.

    Raises `InvalidRequest` for a name that is empty or too long, `InvalidName`.
    """
    text = check_name(name.strip())
    if not text or len(text) > _MAX_FORMAT_LENGTH:
        raise InvalidRequest(f"a format has a name of 1 to {_MAX_FORMAT_LENGTH} characters")
    word = re.sub(r"[-_ ]", "", text.partition("/")[0].lower()).rstrip("0123456789.")
    known = _ALIASES.get(word, word)
    return SchemaFormat(known) if known in installed else SchemaFormat(OPAQUE_FORMAT, text)


def format_of_content_type(content_type: str, installed: Container[str]) -> SchemaFormat | None:
    """Return the format a content type names by a `format` or `serialization` parameter or by itself, else None."""
    parameter = _PARAMETER.search(content_type)
    named = _MEDIA_TYPES.get(bare_media_type(content_type), "")
    for name in (parameter[1] if parameter is not None else "", named):
        if name.strip() and len(name) <= _MAX_FORMAT_LENGTH:
            schema_format = parse_format_name(name, installed)
            if not schema_format.custom_format:
                return schema_format
    return None


def format_name(schema_format: SchemaFormat, written: str, installed: Container[str]) -> str:
    """Return the name of a format: as somebody wrote it, if that still means it."""
    if written and parse_format_name(written, installed) == schema_format:
        return written
    return schema_format.custom_format or _OUTPUT_NAMES.get(schema_format.format, schema_format.format)


def check_content_type(header: str) -> str:
    """Return a Content-Type header to keep. Raises `InvalidRequest` for one that cannot be sent back."""
    if header and (len(header) > _MAX_TYPE_LENGTH or not _TYPE.match(header)):
        raise InvalidRequest(f"the content type is no line of at most {_MAX_TYPE_LENGTH} printable characters")
    return header


def default_content_type(kind: SchemaKind, text: bytes) -> str:
    """Return the content type of a document that was sent without one."""
    if kind.format in _CONTENT_TYPES:
        return _CONTENT_TYPES[kind.format]
    if _BINARY.search(text):
        return f"application/octet-stream;format={kind.format}"
    return f"text/plain;charset=utf-8;format={kind.format}"


def azure_content_type(kind: SchemaKind, own_data: str) -> str:
    """Return the content type in Azure's spelling; the stored one where it differs in blanks or case only."""
    own = _AZURE_TYPES.get(kind.format, _AZURE_CUSTOM)
    return own_data if _without_blanks(own_data) == _without_blanks(own) else own


def _without_blanks(content_type: str) -> str:
    return content_type.replace(" ", "").lower()
