"""Strings and numbers: which keywords stand for which type, in both directions.

    format date, date-time, uuid, duration      date, timestamp in UTC, UUID, span of months, days and milliseconds
    format time-local, date-time-local          time of day, timestamp on a wall clock (names of the OpenAPI registry)
    format decimal and its pattern              decimal: text, so that no digit is lost to a reader's floating point
    contentEncoding base64                      bytes; with the pattern of a length, that many bytes
    minimum and maximum                         the integer of that width where they are its bounds, else the first of
                                                int32, int64, uint64 that holds what they allow
    format float, double                        float32, float64 (names of the OpenAPI registry)

`format` and `contentEncoding` assert nothing in JSON Schema, so text that contradicts them is valid data with no place
in those types: every one of them is a loss of data. A pattern that Stele itself writes asserts what it says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal as Number
from math import ceil, floor, isfinite
from typing import Any, Final

from stele.errors import CannotConvert
from stele.formats.conversion.json_values import INTEGERS
from stele.formats.conversion.model import Decimal, Duration, Scalar, ScalarKind, Time, Timestamp, TimeUnit, Type
from stele.formats.conversion.scalar_text import EXACT_CONTEXT
from stele.formats.jsonschema.json_text import Json

FORMATS: Final[Mapping[str, Type]] = {
    "date": Scalar(ScalarKind.DATE),
    "date-time": Timestamp(TimeUnit.MICRO),
    "date-time-local": Timestamp(TimeUnit.MICRO, utc=False),
    "time-local": Time(TimeUnit.MICRO),
    "duration": Duration(TimeUnit.MILLI, calendar=True),
    "uuid": Scalar(ScalarKind.UUID),
}
"""Types that are strings of a format."""

NUMBER_FORMATS: Final[Mapping[str, ScalarKind]] = {
    "float": ScalarKind.FLOAT32,
    "double": ScalarKind.FLOAT64,
    "int32": ScalarKind.INT32,
    "int64": ScalarKind.INT64,
}
"""Types that are numbers of a format."""

STRING_CONSTRAINTS: Final = ("minLength", "maxLength", "pattern", "format", "contentEncoding")
NUMBER_CONSTRAINTS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")

_DECIMAL: Final = re.compile(r"\^-\?\(0\|\[1-9\]\[0-9\]\{0,(\d{1,5})\}\)(?:\(\\\.\[0-9\]\{1,(\d{1,5})\}\)\?)?\$")
_FRACTION: Final = re.compile(r"\^-\?0\(\\\.\[0-9\]\{1,(\d{1,5})\}\)\?\$")
_FIXED: Final = re.compile(r"\^\[A-Za-z0-9\+/\]\{(\d{1,9})\}(={0,2})\$")
_MAX_REPEAT: Final = 1_000
"""Longest repetition in a written pattern; engines limit it."""

AddLoss = Callable[..., None]
"""Notes a loss: (what, why, data=…)."""

TypeWithConstraints = tuple[Type, dict[str, Any]]
"""A type, and the keywords left over as constraints."""


def to_builtin(value: Json) -> Any:
    """Return a JSON value with numbers as int or float. Raises `CannotConvert` for numbers beyond a double."""
    if isinstance(value, dict):
        return {name: to_builtin(member) for name, member in value.items()}
    if isinstance(value, list):
        return [to_builtin(item) for item in value]
    if not isinstance(value, Number):
        return value
    if value.adjusted() > 308 or not isfinite(float(value)):
        raise CannotConvert(f"the number {str(value)[:40]} is beyond the range of a double")
    return int(value) if value == value.to_integral_value(context=EXACT_CONTEXT) else float(value)


def string_type(schema: Mapping[str, Json], lose: AddLoss) -> TypeWithConstraints | int:
    """Return the type of a string; a number is the size of a fixed-size byte string."""
    rest = {key: to_builtin(schema[key]) for key in STRING_CONSTRAINTS if key in schema}
    pattern = schema.get("pattern")
    word = schema.get("format")
    if schema.get("contentEncoding") == "base64":
        del rest["contentEncoding"]
        size = _parse_fixed_pattern(pattern)
        if size is not None:
            return size
        lose("FORMAT", "`contentEncoding` asserts nothing: text that is not base64 has no place.", data=True)
        return Scalar(ScalarKind.BYTES), rest
    if word == "decimal" and isinstance(pattern, str):
        found = parse_decimal_pattern(pattern)
        if found is not None:
            return found, {key: value for key, value in rest.items() if key not in ("format", "pattern")}
    if isinstance(word, str) and word in FORMATS:
        del rest["format"]
        lose("FORMAT", f"`format` asserts nothing: text that is no {word} has no place.", data=True)
        return FORMATS[word], rest
    return Scalar(ScalarKind.STRING), rest


def number_type(schema: Mapping[str, Json], lose: AddLoss, *, whole: bool) -> TypeWithConstraints:
    """Return the type of a number or integer."""
    rest = _number_constraints(schema)
    word = NUMBER_FORMATS.get(str(schema.get("format")))
    low, high = _integer_bounds(rest)
    if not whole:
        if word in (ScalarKind.FLOAT32, ScalarKind.FLOAT64):
            lose("FORMAT", f"`format` asserts nothing: numbers beyond {word.value} have no place.", data=True)
            return Scalar(word), rest
        return Scalar(ScalarKind.NUMBER), rest
    if low is None or high is None:
        if word in (ScalarKind.INT32, ScalarKind.INT64):
            lose("FORMAT", f"`format` asserts nothing: numbers beyond {word.value} have no place.", data=True)
            return Scalar(word), rest
        return Scalar(ScalarKind.INTEGER), rest
    for kind, bounds in INTEGERS.items():
        if (low, high) == bounds:
            return Scalar(kind), {key: rest[key] for key in ("multipleOf",) if key in rest}
    for kind in (ScalarKind.INT32, ScalarKind.INT64, ScalarKind.UINT64):
        least, greatest = INTEGERS[kind]
        if least <= low and high <= greatest:
            return Scalar(kind), rest
    return Scalar(ScalarKind.INTEGER), rest


def _number_constraints(schema: Mapping[str, Json]) -> dict[str, Any]:
    """Return the keywords on numbers in the form of today's drafts; draft-04 marks exclusive bounds by a boolean."""
    rest = {key: to_builtin(schema[key]) for key in NUMBER_CONSTRAINTS if key in schema}
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(rest.get(exclusive), bool) and rest.pop(exclusive) and bound in rest:
            rest[exclusive] = rest.pop(bound)
    return {key: value for key, value in rest.items() if not isinstance(value, bool)}


