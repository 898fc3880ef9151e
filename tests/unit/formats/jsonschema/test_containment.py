"""The ruleset `containment`: what is proved, what a document refutes and how it is reported, what stays undecided."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from tests.support.patient_search import let_steps_end_searches, shorten_proofs
from tests.support.time_limit import limit_time

from stele.core.findings import Finding, Severity
from stele.core.ports import Format
from stele.formats.jsonschema import JSON_SCHEMA, ParsedJsonSchema
from stele.formats.jsonschema.containment.document import BundledDocument, DocumentView, build_document
from stele.formats.jsonschema.containment.provers import DEADLINE, PROVER, CanonicalProver, StructuralProver
from stele.formats.jsonschema.containment.samples import sample_pattern
from stele.formats.jsonschema.containment.search import PASSES, Search, SearchBudget
from stele.formats.jsonschema.drafts import Draft

DRAFT4 = {"$schema": "http://json-schema.org/draft-04/schema#"}
LATEST = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
STRING, INTEGER = {"type": "string"}, {"type": "integer"}
PATTERN = {"type": "string", "pattern": "^(?=a)[a-f]+$"}
NEITHER = ({"pattern": "^(?=.*[0-9])(?=.*q)[a-z0-9]{9,}$"}, {"pattern": "^(?=.*q)(?=.*[0-9])[a-z0-9]{9,}$"})


def parse(schema: Any, **references: Any) -> ParsedJsonSchema:
    """Parse a schema given as a value."""
    return JSON_SCHEMA.parse(json.dumps(schema).encode(), {k: json.dumps(v).encode() for k, v in references.items()})


def check(writer: Any, reader: Any, ruleset: str = "containment") -> list[Finding]:
    """Findings of two schemas given as values."""
    return JSON_SCHEMA.check(parse(reader), parse(writer), ruleset)


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Apply `let_steps_end_searches`: searches end by steps, not by time."""
    let_steps_end_searches(monkeypatch)


REFUTED: list[tuple[Any, Any, str, str, str]] = [
    (STRING, INTEGER, "TYPE_REFUSES", "#/type", '"a"'),
    ({}, {"required": ["a"]}, "REQUIRED_REFUSES", "#/required", "{}"),
    ({}, {"properties": {"a": STRING}}, "TYPE_REFUSES", "#/properties/a/type", '{"a":{}}'),
    ({"enum": [1, 2]}, {"enum": [1]}, "ENUM_REFUSES", "#/enum", "2"),
    ({"minimum": 5, **INTEGER}, {"minimum": 6, **INTEGER}, "MINIMUM_REFUSES", "#/minimum", "5"),
    (STRING, {"maxLength": 3}, "MAX_LENGTH_REFUSES", "#/maxLength", '"aaaa"'),
    (STRING, {"pattern": "^[a-c]+$"}, "PATTERN_REFUSES", "#/pattern", '""'),
    ({"type": "array"}, {"uniqueItems": True}, "UNIQUE_ITEMS_REFUSES", "#/uniqueItems", '["a","a"]'),
    (
        {"type": "object"},
        {"additionalProperties": False},
        "ADDITIONAL_PROPERTIES_REFUSES",
        "#/additionalProperties",
        "",
    ),
    ({"type": "object"}, {"dependencies": {"a": ["b"]}}, "DEPENDENCIES_REFUSES", "#/dependencies", ""),
    ({"type": "number"}, {"multipleOf": 0.5}, "MULTIPLE_OF_REFUSES", "#/multipleOf", ""),
    ({}, {"not": {"type": "null"}}, "NOT_REFUSES", "#/not", "null"),
    ({}, {"if": STRING, "then": {"minLength": 2}}, "MIN_LENGTH_REFUSES", "#/then/minLength", ""),
    (
        {"anyOf": [{"type": "null"}, {"type": "object"}]},
        {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"a": INTEGER}}]},
        "TYPE_REFUSES",
        "#/anyOf/1/properties/a/type",
        "",
    ),
    (
        {
            "definitions": {"t": {"properties": {"next": {"$ref": "#/definitions/t"}, "n": {}}}},
            "$ref": "#/definitions/t",
        },
        {
            "definitions": {"t": {"properties": {"next": {"$ref": "#/definitions/t"}, "n": INTEGER}}},
            "properties": {"next": {"$ref": "#/definitions/t"}},
        },
        "TYPE_REFUSES",
        "#/definitions/t/properties/n/type",
        "",
    ),
]


