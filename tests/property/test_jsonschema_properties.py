"""Laws of the JSON Schema format that hold for any schema."""

from __future__ import annotations

import json
import random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.examples import scale_examples

from stele.core.ports import TextForm
from stele.errors import SteleError
from stele.formats.jsonschema import JSON_SCHEMA, ParsedJsonSchema, list_changes
from stele.formats.jsonschema.confluent import ALL, STRICT

NAMES = st.sampled_from(["a", "b", "title", "$ref", "x/y", "~", ""])
PATTERNS = st.sampled_from(["^a", "b$", "[0-9]+"])
SMALL = st.integers(0, 5)
VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text())


def _object_schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keywords = {
        "type": st.sampled_from(["object", ["object", "null"]]),
        "properties": st.dictionaries(NAMES, inner, max_size=3),
        "required": st.lists(NAMES, unique=True, max_size=2),
        "additionalProperties": inner,
        "patternProperties": st.dictionaries(PATTERNS, inner, max_size=1),
        "dependencies": st.dictionaries(NAMES, st.one_of(inner, st.lists(NAMES, unique=True, max_size=2)), max_size=1),
        "maxProperties": SMALL,
    }
    return st.fixed_dictionaries({}, optional=keywords)


def _array_schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keywords = {
        "type": st.just("array"),
        "items": st.one_of(inner, st.lists(inner, min_size=1, max_size=3)),
        "additionalItems": inner,
        "minItems": SMALL,
        "uniqueItems": st.booleans(),
    }
    return st.fixed_dictionaries({}, optional=keywords)


def _combined_schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    branches = st.lists(inner, min_size=1, max_size=3)
    keywords = {"allOf": branches, "anyOf": branches, "oneOf": branches, "not": inner, "if": inner, "then": inner}
    return st.fixed_dictionaries({}, optional=keywords)


LEAVES = st.one_of(
    st.booleans(),
    st.just({}),
    st.sampled_from([{"$ref": "#"}, {"$ref": "#/definitions/d"}]),
    st.fixed_dictionaries({}, optional={"type": st.just("string"), "maxLength": SMALL, "pattern": PATTERNS}),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["integer", "number"])}, optional={"maximum": SMALL, "minimum": SMALL}
    ),
    st.builds(lambda values: {"enum": values}, st.lists(VALUES, min_size=1, max_size=3, unique_by=repr)),
    st.builds(lambda value, title: {"const": value, "title": title, "default": value}, VALUES, st.text()),
)
INNER = st.recursive(
    LEAVES,
    lambda inner: st.one_of(_object_schemas(inner), _array_schemas(inner), _combined_schemas(inner)),
    max_leaves=8,
)
SCHEMAS = st.builds(
    lambda schema, definition: {**schema, "definitions": {"d": definition}},
    INNER.filter(lambda schema: isinstance(schema, dict) and "$ref" not in schema),
    INNER,
)
QUICK = settings(max_examples=scale_examples(120), deadline=None, suppress_health_check=list(HealthCheck))


def parse(schema: Any) -> ParsedJsonSchema | None:
    """Return the parsed schema, None when it is rejected (for example, for a list of equal branches)."""
    try:
        return JSON_SCHEMA.parse(json.dumps(schema).encode(), {})
    except SteleError:
        return None


def shuffle_members(value: Any, chance: random.Random) -> Any:
    """The same JSON value with its members in another order."""
    if isinstance(value, dict):
        members = [(name, shuffle_members(member, chance)) for name, member in value.items()]
        chance.shuffle(members)
        return dict(members)
    return [shuffle_members(item, chance) for item in value] if isinstance(value, list) else value


@QUICK
@given(SCHEMAS)
def test_printing_loses_nothing_and_is_idempotent(schema: Any) -> None:
    """Parsing a printed text gives the same value, and printing that gives the same text, in every form."""
    parsed = parse(schema)
    if parsed is None:
        return
    assert json.loads(parsed.printed) == schema
    for form in TextForm:
        text = JSON_SCHEMA.canonical(parsed, form)
        assert JSON_SCHEMA.canonical(JSON_SCHEMA.parse(text, {}), form) == text


@QUICK
@given(SCHEMAS, st.randoms(use_true_random=False))
def test_order_of_members_has_no_meaning(schema: Any, chance: random.Random) -> None:
    """A shuffled schema has the same NORMALIZED form and fingerprints, and no change to the first."""
    parsed, other = parse(schema), parse(shuffle_members(schema, chance))
    if parsed is None or other is None:
        assert parsed is other
        return
    assert JSON_SCHEMA.canonical(parsed, TextForm.NORMALIZED) == JSON_SCHEMA.canonical(other, TextForm.NORMALIZED)
    assert JSON_SCHEMA.fingerprints(parsed) == JSON_SCHEMA.fingerprints(other)
    assert not JSON_SCHEMA.check(other, parsed)


@QUICK
@given(SCHEMAS)
def test_a_schema_reads_its_own_data(schema: Any) -> None:
    """Compared with a copy of itself a schema has no change (an equal `not` counts as narrowed) under any ruleset."""
    parsed, copy = parse(schema), parse(schema)
    if parsed is None or copy is None:
        return
    assert {change.type for change in list_changes(copy, parsed)} <= {"NOT_TYPE_NARROWED"}
    assert not any(JSON_SCHEMA.check(copy, parsed, ruleset) for ruleset in JSON_SCHEMA.rulesets)


@QUICK
@given(SCHEMAS, SCHEMAS)
def test_any_two_schemas_can_be_compared(one: Any, two: Any) -> None:
    """A verdict is always reached, in known words, and lenient never refuses what strict accepts."""
    old, new = parse(one), parse(two)
    if old is None or new is None:
        return
    changes = list_changes(new, old)
    assert {change.type for change in changes} <= ALL
    assert bool(JSON_SCHEMA.check(new, old)) is any(change.type not in STRICT for change in changes)
    if not JSON_SCHEMA.check(new, old):
        assert not JSON_SCHEMA.check(new, old, "confluent-lenient")


@QUICK
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_garbage_is_refused_in_words(text: bytes) -> None:
    """Any bytes are a schema or raise a clear error."""
    parsed: ParsedJsonSchema | str
    try:
        parsed = JSON_SCHEMA.parse(text, {})
    except SteleError as error:
        parsed = str(error)
    assert parsed
    if not isinstance(parsed, str):
        assert JSON_SCHEMA.parse(parsed.printed, {}).printed == parsed.printed


@QUICK
@given(SCHEMAS)
def test_listing_columns_and_examples_never_fail_badly(schema: Any) -> None:
    """Fields, Arrow schema, bundle and example work for any schema, or raise a clear error."""
    parsed = parse(schema)
    if parsed is None:
        return
    JSON_SCHEMA.fields(parsed)
    JSON_SCHEMA.arrow_schema(parsed)
    assert JSON_SCHEMA.render(parsed, "resolved") == parsed.printed.decode()
    codec = JSON_SCHEMA.codec(parsed)
    try:
        example = codec.example()
    except SteleError:
        return
    assert codec.decode(codec.encode(example)) == json.loads(json.dumps(example, default=float))
