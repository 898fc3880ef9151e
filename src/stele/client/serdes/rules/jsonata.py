"""Rules of the type JSONATA: a value of one version made into one of another by an expression."""

from __future__ import annotations

from typing import Any

from stele.client.serdes.rules.model import RuleContext, RuleExecutor
from stele.expressions.evaluation import require_library
from stele.expressions.questions import JsonataQuestion

require_library("jsonata")


class JsonataExecutor(RuleExecutor):
    """Type JSONATA; Protobuf messages come and go as dicts in their JSON mapping."""

    def run(self, context: RuleContext, value: Any) -> Any:
        """See `RuleExecutor`."""
        return context.evaluate(JsonataQuestion(context.rule.expr or "", value)).value