@pytest.mark.parametrize(("writer", "reader", "rule", "path", "witness"), REFUTED)
def test_a_document_refutes(writer: Any, reader: Any, rule: str, path: str, witness: str) -> None:
    """One finding names the keyword, its place in the reader's schema, and a small document that proves it."""
    (finding,) = check(writer, reader)
    assert (finding.rule, finding.path, finding.level) == (rule, path, Severity.ERROR)
    assert finding.witness is not None
    assert not witness or finding.witness == witness
    document = json.loads(finding.witness)
    assert parse(writer).validator.is_valid(document)
    assert not parse(reader).validator.is_valid(document)
    assert "valid under the writer's schema and refused at #" in finding.why
    assert finding.fix


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        ({"required": ["a", "b"]}, {"required": ["b"]}),
        ({"type": "integer", "minimum": 3}, {"type": "number", "exclusiveMinimum": 2}),
        ({"const": 3}, {"enum": [3, 4]}),
        (
            {"items": [STRING, INTEGER], "type": "array", "additionalItems": False},
            {"items": {"type": ["string", "integer"]}},
        ),
        ({"oneOf": [STRING, INTEGER]}, {"anyOf": [INTEGER, STRING, {"type": "null"}]}),
        ({**DRAFT4, "maximum": 5, "exclusiveMaximum": True}, {"exclusiveMaximum": 5}),
        ({"items": [STRING], "additionalItems": INTEGER}, {**LATEST, "prefixItems": [STRING], "items": INTEGER}),
        ({"dependencies": {"a": ["b"]}}, {**LATEST, "dependentRequired": {"a": ["b"]}}),
        ({"$ref": "#/definitions/s", "type": "null", "definitions": {"s": STRING}}, {**LATEST, **STRING}),
        ({"title": "one", **NEITHER[0]}, {"title": "two", **NEITHER[0]}),
        (
            {"properties": {"c": {"type": "array", "items": {"$ref": "#"}}}},
            {"properties": {"c": {"type": "array", "items": {"properties": {"c": {"items": {"$ref": "#"}}}}}}},
        ),
    ],
)
def test_what_is_proved_is_compatible(writer: Any, reader: Any) -> None:
    """A reader is compatible if it allows more, or the same in other keywords, another draft or one cycle later."""
    assert check(writer, reader) == []


def test_what_nobody_can_decide_is_refused_unless_a_ruleset_lets_it_pass() -> None:
    """Without proof and counter-example the finding is UNKNOWN, which breaks; the lenient ruleset only warns."""
    (finding,) = check(*NEITHER)
    assert (finding.rule, finding.level, finding.witness) == ("CONTAINMENT_UNDECIDED", Severity.UNKNOWN, None)
    assert finding.breaks
    (lenient,) = check(*NEITHER, "containment-lenient")
    assert (lenient.rule, lenient.level) == ("CONTAINMENT_UNDECIDED", Severity.WARNING)
    assert not lenient.breaks


def test_the_lenient_ruleset_refuses_what_is_refuted() -> None:
    """The lenient ruleset differs for undecided pairs only: a counter-example refuses under both."""
    assert check(STRING, INTEGER, "containment-lenient") == check(STRING, INTEGER)


def test_formats_count_where_validators_differ_on_them() -> None:
    """Up to draft-07 a new format is refused, because some readers check it; from 2019-09 on it is an annotation."""
    (finding,) = check(STRING, {"type": "string", "format": "date"})
    assert (finding.rule, finding.path) == ("FORMAT_REFUSES", "#/format")
    assert check({**LATEST, **STRING}, {**LATEST, "type": "string", "format": "date"}) == []
    assert check({"format": "date"}, {"format": "date"}) == []


