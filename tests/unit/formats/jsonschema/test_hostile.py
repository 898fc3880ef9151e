"""Hostile JSON Schemas: each ends soon in a clear error or an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.patient_search import shorten_proofs
from tests.support.time_limit import limit_time

from stele.core.findings import Severity
from stele.errors import CannotConvert
from stele.formats.jsonschema import JSON_SCHEMA
from stele.formats.jsonschema.json_text import SpelledNumber, is_equal, parse_json, to_hashable
from stele.formats.jsonschema.parse import ParsedJsonSchema


def parse(schema: Any, *, strict: bool = True) -> ParsedJsonSchema:
    """Parse a schema given as a JSON value."""
    return JSON_SCHEMA.parse(json.dumps(schema).encode(), {}, strict=strict)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": [{"a": 1}, []]},
        {"type": [{"a": 1}]},
        {"items": [{"type": [{"a": 1}]}]},
        {"properties": {"a": {"type": [["string"]]}}, "required": 1},
        {"required": 1},
        {"properties": [], "required": {"a": 1}, "type": 3},
        {"required": 4},
        {"type": True},
        {"type": 4},
    ],
)
def test_keywords_of_wrong_types(schema: Any) -> None:
    """Schemas that only lenient parsing takes are compared, listed and shown as tables like others."""
    parsed = parse(schema, strict=False)
    for other in (parsed, parse({"type": "array"})):
        for ruleset in JSON_SCHEMA.rulesets:
            JSON_SCHEMA.check(parsed, other, ruleset)
            JSON_SCHEMA.check(other, parsed, ruleset)
    JSON_SCHEMA.fields(parsed)
    with pytest.raises(CannotConvert, match="not valid"):
        JSON_SCHEMA.to_model(parsed)
    assert JSON_SCHEMA.arrow_schema(parsed) is not None


@pytest.mark.parametrize("ruleset", ["confluent", "confluent-lenient"])
@pytest.mark.parametrize("keyword", ["oneOf", "anyOf", "allOf"])
def test_sums_of_many_branches(keyword: str, ruleset: str) -> None:
    """If hundreds of branches would have to be compared with each other, the result is reported as undecided."""
    before = parse({keyword: [{"properties": {f"a{n}": {"type": "integer"}}} for n in range(800)]})
    after = parse({keyword: [{"properties": {f"a{n}": {"type": "string"}}} for n in range(800)]})
    (finding,) = JSON_SCHEMA.check(after, before, ruleset)
    assert finding.rule == "TOO_COMPLEX"
    assert finding.level is Severity.UNKNOWN
    assert JSON_SCHEMA.check(after, after, ruleset) == []


def test_sums_of_long_enums() -> None:
    """Branches count by their size: comparing lists of thousands of values is no single step."""
    values = [[f"{branch}-{n}" for n in range(300)] for branch in range(150)]
    before = parse({"anyOf": [{"enum": each} for each in values]})
    after = parse({"anyOf": [{"enum": [*each, "more"]} for each in values]})
    assert [finding.rule for finding in JSON_SCHEMA.check(before, after, "confluent")] == ["TOO_COMPLEX"]


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        ({"required": [f"f{n}" for n in range(20_000)]}, {"required": [f"g{n}" for n in range(20_000)]}),
        *(
            (
                {word: [{"properties": {f"a{n}": {"type": "integer"}}} for n in range(3_000)]},
                {word: [{"properties": {f"a{n}": {"type": "string"}}} for n in range(3_000)]},
            )
            for word in ("oneOf", "allOf")
        ),
        (
            {"patternProperties": {f"^f{n}$": {"type": "integer"} for n in range(5_000)}},
            {"patternProperties": {f"^g{n}$": {"type": "integer"} for n in range(5_000)}},
        ),
        (
            {"properties": {f"p{n}": {"type": "integer"} for n in range(40_000)}},
            {"properties": {f"p{n}": {"type": "string"} for n in range(40_000)}},
        ),
    ],
    ids=["required", "oneOf", "allOf", "patternProperties", "megabytes"],
)
def test_the_search_ends_in_time(reader: Any, writer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking for a counter-example among thousands of names or branches ends within its time, and never says yes."""
    questions = shorten_proofs(monkeypatch)
    with limit_time(20):
        findings = JSON_SCHEMA.check(
            parse(reader | {"type": "object"}), parse(writer | {"type": "object"}), "containment"
        )
        assert any(finding.breaks for finding in findings)
    assert len(questions) <= 1, "a proof is tried once"


def test_numbers_with_one_hash_are_told_apart_at_once() -> None:
    """Numbers with the same hash are compared quickly: what represents them in sets has unpredictable hashes."""
    shared = 2**61 - 1
    for spell in ("{}", "{}.5", "{}e3"):
        numbers = [SpelledNumber(spell.format(shared * (count + 1))) for count in range(2000)]
        assert len({hash(to_hashable(number)) for number in numbers}) == 2000
    assert len({hash(to_hashable(shared * (count + 1))) for count in range(4)}) == 4


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ("1", "1.0", True),
        ("10", "1e1", True),
        ("0", "-0.0e9", True),
        ("1e30", "10e29", True),
        ("100000000000000000", "1e17", True),
        ("2305843009213693951", "2305843009213693951.0", True),
        ("2305843009213693951", "4611686018427387902", False),
        ("0.10", "0.1", True),
        ("0.1", "-0.1", False),
        ("1", "true", False),
    ],
)
def test_numbers_are_equal_by_value(left: str, right: str, equal: bool) -> None:
    """However they are spelled, numbers are equal when their values are."""
    assert is_equal(parse_json(left.encode()), parse_json(right.encode())) == equal
