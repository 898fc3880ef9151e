"""Data in neutral JSON: one mapping between the Python values codecs take and JSON, led by a model.

    null, boolean, string, whole numbers    as they are, whole numbers exact at any size
    float32, float64, number                numbers; what JSON has no number for is "NaN", "Infinity", "-Infinity"
    bytes, fixed                            base64 text (RFC 4648, with padding)
    decimal                                 text: "12.50"; the places of the scale
    uuid                                    text, lower case with hyphens; text stays as it is
    date, time, timestamp, duration         text; see `stele.formats.conversion.texts`
    enumeration                             the symbol
    array, map, record                      array, object, object; keys that are no text are written as their JSON
    union                                   the value itself, unmarked
    any                                     the value; inside it, types as Python has them

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
from stele.formats.conversion import parts, texts
from stele.formats.conversion.fit import fits
from stele.formats.conversion.model import (
    ABSENT,
    Array,
    Decimal,
    Duration,
    Enumeration,
    Fixed,
    Kind,
    Map,
    Model,
    Named,
    Option,
    Record,
    Scalar,
    Time,
    Timestamp,
    Type,
    Union,
    Unit,
)

MAX_DEPTH: Final = 150
"""Values inside values."""

INTEGERS: Final[Mapping[Kind, tuple[int, int]]] = {
    kind: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if kind.value.startswith("i") else (0, 2**bits - 1)
    for kind, bits in (
        (Kind.INT8, 8),
        (Kind.INT16, 16),
        (Kind.INT32, 32),
        (Kind.INT64, 64),
        (Kind.UINT8, 8),
        (Kind.UINT16, 16),
        (Kind.UINT32, 32),
        (Kind.UINT64, 64),
    )
}
"""Least and greatest value of every integer of a fixed width."""

FLOATS: Final = frozenset({Kind.FLOAT32, Kind.FLOAT64})
_NUMBERS: Final = FLOATS | {Kind.NUMBER}
_SPECIAL: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MIDNIGHT: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - wall clocks have no zone on purpose
_DAY_ZERO: Final = date(1970, 1, 1).toordinal()


def plain(model: Model, datum: Any, kind: Type | None = None) -> Any:
    """The JSON value of a datum of the model's root (or of kind, a type of the model).

    Takes the Python types of all codecs, raw values of logical types among them (a day as int or as year, month and
    day, a decimal as bytes), and a branch chosen as `(name, datum)`. What does not fit the model is written as Python
    has it. Raises `DataError` for what has no JSON value.
    """
    try:
        return _Plain(model).value(kind or model.root, datum, 0)
    except (ValueError, ArithmeticError) as error:
        raise DataError(f"the datum has no JSON value: {error}") from None


def datum(model: Model, value: Any, kind: Type | None = None) -> Any:
    """The Python value a JSON value stands for; the way back from `plain`.

    date, time, datetime, UUID, Decimal and bytes where the model says so; days and units as int, nanoseconds as
    `Nanos`, where Python's types do not reach. Raises `EncodeError` when the value is none of the type.
    """
    try:
        return _Datum(model).value(kind or model.root, value, 0)
    except _Misfit as misfit:
        raise EncodeError(str(misfit)) from None


def bare(value: Any) -> Any:
    """The JSON value of a datum no model is known for. Raises `DataError`."""
    try:
        return _bare(value, 0)
    except (ValueError, ArithmeticError) as error:
        raise DataError(f"the datum has no JSON value: {error}") from None


def micros_of(moment: datetime) -> int:
    """Microseconds since 1970, in UTC where the moment has a zone."""
    return (moment - (_MIDNIGHT if moment.tzinfo is None else _EPOCH)) // timedelta(microseconds=1)


class _Misfit(Exception):
    pass


# --- to JSON --------------------------------------------------------------------------------------------------------


class _Plain:
    def __init__(self, model: Model) -> None:
        self.types = model.types

    def value(self, kind: Type, datum: Any, depth: int) -> Any:
        """The JSON value of a datum of a type."""
        if depth > MAX_DEPTH:
            raise DataError(f"the datum is nested deeper than {MAX_DEPTH} levels")
        match kind:
            case Union() if datum is not None:
                option, datum = _chosen(kind, datum, self.types)
                return self.value(option.type, datum, depth + 1) if option else _bare(datum, depth)
            case Named() if isinstance(datum, Mapping):
                return self._record(self.types[kind.name], datum, depth)
            case Named("google.protobuf.FieldMask") if isinstance(datum, str):
                return {"paths": parts.mask_paths(datum)}
            case Array() if isinstance(datum, list | tuple):
                return [self.value(kind.items, item, depth + 1) for item in datum]
            case Map() if isinstance(datum, Mapping):
                return {
                    _key(self.value(kind.keys, key, depth)): self.value(kind.values, item, depth + 1)
                    for key, item in datum.items()
                }
        if isinstance(datum, Number) and isinstance(kind, Scalar) and kind.kind in _NUMBERS and datum.is_finite():
            return int(datum) if datum == datum.to_integral_value(context=texts.EXACT) else float(datum)
        text = _text(kind, datum)
        return _bare(datum, depth) if text is None else text

    def _record(self, declared: Any, datum: Mapping[str, Any], depth: int) -> Any:
        if not isinstance(declared, Record):
            return _bare(datum, depth)
        types = {field.name: field.type for field in declared.fields}
        return {
            name: self.value(types[name], item, depth + 1) if name in types else _bare(item, depth + 1)
            for name, item in datum.items()
        }


def _chosen(kind: Union, datum: Any, types: Mapping[str, Any]) -> tuple[Option | None, Any]:
    """The option a datum goes to: the one it names, the first of its own Python type, the first it converts to."""
    if isinstance(datum, tuple) and len(datum) == 2 and isinstance(datum[0], str):
        named = [option for option in kind.options if datum[0] in (option.name, getattr(option.type, "name", ""))]
        if named:
            return named[0], datum[1]
    for strict in (True, False):
        for option in kind.options:
            if fits(types, option.type, datum, raw=not strict):
                return option, datum
    return None, datum


def _text(kind: Type, datum: Any) -> str | None:
    """The text of a scalar that is one in JSON, also from its raw value; None for everything else."""
    whole = isinstance(datum, int) and not isinstance(datum, bool)
    match kind:
        case Scalar(Kind.DATE) if whole:
            return texts.day_text(datum)
        case Time(unit) if whole:
            return texts.time_text(datum, unit)
        case Timestamp(unit, utc) if whole:
            return texts.moment_text(datum, unit, utc=utc)
        case Duration(unit, False) if whole:
            return texts.span_text(datum, unit)
        case Duration(_, True) if isinstance(datum, bytes) and len(datum) == 12:
            return texts.calendar_text(*(int.from_bytes(datum[at : at + 4], "little") for at in (0, 4, 8)))
        case Decimal() if isinstance(datum, bytes):
            return texts.decimal_text(texts.scaled(int.from_bytes(datum, "big", signed=True), kind.scale), kind.scale)
        case Decimal() if isinstance(datum, Number) or whole:
            return texts.decimal_text(Number(datum), kind.scale if kind.precision is not None else None)
        case Scalar(Kind.UUID) if isinstance(datum, bytes):
            return str(UUID(bytes=datum))
    return parts.text_of(kind, datum)


def _bare(value: Any, depth: int) -> Any:
    """A value by its Python type alone."""
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
            return texts.decimal_text(value, None)
        case UUID():
            return str(value)
        case datetime():
            return texts.moment_text(micros_of(value), Unit.MICRO, utc=value.tzinfo is not None)
        case date():
            return texts.day_text(value.toordinal() - _DAY_ZERO)
        case time():
            return texts.time_text(_micros(value), Unit.MICRO)
        case timedelta():
            return texts.span_text(value // timedelta(microseconds=1), Unit.MICRO)
        case Mapping():
            return {_key(_bare(key, depth + 1)): _bare(item, depth + 1) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_bare(item, depth + 1) for item in value]
    raise DataError(f"{type(value).__name__} has no JSON value")


def _key(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key)


def _micros(value: time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


# --- from JSON ------------------------------------------------------------------------------------------------------


class _Datum:
    def __init__(self, model: Model) -> None:
        self.types = model.types

    def value(self, kind: Type, value: Any, depth: int) -> Any:
        """The Python value. Null passes everywhere: whether it may stand there is the codec's question."""
        if depth > MAX_DEPTH:
            raise _Misfit(f"the value is nested deeper than {MAX_DEPTH} levels")
        if value is None:
            return None
        match kind:
            case Scalar(kind=scalar):
                return _scalar(scalar, value)
            case Named(name):
                return self._named(self.types[name], value, depth)
            case Array():
                return [self.value(kind.items, item, depth + 1) for item in _expect(value, list)]
            case Map():
                return {
                    self._key(kind.keys, key): self.value(kind.values, item, depth + 1)
                    for key, item in _expect(value, dict).items()
                }
            case Union():
                return self._union(kind, value, depth)
        return _read(kind, _expect(value, str))

    def _named(self, declared: Any, value: Any, depth: int) -> Any:
        if isinstance(declared, Enumeration):
            if not any(symbol.name == value for symbol in declared.symbols):
                raise _Misfit(f"{_shown(value)} is no symbol of {declared.name}")
            return value
        if isinstance(declared, Fixed):
            raw = _scalar(Kind.BYTES, value)
            if len(raw) != declared.size:
                raise _Misfit(f"{_shown(value)} is not {declared.size} bytes")
            return raw
        members = _expect(value, dict)
        types = {field.name: field.type for field in declared.fields}
        for field in declared.fields:
            if field.required and field.default is ABSENT and field.name not in members:
                raise _Misfit(f"the member {field.name!r} of {declared.name} is missing")
        unknown = next((name for name in members if name not in types), None)
        if unknown is not None:
            raise _Misfit(f"{declared.name} has no member {unknown!r}")
        return {name: self.value(types[name], item, depth + 1) for name, item in members.items()}

    def _key(self, keys: Scalar, key: str) -> Any:
        if keys.kind in (Kind.STRING, Kind.UUID, Kind.BYTES, Kind.DATE):
            return _scalar(keys.kind, key)
        try:
            return _scalar(keys.kind, json.loads(key))
        except ValueError:
            raise _Misfit(f"{_shown(key)} is no key") from None

    def _union(self, kind: Union, value: Any, depth: int) -> Any:
        """The first option that takes the value: the least ambiguous one can do without marks."""
        for option in kind.options:
            try:
                return self.value(option.type, value, depth + 1)
            except _Misfit:
                continue
        raise _Misfit(f"{_shown(value)} fits no option of the union")


