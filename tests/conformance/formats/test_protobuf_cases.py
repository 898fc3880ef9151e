"""Protobuf against the published cases: what the reference compiler compiles, and nothing else.

The compatibility labels of these suites follow other rules than ours (they ask for `reserved` and stable names), so
they are no measure of a ruleset here; `test_formats` tries the rest.
"""

from __future__ import annotations

import pytest
from format_cases import case_id, published_cases

from stele.errors import MalformedSchema
from stele.formats.protobuf import PROTOBUF
from stele.testing.format_cases import FormatCase

CASES = [case for case in published_cases() if case.format == "protobuf" and case.compatible is not None]


def can_compile(text: str | None) -> bool:
    """Whether the text is accepted."""
    try:
        PROTOBUF.parse((text or "").encode(), {})
    except MalformedSchema:
        return False
    return True


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_sources_of_comparisons_compile(case: FormatCase) -> None:
    """Both texts of a pair are accepted exactly when the reference compiler accepts them."""
    assert (can_compile(case.old) and can_compile(case.new)) == case.compiles


def test_the_cases_are_there() -> None:
    """The copied suites are complete, and one pair is known not to compile."""
    assert len(CASES) == 75
    assert sum(not case.compiles for case in CASES) >= 1
