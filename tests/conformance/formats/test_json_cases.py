"""JSON Schema against cases of another registry: validity as labelled, and verdicts except for known differences."""

from __future__ import annotations

import pytest
from tests.conformance.formats.format_cases import case_id, published_cases, uncontested_cases

from stele.core.findings import Severity
from stele.errors import MalformedSchema
from stele.formats.jsonschema import JSON_SCHEMA
from stele.testing.format_cases import FormatCase, compared_pairs

PAIRS = [case for case in uncontested_cases("json") if case.compatible is not None]

UNSEEN = {
    *("String: format 1", "String: format 2", "String: contentEncoding 2", "String: contentEncoding 3"),
    *("Object: required", "Object: propertyNames", "Object: patternProperties 1", "Object: patternProperties 2"),
    *("Array: contains", "Conditional: then", "Conditional: else", "Const: Enum equivalency"),
    *(f"Number: exclusive{bound} {number}" for bound in ("Minimum", "Maximum") for number in (1, 2, 3, 5)),
}
"""Cases in which Confluent's rules do not consider the documents that both schemas allow. All others must agree."""


@pytest.mark.parametrize("case", [case for case in uncontested_cases("json") if case.valid is False], ids=case_id)
def test_malformed_schemas_are_explained(case: FormatCase) -> None:
    """A malformed schema is refused with its position and what was expected."""
    with pytest.raises(MalformedSchema) as caught:
        JSON_SCHEMA.parse(case.schema_text, {})
    assert caught.value.path
    assert caught.value.expected


def is_compatible(case: FormatCase) -> bool:
    """Return the strict verdict on a case."""
    return not any(
        finding.breaks
        for reader, writer in compared_pairs(case)
        for finding in JSON_SCHEMA.check(JSON_SCHEMA.parse(reader, {}), JSON_SCHEMA.parse(writer, {}))
    )


@pytest.mark.parametrize("case", [case for case in PAIRS if case.note not in UNSEEN], ids=case_id)
def test_strict_verdict(case: FormatCase) -> None:
    """The strict verdict equals the label of a suite that is about containment."""
    assert is_compatible(case) is case.compatible, case.note


def test_the_blind_spots_are_real() -> None:
    """Every listed exception is needed: in at least one of its cases the strict verdict differs from the label."""
    differing = {case.note for case in PAIRS if is_compatible(case) is not case.compatible}
    assert differing == UNSEEN


EQUAL_LANGUAGES = {
    *("apicurio-json-0011-forward", "apicurio-json-0012-backward", "apicurio-json-0012-forward"),
    *("apicurio-json-0126-forward", "apicurio-json-0127-forward"),
}
"""Cases labelled incompatible for a changed pattern, although `[a-z]*` and `[A-Z]*` match in every string."""


def is_contained(case: FormatCase, ruleset: str = "containment") -> bool | None:
    """Return the verdict of `containment` on a case: True, False, or None for undecided."""
    findings = [
        finding
        for reader, writer in compared_pairs(case)
        for finding in JSON_SCHEMA.check(JSON_SCHEMA.parse(reader, {}), JSON_SCHEMA.parse(writer, {}), ruleset)
    ]
    if any(finding.level is Severity.ERROR for finding in findings):
        return False
    return None if findings else True


@pytest.mark.parametrize("case", PAIRS, ids=case_id)
def test_containment_agrees_with_what_is_known(case: FormatCase) -> None:
    """Containment is proved or refuted as known, and the verdict agrees with every uncontested label."""
    verdict = is_contained(case)
    if case.more["semantic"] != "unknown":
        assert verdict is (case.more["semantic"] == "contained")
    assert (verdict is True) is (case.compatible or case.id in EQUAL_LANGUAGES)


@pytest.mark.parametrize("case", PAIRS, ids=case_id)
def test_comparing_patterns_as_texts_meets_every_label(case: FormatCase) -> None:
    """Version 1 of the rules and the ruleset `apicurio` refuse every changed pattern, as Apicurio does."""
    for ruleset in ("containment@1", "apicurio"):
        assert (is_contained(case, ruleset) is True) is case.compatible


def test_containment_contradicts_no_evidence() -> None:
    """In all cases, a schema pair with a counter-example is not compatible, and a contained one is not refuted."""
    lines = [case for case in published_cases() if case.suite == "apicurio-json"]
    assert len(lines) == 286
    for case in lines:
        verdict = is_contained(case)
        assert not (verdict is True and (case.more["semantic"] == "not-contained" or "witness_value" in case.more)), (
            case.id
        )
        assert not (verdict is False and case.more["semantic"] == "contained"), case.id


def test_the_cases_are_there() -> None:
    """The case files are read completely, so that the parametrized tests are not empty."""
    assert len([case for case in uncontested_cases("json") if case.valid is False]) == 14
    assert len(PAIRS) == 274
