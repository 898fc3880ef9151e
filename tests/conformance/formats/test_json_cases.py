"""JSON Schema against cases of another registry: validity as labelled, verdicts but for known blind spots."""

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
"""Cases where Confluent's rules look elsewhere than at the documents the two schemas allow; nothing else may differ."""


@pytest.mark.parametrize("case", [case for case in uncontested_cases("json") if case.valid is False], ids=case_id)
def test_malformed_schemas_are_explained(case: FormatCase) -> None:
    """A malformed schema is refused with its place and with what would have been right."""
    with pytest.raises(MalformedSchema) as caught:
        JSON_SCHEMA.parse(case.schema_text, {})
    assert caught.value.path
    assert caught.value.expected


def is_compatible(case: FormatCase) -> bool:
    """The strict verdict on a case."""
    return not any(
        finding.breaks
        for reader, writer in compared_pairs(case)
        for finding in JSON_SCHEMA.check(JSON_SCHEMA.parse(reader, {}), JSON_SCHEMA.parse(writer, {}))
    )


@pytest.mark.parametrize("case", [case for case in PAIRS if case.note not in UNSEEN], ids=case_id)
def test_strict_verdict(case: FormatCase) -> None:
    """The strict verdict is the label of a suite that aims at containment."""
    assert is_compatible(case) is case.compatible, case.note


def test_the_blind_spots_are_real() -> None:
    """Every exception listed is still needed: the strict verdict differs from the label in one case of it at least."""
    differing = {case.note for case in PAIRS if is_compatible(case) is not case.compatible}
    assert differing == UNSEEN


EQUAL_LANGUAGES = {
    *("apicurio-json-0011-forward", "apicurio-json-0012-backward", "apicurio-json-0012-forward"),
    *("apicurio-json-0126-forward", "apicurio-json-0127-forward"),
}
"""Cases labelled incompatible for a changed pattern although `[a-z]*` and `[A-Z]*` are found in every string."""


def is_contained(case: FormatCase, ruleset: str = "containment") -> bool | None:
    """The verdict of `containment` on a case: yes, no, or None for undecided."""
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
    """What is contained is proved, what is not is refused with a document, and every uncontested label is met."""
    verdict = is_contained(case)
    if case.more["semantic"] != "unknown":
        assert verdict is (case.more["semantic"] == "contained")
    assert (verdict is True) is (case.compatible or case.id in EQUAL_LANGUAGES)


@pytest.mark.parametrize("case", PAIRS, ids=case_id)
def test_comparing_patterns_as_texts_meets_every_label(case: FormatCase) -> None:
    """Version 1 of the rules, and what bears Apicurio's name, refuse every changed pattern, as Apicurio does."""
    for ruleset in ("containment@1", "apicurio"):
        assert (is_contained(case, ruleset) is True) is case.compatible


def test_containment_contradicts_no_evidence() -> None:
    """Contested cases included: what has a counter-example is never compatible, what is contained never refuted."""
    lines = [case for case in published_cases() if case.suite == "apicurio-json"]
    assert len(lines) == 286
    for case in lines:
        verdict = is_contained(case)
        assert not (verdict is True and (case.more["semantic"] == "not-contained" or "witness_value" in case.more)), (
            case.id
        )
        assert not (verdict is False and case.more["semantic"] == "contained"), case.id


def test_the_cases_are_there() -> None:
    """The case files are read in full: an empty parametrisation would prove nothing."""
    assert len([case for case in uncontested_cases("json") if case.valid is False]) == 14
    assert len(PAIRS) == 274
