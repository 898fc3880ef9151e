"""The options and default values of a declaration as `.proto` text, custom options included."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor as F
from google.protobuf.message import DecodeError

from stele.formats.protobuf.model import enum_of, is_map, message_of, set_fields

if TYPE_CHECKING:
    from google.protobuf.descriptor import FieldDescriptor
    from google.protobuf.descriptor_pb2 import UninterpretedOption
    from google.protobuf.message import Message

    from stele.formats.protobuf.model import ProtobufSchema


_ESCAPES = {
    **{byte: f"\\{byte:03o}" for byte in (*range(32), *range(127, 256))},
    **{ord(char): "\\" + letter for char, letter in zip('\n\r\t"\\', 'nrt"\\', strict=True)},
}


def quote_text(text: str | bytes) -> str:
    """Return a string literal with non-ASCII characters unchanged. Bytes stand for text that is not UTF-8."""
    if not isinstance(text, str):
        return quote_bytes(text)
    return '"' + "".join(_ESCAPES.get(ord(char), char) if ord(char) < 128 else char for char in text) + '"'


def quote_bytes(data: bytes) -> str:
    """Return a string literal whose value is data, in ASCII."""
    return '"' + "".join(_ESCAPES.get(byte, chr(byte)) for byte in data) + '"'


def scalar_literal(field: FieldDescriptor, value: Any) -> str:
    """Return the literal of one value of a field whose type is not a message."""
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
        return number_literal(value, single=field.type == F.TYPE_FLOAT)
    return str(value)


def number_literal(value: float, *, single: bool) -> str:
    """Return a number of type `double`, or of type `float` when single, as short text that reads as the same number."""
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
    """Return a message value on one line: `{ name: value [pkg.ext]: value }`. The parser's limit bounds its depth."""
    parts = []
    for field, value in set_fields(message):
        name = f"[{field.full_name}]" if field.is_extension else _field_name(field)
        for item in list_values(field, value):
            literal = (
                f" {message_literal(item)}" if field.message_type is not None else f": {scalar_literal(field, item)}"
            )
            parts.append(name + literal)
    return "{ " + " ".join(parts) + " }" if parts else "{}"


def _field_name(field: FieldDescriptor) -> str:
    """Return the field's name in text format. A group has the name of its type."""
    return message_of(field).name if field.type == F.TYPE_GROUP else field.name


def list_values(field: FieldDescriptor, value: Any) -> list[Any]:
    """Return the values of a set field: the single one, the list elements, or map entries as messages in key order."""
    if not field.is_repeated:
        return [value]
    if not is_map(field):
        return list(value)
    entry = message_of(field)
    entries = []
    for key in sorted(value):
        pair: Any = message_factory.GetMessageClass(entry)(key=key)
        if entry.fields_by_name["value"].message_type is None:
            pair.value = value[key]
        else:
            pair.value.CopyFrom(value[key])
        entries.append(pair)
    return entries


class OptionText(NamedTuple):
    """One option: its name as written (`(pkg.ext)` when custom), its value, and the number of its top field."""

    name: str
    value: str
    number: int

    @property
    def is_custom(self) -> bool:
        """Whether an extension declares the option."""
        return "(" in self.name


def list_options(options: Message, schema: ProtobufSchema) -> list[OptionText]:
    """Return all set options by name, built-in ones first. Each element of a repeated one is listed separately."""
    if not options.ByteSize():
        return []
    option_texts = [option for field in _options_by_field(options, schema) for option in field]
    return sorted(option_texts, key=lambda option: (option.is_custom, option.name))


def _options_by_field(options: Message, schema: ProtobufSchema) -> list[list[OptionText]]:
    """Return the options by field."""
    options = read_options(options, schema)
    groups = []
    for field, value in set_fields(options):
        if field.name == "uninterpreted_option" and not field.is_extension:
            groups.append([_uninterpreted_option(option) for option in value])
        elif field.name == "features" and not field.is_extension:
            groups.append([OptionText(name, text, field.number) for name, text in list_feature_options(value)])
        else:
            name = f"({field.full_name})" if field.is_extension else field.name
            show = (
                message_literal
                if field.message_type is not None
                else lambda item, field=field: scalar_literal(field, item)
            )
            groups.append([OptionText(name, show(item), field.number) for item in list_values(field, value)])
    return groups


def read_options(options: Message, schema: ProtobufSchema | None) -> Message:
    """Return options parsed with the schema's own declarations, because only they know its extensions."""
    if schema is None:
        return options
    try:
        kind = schema.pool.FindMessageTypeByName(options.DESCRIPTOR.full_name)
        return schema.class_of(kind).FromString(options.SerializePartialToString())
    except (KeyError, DecodeError):  # descriptor.proto is not imported, so there is no custom option either
        return options


def list_feature_options(features: Message, prefix: str = "features.") -> list[tuple[str, str]]:
    """Return features as options with their values: `features.enum_type`, `features.(pb.cpp).string_type`."""
    options: list[tuple[str, str]] = []
    for field, value in set_fields(features):
        if field.is_extension and field.message_type is not None:
            options += list_feature_options(value, f"{prefix}({field.full_name}).")
        else:
            options.append((prefix + field.name, scalar_literal(field, value)))
    return options


def _uninterpreted_option(option: UninterpretedOption) -> OptionText:
    """Return an option that a descriptor carries uninterpreted."""
    name = ".".join(f"({part.name_part})" if part.is_extension else part.name_part for part in option.name)
    if option.HasField("identifier_value"):
        value = option.identifier_value
    elif option.HasField("string_value"):
        value = quote_bytes(option.string_value)
    elif option.HasField("aggregate_value"):
        value = "{ " + option.aggregate_value + " }"
    elif option.HasField("double_value"):
        value = repr(option.double_value)
    else:
        value = str(option.positive_int_value or option.negative_int_value)
    return OptionText(name, value, 999)
