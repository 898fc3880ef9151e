"""The official JSON Schema test suite through `parse` and `codec(...).validate`, beside what the engine says itself.

`make test` fetches the suite; where it is not there these tests fail and say so. The published results have the same
answers in them, which take seconds to find, so they are compared here.
"""

from __future__ import annotations

import pytest
from tools import conformance
from tools.json_suite import DRAFTS, Answer, judge_suite

LEAST = {"draft4": 600, "draft6": 800, "draft7": 900, "draft2019-09": 1200, "draft2020-12": 1200}
"""Required tests each draft has at least."""

ASSERTING = "optional/format-assertion.json"
"""A meta-schema can ask that `format` be asserted; here it is an annotation in every draft."""


def answers(draft: str, part: str) -> list[Answer]:
    """The answers to one part of the suite."""
    return [one for one in judge_suite() if one.group.draft == draft and one.group.part == part]


def wrong_answers(results: list[Answer]) -> list[str]:
    """Tests that jsonschema-rs answers as the suite does, and Stele does not."""
    return [
        f"{one.group.file}: {one.group.description}: {one.test}: {one.ours}, not {one.suite}"
        for one in results
        if one.bare == one.suite != one.ours
    ]


@pytest.mark.parametrize("draft", DRAFTS)
def test_required(draft: str) -> None:
    """Every required test the engine passes is passed, remote documents being registry references."""
    results = answers(draft, "required")
    assert len(results) >= LEAST[draft]
    assert sum(one.bare == one.suite for one in results) >= 0.99 * len(results), "the comparison itself is broken"
    assert wrong_answers(results) == []


@pytest.mark.parametrize("draft", DRAFTS)
def test_optional(draft: str) -> None:
    """So is every optional one, but for those that want formats asserted."""
    assert wrong_answers([one for one in answers(draft, "optional") if one.group.file != ASSERTING]) == []


@pytest.mark.parametrize("draft", DRAFTS)
def test_formats_are_annotations(draft: str) -> None:
    """No `format` ever refuses a document: what the suite calls valid is valid, whatever the draft."""
    results = answers(draft, "format")
    assert len(results) >= 100
    assert [one for one in results if one.suite and not one.ours] == []


@pytest.mark.parametrize("draft", DRAFTS)
def test_every_schema_parses(draft: str) -> None:
    """No required schema is refused: there is none to leave out."""
    assert [one.group.description for one in answers(draft, "required") if one.ours is None] == []


def test_published_results_are_current(capsys: pytest.CaptureFixture[str]) -> None:
    """docs/reference/conformance.md and the README's table are what the tool writes today."""
    assert conformance.main(check=True) == 0, capsys.readouterr().err
