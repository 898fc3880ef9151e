"""Entities and documents in the bodies of requests."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec

from stele.apis.xregistry.attributes import is_id, parse_value
from stele.apis.xregistry.errors import RegistryError
from stele.apis.xregistry.translate import resolve_format

Members = Mapping[str, msgspec.Raw]
"""An entity in a request: its members, not decoded yet."""

_JSON_FORMATS: Final = frozenset({"avro", "json"})


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
    """Whether a request has a member that is not null."""
    return name in body and not is_null(body[name])


def is_null(value: Any) -> bool:
    """Whether a member of a request is null."""
    return value is None or (isinstance(value, msgspec.Raw) and bytes(value) == b"null")


def decode_base64(text: Any, xid: str) -> bytes:
    """Return the bytes of a document in base64. Raises `RegistryError` (`invalid_attribute`)."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise RegistryError("invalid_attribute", xid, name="schemabase64", error_detail="it is no base64") from None


def read_document(raw: Any, format_name: str, installed: Collection[str]) -> bytes:
    """Return the document that a JSON value is: a string is the text itself, anything else its JSON."""
    data = bytes(raw)
    value = parse_value(msgspec.Raw(data))
    if not isinstance(value, str):
        return data
    text = value.encode("utf-8", "surrogatepass")
    if resolve_format(format_name, installed).format in _JSON_FORMATS:
        try:
            msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return data  # The name of a type is JSON with its quotes only.
    return text


def check_reference(xref: Any, xid: str) -> str:
    """Return the XID of the schema that another one stands for. Raises `RegistryError` (`malformed_xref`)."""
    parts = xref.split("/") if isinstance(xref, str) else []
    if len(parts) != 5 or parts[0] or (parts[1], parts[3]) != ("schemagroups", "schemas"):
        raise RegistryError(
            "malformed_xref", xid, xref=str(xref)[:200], error_detail="it is /schemagroups/ID/schemas/ID"
        )
    if not is_id(parts[2]) or not is_id(parts[4]) or xref == xid:
        raise RegistryError("malformed_xref", xid, xref=xref[:200], error_detail="it leads to no schema")
    return str(xref)
