"""Formats and content types: which language a document is in, and what its type is called. Pure.

Nobody defines the names of formats, so common spellings are read for those that are installed; any other name is a
format of the client's own, whose documents are kept unread.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import NamedTuple

from stele.apis.http.media_types import bare_media_type
from stele.core.decide.decision import check_name
from stele.core.model import SchemaKind
from stele.errors import InvalidRequest

OPAQUE = "opaque"
CUSTOM = "custom"
"""Name of the format that says nothing but that documents are kept unread."""

_LONGEST_FORMAT = 200
_LONGEST_TYPE = 500
"""Characters of a format's name and of a content type."""

_SPELLED = {
    "jsonschema": "json",
    "proto": "protobuf",
    "xmlschema": "xsd",
    CUSTOM: OPAQUE,
}
_SHOWN = {"json": "json-schema", OPAQUE: CUSTOM}
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
"""Media types that mean one language; `application/json` and the like mean several."""

_CONTENT_TYPES = {
    "avro": "application/json;format=avro",
    "json": "application/schema+json",
    "xsd": "application/xml;format=xsd",
    OPAQUE: "application/octet-stream",
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


class Language(NamedTuple):
    """A format of the core, and the name of a client's own that is kept unread."""

    format: str
    custom_format: str = ""


def language_in(name: str, installed: Container[str]) -> Language:
    """The language a format's name means: `Avro`, `avro/1.11`, `json-schema`, `xsd11`, `proto3`, or one's own.

    Raises `InvalidRequest` for a name that is empty or too long, `InvalidName`.
    """
    text = check_name(name.strip())
    if not text or len(text) > _LONGEST_FORMAT:
        raise InvalidRequest(f"a format has a name of 1 to {_LONGEST_FORMAT} characters")
    word = re.sub(r"[-_ ]", "", text.partition("/")[0].lower()).rstrip("0123456789.")
    known = _SPELLED.get(word, word)
    return Language(known) if known in installed else Language(OPAQUE, text)


def language_of_type(content_type: str, installed: Container[str]) -> Language | None:
    """The language a content type names, by a `format` or `serialization` parameter or by itself; None: none known."""
    parameter = _PARAMETER.search(content_type)
    named = _MEDIA_TYPES.get(bare_media_type(content_type), "")
    for name in (parameter[1] if parameter is not None else "", named):
        if name.strip() and len(name) <= _LONGEST_FORMAT:
            language = language_in(name, installed)
            if not language.custom_format:
                return language
    return None


def language_of(lane: SchemaKind) -> Language:
    """The language of a version."""
    return Language(lane.format, lane.custom_format)


def name_of(language: Language, written: str, installed: Container[str]) -> str:
    """The name of a language: as somebody wrote it, when that means it."""
    if written and language_in(written, installed) == language:
        return written
    return language.custom_format or _SHOWN.get(language.format, language.format)


def content_type_in(header: str) -> str:
    """A Content-Type header to keep. Raises `InvalidRequest` for one that cannot be sent back."""
    if header and (len(header) > _LONGEST_TYPE or not _TYPE.match(header)):
        raise InvalidRequest(f"the content type is no line of at most {_LONGEST_TYPE} printable characters")
    return header


def content_type_of(lane: SchemaKind, text: bytes) -> str:
    """The type of a document nobody gave one."""
    if lane.format in _CONTENT_TYPES:
        return _CONTENT_TYPES[lane.format]
    if _BINARY.search(text):
        return f"application/octet-stream;format={lane.format}"
    return f"text/plain;charset=utf-8;format={lane.format}"


def azure_type_of(lane: SchemaKind, kept: str) -> str:
    """The type as the Azure flavour calls it; as it was sent, when that is only spelled otherwise."""
    own = _AZURE_TYPES.get(lane.format, _AZURE_CUSTOM)
    return kept if _squeezed(kept) == _squeezed(own) else own


def _squeezed(content_type: str) -> str:
    return content_type.replace(" ", "").lower()
