"""Reading schemas: drafts, places of errors, references, exact texts, hostile input."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import Any

import pytest
from tests.support.time_limit import limit_time

from stele.core.ports import TextForm
from stele.errors import MalformedSchema, SteleError, TooLarge, UnknownRuleset, UnresolvedReference
from stele.formats.jsonschema import JSON_SCHEMA, ParsedJsonSchema, list_changes
from stele.formats.jsonschema.confluent import schema_diff
from stele.formats.jsonschema.drafts import Draft
from stele.formats.jsonschema.resolve import join_uri


def parse(schema: Any, references: dict[str, Any] | None = None, **options: Any) -> ParsedJsonSchema:
    """Parse a schema given as bytes or as a value."""
    texts = {name: json.dumps(text).encode() for name, text in (references or {}).items()}
    return JSON_SCHEMA.parse(schema if isinstance(schema, bytes) else json.dumps(schema).encode(), texts, **options)


@pytest.mark.parametrize(
    ("schema", "draft"),
    [
        ({}, Draft.DRAFT7),
        (True, Draft.DRAFT7),
        (False, Draft.DRAFT7),
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, Draft.DRAFT4),
        ({"$schema": "http://json-schema.org/draft-06/schema"}, Draft.DRAFT6),
        ({"$schema": "https://json-schema.org/draft-07/schema#"}, Draft.DRAFT7),
        ({"$schema": "https://json-schema.org/draft/2019-09/schema"}, Draft.DRAFT2019),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema"}, Draft.DRAFT2020),
        ({"$schema": "https://example.com/mine"}, Draft.DRAFT7),
        ({"maximum": 1, "exclusiveMaximum": True}, Draft.DRAFT4),
    ],
)
def test_the_draft_is_that_of_schema_else_seven(schema: Any, draft: Draft) -> None:
    """`$schema` decides, draft-07 is the default, and a text only draft-04 understands is read as such."""
    assert parse(schema).draft is draft


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        (b'{"a":\n 1,}', 2, 4, "member name"),
        (b'{"a": 1, \n }', 2, 2, "member name"),
        (b'{"enum": [1,\n\t]}', 2, 2, "no value"),
        (b"", 1, 1, "empty"),
        (b" \n ", 1, 1, "empty"),
        (b'{"a": "NaN",\n "b": NaN}', 2, 7, "NaN"),
        (b"[-Infinity]", 1, 2, "Infinity"),
        (b"\xef\xbb\xbf{}", 1, 1, "byte order mark"),
        ("{}".encode("utf-16"), 1, 1, "byte order mark"),
        (b'{"a":\n"\xe9"}', 2, 2, "UTF-8"),
        (b"{} {}", 1, 4, "one document"),
    ],
)
def test_broken_texts_are_refused_with_line_and_column(text: bytes, line: int, column: int, words: str) -> None:
    """Text that is not JSON is rejected with the line and column of the error."""
    with pytest.raises(MalformedSchema, match=words) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize(
    ("schema", "path", "expected"),
    [
        ({"properties": {"a/b": {"type": "strin"}}}, "#/properties/a~1b/type", "the name of a type"),
        ({"items": {"minimum": "x"}}, "#/items/minimum", "number"),
        ({"pattern": "("}, "#/pattern", "a regular expression"),
        ({"pattern": "(a{1000}){1000}"}, "#/pattern", "a regular expression"),
        ({"required": "a"}, "#/required", "array"),
        ({"allOf": []}, "#/allOf", "at least one"),
        (b"3", "#", "an object"),
    ],
)
def test_wrong_schemas_are_refused_with_pointer_and_expectation(schema: Any, path: str, expected: str) -> None:
    """A schema that the meta-schema rejects has an error with its path and what is expected there."""
    with pytest.raises(MalformedSchema) as caught:
        parse(schema)
    assert caught.value.path == path
    assert expected in str(caught.value.expected)


def test_of_repeated_members_the_last_one_counts() -> None:
    """Of repeated members the last value counts, at the position of the first, as in Jackson; lint reports them."""
    text = b'{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","title":"T",'
    text += (
        b'"properties":{"a":{"type":"string","type":"integer"},"a":{"type":"null"},"b":{"const":1}},"type":"string"}'
    )
    parsed = parse(text)
    printed = JSON_SCHEMA.canonical(parsed, TextForm.PRINTED)
    assert printed.endswith(b'"type":"string","title":"T","properties":{"a":{"type":"null"},"b":{"const":1}}}')
    findings = [finding for finding in JSON_SCHEMA.lint(parsed) if finding.rule == "MEMBER_REPEATED"]
    assert [(finding.path, finding.reader) for finding in findings] == [("#", "type"), ("#/properties", "a")]
    assert {finding.rule for finding in JSON_SCHEMA.lint(parse(printed))}.isdisjoint({"MEMBER_REPEATED"})


@pytest.mark.parametrize(
    ("uri", "good", "bad"),
    [
        ("http://json-schema.org/draft-04/schema#", {"id": "a"}, {"id": 1}),
        ("http://json-schema.org/draft-06/schema", {"const": 1}, {"required": "a"}),
        ("http://json-schema.org/draft-07/schema#/definitions/nonNegativeInteger", 1, -1),
        ("https://json-schema.org/draft-07/schema#", {"if": True}, {"if": 1}),
        ("https://json-schema.org/draft/2019-09/schema", {"type": "null"}, {"type": "nil"}),
        ("https://json-schema.org/draft/2019-09/meta/validation#/$defs/stringArray", ["a"], [1]),
        ("https://json-schema.org/draft/2020-12/schema", {"type": "null"}, {"type": "nil"}),
        ("https://json-schema.org/draft/2020-12/meta/core#/$defs/anchorString", "a", "a b"),
        ("https://json-schema.org/draft/2020-12/meta/applicator", {"prefixItems": [True]}, {"prefixItems": []}),
    ],
)
@pytest.mark.parametrize("draft", list(Draft))
def test_references_to_published_meta_schemas_resolve(uri: str, good: Any, bad: Any, draft: Draft) -> None:
    """Every draft's meta-schema, its parts and its vocabularies are there without network and without references."""
    schema = {"$schema": f"https://{draft.value}", "properties": {"a": {"$ref": uri}}}
    if draft.ref_hides_siblings:
        schema["$schema"] = f"http://{draft.value}#"
    parsed = parse(schema)
    assert parsed.validator.is_valid({"a": good})
    assert not parsed.validator.is_valid({"a": bad})
    assert parsed.links.used == []
    assert list_changes(parsed, parsed) == []
    assert JSON_SCHEMA.fields(parsed)
    assert JSON_SCHEMA.check(parsed, parsed, "containment") == []
    assert JSON_SCHEMA.render(parsed, "resolved") == parsed.printed.decode()


