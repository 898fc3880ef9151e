"""Which rules run, in which order, and which actions follow."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import msgspec
import pytest
from tests.unit.client.rules.registry import RuledRegistry

from stele.client import Rule, RuleSet
from stele.client.serdes import AvroDeserializer, AvroSerializer, DeadLetter, Deserializer, Override, RuleFailed, Rules
from stele.client.serdes.rules import RuleAction, RuleContext, RuleExecutor, engine
from stele.errors import NotInstalled

SCHEMA = '{"type":"record","name":"R","fields":[{"name":"s","type":"string","confluent:tags":["PII"]}]}'


class Append(RuleExecutor):
    """Appends its expression to the field `s`. It fails for `fail` and returns None for `none`."""

    def run(self, context: RuleContext, value: Any) -> Any:
        if context.rule.expr == "fail":
            raise ZeroDivisionError("boom")
        if context.rule.kind == "CONDITION":
            return context.rule.expr in value["s"]
        return None if context.rule.expr == "none" else {**value, "s": value["s"] + context.rule.expr}


class Note(RuleAction):
    """Records the arguments of its calls."""

    seen: list[tuple[str, Any, str | None]] = []  # noqa: RUF012 - shared on purpose

    def run(self, context: RuleContext, value: Any, failure: RuleFailed | None) -> None:
        self.seen.append((context.rule.name, value, failure and failure.why))


RULES = Rules(executors={"APPEND": Append}, actions={"NOTE": Note})


def rule(expr: str, mode: str = "WRITEREAD", **more: Any) -> Rule:
    """Return a rule of the type APPEND, named by its expression."""
    return Rule(**{"name": expr, "mode": mode, "type": "APPEND", "expr": expr, **more})


def subject_with(*rules: Rule, enable_at: str | None = None) -> RuledRegistry:
    """Return a registry that has one version with these domain rules."""
    registry = RuledRegistry()
    rule_set = RuleSet(domain_rules=list(rules), enable_at=enable_at)
    registry.add("t-value", SCHEMA, ruleSet=msgspec.to_builtins(rule_set))
    return registry


def write_value(registry: RuledRegistry, rules: Rules = RULES, **call: Any) -> str:
    """Return what rules make of 'x' when it is written."""
    data = AvroSerializer(registry.client(), use_latest=True, rules=rules)({"s": "x"}, topic="t", **call)
    plain: str = AvroDeserializer(registry.client(), rules=Rules(enabled=False))(data)["s"]
    return plain


def read(registry: RuledRegistry, rules: Rules = RULES, **call: Any) -> str:
    """Return what rules make of 'x' when it is read."""
    data = AvroSerializer(registry.client(), use_latest=True, rules=Rules(enabled=False))({"s": "x"}, topic="t")
    text: str = AvroDeserializer(registry.client(), rules=rules)(data, topic="t", **call)["s"]
    return text


def test_order_and_modes() -> None:
    """Rules run first to last when writing, last to first when reading, and only in their modes."""
    registry = subject_with(rule("a"), rule("b", "WRITE"), rule("c", "READ"), rule("d"))
    assert write_value(registry) == "xabd"
    assert read(registry) == "xdca"


def test_generic_deserializers_run_rules_too() -> None:
    """`Deserializer` runs the rules of the schema of each format."""
    registry = subject_with(rule("a", "READ"))
    data = AvroSerializer(registry.client(), use_latest=True)({"s": "x"}, topic="t")
    assert Deserializer(registry.client(), rules=RULES)(data, topic="t") == {"s": "xa"}


@pytest.mark.parametrize("enable_at", ["SERVER", "GATEWAY"])
def test_disabled(enable_at: str) -> None:
    """Disabled rules do not run, nor rules that are enabled only elsewhere. An override takes precedence."""
    assert write_value(subject_with(rule("a", disabled=True), rule("b"))) == "xb"
    elsewhere = subject_with(rule("a"), enable_at=enable_at)
    assert write_value(elsewhere) == "x"
    here = Rules(executors={"APPEND": Append}, overrides={"APPEND": Override(disabled=False)})
    assert write_value(elsewhere, here) == "xa"
    off = Rules(executors={"APPEND": Append}, overrides={"a": Override(disabled=True)})
    assert write_value(subject_with(rule("a"), rule("b"), enable_at="CLIENT"), off) == "xb"


def test_failures() -> None:
    """Every error of an executor becomes the failure of its rule, with its cause. A result of None is a failure too."""
    with pytest.raises(RuleFailed, match="'fail' failed: ZeroDivisionError: boom") as caught:
        write_value(subject_with(rule("fail")))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert pickle.loads(pickle.dumps(caught.value)).rule == "fail"
    with pytest.raises(RuleFailed, match="the result is empty"):
        write_value(subject_with(rule("none")))
    with pytest.raises(RuleFailed, match="the condition does not hold: y"):
        write_value(subject_with(rule("y", kind="CONDITION")))
    with pytest.raises(RuleFailed, match="y, please"):
        write_value(subject_with(rule("y", kind="CONDITION", doc="y, please")))


def test_actions() -> None:
    """NONE keeps the value before the rule, a pair names one action for each direction, and a success has an action."""
    registry = subject_with(rule("fail", on_failure="NONE,ERROR"), rule("b"))
    assert write_value(registry) == "xb"
    with pytest.raises(RuleFailed):
        read(registry)
    Note.seen.clear()
    noted = subject_with(rule("a", on_success="NOTE"), rule("fail", on_failure="NOTE"))
    assert write_value(noted) == "xa"
    assert Note.seen == [("a", {"s": "xa"}, None), ("fail", {"s": "xa"}, "ZeroDivisionError: boom")]
    with pytest.raises(RuleFailed, match="no action 'WHO'"):
        write_value(subject_with(rule("a", on_success="WHO")))
    quiet = Rules(executors={"APPEND": Append}, overrides={"fail": Override(on_failure="NONE")})
    assert write_value(subject_with(rule("fail", on_failure="ERROR")), quiet) == "x"


def test_unknown_types() -> None:
    """A rule of an unknown type fails, and later rules do not run."""
    with pytest.raises(RuleFailed, match="there is no executor for rules of type 'WHO'"):
        write_value(subject_with(rule("a", type="WHO")))
    assert write_value(subject_with(rule("a", type="WHO", on_failure="NONE"), rule("b"))) == "x"


def test_what_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing library raises `NotInstalled`, whatever the rule's action is."""

    class Missing:
        def load(self) -> type:
            raise NotInstalled("cel-python", "rules")

    monkeypatch.setattr(engine, "_entry_points_by_type", lambda: {"WHO": Missing()})
    with pytest.raises(NotInstalled, match=r"stele-registry\[rules\]"):
        write_value(subject_with(rule("a", type="WHO", on_failure="NONE")))


