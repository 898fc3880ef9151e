"""XML Schema against the published cases: every verdict as labelled, every refusal with a document that proves it."""

from __future__ import annotations

import pytest
from format_cases import Case, case_id, cases, pairs

from stele.formats.xsd import XSD
from stele.formats.xsd.validate import is_valid


@pytest.mark.parametrize("case", cases("compatible", "xsd"), ids=case_id)
def test_verdict(case: Case) -> None:
    """The verdict is the label of the suite, and each refusal carries a witness."""
    schemas = [(XSD.parse(reader, {}), XSD.parse(writer, {})) for reader, writer in pairs(case)]
    findings = [finding for reader, writer in schemas for finding in XSD.check(reader, writer, case["ruleset"])]
    breaking = [finding for finding in findings if finding.breaks]
    assert bool(breaking) is not case["compatible"], findings
    assert all(finding.witness for finding in breaking)


@pytest.mark.parametrize("case", [case for case in cases("compatible", "xsd") if "witness" in case], ids=case_id)
def test_the_witness_of_the_suite(case: Case) -> None:
    """The document the suite gives as proof is valid for the old schema and refused by the new one."""
    assert is_valid(XSD.parse(case["old"].encode(), {}), case["witness"].encode())
    assert not is_valid(XSD.parse(case["new"].encode(), {}), case["witness"].encode())


def test_the_cases_are_there() -> None:
    """The case files are read in full: an empty parametrisation would prove nothing."""
    assert len(cases("compatible", "xsd")) == 46
