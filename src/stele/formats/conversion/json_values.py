"""Data in neutral JSON: one mapping between the Python values of codecs and JSON, directed by a model.

    null, boolean, string, whole numbers    as they are, whole numbers exact at any size
    float32, float64, number                numbers; values without a JSON number are "NaN", "Infinity", "-Infinity"
    bytes, fixed                            base64 text (RFC 4648, with padding)
    decimal                                 text: "12.50", with as many decimal places as the scale
    uuid                                    text, lower case with hyphens; text stays as it is
    date, time, timestamp, duration         text; see `stele.formats.conversion.scalar_text`
    enumeration                             the symbol
    array, map, record                      array, object, object; keys that are not text are written as their JSON
    union                                   the value itself, without a mark of its branch
    any                                     the value, converted by its Python type

A JSON Schema made from a model describes data in this mapping, and defaults in a model are written in it.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal as Number
from typing import Any, Final
from uuid import UUID

from stele.errors import DataError, EncodeError
from stele.formats.conversion import scalar_text
from stele.formats.conversion.model import (
    ABSENT,
    Array,
    Decimal,
    Duration,
    Enumeration,
    Fixed,
    Map,
    Model,
    NamedType,
    RecordType,
    Scalar,
    ScalarKind,
    Time,
    Timestamp,
    TimeUnit,
    Type,
    TypeReference,
    Union,
    UnionOption,
)

MAX_DEPTH: Final = 150
"""Maximum nesting of values."""

INTEGERS: Final[Mapping[ScalarKind, tuple[int, int]]] = {
    kind: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if kind.value.startswith("i") else (0, 2**bits - 1)
    for kind, bits in (
        (ScalarKind.INT8, 8),
        (ScalarKind.INT16, 16),
        (ScalarKind.INT32, 32),
        (ScalarKind.INT64, 64),
        (ScalarKind.UINT8, 8),
        (ScalarKind.UINT16, 16),
        (ScalarKind.UINT32, 32),
        (ScalarKind.UINT64, 64),
    )
}
"""Least and greatest value of every integer of a fixed width."""

FLOATS: Final = frozenset({ScalarKind.FLOAT32, ScalarKind.FLOAT64})
_NUMBERS: Final = FLOATS | {ScalarKind.NUMBER}
_SPECIAL: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MIDNIGHT: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - wall clocks have no zone on purpose
_DAY_ZERO: Final = date(1970, 1, 1).toordinal()


def to_json_value(model: Model, datum: Any, kind: Type | None = None) -> Any:
    """Return the JSON value of a datum of the model's root (or of kind, a type of the model).

    Accepts the Python types of all codecs, including raw values of logical types (a day as int or as year, month and
    day, a decimal as bytes), and a branch chosen as `(name, datum)`. A value that does not fit the model is converted
    by its Python type. Raises `DataError` for a value that has no JSON value.
    """
    try:
        return _JsonWriter(model).write_value(kind or model.root, datum, 0)
    except (ValueError, ArithmeticError) as error:
        raise DataError(f"the datum has no JSON value: {error}") from None


def from_json_value(model: Model, value: Any, kind: Type | None = None) -> Any:
    """Return the Python value of a JSON value; the inverse of `to_json_value`.

    The result has date, time, datetime, UUID, Decimal and bytes as in the model. Values beyond Python's types are days
    and units as int, or nanoseconds as `Nanos`. Raises `EncodeError` when the value does not fit the type.
    """
    try:
        return _JsonReader(model).read_value(kind or model.root, value, 0)
    except _TypeMismatch as misfit:
        raise EncodeError(str(misfit)) from None


def to_untyped_json(value: Any) -> Any:
    """Return the JSON value of a datum no model is known for. Raises `DataError`."""
    try:
        return _to_untyped_json(value, 0)
    except (ValueError, ArithmeticError) as error:
        raise DataError(f"the datum has no JSON value: {error}") from None


def epoch_micros(moment: datetime) -> int:
    """Return microseconds since 1970, in UTC where the moment has a zone."""
    return (moment - (_MIDNIGHT if moment.tzinfo is None else _EPOCH)) // timedelta(microseconds=1)


class _TypeMismatch(Exception):
    pass


# --- to JSON --------------------------------------------------------------------------------------------------------


class _JsonWriter:
    def __init__(self, model: Model) -> None:
        self.types = model.types

    def write_value(self, kind: Type, datum: Any, depth: int) -> Any:
        """Return the JSON value of a datum of a type."""
        if depth > MAX_DEPTH:
            raise DataError(f"the datum is nested deeper than {MAX_DEPTH} levels")
        match kind:
            case Union() if datum is not None:
                option, datum = _select_option(kind, datum, self.types)
                return self.write_value(option.type, datum, depth + 1) if option else _to_untyped_json(datum, depth)
            case TypeReference() if isinstance(datum, Mapping):
                return self._write_record(self.types[kind.name], datum, depth)
            case TypeReference("google.protobuf.FieldMask") if isinstance(datum, str):
                return {"paths": scalar_text.parse_field_mask(datum)}
            case Array() if isinstance(datum, list | tuple):
                return [self.write_value(kind.items, item, depth + 1) for item in datum]
            case Map() if isinstance(datum, Mapping):
                return {
                    _key_to_text(self.write_value(kind.keys, key, depth)): self.write_value(
                        kind.values, item, depth + 1
                    )
                    for key, item in datum.items()
                }
        if isinstance(datum, Number) and isinstance(kind, Scalar) and kind.kind in _NUMBERS and datum.is_finite():
            return int(datum) if datum == datum.to_integral_value(context=scalar_text.EXACT_CONTEXT) else float(datum)
        text = _scalar_to_text(kind, datum)
        return _to_untyped_json(datum, depth) if text is None else text

    def _write_record(self, declared: Any, datum: Mapping[str, Any], depth: int) -> Any:
        if not isinstance(declared, RecordType):
            return _to_untyped_json(datum, depth)
        types = {field.name: field.type for field in declared.fields}
        return {
            name: self.write_value(types[name], item, depth + 1) if name in types else _to_untyped_json(item, depth + 1)
            for name, item in datum.items()
        }


def _select_option(kind: Union, datum: Any, types: Mapping[str, Any]) -> tuple[UnionOption | None, Any]:
    """Return the option of a datum: the one it names, else the first of its Python type, else one it converts to.

    The second value is the datum without that name.
    """
    if isinstance(datum, tuple) and len(datum) == 2 and isinstance(datum[0], str):
        named = [option for option in kind.options if datum[0] in (option.name, getattr(option.type, "name", ""))]
        if named:
            return named[0], datum[1]
    for strict in (True, False):
        for option in kind.options:
            if matches_type(types, option.type, datum, raw=not strict):
                return option, datum
    return None, datum


def _scalar_to_text(kind: Type, datum: Any) -> str | None:
    """Return the JSON text of a scalar that is text in JSON, also from its raw value; None for everything else."""
    whole = isinstance(datum, int) and not isinstance(datum, bool)
    match kind:
        case Scalar(ScalarKind.DATE) if whole:
            return scalar_text.format_date(datum)
        case Time(unit) if whole:
            return scalar_text.format_time(datum, unit)
        case Timestamp(unit, utc) if whole:
            return scalar_text.format_timestamp(datum, unit, utc=utc)
        case Duration(unit, False) if whole:
            return scalar_text.format_duration(datum, unit)
        case Duration(_, True) if isinstance(datum, bytes) and len(datum) == 12:
            return scalar_text.format_calendar_duration(
                *(int.from_bytes(datum[at : at + 4], "little") for at in (0, 4, 8))
            )
        case Decimal() if isinstance(datum, bytes):
            return scalar_text.format_decimal(
                scalar_text.decimal_from_unscaled(int.from_bytes(datum, "big", signed=True), kind.scale), kind.scale
            )
        case Decimal() if isinstance(datum, Number) or whole:
            return scalar_text.format_decimal(Number(datum), kind.scale if kind.precision is not None else None)
        case Scalar(ScalarKind.UUID) if isinstance(datum, bytes):
            return str(UUID(bytes=datum))
    return scalar_text.text_from_parts(kind, datum)


def _to_untyped_json(value: Any, depth: int) -> Any:
    """Return a value by its Python type alone."""
    if depth > MAX_DEPTH:
        raise DataError(f"the datum is nested deeper than {MAX_DEPTH} levels")
    match value:
        case None | bool() | str() | int():
            return value
        case float():
            return value if math.isfinite(value) else str(value).replace("inf", "Infinity").replace("nan", "NaN")
        case bytes() | bytearray():
            return base64.b64encode(value).decode()
        case Number():
            return scalar_text.format_decimal(value, None)
        case UUID():
            return str(value)
        case datetime():
            return scalar_text.format_timestamp(epoch_micros(value), TimeUnit.MICRO, utc=value.tzinfo is not None)
        case date():
            return scalar_text.format_date(value.toordinal() - _DAY_ZERO)
        case time():
            return scalar_text.format_time(_micros_of_day(value), TimeUnit.MICRO)
        case timedelta():
            return scalar_text.format_duration(value // timedelta(microseconds=1), TimeUnit.MICRO)
        case Mapping():
            return {
                _key_to_text(_to_untyped_json(key, depth + 1)): _to_untyped_json(item, depth + 1)
                for key, item in value.items()
            }
        case list() | tuple() | set() | frozenset():
            return [_to_untyped_json(item, depth + 1) for item in value]
    raise DataError(f"{type(value).__name__} has no JSON value")


def _key_to_text(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key)


def _micros_of_day(value: time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


# --- from JSON ------------------------------------------------------------------------------------------------------


class _JsonReader:
    def __init__(self, model: Model) -> None:
        self.types = model.types

    def read_value(self, kind: Type, value: Any, depth: int) -> Any:
        """Return the Python value. Null is accepted everywhere; the codec checks whether it is allowed."""
        if depth > MAX_DEPTH:
            raise _TypeMismatch(f"the value is nested deeper than {MAX_DEPTH} levels")
        if value is None:
            return None
        match kind:
            case Scalar(kind=scalar):
                return _read_scalar(scalar, value)
            case TypeReference(name):
                return self._read_named(self.types[name], value, depth)
            case Array():
                return [self.read_value(kind.items, item, depth + 1) for item in _require_type(value, list)]
            case Map():
                return {
                    self._read_key(kind.keys, key): self.read_value(kind.values, item, depth + 1)
                    for key, item in _require_type(value, dict).items()
                }
            case Union():
                return self._read_union(kind, value, depth)
        return _read_scalar_text(kind, _require_type(value, str))

    def _read_named(self, declared: Any, value: Any, depth: int) -> Any:
        if isinstance(declared, Enumeration):
            if not any(symbol.name == value for symbol in declared.symbols):
                raise _TypeMismatch(f"{_abbreviate(value)} is not a symbol of {declared.name}")
            return value
        if isinstance(declared, Fixed):
            raw = _read_scalar(ScalarKind.BYTES, value)
            if len(raw) != declared.size:
                raise _TypeMismatch(f"{_abbreviate(value)} is not {declared.size} bytes")
            return raw
        members = _require_type(value, dict)
        types = {field.name: field.type for field in declared.fields}
        for field in declared.fields:
            if field.required and field.default is ABSENT and field.name not in members:
                raise _TypeMismatch(f"the member {field.name!r} of {declared.name} is missing")
        unknown = next((name for name in members if name not in types), None)
        if unknown is not None:
            raise _TypeMismatch(f"{declared.name} has no member {unknown!r}")
        return {name: self.read_value(types[name], item, depth + 1) for name, item in members.items()}

    def _read_key(self, keys: Scalar, key: str) -> Any:
        if keys.kind in (ScalarKind.STRING, ScalarKind.UUID, ScalarKind.BYTES, ScalarKind.DATE):
            return _read_scalar(keys.kind, key)
        try:
            return _read_scalar(keys.kind, json.loads(key))
        except ValueError:
            raise _TypeMismatch(f"{_abbreviate(key)} is not a key") from None

    def _read_union(self, kind: Union, value: Any, depth: int) -> Any:
        """Return the value as the first option that it fits. JSON values carry no mark of their option."""
        for option in kind.options:
            try:
                return self.read_value(option.type, value, depth + 1)
            except _TypeMismatch:
                continue
        raise _TypeMismatch(f"{_abbreviate(value)} fits no option of the union")


def _read_scalar_text(kind: Type, text: str) -> Any:
    """Return a scalar that is text in JSON."""
    try:
        match kind:
            case Decimal():
                number = scalar_text.parse_decimal(text, kind.scale if kind.precision is not None else None)
                if kind.precision is not None and number and number.adjusted() + 1 + kind.scale > kind.precision:
                    raise _TypeMismatch(f"{_abbreviate(text)} has more than {kind.precision} digits")
                return number
            case Time(unit):
                count = scalar_text.parse_time(text, unit)
                day = range(86_400 * 10 ** scalar_text.SECOND_DIGITS[unit])
                if unit is TimeUnit.NANO:
                    return scalar_text.Nanos(count)
                return (_MIDNIGHT + _make_timedelta(count, unit)).time() if count in day else count
            case Timestamp(unit, utc):
                return _make_timestamp(scalar_text.parse_timestamp(text, unit, utc=utc), unit, utc=utc)
            case Duration(unit, calendar):
                if calendar:
                    return b"".join(part.to_bytes(4, "little") for part in scalar_text.parse_calendar_duration(text))
                return (
                    scalar_text.Nanos(scalar_text.parse_duration(text, unit))
                    if unit is TimeUnit.NANO
                    else scalar_text.parse_duration(text, unit)
                )
    except (ValueError, ArithmeticError) as error:
        raise _TypeMismatch(str(error)) from None
    raise AssertionError(kind)


def _make_timestamp(count: int, unit: TimeUnit, *, utc: bool) -> datetime | int:
    """Return a datetime if it can hold the value, else the count. Nanoseconds are always `Nanos`."""
    if unit is TimeUnit.NANO:
        return scalar_text.Nanos(count)
    try:
        return (_EPOCH if utc else _MIDNIGHT) + _make_timedelta(count, unit)
    except OverflowError:
        return count


def _make_timedelta(count: int, unit: TimeUnit) -> timedelta:
    return timedelta(microseconds=count * 10 ** (6 - scalar_text.SECOND_DIGITS[unit]))


def _read_scalar(kind: ScalarKind, value: Any) -> Any:
    match kind:
        case ScalarKind.ANY:
            return value
        case ScalarKind.BOOLEAN:
            return _require_type(value, bool)
        case ScalarKind.STRING:
            return _require_type(value, str)
        case ScalarKind.FLOAT32 | ScalarKind.FLOAT64 | ScalarKind.NUMBER:
            return _read_number(value, kind)
        case ScalarKind.BYTES | ScalarKind.UUID | ScalarKind.DATE:
            return _read_encoded_text(kind, _require_type(value, str))
        case ScalarKind.NULL:
            raise _TypeMismatch(f"{_abbreviate(value)} is not null")
    if not isinstance(value, int) or isinstance(value, bool):
        raise _TypeMismatch(f"{_abbreviate(value)} is not a whole number")
    least, greatest = INTEGERS.get(kind, (value, value))
    if not least <= value <= greatest:
        raise _TypeMismatch(f"{value} is not a valid {kind.value}")
    return value


def _read_number(value: Any, kind: ScalarKind) -> Any:
    if kind in FLOATS and isinstance(value, str) and value in _SPECIAL:
        return _SPECIAL[value]
    if isinstance(value, bool) or not isinstance(value, int | float | Number):
        raise _TypeMismatch(f"{_abbreviate(value)} is not a number")
    try:
        return value if kind is ScalarKind.NUMBER else float(value)
    except OverflowError:
        raise _TypeMismatch(f"{_abbreviate(value)} is beyond every float") from None


def _read_encoded_text(kind: ScalarKind, text: str) -> Any:
    try:
        if kind is ScalarKind.BYTES:
            return base64.b64decode(text, validate=True)
        if kind is ScalarKind.UUID:
            return UUID(text)
        days = scalar_text.parse_date(text)
    except (ValueError, binascii.Error):
        raise _TypeMismatch(f"{_abbreviate(text)} is not a valid {kind.value}") from None
    return date.fromordinal(days + _DAY_ZERO) if 1 <= days + _DAY_ZERO <= date.max.toordinal() else days


def _require_type(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise _TypeMismatch(f"{_abbreviate(value)} is not of type {kind.__name__}")
    return value


def _abbreviate(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"


# --- whether a value is of a type -------------------------------------------------------------------------------------


_WHOLE: Final = frozenset(kind for kind in ScalarKind if "int" in kind.value)


def matches_type(types: Mapping[str, NamedType], kind: Type, datum: Any, *, raw: bool, depth: int = 0) -> bool:
    """Return whether a datum is of a type.

    raw also accepts int for float, and raw values for times and decimals.
    """
    if depth > MAX_DEPTH:
        return False

    def inner(kind: Type, datum: Any, nullable: bool) -> bool:
        if datum is None:
            return nullable
        return matches_type(types, kind, datum, raw=raw, depth=depth + 1)

    match kind:
        case TypeReference(name):
            declared = types[name]
            if isinstance(declared, RecordType):
                return isinstance(datum, Mapping) and _matches_record(declared, datum, inner)
            if isinstance(declared, Enumeration):
                return isinstance(datum, str) and any(symbol.name == datum for symbol in declared.symbols)
            return isinstance(datum, bytes | bytearray) and _has_fixed_size(declared, datum)
        case Array():
            return isinstance(datum, list | tuple) and all(inner(kind.items, item, kind.nullable) for item in datum)
        case Map():
            return isinstance(datum, Mapping) and all(
                inner(kind.keys, key, False) and inner(kind.values, item, kind.nullable) for key, item in datum.items()
            )
        case Union():
            return any(inner(option.type, datum, False) for option in kind.options)
    return _matches_scalar(kind, datum) or (raw and _matches_raw_value(kind, datum))


def _has_fixed_size(declared: NamedType, datum: bytes | bytearray) -> bool:
    return isinstance(declared, Fixed) and len(datum) == declared.size


def _matches_record(declared: RecordType, datum: Mapping[str, Any], inner: Any) -> bool:
    fields = {field.name: field for field in declared.fields}
    missing = any(field.required and field.default is ABSENT and field.name not in datum for field in declared.fields)
    return not missing and all(
        name in fields and inner(fields[name].type, item, fields[name].nullable) for name, item in datum.items()
    )


def _matches_scalar(kind: Type, datum: Any) -> bool:
    match kind:
        case Scalar(ScalarKind.ANY):
            return True
        case Scalar(ScalarKind.BOOLEAN):
            return isinstance(datum, bool)
        case Scalar(ScalarKind.STRING):
            return isinstance(datum, str)
        case Scalar(ScalarKind.BYTES):
            return isinstance(datum, bytes | bytearray)
        case Scalar(ScalarKind.UUID):
            return isinstance(datum, UUID)
        case Scalar(ScalarKind.DATE):
            return isinstance(datum, date) and not isinstance(datum, datetime)
        case Scalar(ScalarKind.FLOAT32 | ScalarKind.FLOAT64):
            return isinstance(datum, float)
        case Scalar(ScalarKind.NUMBER):
            return isinstance(datum, int | float | Number) and not isinstance(datum, bool)
        case Scalar(scalar) if scalar in _WHOLE:
            return isinstance(datum, int) and not isinstance(datum, bool)
        case Decimal():
            return isinstance(datum, Number)
        case Time():
            return isinstance(datum, time)
        case Timestamp(_, utc):
            return isinstance(datum, datetime) and (datum.tzinfo is not None) == utc
        case Duration(_, False):
            return isinstance(datum, timedelta)
    return False


def _matches_raw_value(kind: Type, datum: Any) -> bool:
    if isinstance(datum, str):
        return _is_text_of(kind, datum)
    whole = isinstance(datum, int) and not isinstance(datum, bool)
    match kind:
        case (
            Scalar(ScalarKind.FLOAT32 | ScalarKind.FLOAT64 | ScalarKind.DATE)
            | Time()
            | Timestamp()
            | Duration(_, False)
        ):
            return whole
        case Decimal():
            return whole or isinstance(datum, bytes | bytearray)
        case Duration(_, True):
            return isinstance(datum, bytes) and len(datum) == 12
        case Scalar(ScalarKind.UUID):
            return isinstance(datum, bytes) and len(datum) == 16
    return False


def _is_text_of(kind: Type, text: str) -> bool:
    """Return whether a text is the JSON text of a datum of the type."""
    try:
        match kind:
            case Scalar(ScalarKind.UUID):
                UUID(text)
            case Scalar(ScalarKind.DATE):
                scalar_text.parse_date(text)
            case Time(unit):
                scalar_text.parse_time(text, unit)
            case Timestamp(unit, utc):
                scalar_text.parse_timestamp(text, unit, utc=utc)
            case Decimal(_, scale):
                scalar_text.parse_decimal(text, scale)
            case _:
                return False
    except (ValueError, ArithmeticError):
        return False
    return True
