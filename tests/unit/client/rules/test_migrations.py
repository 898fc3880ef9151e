"""Migration rules between versions: which rules run, in which direction, with which expressions."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from tests.unit.client.rules.registry import RuledRegistry

from stele.client import Metadata, Rule, RuleSet
from stele.client.serdes import AvroDeserializer, AvroSerializer, Deserializer, JsonDeserializer, RuleFailed, Rules
from stele.expressions import jsonata

NAMES = ("a", "b", "c", "d")


def schema(name: str) -> str:
    """Return a record schema with one field of that name, and a bytes and a date field, unknown to JSONata."""
    fields = [
        {"name": name, "type": "string"},
        {"name": "raw", "type": "bytes"},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    ]
    return json.dumps({"type": "record", "name": "R", "fields": fields})


def rename(mode: str, before: str, after: str) -> Rule:
    """Return a rule that renames the field."""
    return Rule(mode, mode=mode, type="JSONATA", expr=f"{{'{after}': {before} & '>', 'raw': raw, 'day': day}}")


def renaming_registry() -> RuledRegistry:
    """Return a registry with versions a, b, c, d of one field.

    b has no rules. The steps from b to c and from c to d have rules in both directions.
    """
    registry = RuledRegistry()
    for index, name in enumerate(NAMES):
        before = "a" if name == "c" else NAMES[index - 1]
        rules = [rename("UPGRADE", before, name), rename("DOWNGRADE", name, before)] if index > 1 else []
        text = schema("a" if name == "b" else name)  # b has the text of a, with other properties
        more = {
            "metadata": msgspec.to_builtins(Metadata(properties={"mark": name})),
            "ruleSet": msgspec.to_builtins(RuleSet(migration_rules=rules)),
        }
        registry.add("t-value", text, **more)
    return registry


def write(registry: RuledRegistry, mark: str, name: str) -> Any:
    """Return a record of a version."""
    value = {name: "x", "raw": b"\0", "day": 3}
    return AvroSerializer(registry.client(), use_metadata={"mark": mark})(value, topic="t")


def test_upgrades_go_version_by_version() -> None:
    """A reader of the newest version gets old records after the rules of each version in between."""
    registry = renaming_registry()
    for kind in (AvroDeserializer, Deserializer):
        record = kind(registry.client(), use_latest=True, rules=Rules())(write(registry, "a", "a"), topic="t")
        assert record["d"] == "x>>"
        assert record["raw"] == b"\0"
        assert record["day"].isoformat() == "1970-01-04"


def test_downgrades_go_back() -> None:
    """A reader of an old version gets new records after the rules of the newer versions, newest first."""
    registry = renaming_registry()
    reader = AvroDeserializer(registry.client(), use_metadata={"mark": "a"}, rules=Rules())
    assert reader(write(registry, "d", "d"), topic="t")["a"] == "x>>"
    assert reader(write(registry, "b", "a"), topic="t")["a"] == "x"  # no rules in between: resolved by Avro alone


def test_snapshots_migrate_too() -> None:
    """A snapshot with all versions migrates like a client."""
    registry = renaming_registry()
    snapshot = registry.client().snapshot(subjects=["t-value"])
    data = write(registry, "a", "a")
    assert AvroDeserializer(snapshot, use_latest=True, rules=Rules())(data, topic="t")["d"] == "x>>"
    marked = AvroDeserializer(snapshot, use_metadata={"mark": "c"}, rules=Rules())
    assert marked(data, topic="t")["c"] == "x>"
    assert marked(write(registry, "d", "d"), topic="t")["c"] == "x>"


def test_migrations_come_before_other_rules() -> None:
    """Rules for reading, and validation, get the value in the reader's version."""
    registry = RuledRegistry()
    registry.add("t-value", '{"type":"object","required":["a"]}', schemaType="JSON")
    up = Rule("up", mode="UPDOWN", type="JSONATA", expr="{'b': a}")
    reading = Rule("r", mode="READ", type="CEL", expr="{'b': message.b + 1}")
    rule_set = RuleSet(migration_rules=[up], domain_rules=[reading])
    registry.add(
        "t-value", '{"type":"object","required":["b"]}', schemaType="JSON", ruleSet=msgspec.to_builtins(rule_set)
    )
    data = b'\0\0\0\0\1{"a":1}'
    assert JsonDeserializer(registry.client(), use_latest=True, rules=Rules())(data, topic="t") == {"b": 2}
    with pytest.raises(Exception, match="required"):
        JsonDeserializer(registry.client(), use_latest=True, rules=Rules(enabled=False))(data, topic="t")


def test_records_of_other_subjects_are_not_migrated() -> None:
    """Migration rules apply only if the subject holds the writer's schema."""
    registry = renaming_registry()
    foreign = registry.add("u-value", schema("d"))
    data = foreign.to_bytes(5, "big") + b"\2x\2\0\6"
    assert AvroDeserializer(registry.client(), use_latest=True)(data, topic="t")["d"] == "x"


@pytest.mark.parametrize(
    "expr",
    [
        "",
        "{'a': ",
        "(" * 3000,
        "$f := function($x) { $f($x) }; $f(1)",
        "($f := function($x) { 1 + $f($x) }; $f(1))",
        "$error('no')",
        "unknown",
        "x" * (jsonata.MAX_EXPRESSION + 1),
    ],
)
def test_hostile_expressions_fail(expr: str) -> None:
    """A hostile expression fails its rule and has no other effect."""
    registry = RuledRegistry()
    registry.add("t-value", "{}", schemaType="JSON")
    rule = Rule("up", mode="UPGRADE", type="JSONATA", expr=expr)
    more = {"schemaType": "JSON", "ruleSet": msgspec.to_builtins(RuleSet(migration_rules=[rule]))}
    registry.add("t-value", '{"title":"2"}', **more)
    with pytest.raises(RuleFailed):
        JsonDeserializer(registry.client(), use_latest=True, rules=Rules())(b"\0\0\0\0\1{}", topic="t")
