"""Encodes, decodes and validates single data of one message type, as plain Python values.

| Protobuf | Python, when read | also accepted when written |
|---|---|---|
| integers | int | decimal text, a float without fraction |
| floats | float | int, "NaN", "Infinity", "-Infinity" |
| bool, string | bool, str | – |
| bytes | bytes | base64 text |
| enum | the name; the number when the schema has no name for it | the number |
| message, group | dict by field name | JSON name instead of the field's; a Message of that type |
| repeated, map | list, dict | any sequence but text, any mapping |
| Timestamp, Duration | JSON text (`2026-01-31T00:00:00.5Z`, `1.5s`) | datetime, timedelta, `Nanos` |
| FieldMask | JSON text (`a,b`) | a dict with its `paths` |
| google.type.Date, TimeOfDay, DateTime | dict by field name | date; time, datetime, `Nanos` |
| google.type.Decimal, confluent.type.Decimal | dict by field name | Decimal |
| wrappers | the scalar | – |
| Struct, Value, ListValue | JSON data | – |
| extension | under `[pkg.name]` | – |

Decoded data has every field without presence (with its default), and those fields with presence that are set. None
means unset.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor as F
from google.protobuf.message import DecodeError as ParserError
from google.protobuf.message import Message

from stele.errors import DecodeError, EncodeError
from stele.formats.conversion import scalar_text
from stele.formats.conversion.scalar_text import Nanos, decimal_to_parts, time_to_parts, timestamp_to_parts
from stele.formats.protobuf.model import (
    DURATION,
    FIELD_MASK,
    JSON_VALUES,
    TIMESTAMP,
    WELL_KNOWN,
    WRAPPERS,
    descriptor_of,
    enum_of,
    is_map,
    map_parts,
    set_fields,
    type_text,
)

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

    from stele.formats.protobuf.model import ProtobufSchema


_EXAMPLE_DEPTH = 4
"""Nesting limit of an example. Only required messages may exceed it."""
_TEXTS = {TIMESTAMP: "2026-01-31T12:00:00Z", DURATION: "1.5s", FIELD_MASK: "path"}


class ProtobufCodec:
    """Encodes data of one message, decodes it with the same or another schema.

    Data are plain Python values as the table of this module describes them, or messages with the type's name.
    full_name selects the message; '' is the first one of writer's file. The reader's message is the one of the same
    name, or the first of its file when it has none. Raises `InvalidRequest` when there is no such message.
    """

    def __init__(self, writer: ProtobufSchema, reader: ProtobufSchema | None = None, full_name: str = "") -> None:
        self._class = writer.message_class(full_name)
        self._reader = self._class
        if reader is not None:
            name = self._class.DESCRIPTOR.full_name
            self._reader = reader.message_class(name if name in reader.message_positions else "")

    def encode(self, datum: Any) -> bytes:
        """Return the bytes of one datum. Equal data of one schema give equal bytes. Raises `EncodeError`."""
        message, problems = self._fill_message(datum)
        if problems:
            raise EncodeError("; ".join(problems))
        return message.SerializeToString(deterministic=True)

    def decode(self, data: bytes) -> Any:
        """Return one datum as a dict. Fields that the reader does not know are left out.

        Raises `DecodeError`, also for missing required fields. A Protobuf message has no end marker, so trailing bytes
        are indistinguishable from further fields.
        """
        return message_to_python(self.decode_message(data))

    def decode_message(self, data: bytes) -> Message:
        """Return one datum as a message of the reader's class, unknown fields included. Raises `DecodeError`."""
        message = self._reader()
        try:
            message.ParseFromString(bytes(data))
        except ParserError as error:
            raise DecodeError(f"the bytes are not a message {message.DESCRIPTOR.full_name}: {error}") from error
        if not message.IsInitialized():
            raise DecodeError(f"required fields are missing: {', '.join(_missing_required_fields(message))}")
        return message

    def validate(self, datum: Any) -> list[str]:
        """Return why the datum does not fit, one sentence each with its path; empty when it fits."""
        return self._fill_message(datum)[1]

    def example(self) -> Any:
        """Return a small datum that fits: every field set, one member per oneof, one element per list and map."""
        return _ExampleBuilder().build_message(descriptor_of(self._class()), ())

    def _fill_message(self, datum: Any) -> tuple[Message, list[str]]:
        message, writer = self._class(), MessageFiller()
        writer.fill_message(message, datum)
        missing = (
            []
            if writer.problems
            else [f"{path}: required field is not set" for path in _missing_required_fields(message)]
        )
        return message, writer.problems + missing


