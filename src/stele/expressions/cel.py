"""Expressions of the Common Expression Language, compiled once and evaluated in a limited number of steps.

The variable `now` is the time. Other variables come with the question.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any, Final

import celpy
import lark
from celpy import celtypes
from celpy.celparser import CELParseError
from celpy.evaluation import Evaluator as CelEvaluator

from stele.errors import InvalidRequest, TooLarge
from stele.expressions import cel_functions, cel_values
from stele.expressions.questions import Answer, CelQuestion

MAX_EXPRESSION: Final = 20_000
"""Most characters of an expression."""
MAX_STEPS: Final = 1_000_000
"""Most steps for one value. Each evaluated part of the expression is a step, also inside nested macros."""
_KEPT: Final = 1024


def evaluate_cel(question: CelQuestion) -> Answer:
    """Return the answer to a question. Raises `TooLarge`, `InvalidRequest`, and errors of the library."""
    guard, semicolon, rest = question.expression.partition(";")
    if semicolon and guard.strip() and not _evaluate_expression(guard, question.names):
        return Answer(False)
    result = _evaluate_expression(rest if semicolon else guard, question.names)
    return Answer(True, bool(result) if question.is_condition else cel_values.from_cel(result))


def _evaluate_expression(expression: str, names: dict[str, Any]) -> Any:
    tree, activation = _compile_program(expression)
    known = {name: cel_values.to_cel(value) for name, value in names.items() if name in expression}
    if "now" in expression:
        known["now"] = celtypes.TimestampType(datetime.now(UTC))
    return Evaluator(tree, activation()).evaluate(known)


@lru_cache(_KEPT)
def _compile_program(expression: str) -> tuple[lark.Tree[Any], Callable[[], Any]]:
    if len(expression) > MAX_EXPRESSION:
        raise TooLarge(f"an expression of {len(expression)} characters is longer than {MAX_EXPRESSION}")
    environment = _make_environment()
    try:
        tree = environment.compile(expression)
    except CELParseError as error:
        raise InvalidRequest(f"not an expression: {error}") from error
    runner = celpy.InterpretedRunner(environment, tree, dict(cel_functions.FUNCTIONS))
    return tree, runner.new_activation


@cache
def _make_environment() -> celpy.Environment:
    return celpy.Environment()


class Evaluator(CelEvaluator):
    """Evaluates in a limited number of steps, and implements `has()` for messages."""

    def __init__(self, ast: Any, activation: Any, steps: list[int] | None = None) -> None:
        super().__init__(ast, activation)
        self._steps = [MAX_STEPS] if steps is None else steps

    def sub_evaluator(self, ast: Any) -> Evaluator:
        """Return the evaluator for the body of a macro. Both share one budget of steps."""
        return Evaluator(ast, self.activation, self._steps)

    def visit_children(self, tree: Any) -> Any:
        """Evaluate the children of a node. Each call costs one step."""
        self._steps[0] -= 1
        if self._steps[0] < 0:
            raise TooLarge(f"the expression takes more than {MAX_STEPS} steps")
        return super().visit_children(tree)

    def macro_has_eval(self, exprlist: Any) -> Any:
        """Evaluate `has(e.f)`."""
        with cel_values.asking_presence():
            return super().macro_has_eval(exprlist)
