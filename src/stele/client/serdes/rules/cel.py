"""Rules of the types CEL and CEL_FIELD: expressions in the Common Expression Language.

`CEL` sees the whole value as `message`. `CEL_FIELD` sees one field as `value`, with `fullName`, `name`, `typeName`,
`tags`, and the enclosing record as `message`. In both, `now` is the time. `guard ; expression` runs the expression only
if the guard holds.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from stele.client.serdes.rules.model import FieldExecutor, FieldLocation, RuleContext, RuleExecutor, Visit
from stele.client.serdes.rules.protobuf_values import message_from, value_from
from stele.expressions.evaluation import require_library
from stele.expressions.questions import Answer, CelQuestion, tag_unsigned

require_library("celpy")


class CelExecutor(RuleExecutor):
    """Runs rules of type CEL."""

    def run(self, context: RuleContext, value: Any) -> Any:
        """Evaluate the rule's expression on the whole value; see `RuleExecutor.run`."""
        answer = _evaluate_rule(context, {"message": value})
        if context.rule.kind == "CONDITION":
            return not answer.applies or answer.value
        if not answer.applies:
            return value
        return message_from(answer.value, value) if isinstance(value, Message) else answer.value


class CelFieldExecutor(FieldExecutor):
    """Runs rules of type CEL_FIELD on fields of primitive types, one by one."""

    def visit(self, context: RuleContext) -> Visit:
        """Return the function that evaluates the rule's expression on one field."""

        def apply(place: FieldLocation, value: Any) -> Any:
            if not place.type.is_primitive:
                return value
            answer = _evaluate_rule(context, _bind_names(place, value))
            if context.rule.kind == "CONDITION":
                return not answer.applies or answer.value
            if not answer.applies:
                return value
            return answer.value if place.native is None else value_from(answer.value, value)

        return apply


def _bind_names(place: FieldLocation, value: Any) -> dict[str, Any]:
    return {
        "value": value if place.native is None else tag_unsigned(value, place.native),
        "fullName": place.full_name,
        "name": place.name,
        "typeName": place.type.value,
        "tags": sorted(place.tags),
        "message": place.message,
    }


def _evaluate_rule(context: RuleContext, names: dict[str, Any]) -> Answer:
    """Return the result of a rule's expression, given the variables that it mentions."""
    expression = context.rule.expr or ""
    if not expression.strip():
        raise context.rule_failure("the rule has no expression")
    known = {name: value for name, value in names.items() if name in expression}
    return context.evaluate(CelQuestion(expression, known, context.rule.kind == "CONDITION"))
