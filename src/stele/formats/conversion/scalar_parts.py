"""Dates, times and decimals in parts, as languages without such types have them.

Protobuf writes a day as a message of year, month and day (`google.type.Date`), a decimal as a message of bytes and
scale (`confluent.type.Decimal`), and a span as text of its own (`1.5s`). Here they get their neutral text, and back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from decimal import Decimal as Number
from typing import Any, Final

from stele.formats.conversion import scalar_text
from stele.formats.conversion.model import Decimal, Duration, Scalar, ScalarKind, Time, Timestamp, TimeUnit, Type

_SPAN: Final = re.compile(r"(-?)([0-9]+(?:\.[0-9]{1,9})?)s")
_CAPITAL: Final = re.compile("[A-Z]")
_DAY_NANOS: Final = 86_400 * 10**9


class Nanos(int):
    """Nanoseconds, which Python's own types do not hold: of a day, since 1970, or of a span.

    A codec that takes them tells them from a count in some other unit.
    """


def text_from_parts(kind: Type, parts: Any) -> str | None:
    """The neutral text of a value in parts; None for parts that make no value of the type, such as a day 0."""
    try:
        match kind:
            case Duration(unit, False) if isinstance(parts, str) and (found := _SPAN.fullmatch(parts)):
                return scalar_text.format_duration(scalar_text.parse_duration(f"{found[1]}PT{found[2]}S", unit), unit)
            case Scalar(ScalarKind.DATE) if isinstance(parts, Mapping):
                return scalar_text.format_date(_days_from_parts(parts))
            case Time(TimeUnit.NANO) if isinstance(parts, Mapping):
                return scalar_text.format_time(_nanos_from_parts(parts), TimeUnit.NANO)
            case Timestamp(TimeUnit.NANO, False) if isinstance(parts, Mapping):
                return scalar_text.format_timestamp(
                    _days_from_parts(parts) * _DAY_NANOS + _nanos_from_parts(parts), TimeUnit.NANO, utc=False
                )
            case Decimal() if isinstance(parts, Mapping):
                return scalar_text.format_decimal(_decimal_from_parts(parts), None)
    except (KeyError, TypeError, ValueError, ArithmeticError):
        pass
    return None


def parse_field_mask(text: str) -> list[str]:
    """The paths of a field mask in Protobuf's JSON notation: `a.fooBar,b` is a.foo_bar and b."""
    return [_CAPITAL.sub(lambda found: f"_{found[0].lower()}", path) for path in text.split(",")] if text else []


def date_to_parts(days: int) -> dict[str, int]:
    """Year, month and day, from days since 1970-01-01. ValueError for a day before the year 1 or after 9999."""
    try:
        found = date.fromordinal(date(1970, 1, 1).toordinal() + days)
    except OverflowError as error:
        raise ValueError(str(error)) from None
    return {"year": found.year, "month": found.month, "day": found.day}


def time_to_parts(nanos: int) -> dict[str, int]:
    """Hours, minutes, seconds and nanos, from nanoseconds since midnight. ValueError beyond a day."""
    if not 0 <= nanos < _DAY_NANOS:
        raise ValueError(f"{nanos} ns are no time of day")
    seconds, rest = divmod(nanos, 10**9)
    return {"hours": seconds // 3600, "minutes": seconds // 60 % 60, "seconds": seconds % 60, "nanos": rest}


def timestamp_to_parts(nanos: int) -> dict[str, int]:
    """A day and a time of day, from nanoseconds since 1970-01-01T00:00:00. ValueError as `date_to_parts`."""
    days, rest = divmod(nanos, _DAY_NANOS)
    return date_to_parts(days) | time_to_parts(rest)


def decimal_to_parts(number: Number) -> dict[str, Any]:
    """Unscaled value (big-endian two's complement), precision and scale. ValueError for what is not finite."""
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{number} is no decimal number")
    scale = max(0, -exponent)
    unscaled = int(number.scaleb(scale, scalar_text.EXACT_CONTEXT))
    size = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    precision = max(len(digits) + max(0, exponent), scale)
    return {"value": unscaled.to_bytes(size, "big", signed=True), "precision": precision, "scale": scale}


def _days_from_parts(parts: Mapping[str, Any]) -> int:
    return date(parts["year"], parts["month"], parts["day"]).toordinal() - date(1970, 1, 1).toordinal()


def _nanos_from_parts(parts: Mapping[str, Any]) -> int:
    hours, minutes, seconds, nanos = (parts[name] for name in ("hours", "minutes", "seconds", "nanos"))
    if not (0 <= hours < 24 and 0 <= minutes < 60 and 0 <= seconds < 60 and 0 <= nanos < 10**9):
        raise ValueError("no time of day")
    total: int = ((hours * 60 + minutes) * 60 + seconds) * 10**9 + nanos
    return total


def _decimal_from_parts(parts: Mapping[str, Any]) -> Number:
    value = parts["value"]
    if isinstance(value, str):
        return Number(value)
    return scalar_text.decimal_from_unscaled(int.from_bytes(value, "big", signed=True), parts["scale"])
