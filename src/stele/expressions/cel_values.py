"""Converts Python values and Protobuf messages to values of the Common Expression Language, and results back.

Source: docs/protocols/data-rules.md#expressions.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import UUID

from celpy import celtypes
from google.protobuf.message import Message

from stele.expressions.questions import UnsignedInt, tag_unsigned

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

_DAY_ZERO: Final = date(1970, 1, 1).toordinal()
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TIMESTAMP: Final = "google.protobuf.Timestamp"
_WRAPPERS: Final = "google.protobuf."
_WRAPPED: Final = frozenset(
    f"{_WRAPPERS}{kind}Value"
    for kind in ("String", "Bytes", "Bool", "Int32", "Int64", "UInt32", "UInt64", "Float", "Double")
)


def to_cel(value: Any) -> Any:
    """Return a value of an Avro or JSON record, or a Protobuf message, as a CEL value."""
    match value:
        case Message():
            return _convert_message(value)
        case dict():
            entries = celtypes.MapType()
            for key, item in value.items():
                entries[celtypes.StringType(key)] = to_cel(item)
            return entries
        case list():
            return celtypes.ListType([to_cel(item) for item in value])
        case str():
            return celtypes.StringType(value)
        case bytes():
            return celtypes.BytesType(value)
        case bool():
            return celtypes.BoolType(value)
        case UnsignedInt():
            return celtypes.UintType(value)
        case int():
            return celtypes.IntType(value)
        case float():
            return celtypes.DoubleType(value)
        case datetime():
            return celtypes.TimestampType(value)
        case timedelta():
            return celtypes.DurationType(value)
        case date():
            return celtypes.IntType(value.toordinal() - _DAY_ZERO)
        case UUID():
            return celtypes.StringType(str(value))
    return value


def from_cel(value: Any) -> Any:
    """Return a result as a plain Python value, nested to any depth."""
    match value:
        case None | celtypes.NullType():
            return None
        case dict():
            return {from_cel(key): from_cel(item) for key, item in value.items()}
        case tuple():
            return tuple(from_cel(item) for item in value)
        case list():
            return [from_cel(item) for item in value]
        case bool() | celtypes.BoolType():
            return bool(value)
        case celtypes.IntType() | celtypes.UintType():
            return int(value)
        case celtypes.DoubleType():
            return float(value)
        case celtypes.StringType():
            return str(value)
        case celtypes.BytesType():
            return bytes(value)
        case celtypes.TimestampType():
            return datetime.combine(value.date(), value.timetz())
        case celtypes.DurationType():
            return timedelta(days=value.days, seconds=value.seconds, microseconds=value.microseconds)
    return value


# --- Protobuf ---------------------------------------------------------------------------------------------------------


class _Presence(threading.local):
    """Whether the thread evaluates `has()`, in which an unset field is absent instead of having its default."""

    is_asked = False


_presence: Final = _Presence()


@contextmanager
def asking_presence() -> Iterator[None]:
    """Mark this thread as evaluating `has()` while the context is open."""
    before, _presence.is_asked = _presence.is_asked, True
    try:
        yield
    finally:
        _presence.is_asked = before


class MessageMap(celtypes.MapType):
    """A message as a map. Unset fields read as their defaults, unset wrappers as null."""

    def __init__(self, message: Message) -> None:
        super().__init__()
        self._message = message
        for field in _descriptor_of(message).fields:
            if field.containing_oneof is None or message.HasField(field.name):
                self[celtypes.StringType(field.name)] = self._read_field(field)

    def __getitem__(self, key: Any) -> Any:
        field = _descriptor_of(self._message).fields_by_name[str(key)]
        if _is_set(self._message, field):
            return super().__getitem__(key)
        if _presence.is_asked:
            raise KeyError(key)
        if field.message_type is not None and not field.is_repeated:
            return None if field.message_type.full_name in _WRAPPED else to_cel(getattr(self._message, field.name))
        return self._read_field(field)

    def _read_field(self, field: FieldDescriptor) -> Any:
        value = getattr(self._message, field.name)
        if not field.is_repeated:
            if field.message_type is not None and not self._message.HasField(field.name):
                return None
            return field_to_cel(value, field)
        kind = field.message_type
        if kind is None or not kind.GetOptions().map_entry:
            return celtypes.ListType([field_to_cel(item, field) for item in value])
        entries = celtypes.MapType()
        keys, values = kind.fields_by_name["key"], kind.fields_by_name["value"]
        for key in value:
            entries[field_to_cel(key, keys)] = field_to_cel(value[key], values)
        return entries


def _descriptor_of(message: Message) -> Descriptor:
    return cast("Descriptor", message.DESCRIPTOR)


def field_to_cel(value: Any, field: FieldDescriptor) -> Any:
    """Return one value of a field by the field's type, because CEL distinguishes signed and unsigned numbers."""
    return to_cel(tag_unsigned(value, field))


def _convert_message(message: Message) -> Any:
    name = message.DESCRIPTOR.full_name
    if name in {_TIMESTAMP, "google.protobuf.Duration"}:
        seconds, nanos = getattr(message, "seconds"), getattr(message, "nanos")  # noqa: B009 - of two classes
        since = timedelta(seconds=seconds, microseconds=nanos // 1000)
        return celtypes.TimestampType(_EPOCH + since) if name == _TIMESTAMP else celtypes.DurationType(since)
    if name in _WRAPPED:
        field = _descriptor_of(message).fields_by_name["value"]
        return field_to_cel(getattr(message, field.name), field)
    return MessageMap(message)


def _is_set(message: Message, field: FieldDescriptor) -> bool:
    if field.is_repeated:
        return len(getattr(message, field.name)) > 0
    if field.has_presence:
        return message.HasField(field.name)
    return bool(getattr(message, field.name) != field.default_value)
