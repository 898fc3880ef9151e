"""XML Schema against the published cases: every refusal has a document that proves it."""

from __future__ import annotations

import pytest
from tests.conformance.formats.format_cases import case_id, uncontested_cases

from stele.formats.xsd import XSD
from stele.formats.xsd.codec import is_valid
from stele.testing.format_cases import FormatCase, compared_pairs

CASES = [case for case in uncontested_cases("xsd") if not case.compatible]


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_refusals_carry_a_witness(case: FormatCase) -> None:
    """Each breaking finding has a document that proves it."""
    schemas = [(XSD.parse(reader, {}), XSD.parse(writer, {})) for reader, writer in compared_pairs(case)]
    findings = [finding for reader, writer in schemas for finding in XSD.check(reader, writer, case.ruleset)]
    breaking = [finding for finding in findings if finding.breaks]
    assert breaking
    assert all(finding.witness for finding in breaking)


@pytest.mark.parametrize("case", [case for case in CASES if "witness" in case.more], ids=case_id)
def test_the_witness_of_the_suite(case: FormatCase) -> None:
    """The document that the suite gives as proof is valid for the old schema and invalid for the new one."""
    witness = case.more["witness"].encode()
    (reader, writer), *_ = compared_pairs(case)
    assert is_valid(XSD.parse(writer, {}), witness)
    assert not is_valid(XSD.parse(reader, {}), witness)


def test_the_cases_are_there() -> None:
    """There are refusals, some with a document, so that the parametrized tests are not empty."""
    assert len(CASES) == 20
    assert sum("witness" in case.more for case in CASES) == 8
