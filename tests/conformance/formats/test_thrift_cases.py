"""Thrift against the case files: every verdict, whatever form the schemas are in."""

from __future__ import annotations

import pytest
from format_cases import Case, case_id, cases, pairs

from stele.core.ports import Form
from stele.formats.thrift import THRIFT

CASES = cases("compatible", "thrift")


def breaks(reader: bytes, writer: bytes, ruleset: str) -> bool:
    """Whether the ruleset refuses the pair."""
    findings = THRIFT.check(THRIFT.parse(reader, {}), THRIFT.parse(writer, {}), ruleset)
    return any(finding.breaks for finding in findings)


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_verdict(case: Case) -> None:
    """The verdict is the label, which comes from the Apache compiler or from bytes that were written and read."""
    refused = any(breaks(reader, writer, case["ruleset"]) for reader, writer in pairs(case))
    assert refused is not case["compatible"], case["note"]


@pytest.mark.parametrize("form", [Form.PRINTED, Form.NORMALIZED])
@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_printing_changes_no_verdict(case: Case, form: Form) -> None:
    """The verdict is the same for the printed schemas, and a schema is compatible with its own print."""
    old, new = (THRIFT.canonical(THRIFT.parse(case[side].encode(), {}), form) for side in ("old", "new"))
    assert breaks(new, old, case["ruleset"]) is not case["compatible"]
    assert not breaks(old, case["old"].encode(), case["ruleset"])


@pytest.mark.parametrize("case", [case for case in CASES if not case["compatible"]], ids=case_id)
def test_refusals_explain_themselves(case: Case) -> None:
    """Every finding says where, why and what to do."""
    for reader, writer in pairs(case):
        for finding in THRIFT.check(THRIFT.parse(reader, {}), THRIFT.parse(writer, {}), case["ruleset"]):
            assert finding.path
            assert finding.rule.isupper()
            assert finding.why.endswith(".")
            assert finding.fix.endswith(".")


def test_the_cases_are_there() -> None:
    """The suites were read in full: an empty parametrisation would prove nothing."""
    assert len(CASES) == 82
    assert {f"{case['ruleset']}@1" for case in CASES} == set(THRIFT.rulesets)