def _missing_required_fields(message: Message) -> list[str]:
    errors: list[str] = message.FindInitializationErrors()  # type: ignore[attr-defined]  # missing in the stubs
    return errors


class _ExampleBuilder:
    """Builds one datum. A budget of fields limits its size when messages refer to each other in many ways."""

    def __init__(self) -> None:
        self._left = 1000

    def build_message(self, descriptor: Descriptor, above: tuple[str, ...]) -> Any:
        """Return a datum for a message that is nested in those of `above`."""
        datum: dict[str, Any] = {}
        for field in descriptor.fields:
            oneof = field.containing_oneof
            if oneof is not None and oneof.fields[0].number != field.number:
                continue
            self._left -= 1
            if self._can_set(field, (*above, descriptor.full_name)):
                datum[field.name] = self._build_field(field, (*above, descriptor.full_name))
        return datum

    def _can_set(self, field: FieldDescriptor, above: tuple[str, ...]) -> bool:
        """Return whether to set a field. A message is set only in a small example and never inside itself."""
        value = map_parts(field)[1] if is_map(field) else field
        if value.message_type is None or field.is_required:
            return len(above) < MAX_DEPTH
        return value.message_type.full_name not in above and len(above) < _EXAMPLE_DEPTH and self._left > 0

    def _build_field(self, field: FieldDescriptor, above: tuple[str, ...]) -> Any:
        if is_map(field):
            key, value = map_parts(field)
            return {self._build_value(key, above): self._build_value(value, above)}
        return [self._build_value(field, above)] if field.is_repeated else self._build_value(field, above)

    def _build_value(self, field: FieldDescriptor, above: tuple[str, ...]) -> Any:
        if field.message_type is None:
            return _example_scalar(field.type, field)
        name = field.message_type.full_name
        if name in WRAPPERS:
            return _example_scalar(WRAPPERS[name], field)
        if name in JSON_VALUES:
            return ["text"] if name.endswith("ListValue") else {"key": "text"}
        if name in EXAMPLE_VALUES and set(EXAMPLE_VALUES[name]) <= set(field.message_type.fields_by_name):
            return dict(EXAMPLE_VALUES[name])
        return _TEXTS[name] if name in _TEXTS else self.build_message(field.message_type, above)


def _example_scalar(kind: int, field: FieldDescriptor) -> Any:
    if kind == F.TYPE_ENUM:
        return enum_of(field).values[0].name
    if kind == F.TYPE_STRING:
        return "text"
    if kind == F.TYPE_BYTES:
        return b"bytes"
    if kind == F.TYPE_BOOL:
        return True
    return 1.5 if kind in {F.TYPE_FLOAT, F.TYPE_DOUBLE} else 1


DATE: Final = "google.type.Date"
TIME_OF_DAY: Final = "google.type.TimeOfDay"
DATE_TIME: Final = "google.type.DateTime"
DECIMAL: Final = "google.type.Decimal"
CONFLUENT_DECIMAL: Final = "confluent.type.Decimal"

EXAMPLE_VALUES: Final[Mapping[str, Mapping[str, Any]]] = {
    DECIMAL: {"value": "1.5"},
    CONFLUENT_DECIMAL: {"value": b"\x0f", "precision": 2, "scale": 1},
}
"""Example data of messages whose default field values are not a valid number."""


