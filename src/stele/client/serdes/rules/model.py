"""What data rules are made of: when they run, on what, and what runs them.

A rule set belongs to a version of a schema. Its domain rules see values (of whole records, or field by field), its
encoding rules payloads, its migration rules values on their way from one version to another. WRITE and READ are the two
ways through a serializer and a deserializer, UPGRADE and DOWNGRADE those to a newer and to an older version.

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
    """What happens to a record while rules run."""

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
        """The word for both directions."""
        return "WRITEREAD" if self in {RuleMode.WRITE, RuleMode.READ} else "UPDOWN"


class RulePhase(Enum):
    """The three lists of a rule set."""

    DOMAIN = "domain"
    ENCODING = "encoding"
    MIGRATION = "migration"

    def rules_of(self, rule_set: RuleSet | None) -> Sequence[Rule]:
        """The phase's rules, as registered."""
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
    """Type of a field, in the words expressions know as `typeName`."""

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
        """Whether values have no parts: what `CEL_FIELD` rules see."""
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
    """A field a rule has come to.

    message    the record that holds it: a dict, or a Protobuf message
    full_name  `shop.Order.note` for Avro and Protobuf, `$.customer.note` for JSON
    name       its last part
    type       of the value met, inside arrays, maps and unions
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
"""What is done with the value of a field; what it returns takes the value's place."""

Walk = Callable[["RuleContext", Visit, Any], Any]
"""Takes a visit to every field of a value that a rule is for; returns a copy with what the visits returned."""


@dataclass(frozen=True, slots=True)
class RecordContext:
    """What is known about a record while its rules run.

    subject   '' when the naming strategy could not tell, for example because no topic was given
    original  the value before any rule, or the bytes as received
    """

    subject: str
    topic: str = ""
    field: RecordField = "value"
    headers: SeenHeaders = None
    original: Any = None


@dataclass(frozen=True, slots=True)
class RuleContext:
    """One rule at work.

    rules, index   the rules of the phase in the order they run, and where this one stands
    target         the schema the value is of, or is to become
    walk           None where a value has no fields: payloads, migrations
    evaluate       evaluates an expression of the rule: within bounds unless the rule is trusted, see `Rules`
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
        """A parameter of the rule, else the property of that name of the schema's metadata, else None."""
        own = (self.rule.params or {}).get(name)
        if own is not None or self.target.metadata is None:
            return own
        return (self.target.metadata.properties or {}).get(name)

    def tags_of(self, full_name: str, inline: Sequence[str]) -> frozenset[str]:
        """All tags of a field, its own and those the metadata gives it."""
        metadata = self.target.metadata
        return frozenset(inline) | (tags_at(full_name, metadata.tags or {}) if metadata is not None else frozenset())

    def applies_to(self, tags: frozenset[str]) -> bool:
        """Whether the rule is for fields with these tags: one without tags is for all."""
        return not self.rule.tags or not tags.isdisjoint(self.rule.tags)

    def rule_failure(self, why: str) -> RuleFailed:
        """The error of this rule."""
        return RuleFailed(self.rule.name or "", why)


@dataclass(frozen=True, slots=True)
class Tools:
    """What executors and actions are made with.

    config        settings for all of them: `secret` for the local KMS, `dlq.topic` …
    client        the registry that has the data keys; None where there is none, as beside a snapshot
    dead_letters  takes a record out of the way; see `DeadLetter`
    now           milliseconds since 1970: decides whether a data key has expired
    """

    config: Mapping[str, str]
    client: BlockingApi | None
    dead_letters: Callable[[DeadLetter], None] | None
    now: Callable[[], int]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that failed a rule, as it goes to another topic. key is None unless it was the key that failed.

    headers are those of the record, and `__rule.name`, `__rule.mode`, `__rule.subject`, `__rule.topic`,
    `__rule.exception`: by the first of them the rule is left out when the record is read again.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, str | bytes | None]]


class RuleExecutor(ABC):
    """Runs the rules of one type. Entry point group `stele.rules`: the name is the type, the value such a class.

    One object serves all threads of a serializer or deserializer. It is made when the first rule of its type is met.
    """

    def __init__(self, tools: Tools) -> None:
        self.tools = tools

    @abstractmethod
    def run(self, context: RuleContext, value: Any) -> Any:
        """The verdict of a condition, or the new value of a transformation; None is a failure. May raise anything."""


class FieldExecutor(RuleExecutor):
    """Runs rules field by field."""

    @abstractmethod
    def visit(self, context: RuleContext) -> Visit:
        """What the rule does with one field."""

    def run(self, context: RuleContext, value: Any) -> Any:
        """See `RuleExecutor`. Of several transformations of one type for the same tags only the first counts."""
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
    """What is done after a rule. Entry point group `stele.rules`, like executors; NONE, ERROR and DLQ are built in."""

    def __init__(self, tools: Tools) -> None:
        self.tools = tools

    @abstractmethod
    def run(self, context: RuleContext, value: Any, failure: RuleFailed | None) -> None:
        """Do it; failure is None after a success. Whatever is raised goes to the caller of the serializer."""


def failed_condition_message(rule: Rule) -> str:
    """Why a condition does not hold, in its author's words if there are any."""
    return rule.doc or (f"the condition does not hold: {rule.expr}" if rule.expr else "the condition does not hold")


def _is_repeated(context: RuleContext) -> bool:
    """Whether another rule does the same to the same fields: on the way forth an earlier one, back a later one."""
    rule = context.rule
    if not rule.tags or rule.kind == "CONDITION":
        return False
    others = context.rules[: context.index] if context.mode.is_forward else context.rules[context.index + 1 :]
    same = (rule.mode, rule.type, rule.tags)
    return any(other.kind != "CONDITION" and (other.mode, other.type, other.tags) == same for other in others)
