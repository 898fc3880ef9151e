"""Python values of scalar types: what fits, and conversion of logical types to and from the encoded value.

    null None · boolean bool · int, long int · float, double float · string str · bytes, fixed bytes · enum str
    decimal Decimal · uuid UUID · date date · time-* time · timestamp-* datetime in UTC · local-timestamp-* naive
    timestamps in nanoseconds, duration and big-decimal stay int and bytes: Python has no type that holds them

For a logical type the raw value (an int, bytes) is accepted too. Naive datetimes are rejected for timestamps, because
their time zone is not known.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from math import isfinite
from typing import Any, Final
from uuid import UUID

from stele.formats.avro.model import AvroEnum, AvroFixed, AvroPrimitive, LogicalType

Problem = str
"""What is wrong with a value, as the end of a sentence that starts with a path."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LOCAL_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - local timestamps have no zone on purpose
_DAY_ZERO: Final = date(1970, 1, 1).toordinal()
_LIMITS: Final = {"int": 2**31, "long": 2**63}
_MAX_FLOAT: Final = 3.4028235677973366e38
_MICROS: Final = {"millis": 1000, "micros": 1}

MAX_DIGITS: Final = 10_000
"""Maximum precision of decimals that are converted. Others stay bytes: converting millions of digits takes minutes."""

_EXACT: Final = Context(prec=MAX_DIGITS, Emax=10 * MAX_DIGITS, Emin=-10 * MAX_DIGITS)
"""Arithmetic context in which moving the decimal point never rounds."""


# --- from the wire --------------------------------------------------------------------------------------------------


def make_converter(logical: LogicalType | None) -> Callable[[Any], Any] | None:
    """Return a function from a raw value to the Python value of a logical type; None if none is needed.

    The function raises ValueError or OverflowError for values outside the range of the type.
    """
    if logical is None:
        return None
    family, _, unit = logical.name.rpartition("-")
    if logical.name == "decimal":
        return _decimal_reader(logical) if logical.precision <= MAX_DIGITS else None
    if logical.name == "uuid":
        return lambda raw: UUID(raw) if isinstance(raw, str) else UUID(bytes=raw)
    if logical.name == "date":
        return lambda raw: date.fromordinal(raw + _DAY_ZERO)
    if unit not in _MICROS:
        return None
    size = _MICROS[unit]
    if family == "timestamp":
        return lambda raw: _EPOCH + timedelta(microseconds=raw * size)
    if family == "local-timestamp":
        return lambda raw: _LOCAL_EPOCH + timedelta(microseconds=raw * size)
    return lambda raw: _make_time(raw * size)


