"""Which rules run: none by default, untrusted ones within limits, trusted ones without."""

from __future__ import annotations

import pickle
import time
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.support.time_limit import limit_time
from tests.unit.client.rules.registry import RuledRegistry

from stele.client import Rule, RuleSet
from stele.client.serdes import ExpressionLimits, JsonDeserializer, JsonSerializer, RuleFailed, Rules, RulesRefused
from stele.client.serdes.rules.signatures import SIGNATURE, SignedBy, sign_rule

OLD = b'\0\0\0\0\1{"a":1}'


def migrating(expr: str, **more: Any) -> RuledRegistry:
    """Return a registry with two versions, and a rule that migrates values to the second."""
    rule = Rule("up", mode="UPGRADE", type="JSONATA", expr=expr, **more)
    registry = RuledRegistry()
    registry.add("t-value", "{}", schemaType="JSON")
    rule_set = msgspec.to_builtins(RuleSet(migration_rules=[rule]))
    registry.add("t-value", '{"title":"2"}', schemaType="JSON", ruleSet=rule_set)
    return registry


def registry_with(rule: Rule) -> RuledRegistry:
    """Return a registry with one version and a domain rule."""
    registry = RuledRegistry()
    registry.add("t-value", "{}", schemaType="JSON", ruleSet=msgspec.to_builtins(RuleSet(domain_rules=[rule])))
    return registry


def read(registry: RuledRegistry, rules: Rules | None) -> Any:
    """Return the first record, read as the newest version."""
    return JsonDeserializer(registry.client(), use_latest=True, rules=rules)(OLD, topic="t")


@pytest.mark.parametrize("on_failure", [None, "NONE"])
def test_no_rule_runs_unless_rules_are_given(on_failure: str | None) -> None:
    """Without `rules` a record that needs a rule is refused, also if the rule's `on_failure` action is NONE."""
    registry = migrating("{'b': a}", on_failure=on_failure)
    with pytest.raises(RulesRefused, match=r"'up'.*rules=Rules"):
        read(registry, None)
    assert read(registry, Rules()) == {"b": 1}
    assert read(registry, Rules(enabled=False)) == {"a": 1}
    for mode, call in (("READ", lambda box: read(box, None)), ("WRITE", write)):
        box = registry_with(Rule("r", kind="CONDITION", mode=mode, type="CEL", expr="true", on_failure=on_failure))
        with pytest.raises(RulesRefused, match="'r'"):
            call(box)


def write(registry: RuledRegistry) -> Any:
    """Return a record that was written without the argument `rules`."""
    return JsonSerializer(registry.client(), use_latest=True)({"a": 1}, topic="t")


def test_schemas_without_rules_need_no_choice() -> None:
    """Without `rules`, schemas work that have no rules, disabled rules, or rules of the other direction."""
    registry = registry_with(Rule("r", kind="CONDITION", mode="READ", type="CEL", expr="true"))
    assert write(registry) == OLD
    assert read(registry_with(Rule("r", type="CEL", expr="false", disabled=True)), None) == {"a": 1}


@pytest.mark.parametrize(
    "expr", ["$match('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!', /^(?=a)(a+)+$/)", "[1..10000].[1..10000]", "$pad('a', 2e9)"]
)
def test_hostile_migrations_fail_in_time(expr: str) -> None:
    """A rule that would take hours or gigabytes fails within its time limit."""
    with limit_time(60, time.monotonic), pytest.raises(RuleFailed, match="takes more than"):
        read(migrating(expr), Rules(limits=ExpressionLimits(seconds=0.5, memory=64 << 20)))


def test_only_trusted_rules_run_if_one_says_so() -> None:
    """Untrusted rules run within limits; with `trusted_only` they are refused."""
    registry = registry_with(Rule("mine", mode="READ", type="CEL", expr="{'b': message.a}"))
    for rules in (Rules(), Rules(trusts=lambda rule: rule.name == "mine", trusted_only=True)):
        assert read(registry, rules) == {"b": 1}
    with pytest.raises(RulesRefused, match="'mine', which is not trusted"):
        read(registry, Rules(trusts=lambda rule: rule.name == "other", trusted_only=True))
    with pytest.raises(RulesRefused):
        read(registry, Rules(trusted_only=True))


def test_bounds_are_for_others() -> None:
    """An expression that exceeds the limits in an untrusted rule succeeds in a trusted one."""
    slow = "$sum([1..200000])"
    tight = ExpressionLimits(seconds=0.001)
    with pytest.raises(RuleFailed, match="takes more than"):
        read(migrating(f"{{'b': {slow}}}"), Rules(limits=tight))
    assert read(migrating(f"{{'b': {slow}}}"), Rules(limits=tight, trusts=lambda _: True)) == {"b": 20000100000}


def test_signatures() -> None:
    """A signature stays valid when a registry writes out defaults, and becomes invalid when the rule changes."""
    author, stranger = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    public = author.public_key().public_bytes_raw()
    rule = Rule("r", mode="UPGRADE", type="JSONATA", expr="{'b': a}", tags=["b", "a"], params={"p": "1"})
    signed = sign_rule(rule, author)
    trusts: SignedBy = pickle.loads(pickle.dumps(SignedBy(stranger.public_key().public_bytes_raw(), public)))
    assert trusts(signed)
    assert trusts(msgspec.structs.replace(signed, kind="TRANSFORM", disabled=False, tags=["a", "b"], doc="words"))
    assert sign_rule(signed, author) == signed
    for change in ({"expr": "{'b': 2}"}, {"name": "s"}, {"mode": "UPDOWN"}, {"on_failure": "NONE"}, {"tags": None}):
        assert not trusts(msgspec.structs.replace(signed, **change))
    for params in (None, {}, {"p": "2", SIGNATURE: signed.params[SIGNATURE]}, {SIGNATURE: "?"}, {SIGNATURE: ""}):  # type: ignore[index]  # it has some
        assert not trusts(msgspec.structs.replace(signed, params=params))
    assert not SignedBy(public)(sign_rule(rule, stranger))
    assert not SignedBy()(signed)
    with pytest.raises(ValueError, match="32"):
        SignedBy(b"short")


def test_signed_rules_of_a_registry() -> None:
    """With `trusted_only`, signed rules run, and rules that another user put into the registry are refused."""
    author = Ed25519PrivateKey.generate()
    rules = Rules(trusts=SignedBy(author.public_key().public_bytes_raw()), trusted_only=True)
    own = sign_rule(Rule("up", mode="UPGRADE", type="JSONATA", expr="{'b': a}"), author)
    assert read(migrating(own.expr or "", params=own.params), rules) == {"b": 1}
    with pytest.raises(RulesRefused):
        read(migrating("{'b': 'theirs'}", params=own.params), rules)
