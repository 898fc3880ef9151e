"""Model of data rules: phases, modes, fields, and the classes that run rules.

A rule set belongs to a version of a schema. Domain rules work on values (of whole records, or field by field), encoding
rules on payloads, migration rules on values that change from one version to another. The modes WRITE and READ are the
directions of a serializer and a deserializer, UPGRADE and DOWNGRADE those to a newer and to an older version.

Source: docs/protocols/data-rules.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from stele.client.serdes.rules.tags import tags_at
from stele.errors import RuleFailed
from stele.expressions.questions import Answer, Question
from stele.expressions.sandbox import evaluate_bounded
from stele.protocol.confluent import Rule, RuleSet
from stele.wire.confluent import RecordField

if TYPE_CHECKING:
    from stele.client.api import BlockingApi
    from stele.client.serdes.framing import SeenHeaders
    from stele.client.snapshot import ResolvedSchema


class RuleMode(Enum):
    """Direction in which a record is processed while rules run."""

    WRITE = "WRITE"
    READ = "READ"
    UPGRADE = "UPGRADE"
    DOWNGRADE = "DOWNGRADE"

    @property
    def is_forward(self) -> bool:
        """Whether this is the first half of a pair of modes: WRITEREAD, UPDOWN."""
        return self in {RuleMode.WRITE, RuleMode.UPGRADE}

    @property
    def both_directions(self) -> str:
        """The mode of a rule that covers both directions."""
        return "WRITEREAD" if self in {RuleMode.WRITE, RuleMode.READ} else "UPDOWN"


class RulePhase(Enum):
    """The three lists of a rule set."""

    DOMAIN = "domain"
    ENCODING = "encoding"
    MIGRATION = "migration"

    def rules_of(self, rule_set: RuleSet | None) -> Sequence[Rule]:
        """Return the phase's rules, as registered."""
        if rule_set is None:
            return ()
        match self:
            case RulePhase.DOMAIN:
                return rule_set.domain_rules or ()
            case RulePhase.ENCODING:
                return rule_set.encoding_rules or ()
            case RulePhase.MIGRATION:
                return rule_set.migration_rules or ()


class FieldType(Enum):
    """Type of a field, as the name that expressions see in `typeName`."""

    RECORD = "RECORD"
    ENUM = "ENUM"
    ARRAY = "ARRAY"
    MAP = "MAP"
    COMBINED = "COMBINED"
    FIXED = "FIXED"
    STRING = "STRING"
    BYTES = "BYTES"
    INT = "INT"
    LONG = "LONG"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    BOOLEAN = "BOOLEAN"
    NULL = "NULL"

    @property
    def is_primitive(self) -> bool:
        """Whether values have no parts. `CEL_FIELD` rules see only such fields."""
        return self in _PRIMITIVE


_PRIMITIVE = frozenset(
    {
        FieldType.STRING,
        FieldType.BYTES,
        FieldType.INT,
        FieldType.LONG,
        FieldType.FLOAT,
        FieldType.DOUBLE,
        FieldType.BOOLEAN,
        FieldType.NULL,
    }
)


@dataclass(frozen=True, slots=True)
class FieldLocation:
    """A field that a rule visits.

    message    the record that holds it: a dict, or a Protobuf message
    full_name  `shop.Order.note` for Avro and Protobuf, `$.customer.note` for JSON
    name       last part of the full name
    type       of the visited value, inside arrays, maps and unions
    tags       those of the schema's text and those of its metadata
    native     the field's descriptor, for Protobuf
    """

    message: Any
    full_name: str
    name: str
    type: FieldType
    tags: frozenset[str]
    native: Any = None


Visit = Callable[[FieldLocation, Any], Any]
"""Function that is called with the value of a field. Its result replaces the value."""

Walk = Callable[["RuleContext", Visit, Any], Any]
"""Calls a visit for every field of a value that a rule applies to. Returns a copy with the results of the visits."""


@dataclass(frozen=True, slots=True)
class RecordContext:
    """Facts about a record while its rules run.

    subject   '' when the naming strategy could not determine it, for example without a topic
    original  the value before any rule, or the bytes as received
    """

    subject: str
    topic: str = ""
    field: RecordField = "value"
    headers: SeenHeaders = None
    original: Any = None