def test_executors_of_other_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """An executor in the entry point group `stele.rules` runs rules of its name."""

    class Point:
        def load(self) -> type:
            return Append

    monkeypatch.setattr(engine, "_entry_points_by_type", lambda: {"ELSEWHERE": Point()})
    assert write_value(subject_with(rule("a", type="elsewhere")), Rules()) == "xa"


def test_dead_letters_when_reading() -> None:
    """An unreadable record is sent on unchanged with the failure in headers, and the reader raises."""
    letters: list[DeadLetter] = []
    rules = Rules({"dlq.topic": "dead"}, executors={"APPEND": Append}, dead_letters=letters.append)
    registry = subject_with(rule("fail", "READ", on_failure="DLQ"))
    with pytest.raises(RuleFailed):
        read(registry, rules, headers=[("own", b"1")])
    (letter,) = letters
    assert letter.topic == "dead"
    assert letter.key is None
    assert letter.value == b"\0\0\0\0\1\2x"
    headers = dict(letter.headers)
    assert headers["own"] == b"1"
    assert headers["__rule.name"] == b"fail"
    assert headers["__rule.mode"] == b"READ"
    assert headers["__rule.subject"] == b"t-value"
    assert headers["__rule.topic"] == b"t"
    assert b"boom" in (headers["__rule.exception"] or b"")
    assert read(registry, rules, headers=letter.headers) == "x"  # when read again, the rule is skipped