def _read(kind: Type, text: str) -> Any:
    """A scalar that is text in JSON."""
    try:
        match kind:
            case Decimal():
                number = texts.decimal_of(text, kind.scale if kind.precision is not None else None)
                if kind.precision is not None and number and number.adjusted() + 1 + kind.scale > kind.precision:
                    raise _Misfit(f"{_shown(text)} has more than {kind.precision} digits")
                return number
            case Time(unit):
                count = texts.time_of(text, unit)
                day = range(86_400 * 10 ** texts.DIGITS[unit])
                if unit is Unit.NANO:
                    return parts.Nanos(count)
                return (_MIDNIGHT + _span(count, unit)).time() if count in day else count
            case Timestamp(unit, utc):
                return _moment(texts.moment_of(text, unit, utc=utc), unit, utc=utc)
            case Duration(unit, calendar):
                if calendar:
                    return b"".join(part.to_bytes(4, "little") for part in texts.calendar_of(text))
                return parts.Nanos(texts.span_of(text, unit)) if unit is Unit.NANO else texts.span_of(text, unit)
    except (ValueError, ArithmeticError) as error:
        raise _Misfit(str(error)) from None
    raise AssertionError(kind)


def _moment(count: int, unit: Unit, *, utc: bool) -> datetime | int:
    """Python's own type where it holds the value, else the count."""
    if unit is Unit.NANO:
        return parts.Nanos(count)
    try:
        return (_EPOCH if utc else _MIDNIGHT) + _span(count, unit)
    except OverflowError:
        return count


