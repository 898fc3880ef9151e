"""Rules of the type JSONATA: an expression turns a value of one version into a value of another."""

from __future__ import annotations

from typing import Any

from stele.client.serdes.rules.model import RuleContext, RuleExecutor
from stele.expressions.evaluation import require_library
from stele.expressions.questions import JsonataQuestion

require_library("jsonata")


class JsonataExecutor(RuleExecutor):
    """Runs rules of type JSONATA. It takes and returns Protobuf messages as dicts in their JSON mapping."""

    def run(self, context: RuleContext, value: Any) -> Any:
        """Return the result of the rule's expression on the value."""
        return context.evaluate(JsonataQuestion(context.rule.expr or "", value)).value