def test_dead_letters_when_writing() -> None:
    """A value is sent as JSON with fields to encrypt redacted. The topic may be a parameter of the rule."""
    letters: list[DeadLetter] = []
    rules = Rules(executors={"APPEND": Append}, dead_letters=letters.append)
    secret = Rule("secret", mode="WRITE", type="ENCRYPT", tags=["PII"])
    registry = subject_with(rule("fail", on_failure="DLQ", params={"dlq.topic": "p"}), secret)
    with pytest.raises(RuleFailed):
        write_value(registry, rules)
    assert (letters[0].topic, letters[0].value) == ("p", b'{"s": "<REDACTED>"}')
    with pytest.raises(RuleFailed, match="there is no producer for dead letters"):
        write_value(registry)
    with pytest.raises(RuleFailed, match="no topic"):
        write_value(subject_with(rule("fail", on_failure="DLQ")), rules)


def test_keys_as_dead_letters() -> None:
    """The key that failed is the key of its dead letter."""
    letters: list[DeadLetter] = []
    rules = Rules({"dlq.topic": "dead"}, executors={"APPEND": Append}, dead_letters=letters.append)
    registry = RuledRegistry()
    rule_set = RuleSet(domain_rules=[rule("fail", on_failure="DLQ")])
    registry.add("t-key", SCHEMA, ruleSet=msgspec.to_builtins(rule_set))
    with pytest.raises(RuleFailed):
        AvroSerializer(registry.client(), use_latest=True, rules=rules)({"s": "x"}, topic="t", field="key")
    assert (letters[0].key, letters[0].value) == (b'{"s": "x"}', None)


def test_registered_schemas_bring_their_rules() -> None:
    """For a schema given as text, the rules of the matching registered version run."""
    registry = subject_with(rule("a", "WRITE"))
    data = AvroSerializer(registry.client(), SCHEMA, rules=RULES)({"s": "x"}, topic="t")
    assert AvroDeserializer(registry.client())(data) == {"s": "xa"}


def test_versions_by_metadata_and_id() -> None:
    """A serializer selects its version by properties or by id, a deserializer its reader by properties."""
    registry = RuledRegistry()
    for mark in ("one", "two"):
        rule_set = RuleSet(domain_rules=[rule(mark)])
        properties = {"properties": {"mark": mark}}
        registry.add("t-value", SCHEMA, ruleSet=msgspec.to_builtins(rule_set), metadata=properties)
    client = registry.client()
    first = AvroSerializer(client, use_metadata={"mark": "one"}, rules=RULES)({"s": "x"}, topic="t")
    assert first == AvroSerializer(client, use_id=1, rules=RULES)({"s": "x"}, topic="t")
    assert first is not None
    assert first[4] == 1
    assert AvroDeserializer(client, use_metadata={"mark": "two"}, rules=RULES)(first, topic="t") == {"s": "xonetwo"}


def test_deserializers_with_rules_can_be_pickled() -> None:
    """A pickled deserializer runs the same rules."""
    registry = subject_with(rule("a", "READ"))
    data = AvroSerializer(registry.client(), use_latest=True, rules=RULES)({"s": "x"}, topic="t")
    snapshot = registry.client().snapshot(ids=[1])
    copy = pickle.loads(pickle.dumps(AvroDeserializer(snapshot, rules=RULES)))
    assert copy(data, topic="t") == {"s": "xa"}


def test_without_the_extra() -> None:
    """Serdes work without the libraries for rules. The first rule that needs one names the package to install."""
    code = """
import sys
for name in ("celpy", "lark", "jsonata", "cryptography"):
    sys.modules[name] = None
import stele.client.serdes
from stele.client.serdes.rules import engine
from stele.errors import NotInstalled
for name in ("CEL", "CEL_FIELD", "JSONATA", "ENCRYPT", "ENCRYPT_PAYLOAD"):
    try:
        engine._plugged_in(name)
    except NotInstalled as missing:
        assert "stele-registry[rules]" in str(missing)
    else:
        raise AssertionError(name)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
