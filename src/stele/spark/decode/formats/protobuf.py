"""Protobuf messages as columns, read by the reader's descriptors. Fields that the reader does not know are skipped.

The frame names the message of the writer's schema that a record has; it is read as the reader's message of the same
name. Nullable is what can be absent (messages, members of a oneof, `optional`); all others have their default. Values
without a column type of their own are text: `Struct`, `Value`, `ListValue` and a message inside itself as JSON, an
enum's value by its name or, without one, its number, and a `FieldMask` as in JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor as F
from google.protobuf.message import DecodeError as ParserError

from stele.client.serdes.schemas import ParsedSchema
from stele.errors import DecodeError, Invalid, InvalidRequest, NotInstalled
from stele.formats.protobuf import indexes_of, message_by_indexes
from stele.formats.protobuf.codec import CONFLUENT_DECIMAL, DATE, DATE_TIME, DECIMAL, TIME_OF_DAY, ProtobufCodec
from stele.formats.protobuf.model import (
    DURATION,
    FIELD_MASK,
    JSON_VALUES,
    TIMESTAMP,
    WRAPPERS,
    enum_of,
    is_map,
    map_parts,
    message_of,
)
from stele.spark.decode.formats.base import Accepts, DatumReaders, Write
from stele.spark.decode.formats.plans import (
    ColumnPlan,
    FieldPlan,
    ListPlan,
    MapPlan,
    Pick,
    ScalarPlan,
    Struct,
    TruncatedField,
    Values,
)
from stele.spark.engines.arrow import ArrowType
from stele.spark.engines.error_codes import ErrorCode, RecordError
from stele.wire.confluent import decode_indexes, encode_indexes

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

    from stele.spark.decode.formats.protobuf_scan import Scanner

MAX_COLUMNS: Final = 10_000
"""Maximum number of columns over all levels."""

_SIGNED_32: Final = (F.TYPE_INT32, F.TYPE_SINT32, F.TYPE_SFIXED32)
_SIGNED_64: Final = (F.TYPE_INT64, F.TYPE_SINT64, F.TYPE_SFIXED64)
_TYPES: Final = {
    **dict.fromkeys(_SIGNED_32, pa.int32()),
    **dict.fromkeys(_SIGNED_64, pa.int64()),
    **dict.fromkeys((F.TYPE_UINT32, F.TYPE_FIXED32), pa.int64()),
    F.TYPE_FLOAT: pa.float32(),
    F.TYPE_DOUBLE: pa.float64(),
    F.TYPE_BOOL: pa.bool_(),
    F.TYPE_STRING: pa.string(),
    F.TYPE_BYTES: pa.binary(),
}
_WHOLE: Final[dict[str, Callable[[ArrowType], bool]]] = {
    DATE: pa.types.is_date,
    TIME_OF_DAY: pa.types.is_time,
    DATE_TIME: pa.types.is_timestamp,
    DECIMAL: pa.types.is_decimal,
    CONFLUENT_DECIMAL: pa.types.is_decimal,
}
"""Messages for which a column of a plain type can be given when they are written."""
_SECONDS: Final = (-62_135_596_800, 253_402_300_799)
"""First and last second of a Timestamp: the years 1 to 9999."""
_LONGEST: Final = 315_576_000_000
"""Length of the longest Duration in seconds."""


class ProtobufColumns:
    """The `ColumnFormat` of Protobuf."""

    careful = ""

    def plan(self, schema: ParsedSchema, message: str, recursion: int) -> ColumnPlan:
        """Return the columns of a message; see `ColumnFormat.plan`. Raises `InvalidRequest` for an unknown message."""
        described = schema.parsed.get_message(message)
        plan = _Planner(recursion).message(described, "", ())
        if plan is None:
            raise Invalid(f"message {described.full_name} contains itself and has no value that ends")
        return plan

    def make_scanner(self, reader: ParsedSchema, message: str, plan: ColumnPlan, accepts: Accepts) -> Scanner | None:
        """Return a scanner, or None without numba and for messages that only the parser reads correctly."""
        try:
            from stele.spark.decode.formats.protobuf_scan import Scanner, ScanUnsupported
        except NotInstalled:
            return None
        assert isinstance(plan, Struct)
        try:
            return Scanner(reader.parsed.get_message(message), plan, accepts)
        except ScanUnsupported:
            return None

    def make_readers(self, writer: ParsedSchema, reader: ParsedSchema, message: str) -> DatumReaders:
        """Return readers that parse a message; see `ColumnFormat.make_readers`."""
        kind = reader.parsed.message_class(message)
        known: dict[tuple[int, ...], RecordError | None] = {}

        def refusal(indexes: tuple[int, ...]) -> RecordError | None:
            if indexes not in known:
                known[indexes] = _find_refusal(writer, reader, kind.DESCRIPTOR.full_name, indexes)
            return known[indexes]

        def read(data: bytes) -> Any:
            indexes, start = _read_indexes(data)
            refused = refusal(indexes)
            if refused is not None:
                raise refused.with_traceback(None)
            try:
                value = kind.FromString(data[start:])
            except ParserError as error:
                raise DecodeError(f"no message {kind.DESCRIPTOR.full_name}: {error}") from error
            if not value.IsInitialized():
                missing = ", ".join(value.FindInitializationErrors())
                raise DecodeError(f"required fields are missing: {missing}")
            return value

        return DatumReaders(read, read, lambda indexes: refusal(indexes) is None)

    def make_writer(self, schema: ParsedSchema, message: str) -> Write:
        """Return a function that writes a message; see `ColumnFormat.make_writer`."""
        codec = ProtobufCodec(schema.parsed, full_name=message)
        indexes = encode_indexes(indexes_of(schema.parsed, schema.parsed.get_message(message).full_name))
        return lambda value: indexes + codec.encode(value)


def _find_refusal(
    writer: ParsedSchema, reader: ParsedSchema, wanted: str, indexes: tuple[int, ...]
) -> RecordError | None:
    """Return why a message of the writer's is not the wanted one; None if it is, or is one that the reader renamed."""
    try:
        name = message_by_indexes(writer.parsed, indexes)
    except InvalidRequest as error:
        return RecordError(ErrorCode.INVALID_DATA, str(error))
    if name == wanted or (name not in reader.parsed.message_positions and indexes == (0,)):
        return None
    return RecordError(ErrorCode.WRONG_MESSAGE, f"{name}, not a {wanted}")


