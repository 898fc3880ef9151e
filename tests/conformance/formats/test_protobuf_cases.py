"""Protobuf against the published cases: exactly the texts that the reference compiler compiles are accepted.

The compatibility labels of these suites follow other rules (they require `reserved` and stable names), so they do not
apply to a ruleset here; `test_formats` tests the rest.
"""

from __future__ import annotations

import pytest
from tests.conformance.formats.format_cases import case_id, published_cases

from stele.errors import MalformedSchema
from stele.formats.protobuf import PROTOBUF
from stele.testing.format_cases import FormatCase

CASES = [case for case in published_cases() if case.format == "protobuf" and case.compatible is not None]


def can_compile(text: str | None) -> bool:
    """Return whether the text is accepted."""
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