def test_old_texts_keep_their_place() -> None:
    """strict=False accepts a schema that the meta-schema rejects; only its codec raises an error."""
    parsed = parse({"type": "object", "required": "a"}, strict=False)
    assert not JSON_SCHEMA.check(parsed, parsed)
    with pytest.raises(MalformedSchema):
        JSON_SCHEMA.codec(parsed).validate({})


def test_numbers_strings_and_order_survive_printing() -> None:
    """Numbers keep their spelling, members their order, text its characters."""
    text = '{"z":1.0,"a":[1e400,-0,12345678901234567890123,0.1000,1E+2],"s":"é\\u2028\\ud83d\\ude00/\\""}'
    printed = JSON_SCHEMA.canonical(parse(text.encode()), TextForm.PRINTED).decode()
    assert printed == '{"z":1.0,"a":[1e400,-0,12345678901234567890123,0.1000,1E+2],"s":"é\u2028\U0001f600/\\""}'


def test_the_three_forms() -> None:
    """NORMALIZED sorts members; CANONICAL drops annotations of schemas but no property of such a name."""
    parsed = parse(b'{ "title": "T", "properties": {"title": {"type": "string", "description": "d"}}, "enum": [2, 1] }')
    assert JSON_SCHEMA.canonical(parsed, TextForm.NORMALIZED) == (
        b'{"enum":[2,1],"properties":{"title":{"description":"d","type":"string"}},"title":"T"}'
    )
    assert (
        JSON_SCHEMA.canonical(parsed, TextForm.CANONICAL) == b'{"enum":[2,1],"properties":{"title":{"type":"string"}}}'
    )
    assert {kind: len(digest) for kind, digest in JSON_SCHEMA.fingerprints(parsed).items()} == {"md5": 16, "sha256": 32}
    assert parsed.type_name == "T"


