"""Dates, times, durations and decimals as text and in parts. Conversions are exact and cover all values.

The scalar half of `stele.formats.conversion.json_values`:

    day        2024-01-31; years outside 0000 to 9999 with a sign and six or more digits (ISO 8601, expanded)
    time       12:30:00.5, a fraction only if not zero; beyond a day the hours exceed 23, before it with a minus sign
    moment     2024-01-31T12:30:00.5Z, without Z if there is no time zone (RFC 3339); read with any offset
    span       PT1.5S; separate months, days and milliseconds are P1M2DT0.003S (ISO 8601)
    decimal    12.50, with as many digits behind the point as the scale says

Functions that read raise ValueError for any other text. A text that they accept is written back with the same value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from decimal import Context, InvalidOperation
from decimal import Decimal as Number
from typing import Any, Final

from stele.formats.conversion.model import Decimal, Duration, Scalar, ScalarKind, Time, Timestamp, TimeUnit, Type

SECOND_DIGITS: Final = {TimeUnit.SECOND: 0, TimeUnit.MILLI: 3, TimeUnit.MICRO: 6, TimeUnit.NANO: 9}
"""Number of decimal places of a second, by unit."""

MAX_DIGITS: Final = 10_000
"""Maximum number of digits of a decimal that is written as text."""

_CYCLE_YEARS: Final = 400
_CYCLE_DAYS: Final = 146_097
_EPOCH: Final = date(1970, 1, 1).toordinal()
EXACT_CONTEXT: Final = Context(prec=2 * MAX_DIGITS, Emax=10 * MAX_DIGITS, Emin=-10 * MAX_DIGITS)
"""Arithmetic context in which moving the decimal point never rounds."""

_DAY: Final = re.compile(r"(\d{4}|[+-]\d{6,12})-(\d\d)-(\d\d)", re.ASCII)
_TIME: Final = re.compile(r"(-?)(\d{2,16}):([0-5]\d):([0-5]\d)(?:\.(\d{1,9}))?", re.ASCII)
_MOMENT: Final = re.compile(r"([^Tt ]+)[Tt ]([\d:.]+)([Zz]|[+-]\d\d:[0-5]\d)?", re.ASCII)
_SPAN: Final = re.compile(r"(-?)PT(\d{1,20})(?:\.(\d{1,9}))?S", re.ASCII)
_CALENDAR: Final = re.compile(r"P(\d{1,10})M(\d{1,10})DT(\d{1,10})(?:\.(\d{1,3}))?S", re.ASCII)
_DECIMAL: Final = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)


def format_date(days: int) -> str:
    """Return the text of a day, given as days since 1970-01-01."""
    cycles, rest = divmod(days, _CYCLE_DAYS)
    day = date.fromordinal(_EPOCH + rest)
    year = day.year + cycles * _CYCLE_YEARS
    year_text = f"{year:04}" if 0 <= year <= 9999 else f"{year:+07}"
    return f"{year_text}-{day.month:02}-{day.day:02}"


def parse_date(text: str) -> int:
    """Return the day of a text as days since 1970-01-01."""
    match = _require_match(_DAY, text)
    cycles, year = divmod(int(match[1]) - 1970, _CYCLE_YEARS)
    return date(year + 1970, int(match[2]), int(match[3])).toordinal() - _EPOCH + cycles * _CYCLE_DAYS


def format_time(count: int, unit: TimeUnit) -> str:
    """Return the text of a time of day, given as units since midnight."""
    seconds, fraction = divmod(abs(count), 10 ** SECOND_DIGITS[unit])
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    return f"{'-' * (count < 0)}{hours:02}:{minute:02}:{second:02}{_format_fraction(fraction, unit)}"


def parse_time(text: str, unit: TimeUnit) -> int:
    """Return the time of day of a text as units since midnight."""
    match = _require_match(_TIME, text)
    seconds = (int(match[2]) * 60 + int(match[3])) * 60 + int(match[4])
    return _count_units(match[1], seconds, match[5], unit)


def format_timestamp(count: int, unit: TimeUnit, *, utc: bool) -> str:
    """Return the text of a point in time (utc) or of a local time, given as units since 1970-01-01T00:00:00."""
    days, rest = divmod(count, 86_400 * 10 ** SECOND_DIGITS[unit])
    return f"{format_date(days)}T{format_time(rest, unit)}{'Z' * utc}"


def parse_timestamp(text: str, unit: TimeUnit, *, utc: bool) -> int:
    """Return the units since 1970-01-01T00:00:00 of a text, in UTC or in the same local time."""
    match = _require_match(_MOMENT, text)
    if (match[3] is not None) != utc:
        raise ValueError(f"{text!r} has {'no offset' if utc else 'an offset'}")
    size: int = 10 ** SECOND_DIGITS[unit]
    time = parse_time(match[2], unit)
    if time >= 86_400 * size:
        raise ValueError(f"{text!r} lies beyond its day")
    return parse_date(match[1]) * 86_400 * size + time - _parse_offset(match[3] or "Z") * size


def format_duration(count: int, unit: TimeUnit) -> str:
    """Return the text of a duration of an exact length."""
    seconds, fraction = divmod(abs(count), 10 ** SECOND_DIGITS[unit])
    return f"{'-' * (count < 0)}PT{seconds}{_format_fraction(fraction, unit)}S"


def parse_duration(text: str, unit: TimeUnit) -> int:
    """Return the units of a duration that is written in seconds."""
    match = _require_match(_SPAN, text)
    return _count_units(match[1], int(match[2]), match[3], unit)


def format_calendar_duration(months: int, days: int, millis: int) -> str:
    """Return the text of a duration with separate months, days and milliseconds."""
    seconds, fraction = divmod(millis, 1000)
    return f"P{months}M{days}DT{seconds}{_format_fraction(fraction, TimeUnit.MILLI)}S"


def parse_calendar_duration(text: str) -> tuple[int, int, int]:
    """Return (months, days, milliseconds) of a text."""
    match = _require_match(_CALENDAR, text)
    return int(match[1]), int(match[2]), _count_units("", int(match[3]), match[4], TimeUnit.MILLI)


def format_decimal(value: Number, scale: int | None) -> str:
    """Return the text of a decimal, without exponent; scale None keeps the decimal places it has."""
    if not value.is_finite() or abs(value.adjusted()) > MAX_DIGITS:
        raise ValueError(f"{value} cannot be written out")
    if scale is not None:
        if scale > MAX_DIGITS:
            raise ValueError(f"{scale} decimal places are not written out")
        value = value.quantize(Number((0, (1,), -scale)), context=EXACT_CONTEXT)
    return format(abs(value) if value == 0 else value, "f")


def decimal_from_unscaled(unscaled: int, scale: int) -> Number:
    """Return the decimal with that many decimal places. Raises ValueError when it has too many digits."""
    if scale > MAX_DIGITS or unscaled.bit_length() > 4 * MAX_DIGITS:
        raise ValueError(f"a decimal of more than {MAX_DIGITS} digits is not written out")
    return Number(unscaled).scaleb(-scale, EXACT_CONTEXT)


def parse_decimal(text: str, scale: int | None) -> Number:
    """Return the decimal of a text. Raises ValueError when it has more decimal places than scale (None: no limit)."""
    if len(text) > MAX_DIGITS or not _DECIMAL.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not a decimal")
    value = Number(text)
    try:
        exact = scale is None or value == value.quantize(Number((0, (1,), -scale)), context=EXACT_CONTEXT)
    except InvalidOperation:
        exact = False
    if not exact:
        raise ValueError(f"{text[:40]!r} has more than {scale} decimal places")
    return value


def _require_match(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    match = pattern.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:40]!r} is not in the expected notation")
    return match


def _format_fraction(fraction: int, unit: TimeUnit) -> str:
    return f".{fraction:0{SECOND_DIGITS[unit]}}".rstrip("0") if fraction else ""


def _count_units(sign: str, seconds: int, fraction: str | None, unit: TimeUnit) -> int:
    places = SECOND_DIGITS[unit]
    digits = (fraction or "").rstrip("0")
    if len(digits) > places:
        raise ValueError(f"more than {places} digits of a second")
    count: int = seconds * 10**places + int(digits.ljust(places, "0") or 0)
    return -count if sign else count


def _parse_offset(text: str) -> int:
    """Return the offset of a time zone in seconds east of Greenwich."""
    if text in "Zz":
        return 0
    seconds = int(text[1:3]) * 3600 + int(text[4:6]) * 60
    return -seconds if text[0] == "-" else seconds


# --- in parts ---------------------------------------------------------------------------------------------------------


_SECONDS: Final = re.compile(r"(-?)([0-9]+(?:\.[0-9]{1,9})?)s")
_CAPITAL: Final = re.compile("[A-Z]")
_DAY_NANOS: Final = 86_400 * 10**9


class Nanos(int):
    """Nanoseconds of a day, since 1970, or of a span: Python's own types cannot hold them.

    The type lets a codec distinguish them from a count in another unit.
    """


def text_from_parts(kind: Type, parts: Any) -> str | None:
    """Return the neutral text of a value in parts; None for parts that make no value of the type, such as a day 0."""
    try:
        match kind:
            case Duration(unit, False) if isinstance(parts, str) and (match := _SECONDS.fullmatch(parts)):
                return format_duration(parse_duration(f"{match[1]}PT{match[2]}S", unit), unit)
            case Scalar(ScalarKind.DATE) if isinstance(parts, Mapping):
                return format_date(_days_from_parts(parts))
            case Time(TimeUnit.NANO) if isinstance(parts, Mapping):
                return format_time(_nanos_from_parts(parts), TimeUnit.NANO)
            case Timestamp(TimeUnit.NANO, False) if isinstance(parts, Mapping):
                return format_timestamp(
                    _days_from_parts(parts) * _DAY_NANOS + _nanos_from_parts(parts), TimeUnit.NANO, utc=False
                )
            case Decimal() if isinstance(parts, Mapping):
                return format_decimal(_decimal_from_parts(parts), None)
    except (KeyError, TypeError, ValueError, ArithmeticError):
        pass
    return None


def parse_field_mask(text: str) -> list[str]:
    """Return the paths of a field mask in Protobuf's JSON notation: `a.fooBar,b` is a.foo_bar and b."""
    return [_CAPITAL.sub(lambda match: f"_{match[0].lower()}", path) for path in text.split(",")] if text else []


