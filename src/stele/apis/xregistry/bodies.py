"""Entities and documents in bodies, and the attributes of a version in headers beside its document.

Source: docs/protocols/xregistry.md#headers
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes

import msgspec
from litestar import Request

from stele.apis.http.requests import read_body, read_bytes
from stele.apis.xregistry.attributes import VERSION_ATTRIBUTES, is_id, parse_value
from stele.apis.xregistry.errors import RegistryError
from stele.apis.xregistry.translate import resolve_format
from stele.core.json_depth import is_nested_deeper

Members = Mapping[str, msgspec.Raw]
"""An entity in a request: its members, not yet decoded."""

_JSON_FORMATS: Final = frozenset({"avro", "json"})


async def read_object(request: Request[Any, Any, Any]) -> Members:
    """Return the members of the JSON object in a request. Headers must not contain members.

    Raises:
        RegistryError: `missing_body`, `extra_xregistry_header`.
        NotJson: The body is not JSON.
        WrongShape: The body is no object.
    """
    require_no_headers(request.scope["headers"])
    if not (await read_bytes(request)).strip():
        raise RegistryError("missing_body")
    return await read_body(request, dict[str, msgspec.Raw])


async def read_optional_map(request: Request[Any, Any, Any]) -> Mapping[str, Members] | None:
    """Return the entities in a request that deletes, by id; None if it has no body."""
    if not (await read_bytes(request)).strip():
        return None
    return await read_body(request, dict[str, dict[str, msgspec.Raw]])


def read_members(raw: Any, name: str, xid: str) -> Members:
    """Return the members of an object in a request. Raises `RegistryError` for anything else."""
    try:
        return msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        raise RegistryError("bad_request", xid, error_detail=f"{name!r} is an object") from None


def read_map(raw: Any, name: str, xid: str) -> Mapping[str, Members]:
    """Return the entities of a map in a request by id. Raises `RegistryError` for anything else."""
    if raw is None or is_null(raw):
        return {}
    try:
        return msgspec.json.decode(raw, type=dict[str, dict[str, msgspec.Raw]])
    except msgspec.DecodeError:
        raise RegistryError("bad_request", xid, error_detail=f"{name!r} is a map of objects") from None


def has_value(body: Mapping[str, Any], name: str) -> bool:
    """Return whether a request has a member that is not null."""
    return name in body and not is_null(body[name])


def is_null(value: Any) -> bool:
    """Return whether a member of a request is null."""
    return value is None or (isinstance(value, msgspec.Raw) and bytes(value) == b"null")


def decode_base64(text: Any, xid: str) -> bytes:
    """Return the bytes of a document in base64. Raises `RegistryError` (`invalid_attribute`)."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise RegistryError("invalid_attribute", xid, name="schemabase64", error_detail="it is not base64") from None


def read_document(raw: Any, format_name: str, installed: Collection[str]) -> bytes:
    """Return the document in a JSON value: the text of a string, the JSON of any other value.

    In a format that is JSON, a string that is not JSON itself stays a JSON string.
    """
    data = bytes(raw)
    value = parse_value(msgspec.Raw(data))
    if not isinstance(value, str):
        return data
    text = value.encode("utf-8", "surrogatepass")
    if resolve_format(format_name, installed).format in _JSON_FORMATS and not is_nested_deeper(text):
        try:
            msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return data  # The name of a type is JSON only with its quotes.
    return text


def check_reference(xref: Any, xid: str) -> str:
    """Return the XID of the schema that a cross reference names. Raises `RegistryError` (`malformed_xref`)."""
    parts = xref.split("/") if isinstance(xref, str) else []
    if len(parts) != 5 or parts[0] or (parts[1], parts[3]) != ("schemagroups", "schemas"):
        raise RegistryError(
            "malformed_xref",
            xid,
            xref=str(xref)[:200],
            error_detail="it must have the form /schemagroups/ID/schemas/ID",
        )
    if not is_id(parts[2]) or not is_id(parts[4]) or xref == xid:
        raise RegistryError("malformed_xref", xid, xref=xref[:200], error_detail="it does not lead to a schema")
    return str(xref)


PREFIX: Final = "xRegistry-"
"""Prefix of attribute names in headers."""
_DELETED: Final = "null"
_PRINTABLE: Final = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_INVISIBLE: Final = frozenset({"contenttype", "schema", "schemabase64", "meta", "versions"})


def encode_value(value: Any) -> str:
    """Return a scalar as the value of a header."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return quote(text, safe=_PRINTABLE)


def decode_value(raw: str, name: str) -> str:
    """Return the text of a header. Raises `RegistryError` (`header_error`) for bytes that are no UTF-8."""
    try:
        unquoted = _QUOTED.sub(lambda match: re.sub(r"\\(.)", r"\1", match[1]), raw)
        return unquote_to_bytes(unquoted.encode("latin-1")).decode("utf-8")
    except UnicodeError:
        raise RegistryError("header_error", name=name, error_detail="its value is not UTF-8") from None


def write_headers(body: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of an entity's body: its scalars, and its maps of scalars key by key."""
    headers: dict[str, str] = {}
    for name, value in body.items():
        if name in _INVISIBLE:
            continue
        if isinstance(value, dict):
            if all(isinstance(each, str | int | float | bool) for each in value.values()):
                headers |= {f"{PREFIX}{name}.{key}": encode_value(each) for key, each in value.items()}
        elif isinstance(value, str | int | float | bool):
            headers[PREFIX + name] = encode_value(value)
    return headers


def read_headers(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, Any]:
    """Return the attributes that a request with a document has in its headers; None means `null`.

    Raises:
        RegistryError: `extra_xregistry_header` for an attribute of the document itself, `header_error` for a value that
            is
            not of the attribute's type.
    """
    attributes: dict[str, Any] = {}
    content_type: str | None = None
    for key, raw in pairs:
        name = key.decode("latin-1").lower()
        if name == "content-type":
            content_type = raw.decode("latin-1")
        if not name.startswith(PREFIX.lower()):
            continue
        name = name[len(PREFIX) :]
        text = decode_value(raw.decode("latin-1"), PREFIX + name)
        if name in {"schema", "schemabase64"}:
            raise RegistryError(
                "extra_xregistry_header", name=PREFIX + name, error_detail="the document is the body of the request"
            )
        owner, dot, member = name.partition(".")
        if dot:
            there = attributes.get(owner)
            attributes[owner] = {**(there if isinstance(there, dict) else {}), member: text}
        else:
            attributes[name] = None if text == _DELETED else _read_scalar(name, text)
    attributes["contenttype"] = content_type
    return attributes


def _read_scalar(name: str, text: str) -> Any:
    kind = VERSION_ATTRIBUTES.get(name, {"type": "any"})["type"]
    if kind == "uinteger":
        if not re.fullmatch(r"[0-9]{1,20}", text):
            raise RegistryError("header_error", name=PREFIX + name, error_detail="it must be an unsigned integer")
        return int(text)
    if kind == "boolean":
        return text == "true"
    return text


def require_no_headers(pairs: Iterable[tuple[bytes, bytes]]) -> None:
    """Raise `RegistryError` if a request with metadata in its body also has metadata in headers."""
    for key, _ in pairs:
        name = key.decode("latin-1")
        if name.lower().startswith(PREFIX.lower()):
            raise RegistryError(
                "extra_xregistry_header", name=name, error_detail="the metadata is in the body of the request"
            )