def fields_from_value(message: str, value: Any) -> dict[str, Any] | None:
    """Return the fields of a message for a date, time or decimal value; None for any other value.

    Nanoseconds count from midnight, or from 1970. Raises ValueError for what the message cannot hold.
    """
    if message == DATE and isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return {"year": value.year, "month": value.month, "day": value.day}
    if message == TIME_OF_DAY and isinstance(value, Nanos | dt.time):
        return time_to_parts(value) if isinstance(value, Nanos) else _time_fields(value)
    if message == DATE_TIME and isinstance(value, Nanos | dt.datetime):
        return timestamp_to_parts(value) if isinstance(value, Nanos) else _datetime_fields(value)
    if message == DECIMAL and isinstance(value, Decimal):
        return {"value": scalar_text.format_decimal(value, None)}
    if message == CONFLUENT_DECIMAL and isinstance(value, Decimal):
        return decimal_to_parts(value)
    return None


def _time_fields(value: dt.time | dt.datetime) -> dict[str, Any]:
    parts = {"hours": value.hour, "minutes": value.minute, "seconds": value.second}
    return parts | {"nanos": value.microsecond * 1000}


def _datetime_fields(value: dt.datetime) -> dict[str, Any]:
    parts: dict[str, Any] = {"year": value.year, "month": value.month, "day": value.day, **_time_fields(value)}
    offset = value.utcoffset()
    return parts if offset is None else {**parts, "utc_offset": offset}


MAX_DEPTH = 100
"""Most levels of nested messages: the limit of Protobuf parsers."""

_RANGES = {
    **dict.fromkeys((F.TYPE_INT32, F.TYPE_SINT32, F.TYPE_SFIXED32), (-(1 << 31), (1 << 31) - 1)),
    **dict.fromkeys((F.TYPE_INT64, F.TYPE_SINT64, F.TYPE_SFIXED64), (-(1 << 63), (1 << 63) - 1)),
    **dict.fromkeys((F.TYPE_UINT32, F.TYPE_FIXED32), (0, (1 << 32) - 1)),
    **dict.fromkeys((F.TYPE_UINT64, F.TYPE_FIXED64), (0, (1 << 64) - 1)),
}
_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_FLOAT_MAX = 3.4028235677973366e38
"""Doubles from this value on do not round to a finite float."""


# --- reading --------------------------------------------------------------------------------------------------------


def message_to_python(message: Message) -> Any:
    """Return the message as plain data; its depth is bounded by the parser."""
    name = message.DESCRIPTOR.full_name
    if name in WRAPPERS:
        return message.value  # type: ignore[attr-defined]  # every wrapper has it
    if name in WELL_KNOWN:
        return json_format.MessageToDict(message)
    datum: dict[str, Any] = {}
    for field in descriptor_of(message).fields:
        if not field.has_presence or message.HasField(field.name):
            datum[field.name] = _read_field(field, getattr(message, field.name))
    for field, value in set_fields(message):
        if field.is_extension:
            datum[f"[{field.full_name}]"] = _read_field(field, value)
    return datum


def _read_field(field: FieldDescriptor, value: Any) -> Any:
    if is_map(field):
        part = map_parts(field)[1]
        return {key: _read_value(part, value[key]) for key in value}
    return [_read_value(field, item) for item in value] if field.is_repeated else _read_value(field, value)


