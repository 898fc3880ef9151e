"""Python values and Protobuf messages as the Common Expression Language sees them, and what it computes as values.

Source: docs/protocols/data-rules.md#expressions.
"""

from __future__ import annotations

import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from celpy import celtypes
from google.protobuf import json_format
from google.protobuf.message import Message

from stele.client.serdes.rules.protobuf_fields import TIMESTAMP, descriptor_of

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

_DAY_ZERO: Final = date(1970, 1, 1).toordinal()
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNSIGNED: Final = frozenset({4, 6, 7, 13})  # uint64, fixed64, fixed32, uint32
_TEXTUAL: Final = {9: str, 12: bytes, 14: str}  # string, bytes, enum
_WRAPPERS: Final = "google.protobuf."
_WRAPPED: Final = frozenset(
    f"{_WRAPPERS}{kind}Value"
    for kind in ("String", "Bytes", "Bool", "Int32", "Int64", "UInt32", "UInt64", "Float", "Double")
)


def to_cel(value: Any) -> Any:
    """A value of an Avro or JSON record, or a Protobuf message."""
    match value:
        case Message():
            return _convert_message(value)
        case dict():
            made = celtypes.MapType()
            for key, item in value.items():
                made[celtypes.StringType(key)] = to_cel(item)
            return made
        case list():
            return celtypes.ListType([to_cel(item) for item in value])
        case str():
            return celtypes.StringType(value)
        case bytes():
            return celtypes.BytesType(value)
        case bool():
            return celtypes.BoolType(value)
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
    """The plain Python value of a result, whatever its depth."""
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
    """Whether the thread is inside `has()`, where a field that is not set is absent instead of its default."""

    asked = False


_presence: Final = _Presence()


@contextmanager
def asking_presence() -> Iterator[None]:
    """The inside of `has()`."""
    before, _presence.asked = _presence.asked, True
    try:
        yield
    finally:
        _presence.asked = before


class MessageMap(celtypes.MapType):
    """A message as a map: fields that are not set read as their defaults, wrappers of values as null."""

    def __init__(self, message: Message) -> None:
        super().__init__()
        self._message = message
        for field in descriptor_of(message).fields:
            if field.containing_oneof is None or message.HasField(field.name):
                self[celtypes.StringType(field.name)] = self._read_field(field)

    def __getitem__(self, key: Any) -> Any:
        field = descriptor_of(self._message).fields_by_name[str(key)]
        if _is_set(self._message, field):
            return super().__getitem__(key)
        if _presence.asked:
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
        made = celtypes.MapType()
        keys, values = kind.fields_by_name["key"], kind.fields_by_name["value"]
        for key in value:
            made[field_to_cel(key, keys)] = field_to_cel(value[key], values)
        return made


def field_to_cel(value: Any, field: FieldDescriptor) -> Any:
    """One value of a field, by the field's type: CEL keeps signed and unsigned numbers apart."""
    if field.type in _UNSIGNED:
        return celtypes.UintType(value)
    return to_cel(value)


def _convert_message(message: Message) -> Any:
    name = message.DESCRIPTOR.full_name
    if name in {TIMESTAMP, "google.protobuf.Duration"}:
        seconds, nanos = getattr(message, "seconds"), getattr(message, "nanos")  # noqa: B009 - of two classes
        since = timedelta(seconds=seconds, microseconds=nanos // 1000)
        return celtypes.TimestampType(_EPOCH + since) if name == TIMESTAMP else celtypes.DurationType(since)
    if name in _WRAPPED:
        field = descriptor_of(message).fields_by_name["value"]
        return field_to_cel(getattr(message, field.name), field)
    return MessageMap(message)


def _is_set(message: Message, field: FieldDescriptor) -> bool:
    if field.is_repeated:
        return len(getattr(message, field.name)) > 0
    if field.has_presence:
        return message.HasField(field.name)
    return bool(getattr(message, field.name) != field.default_value)


def message_from(result: Any, like: Message) -> Message:
    """A message of a kind from a map of its fields: what the map leaves out is not set, names no field has are ignored.

    Raises TypeError and `google.protobuf.json_format.ParseError` where a value does not fit.
    """
    plain = from_cel(result)
    _demand_types(descriptor_of(like), plain)
    return json_format.ParseDict(_spell_key(plain), type(like)(), ignore_unknown_fields=True)


def _demand_types(kind: Descriptor, value: Any) -> None:
    """Refuse what the JSON mapping would take and a rule cannot have meant: text for bytes, numbers or messages."""
    if not isinstance(value, dict):
        raise TypeError(f"a message of type {kind.full_name} is made of a map, not of {type(value).__name__}")
    for name, item in value.items():
        field = kind.fields_by_name.get(name) or kind.fields_by_camelcase_name.get(name)
        if field is None or item is None:
            continue
        entry = field.message_type if field.is_repeated and isinstance(item, dict) else None
        if entry is not None and entry.GetOptions().map_entry:
            field, item = entry.fields_by_name["value"], list(item.values())  # noqa: PLW2901 - its values count
        for one in item if isinstance(item, list) else (item,):
            _demand_type(field, one)


def _demand_type(field: FieldDescriptor, value: Any) -> None:
    inner = field.message_type
    if inner is not None and not inner.full_name.startswith("google.protobuf."):
        _demand_types(inner, value)
    elif inner is None and isinstance(value, str | bytes):
        wanted = _TEXTUAL.get(field.type)
        if wanted is None or not isinstance(value, wanted):
            raise TypeError(f"{field.full_name} takes no {type(value).__name__}")


def value_from(result: Any, before: Any) -> Any:
    """The value of one Protobuf field from a result."""
    plain = from_cel(result)
    if not isinstance(before, Message):
        return plain
    return json_format.Parse(f'"{_spell_key(plain)}"', type(before)())


def _spell_key(value: Any) -> Any:
    """A value in the JSON mapping of Protobuf."""
    match value:
        case dict():
            return {str(key): _spell_key(item) for key, item in value.items()}
        case list():
            return [_spell_key(item) for item in value]
        case bytes():
            return b64encode(value).decode()
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case timedelta():
            micros = value // timedelta(microseconds=1)
            return f"{'-' if micros < 0 else ''}{abs(micros) // 1_000_000}.{abs(micros) % 1_000_000:06d}s"
    return value
