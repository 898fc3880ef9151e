"""CloudEvents 1.0 with schemas: an event names the schema of its data by the URI `dataschema`.

Binary mode has the plain data as body and the attributes in the headers of the message (`ce_dataschema` on Kafka,
`ce-dataschema` over HTTP). Structured mode is one JSON document with the data inside, with the content type
`application/cloudevents+json`. Data in a structured event are a JSON value in `data`, or base64 in `data_base64`.

Source: docs/protocols/cloudevents.md.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error as NoBase64
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote
from uuid import UUID

import msgspec

from stele.core.json_depth import MAX_JSON_DEPTH, is_nested_deeper
from stele.errors import FrameError

STRUCTURED: Final = "application/cloudevents+json"
"""Content type of structured events in JSON."""
PREFIXES: Final = ("ce_", "ce-")
"""Prefixes of attributes as headers: on Kafka, and over HTTP."""

_BASE64: Final = "data_base64"


class Event(NamedTuple):
    """A parsed event: the URI of the schema ('' if it names none), the data, and the other attributes."""

    dataschema: str
    data: bytes
    attributes: Mapping[str, str]


def is_structured(content_type: str) -> bool:
    """Return whether a content type is that of a structured event in JSON."""
    return content_type.partition(";")[0].strip().lower() == STRUCTURED


def read_structured(document: bytes | memoryview) -> Event:
    """Return a structured event. Raises `FrameError` for any other document.

    JSON data are returned as they were written.
    """
    if is_nested_deeper(bytes(document)):
        raise FrameError(f"not a structured CloudEvent: it is nested deeper than {MAX_JSON_DEPTH} levels")
    try:
        event = msgspec.json.decode(document, type=dict[str, msgspec.Raw])
        members = {name: msgspec.json.decode(value) for name, value in event.items() if name != "data"}
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise FrameError(f"not a structured CloudEvent: {error}") from None
    if not isinstance(members.get("specversion"), str):
        raise FrameError("not a structured CloudEvent: it has no specversion")
    attributes = {name: value for name, value in members.items() if name != _BASE64 and isinstance(value, str)}
    data = _from_base64(members[_BASE64]) if _BASE64 in members else bytes(event.get("data", b""))
    return Event(attributes.pop("dataschema", ""), data, attributes)


def read_binary(data: bytes | memoryview, headers: Mapping[str, bytes | str]) -> Event:
    """Return an event in binary mode from its headers. Their names are compared without case."""
    attributes: dict[str, str] = {}
    for name, value in headers.items():
        lowered = name.lower()
        text = value if isinstance(value, str) else bytes(value).decode("utf-8", "replace")
        if lowered.startswith(PREFIXES):
            attributes[lowered[3:]] = text
        elif lowered == "content-type":
            attributes["datacontenttype"] = text
    return Event(attributes.pop("dataschema", ""), bytes(data), attributes)


def structured_event(dataschema: str, data: bytes, attributes: Mapping[str, str], *, is_json: bool) -> bytes:
    """Return a structured event; attributes must have id, source and type. Raises `FrameError`.

    is_json   the data are a JSON text, which is inserted as JSON; otherwise they are inserted as base64
    """
    event: dict[str, Any] = {"specversion": "1.0", **_require_attributes(attributes), "dataschema": dataschema}
    if is_json:
        event["data"] = msgspec.Raw(data)
    else:
        event["data_base64"] = b64encode(data).decode()
    return msgspec.json.encode(event)


def event_headers(dataschema: str, attributes: Mapping[str, str], *, prefix: str = PREFIXES[0]) -> dict[str, bytes]:
    """Return the headers of an event in binary mode; attributes must have id, source and type. Raises `FrameError`."""
    headers = {"specversion": "1.0", **_require_attributes(attributes), "dataschema": dataschema}
    content_type = headers.pop("datacontenttype", "")
    prefixed_headers = {prefix + name: value.encode() for name, value in headers.items()}
    return {"content-type": content_type.encode(), **prefixed_headers} if content_type else prefixed_headers


class DataSchemaTarget(NamedTuple):
    """The target of a registry's `dataschema`: an id, a guid, or a version ('latest' too) of a subject."""

    id: int | None = None
    guid: UUID | None = None
    subject: str = ""
    version: str = ""


_ID = re.compile(r"(?:^|/)schemas/ids/(\d{1,10})(?:/schema)?/?$")
_GUID = re.compile(r"(?:^|/)schemas/guids/([0-9a-fA-F-]{32,36})/?$")
_VERSION = re.compile(r"(?:^|/)subjects/([^/]+)/versions/(\d{1,10}|latest)(?:/schema)?/?$")
_GROUP = re.compile(r"(?:^|/)schemagroups/[^/]+/schemas/([^/]+)(?:/versions/(\d{1,10}|latest))?/?$")


def parse_dataschema(dataschema: str) -> DataSchemaTarget | None:
    """Return the target of a registry's URI, by the paths of the Confluent and CNCF APIs; None for any other URI."""
    path = re.split(r"[?#]", dataschema, maxsplit=1)[0]
    if match := _ID.search(path):
        return DataSchemaTarget(id=int(match[1]))
    if match := _GUID.search(path):
        try:
            return DataSchemaTarget(guid=UUID(match[1]))
        except ValueError:
            return None
    if match := _VERSION.search(path) or _GROUP.search(path):
        return DataSchemaTarget(subject=unquote(match[1]), version=match[2] or "latest")
    return None


def _from_base64(text: object) -> bytes:
    try:
        return b64decode(text if isinstance(text, str) else b"?", validate=True)
    except (NoBase64, ValueError):
        raise FrameError("the data of the event are not base64") from None


def _require_attributes(attributes: Mapping[str, str]) -> Mapping[str, str]:
    missing = [name for name in ("id", "source", "type") if not attributes.get(name)]
    if missing:
        raise FrameError(f"an event needs the attributes id, source and type; {', '.join(missing)} is missing")
    return attributes
