"""Which logical types exist, on what they may sit, and whether one is valid there (Avro 1.12, "Logical Types")."""

from __future__ import annotations

from collections.abc import Mapping
from math import floor, log10
from typing import Final

from stele.formats.avro.model import LogicalType, Props

PLAIN: Final[Mapping[str, str]] = {
    "date": "int",
    "time-millis": "int",
    "time-micros": "long",
    "timestamp-millis": "long",
    "timestamp-micros": "long",
    "timestamp-nanos": "long",
    "local-timestamp-millis": "long",
    "local-timestamp-micros": "long",
    "local-timestamp-nanos": "long",
    "uuid": "string",
    "big-decimal": "bytes",
}
"""Logical types without attributes, and the primitive they belong on. `uuid` also sits on fixed(16)."""

_NAMES: Final[Mapping[str, LogicalType]] = {name: LogicalType(name) for name in (*PLAIN, "duration")}
_FIXED_SIZES: Final[Mapping[str, int]] = {"uuid": 16, "duration": 12}


def read_logical(kind: str, props: Props, size: int = 0) -> LogicalType | None:
    """Return the logical type of a node of that kind, or None when there is none, or it is unknown or invalid there."""
    name = props.get("logicalType")
    if not isinstance(name, str):
        return None
    if name == "decimal":
        return (
            None
            if find_decimal_fault(kind, props, size)
            else LogicalType(name, props["precision"], props.get("scale", 0))
        )
    if PLAIN.get(name) == kind or (kind == "fixed" and _FIXED_SIZES.get(name) == size):
        return _NAMES[name]
    return None


def find_decimal_fault(kind: str, props: Props, size: int = 0) -> str | None:
    """Return what is wrong with the attributes of a decimal on a node of that kind; None when they are fine."""
    if kind not in ("bytes", "fixed"):
        return f"a decimal sits on bytes or fixed, not on {kind}"
    precision, scale = props.get("precision"), props.get("scale", 0)
    if type(precision) is not int or precision < 1:
        return "a decimal needs a precision that is a positive integer"
    if type(scale) is not int or scale < 0:
        return "the scale of a decimal is an integer, 0 or more"
    if scale > precision:
        return f"scale {scale} is greater than precision {precision}"
    if kind == "fixed" and precision > max_digits(size):
        return f"{size} bytes hold {max_digits(size)} digits at most, not {precision}"
    return None


def max_digits(size: int) -> int:
    """Return how many decimal digits every two's-complement number of that many bytes can hold."""
    return floor(log10(2) * (8 * size - 1)) if size > 0 else 0


_STEPS: Final[Mapping[str, int]] = {"millis": 0, "micros": 3, "nanos": 6}


def time_unit_of(logical: LogicalType | None) -> tuple[str, str] | None:
    """Return the kind and unit of a time with a unit (`local-timestamp`, `micros`), None for any other logical type."""
    kind, _, unit = logical.name.rpartition("-") if logical is not None else ("", "", "")
    return (kind, unit) if unit in _STEPS else None


def describe_consequence(reader: LogicalType, writer: LogicalType) -> str:
    """Return what becomes of values whose logical type changed, as the end of a sentence."""
    if reader.name == writer.name == "decimal":
        if reader.scale != writer.scale:
            return f"every number is off by a factor of {_power_of_ten(abs(reader.scale - writer.scale))}"
        return f"numbers of more than {reader.precision} digits no longer fit"
    ours, theirs = time_unit_of(reader), time_unit_of(writer)
    if ours is None or theirs is None or ours[0] != theirs[0]:
        return "they silently change meaning"
    return f"every time is off by a factor of {_power_of_ten(abs(_STEPS[ours[1]] - _STEPS[theirs[1]]))}"


def _power_of_ten(digits: int) -> str:
    return f"{10**digits:,}" if digits <= 9 else f"10^{digits}"
