"""Runs data rules: conditions, transformations, migrations and encryption, from the rule set of a schema.

    serialize = AvroSerializer(registry, use_latest=True, rules=Rules({"secret": "…"}))

Rules run only if a serializer or deserializer was given `rules`. Their expressions are evaluated within
`ExpressionLimits` in a separate process, unless the application trusts the rule. `sign_rule` and `SignedBy` (module
`signatures`) mark rules as trusted.

Types of rules are CEL, CEL_FIELD, JSONATA, ENCRYPT and ENCRYPT_PAYLOAD; actions are NONE, ERROR and DLQ. The entry
point group `stele.rules` adds more; the built-in types are registered there as well. The required libraries:
`pip install 'stele-registry[rules]'`.

Not supported: the functions and types for decimals and variants in expressions of Confluent's newest clients, and
checks written beside fields (`confluent:rules`).
"""

from stele.client.serdes.rules.engine import GROUP, Override, RuleEngine, Rules
from stele.client.serdes.rules.model import (
    DeadLetter,
    FieldExecutor,
    FieldLocation,
    FieldType,
    RecordContext,
    RuleAction,
    RuleContext,
    RuleExecutor,
    RuleMode,
    RulePhase,
    Tools,
    Visit,
    Walk,
)
from stele.errors import RuleFailed, RulesRefused
from stele.expressions.sandbox import ExpressionLimits

__all__ = [
    "GROUP",
    "DeadLetter",
    "ExpressionLimits",
    "FieldExecutor",
    "FieldLocation",
    "FieldType",
    "Override",
    "RecordContext",
    "RuleAction",
    "RuleContext",
    "RuleEngine",
    "RuleExecutor",
    "RuleFailed",
    "RuleMode",
    "RulePhase",
    "Rules",
    "RulesRefused",
    "Tools",
    "Visit",
    "Walk",
]
