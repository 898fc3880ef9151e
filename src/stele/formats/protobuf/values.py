"""Option and default values as the compiler reads them back."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any

from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor as F

from stele.formats.protobuf.kinds import enum_of, is_map, message_of, set_fields

if TYPE_CHECKING:
    from google.protobuf.descriptor import FieldDescriptor
    from google.protobuf.message import Message

_ESCAPES = {
    **{byte: f"\\{byte:03o}" for byte in (*range(32), *range(127, 256))},
    **{ord(char): "\\" + letter for char, letter in zip('\n\r\t"\\', 'nrt"\\', strict=True)},
}


def quote_text(text: str | bytes) -> str:
    """A string literal; characters beyond ASCII stay readable. The library hands over bytes for what is no UTF-8."""
    if not isinstance(text, str):
        return quote_bytes(text)
    return '"' + "".join(_ESCAPES.get(ord(char), char) if ord(char) < 128 else char for char in text) + '"'


def quote_bytes(data: bytes) -> str:
    """A string literal whose value is data, in ASCII."""
    return '"' + "".join(_ESCAPES.get(byte, chr(byte)) for byte in data) + '"'


def scalar_literal(field: FieldDescriptor, value: Any) -> str:
    """The literal of one value of a field that is no message."""
    if field.type == F.TYPE_ENUM:
        known = enum_of(field).values_by_number.get(value)
        return known.name if known else str(value)
    if field.type == F.TYPE_STRING:
        return quote_text(value)
    if field.type == F.TYPE_BYTES:
        return quote_bytes(value)
    if field.type == F.TYPE_BOOL:
        return "true" if value else "false"
    if field.type in {F.TYPE_FLOAT, F.TYPE_DOUBLE}:
        return _number_literal(value, single=field.type == F.TYPE_FLOAT)
    return str(value)


def _number_literal(value: float, *, single: bool) -> str:
    if math.isnan(value) or math.isinf(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if single:
        return next(text for digits in range(1, 18) if _is_same_float32(text := f"{value:.{digits}g}", value))
    return repr(value)


def _is_same_float32(text: str, value: float) -> bool:
    try:
        return bool(struct.unpack("<f", struct.pack("<f", float(text)))[0] == value)
    except OverflowError:  # rounded up beyond the largest float
        return False


def message_literal(message: Message) -> str:
    """A message value on one line: `{ name: value [pkg.ext]: value }`. The parser's limit bounds its depth."""
    parts = []
    for field, value in set_fields(message):
        name = f"[{field.full_name}]" if field.is_extension else _field_name(field)
        for item in list_values(field, value):
            shown = (
                f" {message_literal(item)}" if field.message_type is not None else f": {scalar_literal(field, item)}"
            )
            parts.append(name + shown)
    return "{ " + " ".join(parts) + " }" if parts else "{}"


def _field_name(field: FieldDescriptor) -> str:
    """In text format a group goes by the name of its type."""
    return message_of(field).name if field.type == F.TYPE_GROUP else field.name


def list_values(field: FieldDescriptor, value: Any) -> list[Any]:
    """The single values of a set field: one, or the elements of a list, or map entries as messages in key order."""
    if not field.is_repeated:
        return [value]
    if not is_map(field):
        return list(value)
    entry = message_of(field)
    made = []
    for key in sorted(value):
        pair: Any = message_factory.GetMessageClass(entry)(key=key)
        if entry.fields_by_name["value"].message_type is None:
            pair.value = value[key]
        else:
            pair.value.CopyFrom(value[key])
        made.append(pair)
    return made