def test_references_are_those_of_the_registry() -> None:
    """A `$ref` to a registered text is followed, and the path of a finding inside it names that text."""
    reader = parse(
        {"properties": {"a": {"$ref": "other.json#/definitions/x"}}}, **{"other.json": {"definitions": {"x": INTEGER}}}
    )
    writer = parse({"properties": {"a": {"$ref": "other.json"}}}, **{"other.json": {"type": ["integer", "null"]}})
    (finding,) = JSON_SCHEMA.check(reader, writer, "containment")
    assert (finding.path, finding.witness) == ("other.json#/definitions/x/type", '{"a":null}')
    assert JSON_SCHEMA.check(writer, reader, "containment") == []


def test_a_malformed_schema_of_old_is_in_doubt() -> None:
    """A text only strict=False lets in has no validator: the answer is UNKNOWN, with the reason."""
    old = JSON_SCHEMA.parse(b'{"type": "strange"}', {}, strict=False)
    (finding,) = JSON_SCHEMA.check(parse({}), old, "containment")
    assert finding.level is Severity.UNKNOWN
    assert "malformed" in finding.why


def test_a_schema_applied_to_its_own_value_is_never_proved_by_itself() -> None:
    """A schema that refers to itself for the same value has no defined meaning, so nothing is proved from it."""
    assert check({"not": {"anyOf": [INTEGER, {"$ref": "#"}]}}, {"not": {"anyOf": [INTEGER, {"$ref": "#"}, STRING]}})


def test_answers_do_not_change() -> None:
    """The same pair gives the same finding, witness included."""
    pair = ({"type": "object"}, {"type": "object", "properties": {"a": {"maxLength": 2}, "b": {"minimum": 1}}})
    assert len({repr(check(*pair)) for _ in range(3)}) == 1


def _recursive_types(count: int, last: int) -> Any:
    """Return types that can contain each other and differ by a constant."""
    names = [{"$ref": f"#/definitions/n{index}"} for index in range(count)]
    types = {
        f"n{index}": {
            "type": "object",
            "required": ["k"],
            "properties": {"k": {"const": last if index == count - 1 else index}, "c": {"items": {"oneOf": names}}},
        }
        for index in range(count)
    }
    return {"definitions": types, "oneOf": names}


