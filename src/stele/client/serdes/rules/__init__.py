"""Data rules, run: conditions, transformations, migrations and encryption, by the rule set of a schema.

    serialize = AvroSerializer(registry, use_latest=True, rules=Rules({"secret": "…"}))

Types of rules are CEL, CEL_FIELD, JSONATA, ENCRYPT and ENCRYPT_PAYLOAD, actions NONE, ERROR and DLQ; more come in by
the entry point group `stele.rules`, where the built-in types stand as well. What they need:
`pip install 'stele-registry[rules]'`.

What is not here: the functions and types for decimals and variants that Confluent's newest clients give expressions,
and checks written beside fields (`confluent:rules`).
"""

from stele.client.serdes.rules.engine import GROUP, Engine, Override, Rules
from stele.client.serdes.rules.model import (
    DeadLetter,
    FieldExecutor,
    FieldPlace,
    FieldType,
    Mode,
    Phase,
    Record,
    RuleAction,
    RuleContext,
    RuleExecutor,
    Tools,
    Visit,
    Walk,
)
from stele.errors import RuleFailed

__all__ = [
    "GROUP",
    "DeadLetter",
    "Engine",
    "FieldExecutor",
    "FieldPlace",
    "FieldType",
    "Mode",
    "Override",
    "Phase",
    "Record",
    "RuleAction",
    "RuleContext",
    "RuleExecutor",
    "RuleFailed",
    "Rules",
    "Tools",
    "Visit",
    "Walk",
]
