"""Runs the rules of a schema on a record."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from stele.client.serdes.rules.actions import BUILT_IN, RULE_HEADER
from stele.client.serdes.rules.model import (
    DeadLetter,
    RecordContext,
    RuleAction,
    RuleContext,
    RuleExecutor,
    RuleMode,
    RulePhase,
    Tools,
    Walk,
    failed_condition_message,
)
from stele.errors import NotInstalled, RuleFailed, RulesRefused, SteleError
from stele.expressions.evaluation import evaluate_question
from stele.expressions.questions import Answer, Question
from stele.expressions.sandbox import ExpressionLimits, evaluate_bounded
from stele.protocol.confluent import Rule

if TYPE_CHECKING:
    from stele.client.api import BlockingApi
    from stele.client.snapshot import ResolvedSchema

Tool = RuleExecutor | RuleAction

GROUP: Final = "stele.rules"
"""Entry point group of executors and actions."""


_LONGEST: Final = 500
"""Most characters of an executor's error message in a `RuleFailed`."""


def _current_millis() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Override:
    """Settings of the application that replace those of a rule. None keeps the rule's own setting."""

    on_success: str | None = None
    on_failure: str | None = None
    disabled: bool | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """How a serializer or deserializer runs the rules of schemas.

    config        settings for executors and actions: `secret` for the local KMS, `dlq.topic` for dead letters …
    overrides     by name of a rule, else by type of rules
    executors     classes by type of rules; they take precedence over entry points
    actions       likewise, by name of the action
    dead_letters  function that action DLQ calls with records, for example to produce them to Kafka
    client        the registry with the data keys; None for the one of the serializer
    enabled       False: no rule runs, so records are not checked, transformed or encrypted
    now           milliseconds since 1970
    limits        time and memory for one expression on one value, in a separate process
    trusts        returns whether a rule is trusted: `SignedBy`, or a custom function. Trusted expressions run in this
                  process, without `limits` and their overhead; None trusts no rule
    trusted_only  run no other rules: a record that needs one raises `RulesRefused`

    Rules never change values that are passed to a serializer: they work on copies.
    """

    config: Mapping[str, str] = field(default_factory=dict)
    overrides: Mapping[str, Override] = field(default_factory=dict)
    executors: Mapping[str, type[RuleExecutor]] = field(default_factory=dict)
    actions: Mapping[str, type[RuleAction]] = field(default_factory=dict)
    dead_letters: Callable[[DeadLetter], None] | None = None
    client: BlockingApi | None = None
    enabled: bool = True
    now: Callable[[], int] = _current_millis
    limits: ExpressionLimits = field(default_factory=ExpressionLimits)
    trusts: Callable[[Rule], bool] | None = None
    trusted_only: bool = False

    def find_override(self, rule: Rule) -> Override:
        """Return the override for a rule."""
        return self.overrides.get(rule.name or "") or self.overrides.get(rule.type or "") or Override()


