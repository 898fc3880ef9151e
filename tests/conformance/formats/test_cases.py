"""Every format, as the catalogue gives it, against the cases other projects wrote: all uncontested ones must hold."""

from __future__ import annotations

import pytest
from format_cases import Case, case_id, cases, pairs

from stele.core.ports import Form
from stele.errors import MalformedSchema
from stele.formats import catalogue

FORMATS = ("avro",)
"""Formats under test; each joins when it is complete."""


@pytest.mark.parametrize("case", cases("compatible", *FORMATS), ids=case_id)
def test_verdict(case: Case) -> None:
    """The verdict on a pair of schemas is the label of the suite it comes from, in that suite's ruleset."""
    schemas = catalogue.get(case["format"])
    findings = [
        finding
        for reader, writer in pairs(case)
        for finding in schemas.check(
            schemas.parse(reader, {}, strict=False), schemas.parse(writer, {}, strict=False), case["ruleset"]
        )
    ]
    assert any(finding.breaks for finding in findings) is not case["compatible"], (case["note"], findings)


@pytest.mark.parametrize("case", cases("valid", *FORMATS), ids=case_id)
def test_validity(case: Case) -> None:
    """A valid schema is accepted and a malformed one refused with a sentence."""
    schemas = catalogue.get(case["format"])
    if case["valid"]:
        schemas.parse(case["schema"].encode(), {})
    else:
        with pytest.raises(MalformedSchema) as caught:
            schemas.parse(case["schema"].encode(), {})
        assert len(str(caught.value)) > 10


@pytest.mark.parametrize("case", cases("canonical", *FORMATS), ids=case_id)
def test_canonical_form(case: Case) -> None:
    """Canonical form and Rabin fingerprint are exactly those of the Avro project's own table."""
    schemas = catalogue.get(case["format"])
    parsed = schemas.parse(case["schema"].encode(), {}, strict=False)
    assert schemas.canonical(parsed, Form.CANONICAL).decode() == case["canonical"]
    if "crc64_signed" in case:
        assert int.from_bytes(schemas.fingerprints(parsed)["rabin"], "big", signed=True) == case["crc64_signed"]


def test_the_case_files_are_read() -> None:
    """The suites are there in full: an empty parametrisation would pass without a word."""
    assert len(cases("compatible", "avro")) == 460
    assert len(cases("valid", "avro")) == 30
    assert len(cases("canonical", "avro")) == 34