class _Planner:
    def __init__(self, recursion: int) -> None:
        self._left = MAX_COLUMNS
        self._recursion = recursion

    def message(self, message: Descriptor, path: str, above: tuple[str, ...]) -> Struct | None:
        """Return the plan of a message, or None if it would be nested in itself too deep."""
        self._left -= len(message.fields)
        if self._left < 0:
            raise Invalid(f"message {message.full_name} has more than {MAX_COLUMNS} columns")
        inside = (*above, message.full_name)
        parts, deeper = [], []
        for field in message.fields:
            plan = self._plan_field(field, f"{path}.{field.name}" if path else field.name, inside)
            pick = (
                _pick_present(field.name)
                if field.has_presence and not field.is_required
                else _pick_attribute(field.name)
            )
            if plan is None and field.is_required:
                return None
            if plan is None:
                deeper.append(TruncatedField(field.name, pick, field.is_repeated))
            else:
                parts.append(FieldPlan(field.name, pick, plan))
        return Struct(parts, path, whole=_WHOLE.get(message.full_name), deeper=deeper)

    def _plan_field(self, field: FieldDescriptor, path: str, above: tuple[str, ...]) -> ColumnPlan | None:
        if is_map(field):
            described, value = map_parts(field)
            key, item = (
                self._plan_value(described, f"{path}{{key}}", above),
                self._plan_value(value, f"{path}{{}}", above),
            )
            return None if key is None or item is None else MapPlan(key, item, path)
        plan = self._plan_value(field, f"{path}[]" if field.is_repeated else path, above)
        return ListPlan(plan, path) if field.is_repeated and plan is not None else plan

    def _plan_value(self, field: FieldDescriptor, path: str, above: tuple[str, ...]) -> ColumnPlan | None:
        """Return the plan of one value, or None if it would be nested in itself too deep."""
        if field.message_type is None:
            return _plan_scalar(field, path)
        message = message_of(field)
        name = message.full_name
        if name in WRAPPERS:
            return _plan_wrapper(message.fields_by_name["value"], path)
        if name == TIMESTAMP:
            return ScalarPlan(pa.timestamp("us", "UTC"), path, read=_read_microseconds(_SECONDS), raw=pa.int64())
        if name == DURATION:
            return ScalarPlan(pa.duration("us"), path, read=_read_microseconds((-_LONGEST, _LONGEST)), raw=pa.int64())
        if name == FIELD_MASK:
            return ScalarPlan(pa.string(), path, read=lambda value: value.ToJsonString())
        if above.count(name) > self._recursion > 0:
            return None
        if name in JSON_VALUES or (name in above and not self._recursion):
            return ScalarPlan(pa.string(), path, read=_to_json, write=_from_json)
        return self.message(message, path, above)


