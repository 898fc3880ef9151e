"""Validation of rule sets as in Confluent, and merging of metadata and rules by name."""

from __future__ import annotations

import pytest

from stele.core.metadata import DataRule, DataRuleSet, Metadata, merge_metadata, merge_rule_sets
from stele.errors import InvalidRuleSet

GOOD = DataRule(name="mask_it-1", type="CEL")


@pytest.mark.parametrize(
    "rule_set",
    [
        DataRuleSet(),
        DataRuleSet(domain_rules=(GOOD,), enable_at="CLIENT"),
        DataRuleSet(migration_rules=(DataRule(name="up", type="JSONATA", mode="UPDOWN", on_success="NONE,ERROR"),)),
        DataRuleSet(encoding_rules=(DataRule(name="e" * 256, type="ENCRYPT", mode="WRITE"),)),
    ],
)
def test_good_rule_sets_pass(rule_set: DataRuleSet) -> None:
    """Every phase accepts its own modes."""
    rule_set.validate()


@pytest.mark.parametrize(
    ("rule_set", "why"),
    [
        (DataRuleSet(domain_rules=(DataRule(type="CEL"),)), "Missing rule name"),
        (DataRuleSet(domain_rules=(DataRule(name="1a", type="CEL"),)), "Illegal initial character in rule name: 1a"),
        (DataRuleSet(domain_rules=(DataRule(name="a\n", type="CEL"),)), "Illegal character in rule name"),
        (DataRuleSet(domain_rules=(DataRule(name="n" * 257, type="CEL"),)), "Rule name too long"),
        (DataRuleSet(domain_rules=(DataRule(name="a"),)), "Missing rule type"),
        (DataRuleSet(domain_rules=(DataRule(name="a", type="CEL", kind="MAGIC"),)), "kind"),
        (DataRuleSet(domain_rules=(DataRule(name="a", type="CEL", mode="UPGRADE"),)), "Domain rules can only"),
        (DataRuleSet(encoding_rules=(DataRule(name="a", type="CEL", mode="UPDOWN"),)), "Encoding rules can only"),
        (DataRuleSet(migration_rules=(DataRule(name="a", type="CEL"),)), "Migration rules can only"),
        (
            DataRuleSet(domain_rules=(DataRule(name="a", type="CEL", mode="WRITE", on_failure="DLQ,NONE"),)),
            "Multiple actions only valid",
        ),
        (DataRuleSet(domain_rules=(GOOD,), encoding_rules=(GOOD,)), "duplicate name"),
        (DataRuleSet(enable_at="MOON"), "enableAt"),
    ],
)
def test_bad_rule_sets_say_what_is_wrong(rule_set: DataRuleSet, why: str) -> None:
    """The error names the first invalid rule."""
    with pytest.raises(InvalidRuleSet, match=why):
        rule_set.validate()


def test_order_and_repeats_have_no_meaning_in_metadata() -> None:
    """Metadata in stored form are equal whatever their order was; empty members count as absent."""
    one = Metadata(tags={"b": ("y", "x", "y"), "a": ()}, properties={"q": "1", "p": "2"}, sensitive=("q", "p"))
    two = Metadata(tags={"a": (), "b": ("x", "y")}, properties={"p": "2", "q": "1"}, sensitive=("p", "q", "q"))
    assert one.in_stored_order() == two.in_stored_order()
    assert list(one.in_stored_order().properties or ()) == ["p", "q"]
    assert Metadata(tags={}, properties={}, sensitive=()).in_stored_order() == Metadata()


def test_metadata_merge_by_key() -> None:
    """The second wins where both have a key; sensitive names are united; None leaves the other one."""
    base = Metadata(properties={"a": "1", "b": "1"}, sensitive=("a",))
    over = Metadata(properties={"b": "2"}, tags={"f": ("PII",)}, sensitive=("b",))
    merged = merge_metadata(base, over)
    assert merged == Metadata(tags={"f": ("PII",)}, properties={"a": "1", "b": "2"}, sensitive=("a", "b"))
    assert merge_metadata(None, over) == over
    assert merge_metadata(base, None) == base
    assert merge_metadata(None, None) is None


def test_rule_sets_merge_by_name() -> None:
    """A rule of the second set replaces the one of its name, after the rules that only the first set has."""
    other, old, new = DataRule(name="a", type="X"), DataRule(name="b", type="X"), DataRule(name="b", type="Y")
    merged = merge_rule_sets(
        DataRuleSet(domain_rules=(old, other), enable_at="ALL"),
        DataRuleSet(domain_rules=(new,), encoding_rules=(GOOD,)),
    )
    assert merged == DataRuleSet(domain_rules=(other, new), encoding_rules=(GOOD,), enable_at="ALL")
    assert merge_rule_sets(None, DataRuleSet()) == DataRuleSet()
