"""Default values of a reader's fields as Avro bytes, so that engines read them like any other value."""

from __future__ import annotations

import struct
from typing import Any

from stele.errors import DataError
from stele.formats.avro.model import (
    NO_DEFAULT,
    AvroArray,
    AvroEnum,
    AvroFixed,
    AvroMap,
    AvroPrimitive,
    AvroRecord,
    AvroType,
    AvroUnion,
)
from stele.formats.avro.parse import find_default_fault
from stele.spark.engines.unroll import TruncatedRecord

_NOBODY = AvroRecord("")


def encode_varint(value: int) -> bytes:
    """Return the zig-zag bytes of a 64-bit integer."""
    bits = (value << 1) ^ (value >> 63)
    out = bytearray()
    while bits > 127:
        out.append(bits & 127 | 128)
        bits >>= 7
    out.append(bits)
    return bytes(out)


def encode_default(node: AvroType, value: Any) -> bytes:
    """Return the JSON default under its type. Raises `DataError` when it is none of that type."""
    fault = find_default_fault(node, value, _NOBODY)
    if fault:
        raise DataError(f"the default {value!r} does not fit: {fault}")
    try:
        return _encode_value(node, value)
    except (UnicodeEncodeError, OverflowError) as error:
        raise DataError(f"the default {value!r} cannot be encoded: {error}") from error


def _encode_value(node: AvroType, value: Any) -> bytes:
    match node:
        case AvroPrimitive():
            return _encode_primitive(node.kind, value)
        case AvroFixed():
            return bytes(value.encode("latin-1"))
        case AvroEnum():
            return encode_varint(node.symbols.index(value))
        case AvroArray():
            return _encode_block([_encode_value(node.items, item) for item in value])
        case AvroMap():
            return _encode_block(
                [_with_length(key.encode()) + _encode_value(node.values, item) for key, item in value.items()]
            )
        case AvroUnion():
            number = next(i for i, b in enumerate(node.branches) if find_default_fault(b, value, _NOBODY) is None)
            return encode_varint(number) + _encode_value(node.branches[number], value)
        case AvroRecord():
            if isinstance(node, TruncatedRecord):
                _check_shallow(node, value)
            given = {f.name: value.get(f.name, f.default) for f in node.fields}
            assert NO_DEFAULT not in given.values()
            return b"".join(_encode_value(f.type, given[f.name]) for f in node.fields)


def _check_shallow(node: TruncatedRecord, value: Any) -> None:
    for field in node.deeper:
        if value.get(field.name, field.default) not in (NO_DEFAULT, None, [], {}):
            raise DataError(f"the default of {field.name!r} goes deeper than the levels of columns")


def _encode_primitive(kind: str, value: Any) -> bytes:
    match kind:
        case "null":
            return b""
        case "boolean":
            return bytes([value])
        case "int" | "long":
            return encode_varint(value)
        case "float":
            return struct.pack("<f", float(value))
        case "double":
            return struct.pack("<d", float(value))
        case "string":
            return _with_length(value.encode())
        case _:
            return _with_length(value.encode("latin-1"))


def _with_length(data: bytes) -> bytes:
    return encode_varint(len(data)) + data


def _encode_block(items: list[bytes]) -> bytes:
    return encode_varint(len(items)) + b"".join(items) + b"\0" if items else b"\0"
