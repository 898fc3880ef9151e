"""Times, days, spans and decimals as text, exact and total: the scalar half of `stele.formats.conversion.json_values`.

    day        2024-01-31; years beyond 0000 to 9999 with a sign and six or more digits (ISO 8601, expanded)
    time       12:30:00.5, a fraction where there is one; beyond a day the hours count on, before it stands a minus
    moment     2024-01-31T12:30:00.5Z, without Z for a wall clock (RFC 3339); read with any offset
    span       PT1.5S; months, days and milliseconds side by side are P1M2DT0.003S (ISO 8601)
    decimal    12.50, with as many digits behind the point as the scale says

Functions that read raise ValueError for any other text; what they take they give back unchanged.
"""

from __future__ import annotations

import re
from datetime import date
from decimal import Context, Decimal, InvalidOperation
from typing import Final

from stele.formats.conversion.model import TimeUnit

SECOND_DIGITS: Final = {TimeUnit.SECOND: 0, TimeUnit.MILLI: 3, TimeUnit.MICRO: 6, TimeUnit.NANO: 9}
"""Decimal places of a second."""

MAX_DIGITS: Final = 10_000
"""Decimals with more digits are not written out."""

_CYCLE_YEARS: Final = 400
_CYCLE_DAYS: Final = 146_097
_EPOCH: Final = date(1970, 1, 1).toordinal()
EXACT_CONTEXT: Final = Context(prec=2 * MAX_DIGITS, Emax=10 * MAX_DIGITS, Emin=-10 * MAX_DIGITS)
"""Arithmetic in which moving the point never rounds."""

_DAY: Final = re.compile(r"(\d{4}|[+-]\d{6,12})-(\d\d)-(\d\d)", re.ASCII)
_TIME: Final = re.compile(r"(-?)(\d{2,16}):([0-5]\d):([0-5]\d)(?:\.(\d{1,9}))?", re.ASCII)
_MOMENT: Final = re.compile(r"([^Tt ]+)[Tt ]([\d:.]+)([Zz]|[+-]\d\d:[0-5]\d)?", re.ASCII)
_SPAN: Final = re.compile(r"(-?)PT(\d{1,20})(?:\.(\d{1,9}))?S", re.ASCII)
_CALENDAR: Final = re.compile(r"P(\d{1,10})M(\d{1,10})DT(\d{1,10})(?:\.(\d{1,3}))?S", re.ASCII)
_DECIMAL: Final = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)


def format_date(days: int) -> str:
    """A day, counted from 1970-01-01."""
    cycles, rest = divmod(days, _CYCLE_DAYS)
    day = date.fromordinal(_EPOCH + rest)
    year = day.year + cycles * _CYCLE_YEARS
    shown = f"{year:04}" if 0 <= year <= 9999 else f"{year:+07}"
    return f"{shown}-{day.month:02}-{day.day:02}"


def parse_date(text: str) -> int:
    """Days since 1970-01-01."""
    found = _require_match(_DAY, text)
    cycles, year = divmod(int(found[1]) - 1970, _CYCLE_YEARS)
    return date(year + 1970, int(found[2]), int(found[3])).toordinal() - _EPOCH + cycles * _CYCLE_DAYS


def format_time(count: int, unit: TimeUnit) -> str:
    """A time of day, counted from midnight."""
    seconds, fraction = divmod(abs(count), 10 ** SECOND_DIGITS[unit])
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    return f"{'-' * (count < 0)}{hours:02}:{minute:02}:{second:02}{_format_fraction(fraction, unit)}"


def parse_time(text: str, unit: TimeUnit) -> int:
    """Units since midnight."""
    found = _require_match(_TIME, text)
    seconds = (int(found[2]) * 60 + int(found[3])) * 60 + int(found[4])
    return _count_units(found[1], seconds, found[5], unit)


def format_timestamp(count: int, unit: TimeUnit, *, utc: bool) -> str:
    """A point in time, or a date and time on a wall clock, counted from 1970-01-01T00:00:00."""
    days, rest = divmod(count, 86_400 * 10 ** SECOND_DIGITS[unit])
    return f"{format_date(days)}T{format_time(rest, unit)}{'Z' * utc}"


def parse_timestamp(text: str, unit: TimeUnit, *, utc: bool) -> int:
    """Units since 1970-01-01T00:00:00, in UTC or on the same wall clock."""
    found = _require_match(_MOMENT, text)
    if (found[3] is not None) != utc:
        raise ValueError(f"{text!r} has {'no offset' if utc else 'an offset'}")
    size: int = 10 ** SECOND_DIGITS[unit]
    time = parse_time(found[2], unit)
    if time >= 86_400 * size:
        raise ValueError(f"{text!r} lies beyond its day")
    return parse_date(found[1]) * 86_400 * size + time - _parse_offset(found[3] or "Z") * size


def format_duration(count: int, unit: TimeUnit) -> str:
    """A span of an exact length."""
    seconds, fraction = divmod(abs(count), 10 ** SECOND_DIGITS[unit])
    return f"{'-' * (count < 0)}PT{seconds}{_format_fraction(fraction, unit)}S"


def parse_duration(text: str, unit: TimeUnit) -> int:
    """Units of a span written in seconds."""
    found = _require_match(_SPAN, text)
    return _count_units(found[1], int(found[2]), found[3], unit)


def format_calendar_duration(months: int, days: int, millis: int) -> str:
    """A span of months, days and milliseconds side by side."""
    seconds, fraction = divmod(millis, 1000)
    return f"P{months}M{days}DT{seconds}{_format_fraction(fraction, TimeUnit.MILLI)}S"


def parse_calendar_duration(text: str) -> tuple[int, int, int]:
    """(months, days, milliseconds)."""
    found = _require_match(_CALENDAR, text)
    return int(found[1]), int(found[2]), _count_units("", int(found[3]), found[4], TimeUnit.MILLI)


def format_decimal(value: Decimal, scale: int | None) -> str:
    """A decimal without exponent; scale None keeps the places it has."""
    if not value.is_finite() or abs(value.adjusted()) > MAX_DIGITS:
        raise ValueError(f"{value} cannot be written out")
    if scale is not None:
        if scale > MAX_DIGITS:
            raise ValueError(f"{scale} decimal places are not written out")
        value = value.quantize(Decimal((0, (1,), -scale)), context=EXACT_CONTEXT)
    return format(abs(value) if value == 0 else value, "f")


def decimal_from_unscaled(unscaled: int, scale: int) -> Decimal:
    """The decimal with that many places. ValueError when it is too long to be written out."""
    if scale > MAX_DIGITS or unscaled.bit_length() > 4 * MAX_DIGITS:
        raise ValueError(f"a decimal of more than {MAX_DIGITS} digits is not written out")
    return Decimal(unscaled).scaleb(-scale, EXACT_CONTEXT)


def parse_decimal(text: str, scale: int | None) -> Decimal:
    """The decimal; ValueError when it has more places than the scale allows."""
    if len(text) > MAX_DIGITS or not _DECIMAL.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is no decimal")
    value = Decimal(text)
    try:
        exact = scale is None or value == value.quantize(Decimal((0, (1,), -scale)), context=EXACT_CONTEXT)
    except InvalidOperation:
        exact = False
    if not exact:
        raise ValueError(f"{text[:40]!r} has more than {scale} decimal places")
    return value


def _require_match(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:40]!r} is not in the expected notation")
    return found


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
    """Seconds east of Greenwich."""
    if text in "Zz":
        return 0
    seconds = int(text[1:3]) * 3600 + int(text[4:6]) * 60
    return -seconds if text[0] == "-" else seconds