class RuleEngine:
    """Runs rules for one serializer or deserializer. Safe between threads."""

    def __init__(self, rules: Rules | None, client: BlockingApi | None) -> None:
        """Set up without running a rule. Without `rules`, a record that needs a rule raises `RulesRefused`."""
        self._is_chosen = rules is not None
        self._rules = rules = rules or Rules()
        self._tools = Tools(rules.config, rules.client or client, rules.dead_letters, rules.now)
        self._executors: dict[str, Tool | None] = {}
        self._actions: dict[str, Tool | None] = {}
        self._lock = Lock()

    def has_rules(self, phase: RulePhase, mode: RuleMode, schema: ResolvedSchema) -> bool:
        """Return whether any rule would run."""
        return self._rules.enabled and any(
            _is_for(rule, mode) and not self._is_disabled(rule, schema) for rule in phase.rules_of(schema.rule_set)
        )

    def run_phase(
        self,
        phase: RulePhase,
        mode: RuleMode,
        schema: ResolvedSchema,
        value: Any,
        record: RecordContext,
        walk: Walk | None = None,
    ) -> Any:
        """Return the value after the rules of a schema. Rules run in order when writing, in reverse order when reading.

        Raises `RuleFailed`, `RulesRefused`, and the errors of actions.
        """
        return self._run_rules(phase.rules_of(schema.rule_set), mode, schema, schema, value, record, walk)

    def run_migration(
        self, mode: RuleMode, source: ResolvedSchema, target: ResolvedSchema, value: Any, record: RecordContext
    ) -> Any:
        """Return the value migrated by one version. The rules are those of the newer of the two versions."""
        owner = target if mode is RuleMode.UPGRADE else source
        return self._run_rules(RulePhase.MIGRATION.rules_of(owner.rule_set), mode, owner, target, value, record, None)

    def _run_rules(
        self,
        rules: Sequence[Rule],
        mode: RuleMode,
        owner: ResolvedSchema,
        target: ResolvedSchema,
        value: Any,
        record: RecordContext,
        walk: Walk | None,
    ) -> Any:
        if not self._rules.enabled:
            return value
        rules = rules if mode.is_forward else rules[::-1]
        replayed = _replayed_rule(record)
        for index, rule in enumerate(rules):
            if not _is_for(rule, mode) or self._is_disabled(rule, owner) or rule.name == replayed:
                continue
            context = RuleContext(rule, mode, rules, index, record, target, walk, self._choose_evaluation(rule))
            executor = self._find_executor((rule.type or "").upper())
            if executor is None:
                self._run_action(
                    context, value, context.rule_failure(f"there is no executor for rules of type {rule.type!r}")
                )
                return value
            value = self._run_rule(executor, context, value)
        return value

    def _choose_evaluation(self, rule: Rule) -> Callable[[Question], Answer]:
        """Return the evaluator for expressions of a rule. Raises `RulesRefused` for a rule that must not run."""
        if not self._is_chosen:
            why = (
                "nothing says whether to run rules: give rules=Rules() to run them, rules=Rules(enabled=False) to"
                " ignore them"
            )
            raise RulesRefused(f"the schema has the rule {rule.name!r}, and {why}")
        if self._rules.trusts is not None and self._rules.trusts(rule):
            return evaluate_question
        if self._rules.trusted_only:
            raise RulesRefused(f"the schema has the rule {rule.name!r}, which is not trusted")
        return partial(evaluate_bounded, limits=self._rules.limits)

    def _run_rule(self, executor: RuleExecutor, context: RuleContext, value: Any) -> Any:
        rule = context.rule
        try:
            result = _execute(executor, context, value)
            if rule.kind == "CONDITION" and not result:
                raise context.rule_failure(failed_condition_message(rule))
            if rule.kind != "CONDITION" and result is None:
                raise context.rule_failure("the result is empty")
        except RuleFailed as failure:
            self._run_action(context, value, failure)
            return value
        value = result if rule.kind != "CONDITION" else value
        self._run_action(context, value, None)
        return value

    def _run_action(self, context: RuleContext, value: Any, failure: RuleFailed | None) -> None:
        override = self._rules.find_override(context.rule)
        if failure is None:
            own, default = override.on_success or context.rule.on_success, "NONE"
        else:
            own, default = override.on_failure or context.rule.on_failure, "ERROR"
        name = _action_name(own or "", context) or default
        action = self._find_action(name)
        if action is None:
            raise context.rule_failure(f"there is no action {name!r}") from failure
        action.run(context, value, failure)

    def _is_disabled(self, rule: Rule, owner: ResolvedSchema) -> bool:
        override = self._rules.find_override(rule).disabled
        if override is not None:
            return override
        where = owner.rule_set.enable_at if owner.rule_set is not None else None
        return rule.disabled or where not in {None, "", "ALL", "CLIENT"}

    def _find_executor(self, name: str) -> RuleExecutor | None:
        executor = self._load_tool(name, self._executors, self._rules.executors)
        return executor if isinstance(executor, RuleExecutor) else None

    def _find_action(self, name: str) -> RuleAction | None:
        action = self._load_tool(name, self._actions, {**BUILT_IN, **self._rules.actions})
        return action if isinstance(action, RuleAction) else None

    def _load_tool(self, name: str, tools: dict[str, Tool | None], own: Mapping[str, type[Tool]]) -> Tool | None:
        """Return the executor or action of a name, created once; None when there is none."""
        with self._lock:
            if name not in tools:
                tool_type = own.get(name) or _plugged_in(name)
                tools[name] = tool_type(self._tools) if tool_type is not None else None
            return tools[name]


def _execute(executor: RuleExecutor, context: RuleContext, value: Any) -> Any:
    """Run a rule. Every error becomes a `RuleFailed`, except `NotInstalled`, which is raised unchanged."""
    try:
        return executor.run(context, value)
    except (RuleFailed, NotInstalled):
        raise
    except Exception as error:
        raise context.rule_failure(_describe_error(error)) from error


def _describe_error(error: Exception) -> str:
    text = str(error) if isinstance(error, SteleError) else f"{type(error).__name__}: {error}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"


def _is_for(rule: Rule, mode: RuleMode) -> bool:
    return (rule.mode or "WRITEREAD") in {mode.value, mode.both_directions}


def _action_name(own: str, context: RuleContext) -> str:
    """Return the action's name. `ERROR,NONE` names one action for each direction of a rule that has two."""
    forth, comma, back = own.partition(",")
    if not comma or (context.rule.mode or "WRITEREAD") not in {"WRITEREAD", "UPDOWN"}:
        return own.strip()
    return (forth if context.mode.is_forward else back).strip()


def _replayed_rule(record: RecordContext) -> str | None:
    """Return the name of the rule that the record failed before it was replayed from a dead letter topic.

    The last header with the name counts.
    """
    headers = record.headers
    if not headers:
        return None
    pairs: Iterable[tuple[str, str | bytes | None]] = headers.items() if isinstance(headers, Mapping) else headers
    rule_names = [value for name, value in pairs if name == RULE_HEADER]
    last = rule_names[-1] if rule_names else None
    return last.decode(errors="replace") if isinstance(last, bytes) else last


@cache
def _entry_points_by_type() -> dict[str, EntryPoint]:
    """Return the entry points by name. The first distribution that declares a name wins."""
    points: dict[str, EntryPoint] = {}
    for point in entry_points(group=GROUP):
        points.setdefault(point.name, point)
    return points


def _plugged_in(name: str) -> type[Tool] | None:
    """Return the class that a package registered under the name. Raises `NotInstalled` when it lacks a library."""
    point = _entry_points_by_type().get(name)
    loaded = point.load() if point is not None else None
    return loaded if isinstance(loaded, type) and issubclass(loaded, Tool) else None