@dataclass(frozen=True, slots=True)
class RuleContext:
    """One run of a rule.

    rules, index   the rules of the phase in the order they run, and the position of this one
    target         the schema of the value, or the schema that a migration leads to
    walk           None where a value has no fields: payloads, migrations
    evaluate       evaluates an expression of the rule: with limits unless the rule is trusted, see `Rules`
    """

    rule: Rule
    mode: RuleMode
    rules: Sequence[Rule]
    index: int
    record: RecordContext
    target: ResolvedSchema
    walk: Walk | None = None
    evaluate: Callable[[Question], Answer] = evaluate_bounded

    def find_parameter(self, name: str) -> str | None:
        """Return a parameter of the rule, else the metadata property of that name of the schema, else None."""
        own = (self.rule.params or {}).get(name)
        if own is not None or self.target.metadata is None:
            return own
        return (self.target.metadata.properties or {}).get(name)

    def tags_of(self, full_name: str, inline: Sequence[str]) -> frozenset[str]:
        """Return all tags of a field: its own and those from the metadata."""
        metadata = self.target.metadata
        return frozenset(inline) | (tags_at(full_name, metadata.tags or {}) if metadata is not None else frozenset())

    def applies_to(self, tags: frozenset[str]) -> bool:
        """Return whether the rule applies to fields with these tags. A rule without tags applies to all fields."""
        return not self.rule.tags or not tags.isdisjoint(self.rule.tags)

    def rule_failure(self, why: str) -> RuleFailed:
        """Return the error for a failure of this rule."""
        return RuleFailed(self.rule.name or "", why)


@dataclass(frozen=True, slots=True)
class Tools:
    """What executors and actions are created with.

    config        settings for all of them: `secret` for the local KMS, `dlq.topic` …
    client        the registry that has the data keys; None without a registry, for example with a snapshot
    dead_letters  receives records that failed a rule; see `DeadLetter`
    now           milliseconds since 1970: decides whether a data key has expired
    """

    config: Mapping[str, str]
    client: BlockingApi | None
    dead_letters: Callable[[DeadLetter], None] | None
    now: Callable[[], int]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that failed a rule, as it is sent to another topic. `key` is None unless the key failed.

    Its headers are those of the record, and `__rule.name`, `__rule.mode`, `__rule.subject`, `__rule.topic`,
    `__rule.exception`. When the record is read again, the rule named in the first of them is skipped.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, str | bytes | None]]


class RuleExecutor(ABC):
    """Runs the rules of one type. Entry point group `stele.rules`: the name is the type, the value such a class.

    One object serves all threads of a serializer or deserializer. It is created for the first rule of its type.
    """

    def __init__(self, tools: Tools) -> None:
        self.tools = tools

    @abstractmethod
    def run(self, context: RuleContext, value: Any) -> Any:
        """Return the verdict of a condition, or the new value of a transformation. May raise any error.

        None means failure.
        """


class FieldExecutor(RuleExecutor):
    """Runs rules field by field."""

    @abstractmethod
    def visit(self, context: RuleContext) -> Visit:
        """Return the function that applies the rule to one field."""

    def run(self, context: RuleContext, value: Any) -> Any:
        """Run the rule on each field.

        Of several transformations of one type for the same tags only the first one of the rule set runs.
        """
        if context.walk is None or _is_repeated(context):
            return value
        visit = self.visit(context)
        if context.rule.kind != "CONDITION":
            return context.walk(context, visit, value)

        def check_condition(place: FieldLocation, value: Any) -> Any:
            if visit(place, value) is False:
                raise context.rule_failure(f"{place.full_name}: {failed_condition_message(context.rule)}")
            return value

        context.walk(context, check_condition, value)
        return True


class RuleAction(ABC):
    """Action after a rule. Entry point group `stele.rules`, like executors; NONE, ERROR and DLQ are built in."""

    def __init__(self, tools: Tools) -> None:
        self.tools = tools

    @abstractmethod
    def run(self, context: RuleContext, value: Any, failure: RuleFailed | None) -> None:
        """Run the action. `failure` is None after a success. Every error reaches the caller of the serializer."""


def failed_condition_message(rule: Rule) -> str:
    """Return the message of a failed condition: the rule's `doc` if it has one."""
    return rule.doc or (f"the condition does not hold: {rule.expr}" if rule.expr else "the condition does not hold")


def _is_repeated(context: RuleContext) -> bool:
    """Return whether an earlier transformation of the rule set has the same mode, type and tags.

    In a backward mode the rules run in reverse order, so that rule has a higher index.
    """
    rule = context.rule
    if not rule.tags or rule.kind == "CONDITION":
        return False
    others = context.rules[: context.index] if context.mode.is_forward else context.rules[context.index + 1 :]
    same = (rule.mode, rule.type, rule.tags)
    return any(other.kind != "CONDITION" and (other.mode, other.type, other.tags) == same for other in others)
