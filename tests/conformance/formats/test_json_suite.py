"""The official JSON Schema test suite through `parse` and `codec(...).validate`, compared with the engine itself.

`make test` downloads the suite; without it these tests fail with a message. The published results contain the same
answers, which take seconds to compute, so they are compared here.
"""

from __future__ import annotations

import pytest
from tools import conformance
from tools.json_suite import DRAFTS, Answer, judge_suite

LEAST = {"draft4": 600, "draft6": 800, "draft7": 900, "draft2019-09": 1200, "draft2020-12": 1200}
"""Lowest number of required tests by draft."""

ASSERTING = "optional/format-assertion.json"
"""File of tests for meta-schemas that require `format` to be asserted; here it is an annotation in every draft."""


def answers(draft: str, part: str) -> list[Answer]:
    """Return the answers to one part of the suite."""
    return [one for one in judge_suite() if one.group.draft == draft and one.group.part == part]


def wrong_answers(results: list[Answer]) -> list[str]:
    """Return the tests that jsonschema-rs answers like the suite, and Stele does not."""
    return [
        f"{one.group.file}: {one.group.description}: {one.test}: {one.ours}, not {one.suite}"
        for one in results
        if one.bare == one.suite != one.ours
    ]


@pytest.mark.parametrize("draft", DRAFTS)
def test_required(draft: str) -> None:
    """Every required test that the engine passes is passed, with remote documents as registry references."""
    results = answers(draft, "required")
    assert len(results) >= LEAST[draft]
    assert sum(one.bare == one.suite for one in results) >= 0.99 * len(results), "the comparison itself is broken"
    assert wrong_answers(results) == []


@pytest.mark.parametrize("draft", DRAFTS)
def test_optional(draft: str) -> None:
    """Every optional test that the engine passes is passed, except those that require formats to be asserted."""
    assert wrong_answers([one for one in answers(draft, "optional") if one.group.file != ASSERTING]) == []


@pytest.mark.parametrize("draft", DRAFTS)
def test_formats_are_annotations(draft: str) -> None:
    """`format` never makes a document invalid: documents that the suite calls valid are valid in every draft."""
    results = answers(draft, "format")
    assert len(results) >= 100
    assert [one for one in results if one.suite and not one.ours] == []


@pytest.mark.parametrize("draft", DRAFTS)
def test_every_schema_parses(draft: str) -> None:
    """Every schema of the required tests is accepted."""
    assert [one.group.description for one in answers(draft, "required") if one.ours is None] == []


def test_published_results_are_current(capsys: pytest.CaptureFixture[str]) -> None:
    """docs/reference/conformance.md and the README's table equal the present output of the tool."""
    assert conformance.main(check=True) == 0, capsys.readouterr().err