def _make_time(micros: int) -> time:
    seconds, micros = divmod(micros, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return time(hour, minute, second, micros)


def _decimal_reader(logical: LogicalType) -> Callable[[bytes], Decimal]:
    limit = 10**logical.precision

    def read(raw: bytes) -> Decimal:
        unscaled = int.from_bytes(raw, "big", signed=True)
        if not -limit < unscaled < limit:
            raise ValueError(f"the number has more digits than {logical} holds")
        return Decimal(unscaled).scaleb(-logical.scale, _EXACT)

    return read


# --- to the wire ----------------------------------------------------------------------------------------------------


def to_raw_value(node: AvroPrimitive | AvroFixed, datum: Any) -> Any:
    """Return the raw value of a datum that fits a node with a logical type."""
    logical = node.logical
    if logical is None:
        return datum
    match datum:
        case Decimal():
            unscaled = int(datum.scaleb(logical.scale, _EXACT))
            size = node.size if isinstance(node, AvroFixed) else (unscaled + (unscaled < 0)).bit_length() // 8 + 1
            return unscaled.to_bytes(size, "big", signed=True)
        case UUID():
            return datum.bytes if isinstance(node, AvroFixed) else str(datum)
        case datetime():
            since = datum - (_LOCAL_EPOCH if datum.tzinfo is None else _EPOCH)
            return since // timedelta(microseconds=_MICROS[logical.name.rpartition("-")[2]])
        case date():
            return datum.toordinal() - _DAY_ZERO
        case time():
            seconds = (datum.hour * 60 + datum.minute) * 60 + datum.second
            return (seconds * 1_000_000 + datum.microsecond) // _MICROS[logical.name.rpartition("-")[2]]
    return datum


# --- what fits ------------------------------------------------------------------------------------------------------


def find_problem(node: AvroPrimitive | AvroFixed | AvroEnum, datum: Any) -> Problem | None:
    """Return why datum is no value of node; None when it is one."""
    if isinstance(node, AvroEnum):
        fits = isinstance(datum, str) and datum in node.symbols
        return None if fits else f"{describe_datum(datum)} is not a symbol of {node.name}"
    if node.logical is not None:
        why = _logical_problem(node, node.logical, datum)
        if why is not _RAW:
            return why
    if isinstance(node, AvroFixed):
        if isinstance(datum, (bytes, bytearray)) and len(datum) == node.size:
            return None
        return f"{describe_datum(datum)} is not {node.size} bytes"
    return _plain_problem(node.kind, datum)


def _plain_problem(kind: str, datum: Any) -> Problem | None:
    match kind:
        case "null":
            fits = datum is None
        case "boolean":
            fits = isinstance(datum, bool)
        case "int" | "long":
            fits = isinstance(datum, int) and not isinstance(datum, bool) and -_LIMITS[kind] <= datum < _LIMITS[kind]
        case "float":
            fits = _is_number(datum) and (abs(datum) < _MAX_FLOAT or (isinstance(datum, float) and not isfinite(datum)))
        case "double":
            fits = _is_number(datum) and (isinstance(datum, float) or abs(datum) < 2**1023)
        case "string":
            return _string_problem(datum)
        case _:
            fits = isinstance(datum, (bytes, bytearray))
    return None if fits else f"{describe_datum(datum)} is not {'an' if kind == 'int' else 'a'} {kind}"


def _is_number(datum: Any) -> bool:
    return isinstance(datum, (int, float)) and not isinstance(datum, bool)


def _string_problem(datum: Any) -> Problem | None:
    if not isinstance(datum, str):
        return f"{describe_datum(datum)} is not a string"
    try:
        datum.encode()
    except UnicodeEncodeError:
        return "the text has half a surrogate pair and cannot be encoded"
    return None


_RAW: Final = "raw"


def _logical_problem(node: AvroPrimitive | AvroFixed, logical: LogicalType, datum: Any) -> Problem | None:
    """Return the problem of a value of Python's matching type, or _RAW when datum must be judged as a raw value."""
    match datum:
        case Decimal() if logical.name == "decimal":
            return _decimal_problem(logical, datum)
        case UUID() if logical.name == "uuid":
            return None
        case str() if logical.name == "uuid" and node.kind == "string":
            try:
                UUID(datum)
            except ValueError:
                return f"{describe_datum(datum)} is not a UUID"
            return None
        case datetime():
            family, _, unit = logical.name.rpartition("-")
            if family not in ("timestamp", "local-timestamp") or unit not in _MICROS:
                return f"{describe_datum(datum)} is not a {logical}"
            if (datum.tzinfo is None) != (family == "local-timestamp"):
                has = "has no" if datum.tzinfo is None else "has a"
                return f"{describe_datum(datum)} {has} time zone, unlike {logical}"
            return None
        case date() if logical.name == "date":
            return None
        case time() if logical.name in ("time-millis", "time-micros"):
            return None if datum.tzinfo is None else f"{describe_datum(datum)} has a time zone"
    return _RAW


def _decimal_problem(logical: LogicalType, datum: Decimal) -> Problem | None:
    if not datum.is_finite():
        return f"{datum} is not a number"
    if logical.precision > MAX_DIGITS or datum.adjusted() + 1 + logical.scale > logical.precision:
        return (
            None if datum == 0 and logical.precision <= MAX_DIGITS else f"{datum} has more digits than {logical} holds"
        )
    if datum != datum.quantize(Decimal((0, (1,), -logical.scale)), context=_EXACT):
        return f"{datum} has more than {logical.scale} decimal places"
    return None


def describe_datum(datum: Any) -> str:
    """Return a short text with a datum and its type."""
    text = repr(datum)
    text = text if len(text) <= 40 else text[:39] + "…"
    return f"{text} ({type(datum).__name__})"