def _choice_schema(count: int, kind: str) -> Any:
    return {
        "allOf": [
            {
                "anyOf": [
                    {"required": [f"{i}-{j}"], "properties": {f"{i}-{j}": {"type": ["string", kind]}}}
                    for j in range(count)
                ]
            }
            for i in range(count)
        ]
    }


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        (_recursive_types(12, 11), _recursive_types(12, 99)),
        (_choice_schema(6, "integer"), _choice_schema(6, "null")),
        ({"not": _choice_schema(6, "integer")}, {"not": _choice_schema(6, "null")}),
        (
            {"oneOf": [{"properties": {"k": {"const": i}}} for i in range(200)]},
            {"oneOf": [{"properties": {"k": {"const": i}}} for i in range(199)]},
        ),
        ({"anyOf": [{"$ref": "#"}, STRING]}, {"anyOf": [{"$ref": "#"}, INTEGER]}),
        ({"enum": list(range(20_000))}, {"not": {"enum": [str(i) for i in range(20_000)]}}),
        ({"required": [f"p{i}" for i in range(1_000)]}, {"properties": {f"p{i}": STRING for i in range(1_000)}}),
        ({"type": "array", "minItems": 10**9}, {"type": "array", "minItems": 10**12}),
        ({"pattern": "^(a+)+$"}, {"pattern": "^(?=a)(a+)+b?$"}),
    ],
)
def test_hostile_pairs_end(writer: Any, reader: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Branches that multiply, cycles, thousands of members, huge bounds, slow patterns: an answer within seconds."""
    questions = shorten_proofs(monkeypatch)
    with limit_time(10, time.monotonic):
        check(writer, reader)
    assert len(questions) <= 1, "a proof is tried once"


@pytest.mark.usefixtures("patience")
def test_a_changed_type_among_types_that_hold_each_other_is_found() -> None:
    """In recursive schemas one changed constant gives a small witness; unchanged schemas are proved compatible."""
    (finding,) = check(_recursive_types(12, 11), _recursive_types(12, 99))
    assert finding.witness == '{"k":11}'
    assert check(_recursive_types(12, 11), json.loads(json.dumps(_recursive_types(12, 11))) | {"title": "other"}) == []


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        ({"type": "array", "items": [STRING]}, {"type": "array", "items": [STRING, STRING]}),
        ({"type": "object", "properties": {"a": STRING}}, {"type": "object", "properties": {"a": STRING, "b": STRING}}),
    ],
)
def test_what_is_plain_to_see_is_seen_at_a_glance(writer: Any, reader: Any) -> None:
    """The first pass, with a tenth of the steps before a proof, finds that an open position was restricted."""
    old, new = (JSON_SCHEMA.parse(json.dumps(schema).encode(), {}) for schema in (writer, reader))
    reads, wrote = (DocumentView(build_document(each, Draft.DRAFT2020, formats=False)) for each in (new, old))
    glance = Search(reads, wrote, StructuralProver(reads, wrote), SearchBudget(100, time.thread_time() + 60), PASSES[0])
    witness = glance.find_witness(lambda value: old.validator.is_valid(value) and not new.validator.is_valid(value))
    assert witness is not None


@pytest.mark.usefixtures("patience")
def test_one_changed_property_of_thousands_is_found() -> None:
    """Places the reader is proved to allow are not searched, so that a wide schema does not use up the steps."""
    wide = {"type": "object", "properties": {f"p{i}": {"type": "string", "maxLength": 100} for i in range(2_000)}}
    changed = json.loads(json.dumps(wide))
    changed["properties"]["p1999"]["maxLength"] = 2
    (finding,) = check(wide, changed)
    assert finding.path == "#/properties/p1999/maxLength"


def test_a_proof_may_take_seconds() -> None:
    """The shared prover uses DEADLINE, which is at most five seconds. Most tests here use a shorter one."""
    assert PROVER._engine._deadline == DEADLINE <= 5


def test_a_proof_that_takes_too_long_is_given_up_and_the_next_one_is_not_harmed() -> None:
    """The proving process is stopped at its deadline and replaced."""
    prover = CanonicalProver(deadline=0.3)
    slow = [BundledDocument(_choice_schema(6, kind), exact=True) for kind in ("integer", "null")]
    with limit_time(30, time.monotonic):
        assert not prover.can_prove(slow[0], slow[1], Draft.DRAFT7, formats=False)
    quick = BundledDocument({"type": "integer"}, exact=True), BundledDocument({"const": 1}, exact=True)
    patient = CanonicalProver(deadline=30)
    assert patient.can_prove(*quick, Draft.DRAFT7, formats=False)
    assert not patient.can_prove(quick[1], quick[0], Draft.DRAFT7, formats=False)
    assert not patient.can_prove(quick[0]._replace(exact=False), quick[1], Draft.DRAFT7, formats=False)
    patient.close()
    assert patient.can_prove(*quick, Draft.DRAFT7, formats=False)
    prover.close()
    patient.close()


@pytest.mark.parametrize(
    "pattern",
    ["^[a-z]{2,4}$", r"^\d{4}-\d{2}$", "^(foo|bar)+$", r"^[^a-z\s]+$", "a.c", r"^\u0041\x42\w*$", "^(?:x|(?<n>y))?z$"],
)
def test_samples_match_their_pattern(pattern: str) -> None:
    """Every sample of an ordinary pattern matches it, and there is one at least."""
    validator = parse({"type": "string", "pattern": pattern}).validator
    samples = sample_pattern(pattern)
    assert samples
    assert all(validator.is_valid(text) for text in samples)


@pytest.mark.parametrize("pattern", ["(", "[", "a{", "(" * 100 + ")" * 100, "a{99999}", "a" * 600, "\\", "\\u00"])
def test_patterns_beyond_the_sampler_have_no_samples(pattern: str) -> None:
    """A broken, deep, long or endless pattern gives no samples instead of an error."""
    assert sample_pattern(pattern) == ()


def test_the_ruleset_comes_in_by_the_port() -> None:
    """The format lists both rulesets after its defaults."""
    port: Format[ParsedJsonSchema] = JSON_SCHEMA
    assert tuple(port.rulesets)[2:4] == ("containment@1", "containment-lenient@1")


def string(**keywords: Any) -> dict[str, Any]:
    """A schema of strings."""
    return {"type": "string", **keywords}


def names(**patterns: Any) -> dict[str, Any]:
    """A schema of objects with `patternProperties`: a for `^a`, digits for `^[0-9]+$` and so on."""
    return {"type": "object", "patternProperties": {NAMES[name]: schema for name, schema in patterns.items()}}


NAMES = {
    "a": "^a",
    "holds_a": "a",
    "ab": "^[ab]",
    "digits": "^[0-9]+$",
    "any": r"^[\s\S]*$",
    "foo": "^(foo|bar)$",
    "foo_or": "^(foo|bar|baz)$",
    "test": "^test$",
    "holds_test": "test",
}
CLOSED: dict[str, Any] = {"additionalProperties": False}
YES, NO = True, False
AS_LANGUAGES: list[tuple[Any, Any, bool, bool]] = [
    # (one, other, one is contained in other, other is contained in one)
    (string(pattern=""), string(), YES, YES),
    (string(pattern="(ab)*", maxLength=5), string(pattern="(ab){3}"), NO, NO),
    (string(pattern="^(ab)*$", maxLength=5), string(pattern="^(ab){0,3}$"), YES, NO),
    (string(pattern="^(ab)*$", maxLength=5), string(enum=["", "ab", "abab"]), YES, YES),
    (string(pattern="^foo[0-9]{3}$"), string(pattern="^[a-z0-9]+$"), YES, NO),
    (string(pattern="^foo"), string(pattern="foo"), YES, NO),
    (string(pattern="^[a-c]{1,3}$"), string(maxLength=3, minLength=1), YES, NO),
    (string(pattern="^[0-9]+$"), string(pattern=r"^\d+$"), YES, YES),
    (string(pattern=r"^\d{4}-\d{2}-\d{2}$"), string(pattern="^[0-9-]{10}$"), YES, NO),
    (string(pattern="^.*$"), string(pattern=".*"), YES, NO),
    (string(**{"not": {"minLength": 2}}), string(maxLength=1), YES, YES),
    (string(**{"not": {"minLength": 2, "pattern": "ab"}}), string(maxLength=1), NO, YES),
    (
        {"allOf": [STRING, {"not": string(minLength=5, pattern="a")}]},
        {"anyOf": [string(maxLength=4), string(pattern="[^a]")]},
        YES,
        NO,
    ),
    (string(**{"not": {"pattern": "a"}}), string(pattern="^[^a]*$"), YES, YES),
    (string(**{"not": {"enum": ["a"]}}), string(pattern=r"^([^a]|[\s\S]{2,})?$"), YES, YES),
    ({"anyOf": [string(pattern="^a$"), string(pattern="^b$")]}, string(pattern="^(a|b)$"), YES, YES),
    ({"oneOf": [string(pattern="^a"), string(pattern="b$")]}, string(pattern="^a|b$"), YES, NO),
    ({"allOf": [string(pattern="^a"), string(pattern="b$")]}, string(pattern=r"^a[\s\S]*b$"), YES, YES),
    (
        {"if": {"pattern": "^a"}, "then": {"maxLength": 3}, "else": {"maxLength": 2}},
        {"anyOf": [{"maxLength": 2}, {"pattern": "^a"}]},
        YES,
        NO,
    ),
    (
        {"type": ["string", "integer"], "pattern": "^a+$"},
        {"anyOf": [string(pattern="a"), {"type": "integer"}]},
        YES,
        NO,
    ),
    ({"type": ["string", "null"], "maxLength": 2}, {"type": ["string", "null"], "pattern": r"^[\s\S]{0,2}$"}, YES, YES),
    ({"type": "array", "items": string(pattern="^a$")}, {"type": "array", "items": string(pattern="a")}, YES, NO),
    ({"properties": {"a": string(pattern="^a$")}}, {"properties": {"a": string(pattern="a")}}, YES, NO),
    (names(holds_a=STRING), names(a=STRING), YES, NO),
    (names(ab=STRING), names(a=STRING), YES, NO),
    (names(holds_test=INTEGER), names(test={"type": "number"}), YES, NO),
    (names(foo_or=STRING), names(foo=STRING), YES, NO),
    (names(any=STRING), {"type": "object", "additionalProperties": STRING}, YES, YES),
    (names(any=INTEGER), names(digits=INTEGER), YES, NO),
    (names(digits=INTEGER), names(a=INTEGER), NO, NO),
    ({**names(a=STRING), **CLOSED}, names(a=STRING), YES, NO),
    ({**names(a=STRING), **CLOSED}, {**names(ab=STRING), **CLOSED}, YES, NO),
    ({**names(a=STRING), **CLOSED}, names(digits=INTEGER), YES, NO),
    ({**names(a=STRING), **CLOSED}, {"type": "object", "propertyNames": {"pattern": "a"}}, YES, NO),
    ({"propertyNames": {"pattern": "^a+$"}}, {"propertyNames": {"pattern": "^a"}}, YES, NO),
    ({"propertyNames": {"pattern": "^a"}}, {"propertyNames": {"not": {"pattern": "^b"}}}, YES, NO),
    ({"propertyNames": {"pattern": "^a"}}, {"properties": {"b": INTEGER}}, YES, NO),
    ({"propertyNames": {"pattern": "^a"}}, {"patternProperties": {"^b": INTEGER}}, YES, NO),
    ({"propertyNames": {"pattern": "^[ab]$"}}, {"properties": {"a": {}, "b": {}}, **CLOSED}, YES, YES),
    (
        {"properties": {"email": STRING, "emaik": STRING}, "additionalProperties": STRING},
        {"properties": {"name": STRING}, "patternProperties": {"emai": STRING}},
        YES,
        NO,
    ),
    (
        {"type": "object", "properties": {"a1": STRING}, "patternProperties": {"^b": INTEGER}, **CLOSED},
        {"type": "object", "patternProperties": {"^a[0-9]$": STRING, "^[^a]": INTEGER}, **CLOSED},
        YES,
        NO,
    ),
]
"""Pairs that can only be decided by comparing patterns as languages, most of them from IBM's jsonsubschema.

Its labels for `patternProperties` are not kept: an object with fewer names under a pattern allows more, not less.
"""


@pytest.mark.parametrize(("one", "other", "forth", "back"), AS_LANGUAGES)
def test_patterns_are_compared_as_languages(one: Any, other: Any, forth: bool, back: bool) -> None:
    """Every pair is decided in both directions: by a proof, or by a witness that is valid for the writer."""
    for writer, reader, contained in ((one, other, forth), (other, one, back)):
        findings = check(writer, reader)
        assert [finding.level for finding in findings] == ([] if contained else [Severity.ERROR])
        for finding in findings:
            assert finding.witness is not None
            assert parse(writer).validator.is_valid(json.loads(finding.witness))


def test_the_first_version_compares_patterns_as_texts() -> None:
    """Version 1 keeps its verdicts: pairs that only the comparison of languages decides stay undecided under it."""
    one, other = string(pattern="^foo"), string(pattern="foo")
    assert check(one, other, "containment@2") == []
    assert [finding.rule for finding in check(one, other, "containment@1")] == ["CONTAINMENT_UNDECIDED"]
    assert [finding.rule for finding in check(one, other, "apicurio")] == ["CONTAINMENT_UNDECIDED"]


def test_the_full_stop_is_read_both_ways() -> None:
    """Engines differ on the line ends that the full stop excludes, so a result for only one meaning is no proof."""
    (finding,) = check(string(pattern="^[^\\n]$"), string(pattern="^.$"))
    assert finding.level is Severity.UNKNOWN
    assert check(string(pattern="^.$"), string(pattern="^[^\\n]$")) == []
