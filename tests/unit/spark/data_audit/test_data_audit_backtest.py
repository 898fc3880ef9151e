"""Verdicts of a backtest and of a census from the counts of tasks, without Spark."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import scale_examples

from stele.client import ResolvedSchema, SchemaSnapshot
from stele.formats import rulesets
from stele.formats.registry import get_format
from stele.spark.data_audit.audit_scope import AuditScope, load_scope
from stele.spark.data_audit.backtest import BacktestCounts, FailingRecord, make_backtest
from stele.spark.data_audit.census import make_census
from stele.spark.data_audit.data_stats import NO_ID, SchemaStats

LONG = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]})
INT = LONG.replace("long", "int")
EXAMPLES = st.lists(
    st.builds(
        FailingRecord,
        st.just("1"),
        st.integers(0, 30).map(lambda n: json.dumps({"p": n})),
        st.just(1),
        st.just("00"),
        st.just("r"),
    ),
    max_size=4,
)
TRIALS = st.builds(
    BacktestCounts,
    st.integers(0, 9),
    st.integers(0, 9),
    st.dictionaries(st.sampled_from("ab"), st.integers(1, 9)),
    st.dictionaries(st.sampled_from("ab"), st.integers(1, 9)),
    EXAMPLES,
    st.integers(0, 9),
    st.just(4),
)


def make_scope() -> AuditScope:
    """Return a scope with a subject that has version 1 (int) and 2 (long), ids 10 and 20."""
    schemas = (
        ResolvedSchema(INT, id=10, subject="s", version=1),
        ResolvedSchema(LONG, id=20, subject="s", version=2),
    )
    return load_scope(SchemaSnapshot(schemas), "s", engine="python")


@settings(max_examples=scale_examples(40), deadline=None)
@given(TRIALS, TRIALS, TRIALS)
def test_trials_merge_in_any_grouping(a: BacktestCounts, b: BacktestCounts, c: BacktestCounts) -> None:
    """The order and grouping of merges does not change the result, and the first examples are kept."""
    whole = a.merge_with(b).merge_with(c)
    assert whole == a.merge_with(b.merge_with(c)) == c.merge_with(b).merge_with(a)
    offsets = [json.loads(it.position)["p"] for it in whole.examples]
    every = [json.loads(it.position)["p"] for trial in (a, b, c) for it in trial.examples]
    assert offsets == sorted(every)[:4], "numbers are ordered as numbers"


def test_rules_and_records_both_have_a_say() -> None:
    """A backtest fails by rules or by records alone.

    Damaged records pass only with `allow_damaged`. An unknown id has the verdict `unknown` and does not fail the rules.
    """
    good = {"10": BacktestCounts(5, 5), "20": BacktestCounts(5, 5)}
    proposed = ResolvedSchema(LONG)
    backtest = make_backtest(good, make_scope(), proposed, "")
    assert backtest.has_passed()
    assert [it.verdict for it in backtest.comparisons] == ["compatible", "compatible"]
    rules = rulesets.default_ruleset(get_format("avro"))
    by_rule = make_backtest(good, make_scope(), ResolvedSchema(INT), rules)
    assert (by_rule.incompatible_ids, by_rule.has_passed()) == (["20"], False)
    broken = make_backtest({"10": BacktestCounts(5, 5, broken={"why": 2})}, make_scope(), proposed, "")
    assert (broken.broken_records, broken.has_passed(allow_damaged=True)) == (2, False)
    damaged = make_backtest({NO_ID: BacktestCounts(1, 1, damaged={"why": 1}, nulls=4)}, make_scope(), proposed, "")
    assert (damaged.has_passed(), damaged.has_passed(allow_damaged=True), damaged.tombstones) == (False, True, 4)
    unknown = make_backtest({"77": BacktestCounts(1, 0)}, make_scope(), proposed, "")
    assert unknown.comparisons[0].verdict == "unknown"
    assert "unknown schema id 77" in unknown.comparisons[0].note


def test_another_format_is_refused() -> None:
    """A proposed schema of another format is incompatible with the stored records, whatever the ruleset."""
    backtest = make_backtest({"10": BacktestCounts(1, 0)}, make_scope(), ResolvedSchema("{}", "JSON"), "")
    assert backtest.incompatible_ids == ["10"]
    assert "it is AVRO, the proposed schema is JSON" in backtest.comparisons[0].note


def test_census_verdicts() -> None:
    """A version with records is not safe and has its last date; the newest without records is safe with a remark."""
    census = make_census(
        {"10": SchemaStats(records=1, bytes=9, first=0, last=86_400_000_000, days={0: 1})}, make_scope()
    )
    assert [(it.safe, it.why) for it in census.versions] == [
        (False, "not safe: 1 record, last seen 1970-01-02T00:00:00Z"),
        (
            True,
            (
                "safe to delete: no record here needs it; it is the newest version, which readers and writers use "
                "by default"
            ),
        ),
    ]
    assert census.is_clean
    assert census.days == {"1970-01-01": {"10": 1}}
