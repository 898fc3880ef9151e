"""Rules of the types CEL and CEL_FIELD: expressions in the Common Expression Language.

`CEL` sees the whole value as `message`, `CEL_FIELD` one field as `value`, with `fullName`, `name`, `typeName`, `tags`
and the record around it as `message`; both know the time as `now`. `guard ; expression` runs the expression only where
the guard holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from google.protobuf.message import Message

from stele.client.serdes.rules.model import FieldExecutor, FieldLocation, RuleContext, RuleExecutor, Tools, Visit
from stele.errors import InvalidRequest, NotInstalled, TooLarge

try:
    import celpy
    import lark
    from celpy import celtypes
    from celpy.celparser import CELParseError
    from celpy.evaluation import Evaluator as CelEvaluator

    from stele.client.serdes.rules import cel_functions, cel_values
except ImportError:
    raise NotInstalled("cel-python", "rules") from None

MAX_EXPRESSION: Final = 20_000
"""Characters of an expression."""
MAX_STEPS: Final = 1_000_000
"""Parts of an expression evaluated for one value: what nested macros over long lists may cost."""
_KEPT: Final = 1024

Names = Mapping[str, Callable[[], Any]]
"""Variables, each made when an expression mentions it."""


class CelExecutor(RuleExecutor):
    """Type CEL."""

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        self._programs = Programs()

    def run(self, context: RuleContext, value: Any) -> Any:
        """See `RuleExecutor`."""
        result = self._programs.evaluate(context, {"message": lambda: cel_values.to_cel(value)}, value)
        if context.rule.kind == "CONDITION" or result is value:
            return result
        if isinstance(value, Message):
            return cel_values.message_from(result, value)
        return cel_values.from_cel(result)


class CelFieldExecutor(FieldExecutor):
    """Type CEL_FIELD: fields of primitive types, one by one."""

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        self._programs = Programs()

    def visit(self, context: RuleContext) -> Visit:
        """See `FieldExecutor`."""

        def apply(place: FieldLocation, value: Any) -> Any:
            if not place.type.is_primitive:
                return value
            result = self._programs.evaluate(context, _bind_names(place, value), value)
            if context.rule.kind == "CONDITION" or result is value:
                return bool(result) if context.rule.kind == "CONDITION" else value
            return cel_values.from_cel(result) if place.native is None else cel_values.value_from(result, value)

        return apply


def _bind_names(place: FieldLocation, value: Any) -> Names:
    def own() -> Any:
        return cel_values.to_cel(value) if place.native is None else cel_values.field_to_cel(value, place.native)

    return {
        "value": own,
        "fullName": lambda: celtypes.StringType(place.full_name),
        "name": lambda: celtypes.StringType(place.name),
        "typeName": lambda: celtypes.StringType(place.type.value),
        "tags": lambda: celtypes.ListType([celtypes.StringType(tag) for tag in sorted(place.tags)]),
        "message": lambda: cel_values.to_cel(place.message),
    }


class Programs:
    """Expressions, compiled once."""

    def __init__(self) -> None:
        self._environment = celpy.Environment()
        self._compiled = lru_cache(_KEPT)(self._compile_program)

    def evaluate(self, context: RuleContext, names: Names, value: Any) -> Any:
        """The result of a rule's expression; of one whose guard does not hold, true or the value itself."""
        expression = context.rule.expr or ""
        if not expression.strip():
            raise context.rule_failure("it has no expression")
        guard, semicolon, rest = expression.partition(";")
        if not semicolon:
            return self._evaluate_expression(expression, names)
        if guard.strip() and not self._evaluate_expression(guard, names):
            return True if context.rule.kind == "CONDITION" else value
        return self._evaluate_expression(rest, names)

    def _evaluate_expression(self, expression: str, names: Names) -> Any:
        tree, activation = self._compiled(expression)
        known = {name: make() for name, make in names.items() if name in expression}
        if "now" in expression:
            known["now"] = celtypes.TimestampType(datetime.now(UTC))
        return Evaluator(tree, activation()).evaluate(known)

    def _compile_program(self, expression: str) -> tuple[lark.Tree[Any], Callable[[], Any]]:
        if len(expression) > MAX_EXPRESSION:
            raise TooLarge(f"an expression of {len(expression)} characters is longer than {MAX_EXPRESSION}")
        try:
            tree = self._environment.compile(expression)
        except CELParseError as error:
            raise InvalidRequest(f"not an expression: {error}") from error
        runner = celpy.InterpretedRunner(self._environment, tree, dict(cel_functions.FUNCTIONS))
        return tree, runner.new_activation


class Evaluator(CelEvaluator):
    """Evaluates in bounded time, and knows what `has()` means for messages."""

    def __init__(self, ast: Any, activation: Any, steps: list[int] | None = None) -> None:
        super().__init__(ast, activation)
        self._steps = [MAX_STEPS] if steps is None else steps

    def sub_evaluator(self, ast: Any) -> Evaluator:
        """The evaluator of a macro's inside; it spends the same steps."""
        return Evaluator(ast, self.activation, self._steps)

    def visit_children(self, tree: Any) -> Any:
        """Evaluate the parts of a part."""
        self._steps[0] -= 1
        if self._steps[0] < 0:
            raise TooLarge(f"the expression takes more than {MAX_STEPS} steps")
        return super().visit_children(tree)

    def macro_has_eval(self, exprlist: Any) -> Any:
        """`has(e.f)`."""
        with cel_values.asking_presence():
            return super().macro_has_eval(exprlist)