ADDRESS = {"type": "object", "properties": {"zip": {"$ref": "zip.json#/definitions/zip"}}}
ZIP = {"definitions": {"zip": {"$id": "#z", "type": "string"}}}


@pytest.mark.parametrize(
    ("schema", "references"),
    [
        ({"properties": {"at": {"$ref": "address.json"}}}, {"address.json": ADDRESS, "zip.json": ZIP}),
        (
            {"$id": "http://a.b/c/d.json", "properties": {"at": {"$ref": "address.json"}}},
            {"address.json": ADDRESS, "zip.json": ZIP},
        ),
        (
            {"properties": {"at": {"$ref": "http://x/address.json"}}},
            {"http://x/address.json": ADDRESS, "http://x/zip.json": ZIP},
        ),
        ({"properties": {"at": {"$ref": "com.acme.Address"}}}, {"com.acme.Address": ADDRESS, "zip.json": ZIP}),
        ({"properties": {"at": {"properties": {"zip": {"$ref": "zip.json#z"}}}}}, {"zip.json": ZIP}),
        (
            {"properties": {"at": {"$ref": "http://own/id.json"}}},
            {"some name": {"$id": "http://own/id.json", **ADDRESS}, "http://own/zip.json": ZIP},
        ),
    ],
)
def test_references_lead_into_the_texts_handed_in(schema: Any, references: dict[str, Any]) -> None:
    """Validation, fields and bundle find a target by name, resolved URI, own id, pointer and anchor."""
    parsed = parse(schema, references)
    assert JSON_SCHEMA.codec(parsed).validate({"at": {"zip": 1}}) == ['#/at/zip: 1 is not of type "string"']
    assert [field.path for field in JSON_SCHEMA.fields(parsed)] == ["at", "at.zip"]
    alone = parse(str(JSON_SCHEMA.render(parsed, "resolved")).encode())
    assert JSON_SCHEMA.codec(alone).validate({"at": {"zip": 1}}) == ['#/at/zip: 1 is not of type "string"']
    assert not [change for change in list_changes(alone, parsed) if change.type != "ID_CHANGED"]
    assert JSON_SCHEMA.render(parsed, "serialized") is None


@pytest.mark.parametrize(
    "ref", ["http://example.com/x.json", "x.json", "#/definitions/x", "#x", "#/definitions/0/~2", "http://[/x"]
)
def test_references_to_nowhere_are_refused_and_never_fetched(ref: str) -> None:
    """A reference without a target raises an error with its path; with strict=False it allows anything."""
    schema = {"definitions": {}, "properties": {"a": {"$ref": ref}}}
    with limit_time(10, time.monotonic):
        with pytest.raises(UnresolvedReference) as caught:
            parse(schema)
        assert caught.value.path == "#/properties/a/$ref"
        assert not JSON_SCHEMA.check(parse(schema, strict=False), parse(schema, strict=False))


def test_a_malformed_reference_is_named() -> None:
    """An error inside a reference text names the reference."""
    with pytest.raises(MalformedSchema, match=r"reference 'a\.json'") as caught:
        JSON_SCHEMA.parse(b'{"$ref": "a.json"}', {"a.json": b"{,}"})
    assert caught.value.line == 1