def _integer_bounds(rest: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return the least and greatest whole number allowed; None without a bound or for a huge one."""
    lows = [ceil(rest["minimum"])] if _is_writable_bound(rest.get("minimum")) else []
    lows += [floor(rest["exclusiveMinimum"]) + 1] if _is_writable_bound(rest.get("exclusiveMinimum")) else []
    highs = [floor(rest["maximum"])] if _is_writable_bound(rest.get("maximum")) else []
    highs += [ceil(rest["exclusiveMaximum"]) - 1] if _is_writable_bound(rest.get("exclusiveMaximum")) else []
    return max(lows, default=None), min(highs, default=None)


def _is_writable_bound(value: Any) -> bool:
    return isinstance(value, int | float) and Number(value).adjusted() < 30


def decimal_pattern(kind: Decimal) -> str | None:
    """Return the pattern of a decimal's text; None where it is not bounded, or too long for one."""
    if kind.precision is None or kind.precision > _MAX_REPEAT:
        return None
    fraction = rf"(\.[0-9]{{1,{kind.scale}}})?" if kind.scale else ""
    whole = kind.precision - kind.scale
    return rf"^-?(0|[1-9][0-9]{{0,{whole - 1}}}){fraction}$" if whole else f"^-?0{fraction}$"


def parse_decimal_pattern(pattern: str) -> Decimal | None:
    """Return the decimal for which `decimal_pattern` returns this pattern, None for other patterns."""
    found = _FRACTION.fullmatch(pattern)
    if found:
        return Decimal(int(found[1]), int(found[1]))
    found = _DECIMAL.fullmatch(pattern)
    if not found:
        return None
    scale = int(found[2] or 0)
    return Decimal(int(found[1]) + 1 + scale, scale)


def fixed_pattern(size: int) -> str:
    """Return the pattern of the base64 text of that many bytes."""
    padding = -size % 3
    return f"^[A-Za-z0-9+/]{{{(size + padding) // 3 * 4 - padding}}}{'=' * padding}$"


def _parse_fixed_pattern(pattern: Json) -> int | None:
    found = _FIXED.fullmatch(pattern) if isinstance(pattern, str) else None
    if found is None or (int(found[1]) + len(found[2])) % 4:
        return None
    return (int(found[1]) + len(found[2])) // 4 * 3 - len(found[2])
