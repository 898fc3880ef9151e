"""Evaluates expressions of CESQL. An expression always has a value, and also the first error of its evaluation.

The work is bounded by the length of the expression and of the attributes: there are no loops, and patterns are matched
without backtracking.

Source: docs/protocols/cncf.md#cesql
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from stele.core.globs import GlobPiece, compile_pieces
from stele.service.cesql.functions import FUNCTIONS
from stele.service.cesql.syntax import Attribute, Binary, Call, Exists, Expression, In, Like, Literal, Unary
from stele.service.cesql.values import GREATEST, SMALLEST, CesqlResult, ErrorKind, Value, bound_number, cast_value

Event = Mapping[str, Value]

_FALSE: Final = CesqlResult(False)
_KEPT: Final = 256
_PIECE: Final = re.compile(r"\\([%_])|([%_])|([\s\S])")


def evaluate(node: Expression, event: Event) -> CesqlResult:
    """Return the result of an expression for an event, which is given as its attributes by name."""
    match node:
        case Literal(value):
            return CesqlResult(value)
        case Attribute(name):
            return CesqlResult(event[name]) if name in event else CesqlResult(False, ErrorKind.MISSING_ATTRIBUTE)
        case Exists(name):
            return CesqlResult(name in event)
        case Unary(name, operand):
            return _evaluate_unary(name, evaluate(operand, event))
        case Binary(name, left, right):
            return _evaluate_binary(name, left, right, event)
        case Like(operand, pattern, is_negated):
            text = _cast(evaluate(operand, event), str)
            if text.error is not None:
                return CesqlResult(False, text.error)
            return CesqlResult((_compile_pattern(pattern).fullmatch(str(text.value)) is not None) is not is_negated)
        case In(operand, items, is_negated):
            result = _find_in(evaluate(operand, event), items, event)
            return result if result.error is not None else CesqlResult(bool(result.value) is not is_negated)
        case Call(name, arguments):
            return _call_function(name, [evaluate(argument, event) for argument in arguments])


def _cast(outcome: CesqlResult, wanted: type[Value]) -> CesqlResult:
    """Return an outcome cast to a type. After an error, its value is the zero of that type."""
    return cast_value(outcome.value, wanted) if outcome.error is None else CesqlResult(wanted(), outcome.error)


def _evaluate_unary(name: str, outcome: CesqlResult) -> CesqlResult:
    if name == "NOT":
        cast = _cast(outcome, bool)
        return cast if cast.error is not None else CesqlResult(not cast.value)
    cast = _cast(outcome, int)
    if cast.value == SMALLEST:
        return CesqlResult(GREATEST, ErrorKind.MATH)
    return CesqlResult(-int(cast.value), cast.error)


def _evaluate_binary(name: str, left: Expression, right: Expression, event: Event) -> CesqlResult:
    first = evaluate(left, event)
    if name in {"AND", "OR", "XOR"}:
        return _evaluate_logic(name, _cast(first, bool), right, event)
    second = evaluate(right, event)
    if name in _EQUALITY:
        if first.error is None and second.error is None:
            first = cast_value(first.value, type(second.value))
        error = first.error or second.error
        return (
            CesqlResult(False, error) if error is not None else CesqlResult(_EQUALITY[name](first.value, second.value))
        )
    first, second = _cast(first, int), _cast(second, int)
    error = first.error or second.error
    if name in _ORDER:
        return CesqlResult(False, error) if error is not None else CesqlResult(_ORDER[name](first.value, second.value))
    if error is not None:
        return CesqlResult(0, error)
    return _ARITHMETIC[name](int(first.value), int(second.value))


def _evaluate_logic(name: str, first: CesqlResult, right: Expression, event: Event) -> CesqlResult:
    """Return the result of AND, OR or XOR. The right side is not evaluated where the left one decides."""
    if first.error is not None or (name != "XOR" and first.value is (name == "OR")):
        return first
    second = _cast(evaluate(right, event), bool)
    if name != "XOR" or second.error is not None:
        return second
    return CesqlResult(first.value is not second.value)


def _find_in(wanted: CesqlResult, items: tuple[Expression, ...], event: Event) -> CesqlResult:
    """Return whether a value equals one of the items, each of which is cast to its type first."""
    if wanted.error is not None:
        return CesqlResult(False, wanted.error)
    for item in items:
        candidate = _cast(evaluate(item, event), type(wanted.value))
        if candidate.error is not None:
            return CesqlResult(False, candidate.error)
        if candidate.value == wanted.value:
            return CesqlResult(True)
    return _FALSE


def _call_function(name: str, outcomes: list[CesqlResult]) -> CesqlResult:
    function = FUNCTIONS[name]
    values: list[Any] = []
    for position, outcome in enumerate(outcomes):
        wanted = function.parameters[position] if position < len(function.parameters) else function.rest
        cast = outcome if wanted is None else _cast(outcome, wanted)
        if cast.error is not None:
            return CesqlResult(function.returns(), cast.error)
        values.append(cast.value)
    return function.call(*values)


def _divide(first: int, second: int) -> CesqlResult:
    """Return the quotient, truncated to an integer."""
    if second == 0:
        return CesqlResult(0, ErrorKind.MATH)
    quotient = abs(first) // abs(second)
    return bound_number(quotient if (first < 0) is (second < 0) else -quotient)


def _remainder(first: int, second: int) -> CesqlResult:
    """Return the remainder of a division, with the sign of the dividend."""
    return (
        CesqlResult(0, ErrorKind.MATH)
        if second == 0
        else CesqlResult(int(math.copysign(abs(first) % abs(second), first)))
    )


@lru_cache(_KEPT)
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return a regular expression for a pattern of LIKE."""
    wildcards = {"%": "*", "_": "?"}
    return compile_pieces(
        GlobPiece("", wildcards[piece[2]]) if piece[2] else GlobPiece(piece[1] or piece[3])
        for piece in _PIECE.finditer(pattern)
    )


_EQUALITY: Final[Mapping[str, Callable[[Any, Any], bool]]] = {"=": operator.eq, "!=": operator.ne}
_ORDER: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ARITHMETIC: Final[Mapping[str, Callable[[int, int], CesqlResult]]] = {
    "+": lambda first, second: bound_number(first + second),
    "-": lambda first, second: bound_number(first - second),
    "*": lambda first, second: bound_number(first * second),
    "/": _divide,
    "%": _remainder,
}