def test_uri_references_resolve_as_in_rfc_3986() -> None:
    """Difficult cases of RFC 3986 are resolved: dots, empty paths, other schemes."""
    base = "http://a/b/c/d;p?q"
    table = {"g": "http://a/b/c/g", "../g": "http://a/b/g", "../../../g": "http://a/g", "?y": "http://a/b/c/d;p?y"}
    table |= {"#s": "http://a/b/c/d;p?q#s", "//g": "http://g", "mailto:x": "mailto:x", ".": "http://a/b/c/"}
    assert {reference: join_uri(base, reference) for reference in table} == table
    assert join_uri("urn:a:b", "#c") == "urn:a:b#c"
    assert join_uri("mem://a/b", "c") == "mem://a/c"


def nested_text(opening: str, closing: str, depth: int) -> bytes:
    """A text of that many levels."""
    return (opening * depth + "{}" + closing * depth).encode()


HOSTILE = {
    "nested 1000": nested_text('{"not":', "}", 1000),
    "nested 100000": nested_text('{"not":', "}", 100_000),
    "properties 100000": nested_text('{"properties":{"a":', "}}", 100_000),
    "brackets": b"[" * 3_000_000,
    "quotes": b'{"a":"' + b'\\"' * 2_000_000,
    "digits": b'{"maximum":' + b"9" * 1_000_000 + b"}",
    "exponent": b'{"maximum":1e999999999}',
    "half a pair": b'{"a":"\\ud800"}',
    "tangle": json.dumps(
        {
            "$ref": "#/definitions/d0",
            "definitions": {f"d{i}": {"anyOf": [{"$ref": f"#/definitions/d{i + 1}"}] * 2} for i in range(40)}
            | {"d40": {}},
        }
    ).encode(),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_are_refused_quickly(text: bytes) -> None:
    """Extreme depth, size, numbers and tangles raise a clear error in bounded time, never a recursion error."""
    with limit_time(20, time.monotonic), pytest.raises(SteleError):
        parse(text)


def test_ten_megabytes_pass_in_bounded_time() -> None:
    """A huge flat schema is read, listed and fingerprinted."""
    text = json.dumps({"properties": {f"p{i}": {"type": "string", "description": "x" * 50} for i in range(100_000)}})
    with limit_time(40):
        parsed = parse(text.encode())
        assert len(JSON_SCHEMA.fields(parsed)) == 10_000
        JSON_SCHEMA.fingerprints(parsed)


def test_deep_but_legal_schemas_pass_every_function() -> None:
    """At the depth limit no function exceeds the recursion limit."""
    parsed = parse(nested_text('{"not":', "}", 199))
    again = parse(nested_text(' {"not":', "}", 199))
    assert [change.type for change in list_changes(parsed, again)] == ["NOT_TYPE_NARROWED"]
    assert JSON_SCHEMA.fields(parsed) == []
    assert JSON_SCHEMA.canonical(parsed, TextForm.CANONICAL) == parsed.printed
    assert str(JSON_SCHEMA.arrow_schema(parsed)) == "value: string"
    JSON_SCHEMA.codec(parsed).validate(1)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {
            "$ref": "#/definitions/a",
            "definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}},
        },
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "additionalProperties": {"$ref": "#"}},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "$ref": "#", "maxLength": 1},
    ],
)
def test_reference_cycles_end(schema: Any) -> None:
    """A schema that refers to itself passes through every function."""
    parsed, again = parse(schema), parse(schema)
    assert list_changes(parsed, again) == []
    JSON_SCHEMA.fields(parsed)
    JSON_SCHEMA.arrow_schema(parsed)
    assert JSON_SCHEMA.render(parsed, "resolved")


