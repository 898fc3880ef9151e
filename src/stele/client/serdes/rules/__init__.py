"""Data rules, run: conditions, transformations, migrations and encryption, by the rule set of a schema.

    serialize = AvroSerializer(registry, use_latest=True, rules=Rules({"secret": "…"}))

Rules run only where a serializer or deserializer was given `rules`. Their expressions are evaluated within `Limits`, in
a process of its own, unless one trusts a rule; `sign_rule` and `SignedBy` (module `signatures`) say which those are.

Types of rules are CEL, CEL_FIELD, JSONATA, ENCRYPT and ENCRYPT_PAYLOAD, actions NONE, ERROR and DLQ; more come in by
the entry point group `stele.rules`, where the built-in types stand as well. What they need:
`pip install 'stele-registry[rules]'`.

What is not here: the functions and types for decimals and variants that Confluent's newest clients give expressions,
and checks written beside fields (`confluent:rules`).
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
from stele.expressions.sandbox import Limits

__all__ = [
    "GROUP",
    "DeadLetter",
    "FieldExecutor",
    "FieldLocation",
    "FieldType",
    "Limits",
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
