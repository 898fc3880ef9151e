"""How types are named, and which messages have a meaning of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from google.protobuf.descriptor import FieldDescriptor as F

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
    from google.protobuf.message import Message

_NAMES = {getattr(F, name): name.removeprefix("TYPE_").lower() for name in dir(F) if name.startswith("TYPE_")}

WRAPPERS = {
    "google.protobuf.DoubleValue": F.TYPE_DOUBLE,
    "google.protobuf.FloatValue": F.TYPE_FLOAT,
    "google.protobuf.Int64Value": F.TYPE_INT64,
    "google.protobuf.UInt64Value": F.TYPE_UINT64,
    "google.protobuf.Int32Value": F.TYPE_INT32,
    "google.protobuf.UInt32Value": F.TYPE_UINT32,
    "google.protobuf.BoolValue": F.TYPE_BOOL,
    "google.protobuf.StringValue": F.TYPE_STRING,
    "google.protobuf.BytesValue": F.TYPE_BYTES,
}
"""The messages that only make a scalar nullable, and the type of that scalar."""
TIMESTAMP = "google.protobuf.Timestamp"
DURATION = "google.protobuf.Duration"
JSON_VALUES = frozenset({"google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue"})
"""The messages that hold any JSON."""
FIELD_MASK = "google.protobuf.FieldMask"
WELL_KNOWN = frozenset({*WRAPPERS, TIMESTAMP, DURATION, FIELD_MASK, *JSON_VALUES})
"""Messages that readers of data see as one value, so that their fields are not listed."""


def descriptor_of(message: Message) -> Descriptor:
    """Return the type of a message (its attribute is typed as a union of two implementations)."""
    return cast("Descriptor", message.DESCRIPTOR)


def set_fields(message: Message) -> list[tuple[FieldDescriptor, Any]]:
    """Return the fields that are set, extensions included, by number, with their values."""
    return cast("list[tuple[FieldDescriptor, Any]]", message.ListFields())


def message_of(field: FieldDescriptor) -> Descriptor:
    """Return the message type of a field that has one."""
    assert field.message_type is not None
    return field.message_type


def enum_of(field: FieldDescriptor) -> EnumDescriptor:
    """Return the enum type of a field that has one."""
    assert field.enum_type is not None
    return field.enum_type


def is_map_entry(message: Descriptor) -> bool:
    """Return whether the message only stands for the entries of a map field."""
    return message.has_options and bool(message.GetOptions().map_entry)


def is_map(field: FieldDescriptor) -> bool:
    """Return whether the field is a map."""
    return field.message_type is not None and is_map_entry(field.message_type)


def map_parts(field: FieldDescriptor) -> tuple[FieldDescriptor, FieldDescriptor]:
    """Key and value of a map field."""
    parts = message_of(field).fields_by_name
    return parts["key"], parts["value"]


def type_text(field: FieldDescriptor) -> str:
    """Return the type of a field with its label, names in full: `repeated pkg.Item`, `map<string, int32>`."""
    if is_map(field):
        key, value = map_parts(field)
        return f"map<{type_text(key)}, {type_text(value)}>"
    named = field.message_type or field.enum_type
    name = named.full_name if named is not None else _NAMES[field.type]
    if field.type == F.TYPE_GROUP:
        name = f"group {name}"
    return f"repeated {name}" if field.is_repeated else f"required {name}" if field.is_required else name
