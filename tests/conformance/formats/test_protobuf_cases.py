"""Protobuf against the published cases: what compiles, what is valid, and that printing changes no verdict.

The compatibility labels of these suites follow other rules than `confluent` (they ask for `reserved` and stable names),
so they are no measure of it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stele.core.ports import Form
from stele.errors import MalformedSchema
from stele.formats.protobuf import PROTOBUF

CASES = Path(__file__).parent / "cases"


def cases(key: str) -> list[Any]:
    """The Protobuf cases that have the member key, named by id."""
    texts = [file.read_text(encoding="ascii") for file in sorted(CASES.glob("*protobuf*.jsonl"))]
    found = [json.loads(line) for text in texts for line in text.splitlines()]
    return [pytest.param(case, id=case["id"]) for case in found if key in case]


def compiles(text: str) -> bool:
    """Whether the text is accepted."""
    try:
        PROTOBUF.parse(text.encode(), {})
    except MalformedSchema:
        return False
    return True


def test_the_cases_are_there() -> None:
    """The copied suites are complete."""
    assert len(cases("compatible")) == 75
    assert len(cases("valid")) == 14


@pytest.mark.parametrize("case", cases("valid"))
def test_validity(case: dict[str, Any]) -> None:
    """Valid schemas are accepted, others refused."""
    assert compiles(case["schema"]) == case["valid"]


@pytest.mark.parametrize("case", cases("compiles"))
def test_sources_of_comparisons_compile(case: dict[str, Any]) -> None:
    """Both texts of a pair are accepted exactly when the reference compiler accepts them."""
    assert (compiles(case["old"]) and compiles(case["new"])) == case["compiles"]


@pytest.mark.parametrize("case", [case for case in cases("compiles") if case.values[0]["compiles"]])
def test_printing_changes_no_verdict(case: dict[str, Any]) -> None:
    """A schema is fully compatible with its own printed and normalized text, and both sides can be printed first."""
    old, new = (PROTOBUF.parse(case[side].encode(), {}) for side in ("old", "new"))
    rules = [finding.rule for finding in PROTOBUF.check(new, old)]
    for form in (Form.PRINTED, Form.NORMALIZED):
        old_text, new_text = (PROTOBUF.parse(PROTOBUF.canonical(side, form), {}) for side in (old, new))
        assert PROTOBUF.check(old_text, old) == PROTOBUF.check(old, old_text) == []
        assert [finding.rule for finding in PROTOBUF.check(new_text, old_text)] == rules
