"""Whether a Python value is a datum of a type: what chooses the option of a union a datum goes to."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal as Number
from typing import Any, Final
from uuid import UUID

from stele.formats.conversion import scalar_text
from stele.formats.conversion.model import (
    ABSENT,
    Array,
    Decimal,
    Duration,
    Enumeration,
    Fixed,
    Map,
    NamedType,
    RecordType,
    Scalar,
    ScalarKind,
    Time,
    Timestamp,
    Type,
    TypeReference,
    Union,
)

MAX_DEPTH: Final = 150
"""Values inside values that are looked at; what lies deeper does not fit."""

_WHOLE: Final = frozenset(kind for kind in ScalarKind if "int" in kind.value)


def matches_type(types: Mapping[str, NamedType], kind: Type, datum: Any, *, raw: bool, depth: int = 0) -> bool:
    """Whether a datum is of a type; raw lets int stand for float, and raw values for times and decimals, too."""
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
    """Whether a text is how a datum of the type is written in JSON."""
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
