"""Rules on fields: a rule that changes nothing leaves every value as it is, and does not change the given object."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.property.avro_strategies import schemas
from tests.support.examples import scale_examples

from stele.client import ResolvedSchema, Rule
from stele.client.serdes.rules import FieldLocation, RecordContext, RuleContext, RuleMode
from stele.client.serdes.rules.avro_fields import avro_walk
from stele.client.serdes.rules.json_fields import json_walk
from stele.errors import SteleError
from stele.formats.registry import get_format

CONTEXT = RuleContext(Rule("r"), RuleMode.WRITE, (), 0, RecordContext("s"), ResolvedSchema("{}"))
SLOW = settings(
    max_examples=scale_examples(60),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    deadline=None,
)


@given(schema=schemas())
@SLOW
def test_identity_on_avro_data(schema: Any) -> None:
    """For any schema, its data are returned unchanged, and are encoded to the same bytes."""
    avro = get_format("avro")
    try:
        parsed = avro.parse(json.dumps(schema).encode(), {})
        value = avro.codec(parsed).example()
    except SteleError:
        assume(False)
    before = deepcopy(value)
    visited: list[FieldLocation] = []

    def visit(place: FieldLocation, field_value: Any) -> Any:
        visited.append(place)
        return field_value

    after = avro_walk(parsed)(CONTEXT, visit, value)
    assert after == value == before
    assert avro.codec(parsed).encode(after) == avro.codec(parsed).encode(before)
    assert all(place.full_name.endswith(f".{place.name}") for place in visited)


MEMBERS = st.sampled_from(["a", "b", "c"])
JSON_SCHEMAS = st.recursive(
    st.sampled_from([{"type": "string"}, {"type": "integer"}, {"type": ["string", "null"]}, {"$ref": "#"}, {}, True]),
    lambda inner: st.one_of(
        st.builds(lambda members: {"type": "object", "properties": members}, st.dictionaries(MEMBERS, inner)),
        st.builds(lambda item: {"type": "array", "items": item}, inner),
        st.builds(
            lambda word, parts: {word: parts}, st.sampled_from(["anyOf", "oneOf", "allOf"]), st.lists(inner, min_size=1)
        ),
    ),
    max_leaves=8,
)
JSON_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(MEMBERS, inner)),
    max_leaves=10,
)


@given(members=st.dictionaries(MEMBERS, JSON_SCHEMAS), value=JSON_VALUES)
@SLOW
def test_identity_on_json_values(members: Any, value: Any) -> None:
    """Any value is returned unchanged, whether or not the schema accepts it; a loop of references is rejected."""
    schema = {"type": "object", "properties": members}
    try:
        parsed = get_format("json").parse(json.dumps(schema).encode(), {})
    except SteleError:
        assume(False)
    before = deepcopy(value)
    try:
        after = json_walk(parsed)(CONTEXT, lambda _, field_value: field_value, value)
    except SteleError as error:
        after = value if "nested deeper" in str(error) else error
    assert after == value == before
