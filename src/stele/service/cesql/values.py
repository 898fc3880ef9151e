"""Values of CESQL and their casts: booleans, integers of 32 bits and texts.

Source: docs/protocols/cncf.md#cesql
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

Value: TypeAlias = bool | int | str
SMALLEST: Final = -(2**31)
GREATEST: Final = 2**31 - 1
"""Bounds of integers, which have 32 bits."""
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,20}", re.ASCII)
_BOOLEANS: Final = {"true": True, "false": False}


class ErrorKind(StrEnum):
    """Kind of error in the evaluation of an expression."""

    CAST = "cast"
    """A value cannot be cast to the required type."""
    MATH = "math"
    """A division by zero, or a result beyond 32 bits."""
    MISSING_ATTRIBUTE = "missingAttribute"
    """The event does not have an attribute that the expression uses."""
    FUNCTION_EVALUATION = "functionEvaluation"
    """A function cannot be evaluated with its arguments."""


class CesqlResult(NamedTuple):
    """The value of an expression and the first error of its evaluation.

    After an error, the value is the zero of its type.
    """

    value: Value
    error: ErrorKind | None = None


def cast_value(value: Value, wanted: type[Value]) -> CesqlResult:
    """Return a value cast to another type; the zero of that type and an error where it cannot be cast."""
    if type(value) is wanted:
        return CesqlResult(value)
    if wanted is str:
        return CesqlResult(str(value).lower() if isinstance(value, bool) else str(value))
    if wanted is bool:
        cast = _BOOLEANS.get(value.lower()) if isinstance(value, str) else bool(value)
        return CesqlResult(False, ErrorKind.CAST) if cast is None else CesqlResult(cast)
    if isinstance(value, str) and not _INTEGER.fullmatch(value):
        return CesqlResult(0, ErrorKind.CAST)
    number = int(value)
    return CesqlResult(number) if SMALLEST <= number <= GREATEST else CesqlResult(0, ErrorKind.CAST)


def bound_number(number: int) -> CesqlResult:
    """Return the result of arithmetic. A number that does not fit in 32 bits wraps around and is an error."""
    if SMALLEST <= number <= GREATEST:
        return CesqlResult(number)
    return CesqlResult((number - SMALLEST) % 2**32 + SMALLEST, ErrorKind.MATH)