def _read_value(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None:
        return message_to_python(value)
    if field.type == F.TYPE_ENUM:
        known = enum_of(field).values_by_number.get(value)
        return known.name if known else value
    return value


# --- writing --------------------------------------------------------------------------------------------------------


class MessageFiller:
    """Fills messages from plain data. Values that do not fit are reported in `problems`, one sentence each."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def fill_message(self, message: Message, datum: Any, path: str = "", depth: int = 0) -> None:
        """Set the fields of message. `path` is its position in the datum, '' at the top."""
        descriptor = descriptor_of(message)
        if depth > MAX_DEPTH:
            self._add_problem(path, f"nests deeper than {MAX_DEPTH} messages")
        elif isinstance(datum, Message):
            self._copy_message(message, datum, path)
        elif descriptor.full_name in WRAPPERS:
            self._set_scalar(message, descriptor.fields_by_name["value"], datum, path)
        elif descriptor.full_name == FIELD_MASK and isinstance(datum, Mapping):
            self._set_fields(message, datum, path, depth)
        elif descriptor.full_name in WELL_KNOWN:
            self._well_known(message, datum, path)
        elif isinstance(datum, Mapping):
            self._set_fields(message, datum, path, depth)
        else:
            self._fill_from_value(message, datum, path, depth)

    def _fill_from_value(self, message: Message, datum: Any, path: str, depth: int) -> None:
        """Fill a message from an equivalent Python value, such as a date."""
        name = message.DESCRIPTOR.full_name
        try:
            fields = fields_from_value(name, datum)
        except ValueError as error:
            self._add_problem(path, f"{_describe_value(datum)} is not a valid {name}: {error}")
            return
        if fields is None:
            self._add_problem(path, f"{_describe_value(datum)} is not a message {name}")
        else:
            self._set_fields(message, fields, path, depth)

    def _set_fields(self, message: Message, datum: Mapping[Any, Any], path: str, depth: int) -> None:
        oneofs: dict[str, str] = {}
        for name, value in datum.items():
            where = f"{path}.{name}" if path else str(name)
            field = _find_field(descriptor_of(message), name)
            if field is None:
                self._add_problem(where, f"message {message.DESCRIPTOR.full_name} has no such field")
            elif value is not None or _can_be_null(field):
                oneof = field.containing_oneof
                if oneof is not None and oneofs.setdefault(oneof.name, field.name) != field.name:
                    self._add_problem(where, f"oneof {oneof.name} already has {oneofs[oneof.name]} set")
                self._set_field(message, field, value, where, depth)

    def _set_field(self, message: Message, field: FieldDescriptor, value: Any, path: str, depth: int) -> None:
        if is_map(field):
            self._set_map(message, field, value, path, depth)
        elif field.is_repeated:
            if not isinstance(value, Sequence) or isinstance(value, (str, bytes, bytearray)):
                self._add_problem(path, f"{_describe_value(value)} is not a list")
                return
            target = _field_container(message, field)
            for index, item in enumerate(value):
                if field.message_type is not None:
                    self.fill_message(target.add(), item, f"{path}[{index}]", depth + 1)
                elif (scalar := self._convert_scalar(field, item, f"{path}[{index}]")) is not None:
                    target.append(scalar)
        elif field.message_type is not None:
            target = _field_container(message, field)
            target.SetInParent()
            self.fill_message(target, value, path, depth + 1)
        else:
            self._set_scalar(message, field, value, path)

    def _set_map(self, message: Message, field: FieldDescriptor, value: Any, path: str, depth: int) -> None:
        if not isinstance(value, Mapping):
            self._add_problem(path, f"{_describe_value(value)} is not a map")
            return
        key_field, value_field = map_parts(field)
        target = _field_container(message, field)
        for key, item in value.items():
            where = f"{path}{{{key}}}"
            map_key = self._convert_scalar(key_field, _map_key(key_field, key), where)
            if map_key is None:
                continue
            if value_field.message_type is not None:
                self.fill_message(target[map_key], item, where, depth + 1)
            elif (scalar := self._convert_scalar(value_field, item, where)) is not None:
                target[map_key] = scalar

    def _set_scalar(self, message: Message, field: FieldDescriptor, value: Any, path: str) -> None:
        scalar = self._convert_scalar(field, value, path)
        if scalar is None:
            return
        if field.is_extension:
            message.Extensions[field] = scalar  # type: ignore[index]  # the stub knows generated handles only
        else:
            setattr(message, field.name, scalar)

    def _convert_scalar(self, field: FieldDescriptor, value: Any, path: str) -> Any:
        """Return the value in the type of the field, or None after reporting why it does not fit."""
        scalar: Any = None
        if field.type in _RANGES:
            scalar = _to_integer(value, _RANGES[field.type])
        elif field.type == F.TYPE_BOOL:
            scalar = value if isinstance(value, bool) else None
        elif field.type == F.TYPE_STRING:
            scalar = value if isinstance(value, str) and _is_encodable(value) else None
        elif field.type == F.TYPE_BYTES:
            scalar = _to_bytes(value)
        elif field.type == F.TYPE_ENUM:
            scalar = _to_enum_number(field, value)
        else:
            scalar = _to_float(value, single=field.type == F.TYPE_FLOAT)
        if scalar is None:
            self._add_problem(path, f"{_describe_value(value)} is not a valid {_wanted_type(field)}")
        return scalar

    def _copy_message(self, message: Message, datum: Message, path: str) -> None:
        if datum.DESCRIPTOR.full_name != message.DESCRIPTOR.full_name:
            self._add_problem(path, f"a message {datum.DESCRIPTOR.full_name} is not a {message.DESCRIPTOR.full_name}")
        else:
            message.MergeFromString(datum.SerializePartialToString())

    def _well_known(self, message: Message, datum: Any, path: str) -> None:
        name = message.DESCRIPTOR.full_name
        try:
            if name == TIMESTAMP and isinstance(datum, dt.datetime):
                message.FromDatetime(datum)  # type: ignore[attr-defined]  # mixed in by name
            elif name == DURATION and isinstance(datum, dt.timedelta):
                message.FromTimedelta(datum)  # type: ignore[attr-defined]  # mixed in by name
            elif name in (TIMESTAMP, DURATION) and isinstance(datum, Nanos):
                message.FromNanoseconds(datum)  # type: ignore[attr-defined]  # mixed in by name
                message.ToJsonString()  # type: ignore[attr-defined]  # refuses what is out of range
            else:
                json_format.ParseDict(datum, message, max_recursion_depth=MAX_DEPTH)
        except (json_format.ParseError, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            self._add_problem(path, f"{_describe_value(datum)} is not a valid {name}: {error}")

    def _add_problem(self, path: str, why: str) -> None:
        self.problems.append(f"{path or 'datum'}: {why}")


def _find_field(descriptor: Descriptor, name: Any) -> FieldDescriptor | None:
    """Return a field by its name, its JSON name, or an extension by its full name in brackets."""
    if not isinstance(name, str):
        return None
    match = descriptor.fields_by_name.get(name) or descriptor.fields_by_camelcase_name.get(name)
    if match is None and name.startswith("[") and name.endswith("]"):
        try:
            extension = descriptor.file.pool.FindExtensionByName(name[1:-1])
        except KeyError:
            return None
        extended = extension.containing_type
        return extension if extended is not None and extended.full_name == descriptor.full_name else None
    return match or next((field for field in descriptor.fields if field.json_name == name), None)


def _can_be_null(field: FieldDescriptor) -> bool:
    """Return whether None is a value of the field; for all others it means unset."""
    message = field.message_type
    return message is not None and message.full_name == "google.protobuf.Value" and not field.is_repeated


def _field_container(message: Message, field: FieldDescriptor) -> Any:
    return message.Extensions[field] if field.is_extension else getattr(message, field.name)  # type: ignore[index]  # see _put


def _map_key(field: FieldDescriptor, key: Any) -> Any:
    """Return a map key of the field's type. JSON keys are texts, so `"true"` and `"false"` are read as booleans."""
    return {"true": True, "false": False}.get(key, key) if field.type == F.TYPE_BOOL and isinstance(key, str) else key


def _to_integer(value: Any, span: tuple[int, int]) -> int | None:
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            return None
    elif isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if span[0] <= value <= span[1] else None


def _to_float(value: Any, *, single: bool) -> float | None:
    if isinstance(value, str):
        return _FLOATS.get(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return None if single and math.isfinite(number) and abs(number) >= _FLOAT_MAX else number


def _to_bytes(value: Any) -> bytes | None:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            return None
    return None


def _to_enum_number(field: FieldDescriptor, value: Any) -> int | None:
    if isinstance(value, str):
        known = enum_of(field).values_by_name.get(value)
        return known.number if known else None
    number = _to_integer(value, (-(1 << 31), (1 << 31) - 1))
    closed = enum_of(field).is_closed
    return None if number is None or (closed and number not in enum_of(field).values_by_number) else number


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _describe_value(value: Any) -> str:
    """Return a value as short text for an error message."""
    text = repr(value) if isinstance(value, (str, int, float, bool, bytes)) else type(value).__name__
    return text if len(text) <= 40 else text[:37] + "..."


def _wanted_type(field: FieldDescriptor) -> str:
    return type_text(field).removeprefix("repeated ").removeprefix("required ")