def _span(count: int, unit: Unit) -> timedelta:
    return timedelta(microseconds=count * 10 ** (6 - texts.DIGITS[unit]))


def _scalar(kind: Kind, value: Any) -> Any:
    match kind:
        case Kind.ANY:
            return value
        case Kind.BOOLEAN:
            return _expect(value, bool)
        case Kind.STRING:
            return _expect(value, str)
        case Kind.FLOAT32 | Kind.FLOAT64 | Kind.NUMBER:
            return _number(value, kind)
        case Kind.BYTES | Kind.UUID | Kind.DATE:
            return _from_text(kind, _expect(value, str))
        case Kind.NULL:
            raise _Misfit(f"{_shown(value)} is not null")
    if not isinstance(value, int) or isinstance(value, bool):
        raise _Misfit(f"{_shown(value)} is no whole number")
    least, greatest = INTEGERS.get(kind, (value, value))
    if not least <= value <= greatest:
        raise _Misfit(f"{value} is no {kind.value}")
    return value


def _number(value: Any, kind: Kind) -> Any:
    if kind in FLOATS and isinstance(value, str) and value in _SPECIAL:
        return _SPECIAL[value]
    if isinstance(value, bool) or not isinstance(value, int | float | Number):
        raise _Misfit(f"{_shown(value)} is no number")
    try:
        return value if kind is Kind.NUMBER else float(value)
    except OverflowError:
        raise _Misfit(f"{_shown(value)} is beyond every float") from None


def _from_text(kind: Kind, text: str) -> Any:
    try:
        if kind is Kind.BYTES:
            return base64.b64decode(text, validate=True)
        if kind is Kind.UUID:
            return UUID(text)
        days = texts.day_of(text)
    except (ValueError, binascii.Error):
        raise _Misfit(f"{_shown(text)} is no {kind.value}") from None
    return date.fromordinal(days + _DAY_ZERO) if 1 <= days + _DAY_ZERO <= date.max.toordinal() else days


def _expect(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise _Misfit(f"{_shown(value)} is no {kind.__name__}")
    return value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"