def _read_indexes(data: bytes) -> tuple[tuple[int, ...], int]:
    """Return message indexes and their end; nearly always there is one, in one byte."""
    if data and data[0] == 0:
        return (0,), 1
    if len(data) > 1 and data[0] == 2 and data[1] < 0x80 and not data[1] & 1:
        return (data[1] >> 1,), 2
    return decode_indexes(data)


def _pick_attribute(name: str) -> Pick:
    get = attrgetter(name)

    def pick(values: Values, holes: bool) -> list[Any]:
        if holes:
            return [None if value is None else get(value) for value in values]
        return list(map(get, values))

    return pick


def _pick_present(name: str) -> Pick:
    get = attrgetter(name)

    def pick(values: Values, holes: bool) -> list[Any]:
        if holes:
            return [get(value) if value is not None and value.HasField(name) else None for value in values]
        return [get(value) if value.HasField(name) else None for value in values]

    return pick


def _plan_scalar(field: FieldDescriptor, path: str) -> ScalarPlan:
    if field.type in (F.TYPE_UINT64, F.TYPE_FIXED64):
        return ScalarPlan(pa.decimal128(20, 0), path, write=int, raw=pa.uint64())
    if field.type == F.TYPE_ENUM:
        names = {number: value.name for number, value in enum_of(field).values_by_number.items()}
        return ScalarPlan(pa.string(), path, read=lambda value: names.get(value) or str(value), write=_enum_value)
    return ScalarPlan(_TYPES[field.type], path)


def _plan_wrapper(field: FieldDescriptor, path: str) -> ScalarPlan:
    inner = _plan_scalar(field, path)
    if pa.types.is_decimal(inner.type):
        return ScalarPlan(inner.type, path, read=attrgetter("value"), write=int, raw=pa.uint64())
    return ScalarPlan(inner.type, path, read=attrgetter("value"))


def _read_microseconds(span: tuple[int, int]) -> Callable[[Any], int]:
    first, last = span

    def read(value: Any) -> int:
        if not first <= value.seconds <= last or not -1_000_000_000 < value.nanos < 1_000_000_000:
            raise ValueError(f"{value.seconds} s and {value.nanos} ns are out of range")
        return int(value.seconds * 1_000_000 + value.nanos // 1000)

    return read


def _to_json(value: Any) -> str:
    return json_format.MessageToJson(value, indent=None, preserving_proto_field_name=True)


def _from_json(text: str) -> Any:
    return json.loads(text)


def _enum_value(text: str) -> str | int:
    """Return the name of an enum's value, or its number if it has none."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() else text
