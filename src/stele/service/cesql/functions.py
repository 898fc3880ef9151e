"""Functions of CESQL: their arguments, and what they return.

Source: docs/protocols/cncf.md#cesql
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from stele.service.cesql.values import GREATEST, SMALLEST, CesqlResult, ErrorKind, Value, cast_value


class Function(NamedTuple):
    """A function of CESQL.

    parameters  types to which its arguments are cast; None takes an argument as it is
    returns     type of its value
    call        computes the result from the arguments
    rest        type of all further arguments; None: there are none
    optional    how many of the last parameters may be left out
    """

    parameters: tuple[type[Value] | None, ...]
    returns: type[Value]
    call: Callable[..., CesqlResult]
    rest: type[Value] | None = None
    optional: int = 0


def accepts_arguments(name: str, count: int) -> bool:
    """Return whether a function accepts this number of arguments."""
    function = FUNCTIONS[name]
    least = len(function.parameters) - function.optional
    return least <= count and (function.rest is not None or count <= len(function.parameters))


def _make_text(call: Callable[..., str]) -> Callable[..., CesqlResult]:
    return lambda *arguments: CesqlResult(call(*arguments))


def _return_value(value: Any) -> CesqlResult:
    return CesqlResult(value)


def _make_test(wanted: type[Value]) -> Callable[[Value], CesqlResult]:
    return lambda value: CesqlResult(cast_value(value, wanted).error is None)


def _absolute(number: int) -> CesqlResult:
    return CesqlResult(GREATEST, ErrorKind.MATH) if number == SMALLEST else CesqlResult(abs(number))


def _left(text: str, count: int) -> CesqlResult:
    return CesqlResult(text, ErrorKind.FUNCTION_EVALUATION) if count < 0 else CesqlResult(text[:count])


def _right(text: str, count: int) -> CesqlResult:
    return (
        CesqlResult(text, ErrorKind.FUNCTION_EVALUATION)
        if count < 0
        else CesqlResult(text[max(len(text) - count, 0) :])
    )


def _substring(text: str, position: int, length: int = GREATEST) -> CesqlResult:
    if not -len(text) <= position <= len(text) or length < 0:
        return CesqlResult("", ErrorKind.FUNCTION_EVALUATION)
    if position == 0:
        return CesqlResult("")
    start = position - 1 if position > 0 else len(text) + position
    return CesqlResult(text[start : start + length])


FUNCTIONS: Final[Mapping[str, Function]] = {
    "INT": Function((int,), int, _return_value),
    "BOOL": Function((bool,), bool, _return_value),
    "STRING": Function((str,), str, _return_value),
    "IS_INT": Function((None,), bool, _make_test(int)),
    "IS_BOOL": Function((None,), bool, _make_test(bool)),
    "ABS": Function((int,), int, _absolute),
    "LENGTH": Function((str,), int, lambda text: CesqlResult(len(text))),
    "CONCAT": Function((), str, _make_text(lambda *texts: "".join(texts)), rest=str),
    "CONCAT_WS": Function((str,), str, _make_text(lambda between, *texts: between.join(texts)), rest=str),
    "LOWER": Function((str,), str, _make_text(str.lower)),
    "UPPER": Function((str,), str, _make_text(str.upper)),
    "TRIM": Function((str,), str, _make_text(str.strip)),
    "LEFT": Function((str, int), str, _left),
    "RIGHT": Function((str, int), str, _right),
    "SUBSTRING": Function((str, int, int), str, _substring, optional=1),
}
"""The functions by name, in upper case."""