def test_shared_definitions_do_not_multiply() -> None:
    """Forty levels of two references to the next level are compared without walking 2^40 paths."""
    levels = {
        f"d{i}": {"properties": {"x": {"$ref": f"#/definitions/d{i + 1}"}, "y": {"$ref": f"#/definitions/d{i + 1}"}}}
        for i in range(40)
    }
    old = parse({"$ref": "#/definitions/d0", "definitions": {**levels, "d40": {"type": "string"}}})
    new = parse({"$ref": "#/definitions/d0", "definitions": {**levels, "d40": {"type": "integer"}}})
    assert {finding.rule for finding in JSON_SCHEMA.check(new, old)} == {"TYPE_CHANGED"}
    assert len(JSON_SCHEMA.fields(old)) <= 10_000
    JSON_SCHEMA.arrow_schema(old)


def test_a_wide_object_is_compared_in_one_pass() -> None:
    """One changed property of twenty thousand gives one finding, in time linear in the schema."""
    text = json.dumps({"properties": {f"p{i}": {"type": "string"} for i in range(20_000)}})
    with limit_time(15):
        other = parse(text.replace("string", "number", 1).encode())
        assert [finding.path for finding in JSON_SCHEMA.check(other, parse(text.encode()))] == ["#/properties/p0"]


def test_combinations_beyond_measure_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand branches that all differ from a thousand others: a clear error instead of an hour."""
    monkeypatch.setattr(schema_diff, "MAX_EVALUATIONS", 10_000)
    old = parse({"oneOf": [{"type": "string", "maxLength": i + 1} for i in range(1000)]})
    new = parse({"oneOf": [{"type": "integer", "maximum": i + 1} for i in range(1000)]})
    assert not list_changes(old, parse({"oneOf": [{"type": "string", "maxLength": i} for i in range(1000, 0, -1)]}))
    with pytest.raises(TooLarge):
        list_changes(new, old)


def test_slow_patterns_count_as_not_matching() -> None:
    """A pattern made to backtrack for ever neither hangs the comparison nor the validation."""
    pattern = "^(?=a)(a+)+$"
    name = "a" * 100 + "!"
    with limit_time(20, time.monotonic):
        assert JSON_SCHEMA.codec(parse({"pattern": pattern})).validate(name)
        old = parse({"patternProperties": {pattern: {"type": "string"}}})
        assert not JSON_SCHEMA.check(parse({"patternProperties": {pattern: {}}, "properties": {name: {}}}), old)


def test_unknown_rulesets_are_refused() -> None:
    """An unknown ruleset raises an error that lists the known ones."""
    assert tuple(name.removesuffix("@1") for name in JSON_SCHEMA.rulesets) == (
        "confluent",
        "confluent-lenient",
        "containment",
        "containment-lenient",
        "apicurio",
        "containment@2",
        "containment-lenient@2",
        "karapace@2",
    )
    with pytest.raises(UnknownRuleset, match="confluent-lenient"):
        JSON_SCHEMA.check(parse({}), parse({}), "nonsense")


def test_a_meta_schema_of_the_authors_own() -> None:
    """`$schema` may name a reference: its draft counts, and keywords outside its vocabularies assert nothing."""
    core = {"https://json-schema.org/draft/2020-12/vocab/core": True}
    meta = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:mine", "$vocabulary": core}
    text = json.dumps({"$schema": "urn:mine", "minimum": 5}).encode()
    parsed = JSON_SCHEMA.parse(text, {"urn:mine": json.dumps(meta).encode()})
    assert parsed.draft is Draft.DRAFT2020
    assert JSON_SCHEMA.codec(parsed).validate(1) == []
    other = JSON_SCHEMA.parse(json.dumps({"$schema": meta["$schema"], "minimum": 5}).encode(), {})
    assert any(finding.breaks for finding in JSON_SCHEMA.check(other, parsed, "containment"))


def test_meta_schemas_in_a_circle() -> None:
    """Meta-schemas that name each other end the search for a draft without an endless loop."""
    circle = {"urn:a": b'{"$schema":"urn:b"}', "urn:b": b'{"$schema":"urn:a"}'}
    with suppress(MalformedSchema):
        assert JSON_SCHEMA.parse(b'{"$schema":"urn:a"}', circle).draft is Draft.DRAFT7