def date_to_parts(days: int) -> dict[str, int]:
    """Return year, month and day, from days since 1970-01-01. Raises ValueError outside the years 1 to 9999."""
    try:
        day = date.fromordinal(date(1970, 1, 1).toordinal() + days)
    except OverflowError as error:
        raise ValueError(str(error)) from None
    return {"year": day.year, "month": day.month, "day": day.day}


def time_to_parts(nanos: int) -> dict[str, int]:
    """Return hours, minutes, seconds and nanos, from nanoseconds since midnight. Raises ValueError beyond a day."""
    if not 0 <= nanos < _DAY_NANOS:
        raise ValueError(f"{nanos} ns are no time of day")
    seconds, rest = divmod(nanos, 10**9)
    return {"hours": seconds // 3600, "minutes": seconds // 60 % 60, "seconds": seconds % 60, "nanos": rest}


def timestamp_to_parts(nanos: int) -> dict[str, int]:
    """Return the parts of a day and of a time of day, from nanoseconds since 1970-01-01T00:00:00.

    Raises ValueError outside the years 1 to 9999.
    """
    days, rest = divmod(nanos, _DAY_NANOS)
    return date_to_parts(days) | time_to_parts(rest)


def decimal_to_parts(number: Number) -> dict[str, Any]:
    """Return unscaled value (big-endian two's complement), precision and scale. Raises ValueError unless finite."""
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{number} is not a decimal number")
    scale = max(0, -exponent)
    unscaled = int(number.scaleb(scale, EXACT_CONTEXT))
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
    return decimal_from_unscaled(int.from_bytes(value, "big", signed=True), parts["scale"])
