"""Findings that statistics of fields lead to, without Spark."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stele.client import ResolvedSchema, SchemaSnapshot
from stele.spark.data_audit.audit_scope import load_scope
from stele.spark.data_audit.data_stats import NO_ID, FieldStats, SchemaStats
from stele.spark.data_audit.drift import collect_enumerations, find_drifts, make_drift_report
from stele.spark.data_audit.report import ReportState


def kinds(symbols: tuple[str, ...] = (), path: str = "a", **figures: Any) -> list[str]:
    """Return the kinds of findings for a field with these figures."""
    figures = {"type": "string", "slots": 100, "present": 100, "values": None, **figures}
    return [it.kind for it in find_drifts(path, FieldStats(**figures), symbols, ("1",))]


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ({"present": 0}, ["NEVER_SET"]),
        ({"present": 0, "path": "a[]"}, ["NULL_ITEMS"]),
        ({"present": 0, "slots": 0}, []),
        ({"shapes": {"uuid": 100}}, ["TEXT_IS_UUID"]),
        ({"shapes": {"uuid": 99}}, []),
        ({"shapes": {"integer": 100, "number": 100}}, ["TEXT_IS_INTEGER"]),
        ({"shapes": {"number": 100, "integer": 3}}, ["TEXT_IS_NUMBER"]),
        ({"values": {"a": 50, "b": 50}}, ["FEW_VALUES"]),
        ({"values": {str(n): 5 for n in range(20)}}, []),
        ({"values": {"a": 100}}, ["CONSTANT"]),
        ({"type": "int64", "low": -5, "high": 2**31 - 1}, ["FITS_INT"]),
        ({"type": "int64", "low": -5, "high": 2**31}, []),
        ({"type": "int32", "low": 0, "high": 1}, []),
        ({"type": "double", "low": 0.0, "high": 9.0, "whole": 100}, ["WHOLE_NUMBERS"]),
        ({"type": "double", "low": 0.0, "high": 9.0, "whole": 99}, []),
        ({"type": "map", "entries": 200, "values": {"a": 100, "b": 100}}, ["CONSTANT_KEYS"]),
        ({"type": "map", "entries": 150, "values": {"a": 100, "b": 50}}, []),
        ({"symbols": ("A", "B"), "values": {"A": 100}}, ["UNUSED_SYMBOLS"]),
        ({"symbols": ("A", "B"), "values": {"A": 1, "B": 99}}, []),
        ({"present": 5, "shapes": {"uuid": 5}}, []),
    ],
)
def test_figures_and_findings(figures: dict[str, Any], expected: list[str]) -> None:
    """Each kind of finding has a case that triggers it and a similar case that does not. Few values give no finding."""
    assert kinds(**figures) == expected


def test_enumerations_are_found_wherever_they_are() -> None:
    """Enumerations are found in records, lists and maps, by the path of their column.

    A type that contains itself is entered once, and a text that is not a schema has none.
    """
    colour = {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}
    fields = [
        {"name": "one", "type": colour},
        {"name": "many", "type": {"type": "array", "items": "Colour"}},
        {"name": "by", "type": {"type": "map", "values": ["null", "Colour"]}},
        {"name": "next", "type": ["null", "Node"]},
    ]
    text = json.dumps({"type": "record", "name": "Node", "fields": fields})
    symbols = collect_enumerations(ResolvedSchema(text))
    assert symbols == dict.fromkeys(("one", "many[]", "by{}"), ("RED", "BLUE"))
    assert collect_enumerations(ResolvedSchema("nonsense")) == {}


def test_versions_that_differ_are_told_apart() -> None:
    """A finding that applies to one id only is listed under `single` with that id, not under `drifts`."""
    text = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "string"]}]})
    schemas = [ResolvedSchema(text, id=n, subject="s", version=n) for n in (1, 2)]
    scope = load_scope(SchemaSnapshot(tuple(schemas)), "s", engine="python")
    never, often = FieldStats("string", slots=50), FieldStats("string", slots=50, present=50, values=None)
    drift = make_drift_report(
        {
            "1": SchemaStats(records=50, fields={"a": never}),
            "2": SchemaStats(records=51, fields={"a": often}, reasons={"bad": 1}),
            NO_ID: SchemaStats(records=3, nulls=9),
        },
        scope,
    )
    assert drift.drifts == ()
    assert [(it.kind, it.ids) for it in drift.single] == [("NEVER_SET", ("1",))]
    assert (drift.records, drift.read, drift.ids) == (104, 100, {"1": ("s v1",), "2": ("s v2",)})
    assert drift.report().state == ReportState.GOOD
