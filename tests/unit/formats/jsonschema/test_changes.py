"""The change list of the structural diff, by family of keywords: (writer, reader) and the reported changes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stele.formats.jsonschema import JSON_SCHEMA, list_changes
from stele.formats.jsonschema.confluent import ALL, LENIENT, STRICT, maximum_matching
from stele.formats.jsonschema.confluent.schema_diff import BREAKING, change_advice

STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}


def list_differences(writer: Any, reader: Any, ruleset: str = "confluent") -> list[str]:
    """Changes as `TYPE path`."""
    allowed = LENIENT if ruleset == "confluent-lenient" else STRICT
    old, new = (JSON_SCHEMA.parse(json.dumps(text).encode(), {}) for text in (writer, reader))
    return [f"{change.type} {change.path}" for change in list_changes(new, old, allowed=allowed)]


def is_compatible(writer: Any, reader: Any, ruleset: str = "confluent") -> bool:
    """The verdict of the format."""
    old, new = (JSON_SCHEMA.parse(json.dumps(text).encode(), {}) for text in (writer, reader))
    return not JSON_SCHEMA.check(new, old, ruleset)


def object_schema(properties: dict[str, Any] | None = None, **keywords: Any) -> dict[str, Any]:
    """An object schema."""
    return {"type": "object", "properties": properties or {}, **keywords}


def array_schema(**keywords: Any) -> dict[str, Any]:
    """An array schema."""
    return {"type": "array", **keywords}


CLOSED = {"additionalProperties": False}
STRINGS = {"additionalProperties": STRING}
TUPLE = {"items": [STRING]}

TABLE: list[tuple[Any, Any, list[str]]] = [
    # annotations
    ({"type": "string", "title": "a"}, {"type": "string", "title": "b"}, ["TITLE_CHANGED #/"]),
    ({"type": "string"}, {"type": "string", "description": "b"}, ["DESCRIPTION_CHANGED #/"]),
    ({"type": "string", "default": 1}, {"type": "string"}, ["DEFAULT_CHANGED #/"]),
    ({"type": "string", "$id": "http://a/"}, {"type": "string", "$id": "http://b/"}, ["ID_CHANGED #/"]),
    # kinds
    (STRING, INTEGER, ["TYPE_CHANGED #/"]),
    (INTEGER, NUMBER, ["TYPE_EXTENDED #/"]),
    (NUMBER, INTEGER, ["TYPE_NARROWED #/"]),
    (STRING, {}, []),
    (STRING, True, []),
    (False, STRING, []),
    (True, {"title": "anything"}, []),
    ({}, {"title": "anything"}, ["TITLE_CHANGED #/"]),
    ({}, {"properties": {}}, ["TYPE_CHANGED #/"]),
    # strings
    (STRING, {"type": "string", "maxLength": 3}, ["MAX_LENGTH_ADDED #/maxLength"]),
    ({"type": "string", "maxLength": 3}, STRING, ["MAX_LENGTH_REMOVED #/maxLength"]),
    ({"type": "string", "maxLength": 3}, {"type": "string", "maxLength": 4}, ["MAX_LENGTH_INCREASED #/maxLength"]),
    ({"type": "string", "minLength": 3}, {"type": "string", "minLength": 2}, ["MIN_LENGTH_DECREASED #/minLength"]),
    (STRING, {"type": "string", "pattern": "a"}, ["PATTERN_ADDED #/pattern"]),
    ({"type": "string", "pattern": "a"}, {"type": "string", "pattern": "b"}, ["PATTERN_CHANGED #/pattern"]),
    ({"type": "string", "pattern": "a"}, STRING, ["PATTERN_REMOVED #/pattern"]),
    (STRING, {"type": "string", "format": "date"}, []),
    # numbers
    ({"type": "number", "maximum": 5}, {"type": "number", "maximum": 4.5}, ["MAXIMUM_DECREASED #/maximum"]),
    ({"type": "number", "minimum": 5}, {"type": "number", "minimum": 5.0}, []),
    (NUMBER, {"type": "number", "exclusiveMinimum": 1}, ["EXCLUSIVE_MINIMUM_ADDED #/exclusiveMinimum"]),
    (
        {"type": "number", "exclusiveMaximum": 2},
        {"type": "number", "exclusiveMaximum": 1},
        ["EXCLUSIVE_MAXIMUM_DECREASED #/exclusiveMaximum"],
    ),
    ({"type": "number", "multipleOf": 2}, {"type": "number", "multipleOf": 4}, ["MULTIPLE_OF_EXPANDED #/multipleOf"]),
    (
        {"type": "number", "multipleOf": 0.3},
        {"type": "number", "multipleOf": 0.1},
        ["MULTIPLE_OF_REDUCED #/multipleOf"],
    ),
    ({"type": "number", "multipleOf": 2}, {"type": "number", "multipleOf": 3}, ["MULTIPLE_OF_CHANGED #/multipleOf"]),
    # enumerations
    ({"enum": [1]}, {"enum": [1, 2]}, ["ENUM_ARRAY_EXTENDED #/enum"]),
    ({"enum": [1, True]}, {"enum": [1]}, ["ENUM_ARRAY_NARROWED #/enum"]),
    ({"enum": ["a"]}, {"enum": ["b"]}, ["ENUM_ARRAY_CHANGED #/enum"]),
    ({"const": 1}, {"const": 2}, ["ENUM_ARRAY_CHANGED #/const"]),
    ({"const": 1}, {"const": 1.0}, []),
    ({"const": 1}, {"enum": [1]}, ["TYPE_CHANGED #/"]),
    ({"type": "string", "enum": ["a"]}, STRING, ["PRODUCT_TYPE_NARROWED #/"]),
    (STRING, {"type": "string", "enum": ["a"]}, ["TYPE_CHANGED #/"]),
    # required
    (
        object_schema({"a": STRING}),
        object_schema({"a": STRING}, required=["a"]),
        ["REQUIRED_ATTRIBUTE_ADDED #/required/a"],
    ),
    (
        object_schema({"a": STRING}),
        object_schema({"a": {"type": "string", "default": ""}}, required=["a"]),
        ["REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED #/required/a", "DEFAULT_CHANGED #/properties/a"],
    ),
    (
        object_schema({"a": STRING}, required=["a"]),
        object_schema({"a": STRING}),
        ["REQUIRED_ATTRIBUTE_REMOVED #/required/a"],
    ),
    (object_schema(required=["foo"]), object_schema(required=["bar"]), []),
    # properties and content models
    (object_schema(), object_schema({"a": STRING}), ["OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"]),
    (
        object_schema(),
        object_schema({"a": STRING}, required=["a"]),
        ["REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"],
    ),
    (
        object_schema(),
        object_schema({"a": {}}),
        ["PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"],
    ),
    (object_schema({"a": STRING}), object_schema(), ["PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL #/properties/a"]),
    (
        object_schema(**CLOSED),
        object_schema({"a": STRING}, **CLOSED),
        ["OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a"],
    ),
    (
        object_schema(**CLOSED),
        object_schema({"a": STRING}, required=["a"], **CLOSED),
        ["REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a"],
    ),
    (
        object_schema(**CLOSED),
        object_schema({"a": {"type": "string", "default": ""}}, required=["a"], **CLOSED),
        ["REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a"],
    ),
    (
        object_schema({"a": STRING}, **CLOSED),
        object_schema(**CLOSED),
        ["PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/a"],
    ),
    (
        object_schema({"a": False}, **CLOSED),
        object_schema(**CLOSED),
        ["PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/a"],
    ),
    (
        object_schema(**STRINGS),
        object_schema({"a": STRING}, **STRINGS),
        [
            "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a",
            "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a",
        ],
    ),
    (
        object_schema(**STRINGS),
        object_schema({"a": INTEGER}, **STRINGS),
        [
            "TYPE_CHANGED #/properties/a",
            "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a",
            "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a",
        ],
    ),
    (
        object_schema({"a": INTEGER}, patternProperties={"^a": NUMBER}),
        object_schema(patternProperties={"^a": NUMBER}),
        [
            "TYPE_EXTENDED #/properties/a",
            "PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a",
        ],
    ),
    (
        object_schema({"a": INTEGER}, **STRINGS),
        object_schema(**STRINGS),
        [
            "TYPE_CHANGED #/properties/a",
            "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a",
        ],
    ),
    (object_schema({"a": STRING}), object_schema({"a": INTEGER}), ["TYPE_CHANGED #/properties/a"]),
    (object_schema({"a/b": STRING}), object_schema({"a/b": INTEGER}), ["TYPE_CHANGED #/properties/a~1b"]),
    (object_schema(**CLOSED), object_schema(), ["ADDITIONAL_PROPERTIES_ADDED #/additionalProperties"]),
    (object_schema(), object_schema(**CLOSED), ["ADDITIONAL_PROPERTIES_REMOVED #/additionalProperties"]),
    (object_schema(), object_schema(**STRINGS), ["ADDITIONAL_PROPERTIES_NARROWED #/additionalProperties"]),
    (object_schema(**STRINGS), object_schema(), ["ADDITIONAL_PROPERTIES_EXTENDED #/additionalProperties"]),
    (object_schema(**STRINGS), object_schema(additionalProperties=INTEGER), ["TYPE_CHANGED #/additionalProperties"]),
    (object_schema(), object_schema(unevaluatedProperties=False), []),
    (object_schema(), object_schema(additionalProperties=True), []),
    (
        object_schema(),
        object_schema(additionalProperties={}),
        ["ADDITIONAL_PROPERTIES_NARROWED #/additionalProperties"],
    ),
    (
        object_schema(additionalProperties={}),
        object_schema({"a": STRING}, additionalProperties={}),
        [
            "TYPE_CHANGED #/properties/a",
            "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a",
            "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a",
        ],
    ),
    (object_schema(), object_schema(maxProperties=1), ["MAX_PROPERTIES_ADDED #/maxProperties"]),
    (object_schema(minProperties=2), object_schema(minProperties=1), ["MIN_PROPERTIES_DECREASED #/minProperties"]),
    # dependencies
    (object_schema(), object_schema(dependencies={"a": ["b"]}), ["DEPENDENCY_ARRAY_ADDED #/dependencies/a"]),
    (object_schema(), object_schema(dependencies={"a": []}), []),
    (
        object_schema(dependencies={"a": STRING, "b": ["c"]}),
        object_schema(),
        ["DEPENDENCY_ARRAY_REMOVED #/dependencies/b", "DEPENDENCY_SCHEMA_REMOVED #/dependencies/a"],
    ),
    (object_schema(dependencies={"a": ["b"]}), object_schema(), ["DEPENDENCY_ARRAY_REMOVED #/dependencies/a"]),
    (
        object_schema(dependencies={"a": ["b"]}),
        object_schema(dependencies={"a": ["b", "c"]}),
        ["DEPENDENCY_ARRAY_EXTENDED #/dependencies/a"],
    ),
    (
        object_schema(dependencies={"a": ["b", "c"]}),
        object_schema(dependencies={"a": ["b"]}),
        ["DEPENDENCY_ARRAY_NARROWED #/dependencies/a"],
    ),
    (
        object_schema(dependencies={"a": ["b"]}),
        object_schema(dependencies={"a": ["c"]}),
        ["DEPENDENCY_ARRAY_CHANGED #/dependencies/a"],
    ),
    (object_schema(), object_schema(dependencies={"a": STRING}), ["DEPENDENCY_SCHEMA_ADDED #/dependencies/a"]),
    (object_schema(dependencies={"a": STRING}), object_schema(), ["DEPENDENCY_SCHEMA_REMOVED #/dependencies/a"]),
    (
        object_schema(dependencies={"a": STRING}),
        object_schema(dependencies={"a": INTEGER}),
        ["TYPE_CHANGED #/dependencies/a"],
    ),
    # arrays
    (array_schema(items=STRING), array_schema(items=INTEGER), ["TYPE_CHANGED #/items"]),
    (array_schema(), array_schema(items=STRING), ["SCHEMA_ADDED #/items"]),
    (array_schema(items=STRING), array_schema(), ["SCHEMA_REMOVED #/items"]),
    (array_schema(**TUPLE), array_schema(items=[STRING, STRING]), ["ITEM_ADDED_TO_OPEN_CONTENT_MODEL #/items/1"]),
    (
        array_schema(**TUPLE),
        array_schema(items=[STRING, {}]),
        ["ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL #/items/1"],
    ),
    (array_schema(items=[STRING, STRING]), array_schema(**TUPLE), ["ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL #/items/1"]),
    (
        array_schema(**TUPLE, additionalItems=False),
        array_schema(items=[STRING, STRING], additionalItems=False),
        ["ITEM_ADDED_TO_CLOSED_CONTENT_MODEL #/items/1"],
    ),
    (
        array_schema(items=[STRING, STRING], additionalItems=False),
        array_schema(**TUPLE, additionalItems=False),
        ["ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL #/items/1"],
    ),
    (
        array_schema(**TUPLE, additionalItems=NUMBER),
        array_schema(items=[STRING, INTEGER], additionalItems=NUMBER),
        ["TYPE_NARROWED #/items/1", "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1"],
    ),
    (
        array_schema(items=[STRING, INTEGER], additionalItems=NUMBER),
        array_schema(**TUPLE, additionalItems=NUMBER),
        ["TYPE_EXTENDED #/items/1", "ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1"],
    ),
    (
        array_schema(**TUPLE),
        array_schema(**TUPLE, additionalItems=False),
        ["ADDITIONAL_ITEMS_REMOVED #/additionalItems"],
    ),
    (array_schema(), array_schema(additionalItems=STRING), ["ADDITIONAL_ITEMS_NARROWED #/additionalItems"]),
    (array_schema(items=STRING), array_schema(items=STRING, additionalItems=False), []),
    (array_schema(), array_schema(minItems=1), ["MIN_ITEMS_ADDED #/minItems"]),
    (array_schema(maxContains=3), array_schema(maxContains=2), ["MAX_CONTAINS_DECREASED #/maxContains"]),
    (array_schema(maxItems=1), array_schema(maxItems=2), ["MAX_ITEMS_INCREASED #/maxItems"]),
    (array_schema(), array_schema(uniqueItems=True), ["UNIQUE_ITEMS_ADDED #/uniqueItems"]),
    (array_schema(uniqueItems=True), array_schema(), ["UNIQUE_ITEMS_REMOVED #/uniqueItems"]),
    # combinations
    (STRING, {"type": ["string", "null"]}, ["SUM_TYPE_EXTENDED #/"]),
    (STRING, {"oneOf": [INTEGER, {"type": "string", "title": "t"}]}, ["TITLE_CHANGED #/", "SUM_TYPE_EXTENDED #/"]),
    ({"anyOf": [STRING, STRING]}, {"anyOf": [STRING]}, []),
    ({"anyOf": [STRING]}, {"anyOf": [STRING, {"type": ["null"]}, STRING]}, ["SUM_TYPE_EXTENDED #/"]),
    (
        {"oneOf": [STRING, INTEGER, {"anyOf": [INTEGER, STRING]}]},
        {"oneOf": [STRING, NUMBER, {"anyOf": [NUMBER, STRING]}]},
        ["TYPE_EXTENDED #/oneOf/0/anyOf/0", "TYPE_EXTENDED #/oneOf/2"],
    ),
    ({"type": ["string", "null"]}, STRING, ["TYPE_CHANGED #/"]),
    ({"oneOf": [STRING]}, {"oneOf": [STRING, INTEGER]}, ["SUM_TYPE_EXTENDED #/"]),
    ({"anyOf": [STRING, INTEGER]}, {"anyOf": [INTEGER]}, ["SUM_TYPE_NARROWED #/"]),
    ({"anyOf": [STRING, INTEGER]}, {"anyOf": [NUMBER, STRING]}, ["TYPE_EXTENDED #/anyOf/1"]),
    ({"anyOf": [STRING, NUMBER]}, {"anyOf": [STRING, INTEGER]}, ["COMBINED_TYPE_SUBSCHEMAS_CHANGED #/"]),
    ({"allOf": [STRING]}, {"allOf": [STRING, {"maxLength": 1}]}, ["PRODUCT_TYPE_EXTENDED #/"]),
    ({"allOf": [STRING, {"maxLength": 1}]}, {"allOf": [STRING]}, ["PRODUCT_TYPE_NARROWED #/"]),
    ({"anyOf": [STRING, INTEGER]}, {"oneOf": [STRING, INTEGER]}, ["COMBINED_TYPE_CHANGED #/"]),
    ({"oneOf": [STRING, INTEGER]}, {"anyOf": [STRING, INTEGER]}, ["COMBINED_TYPE_EXTENDED #/"]),
    ({"allOf": [STRING]}, {"oneOf": [STRING, INTEGER]}, ["COMBINED_TYPE_EXTENDED #/", "SUM_TYPE_EXTENDED #/"]),
    ({"anyOf": [STRING]}, {"allOf": [STRING]}, ["COMBINED_TYPE_EXTENDED #/"]),
    ({"oneOf": [STRING]}, STRING, []),
    ({"not": STRING}, {"not": INTEGER}, ["NOT_TYPE_EXTENDED #/not"]),
    ({"not": NUMBER}, {"not": INTEGER}, ["NOT_TYPE_NARROWED #/not"]),
    ({"not": INTEGER}, {"not": NUMBER}, ["NOT_TYPE_EXTENDED #/not"]),
    ({"not": INTEGER}, {"not": INTEGER}, ["NOT_TYPE_NARROWED #/not"]),
    # keywords of kinds that `type` does not name make a product
    (INTEGER, {"type": "integer", "format": "int32"}, ["TYPE_CHANGED #/"]),
    ({"type": "integer", "format": "int32"}, INTEGER, ["PRODUCT_TYPE_NARROWED #/"]),
    (
        {"type": ["string", "null"], "minimum": 1},
        {"type": ["string", "null"], "minimum": 2},
        ["COMBINED_TYPE_SUBSCHEMAS_CHANGED #/"],
    ),
    ({"type": "string", "maxLength": 1}, {"type": "string", "maxLength": 2, "minProperties": 1}, ["TYPE_CHANGED #/"]),
    # Kafka Connect's bytes
    ({"type": "string", "connect.type": "bytes"}, {"type": "number", "connect.type": "bytes"}, []),
    (
        {"type": "string", "connect.type": "bytes"},
        {"type": "string", "connect.type": "bytes", "maxLength": 1},
        ["MAX_LENGTH_ADDED #/maxLength"],
    ),
]


@pytest.mark.parametrize(("writer", "reader", "expected"), TABLE)
def test_change_list(writer: Any, reader: Any, expected: list[str]) -> None:
    """A change of one kind is reported once, at its place, and the verdict follows from the table of harmless types."""
    differences = list_differences(writer, reader)
    assert differences == expected
    assert {line.split()[0] for line in differences} <= ALL
    assert is_compatible(writer, reader) is all(line.split()[0] in STRICT for line in expected)


@pytest.mark.parametrize(
    ("writer", "reader", "strict", "lenient"),
    [
        (object_schema(), object_schema({"a": STRING}), False, True),
        (object_schema(), object_schema({"a": {"type": "string", "default": ""}}, required=["a"]), False, True),
        (object_schema(), object_schema({"a": STRING}, required=["a"]), False, False),
        (object_schema({"a": STRING}, **CLOSED), object_schema(**CLOSED), False, True),
        (object_schema(), object_schema(**CLOSED), False, True),
        (object_schema(**STRINGS), object_schema({"a": INTEGER}, **STRINGS), False, False),
        (
            object_schema(additionalProperties=object_schema()),
            object_schema({"a": object_schema({"b": STRING})}, additionalProperties=object_schema()),
            False,
            True,
        ),
        (object_schema({"a": STRING}), object_schema({"a": INTEGER}), False, False),
        ({"allOf": [object_schema(), {}]}, {"allOf": [object_schema({"a": STRING}), {}]}, False, True),
    ],
)
def test_lenient_lets_named_properties_come_and_go(writer: Any, reader: Any, strict: bool, lenient: bool) -> None:
    """Lenient accepts what is safe for writers that send named properties only, also inside combinations."""
    assert is_compatible(writer, reader) is strict
    assert is_compatible(writer, reader, "confluent-lenient") is lenient


def test_the_tables_divide_the_vocabulary() -> None:
    """Each type of change is either allowed by a table or breaking, and each that can be refused has advice."""
    assert STRICT < LENIENT
    assert not LENIENT & BREAKING
    for change in ALL - STRICT:
        why, fix = change_advice(change)
        assert why.endswith(".")
        assert fix.endswith(".")


LATER = "https://json-schema.org/draft/2020-12/schema"
PAIR = {"type": "string", "enum": ["a"]}

LATER_TABLE: list[tuple[Any, Any, list[str]]] = [
    (
        object_schema(),
        object_schema(unevaluatedProperties=False),
        ["UNEVALUATED_PROPERTIES_REMOVED #/unevaluatedProperties"],
    ),
    (
        object_schema(),
        object_schema(unevaluatedProperties=True),
        ["UNEVALUATED_PROPERTIES_NARROWED #/unevaluatedProperties"],
    ),
    (
        object_schema(unevaluatedProperties=False),
        object_schema(),
        ["UNEVALUATED_PROPERTIES_ADDED #/unevaluatedProperties"],
    ),
    (
        object_schema(unevaluatedProperties=STRING),
        object_schema(),
        ["UNEVALUATED_PROPERTIES_EXTENDED #/unevaluatedProperties"],
    ),
    (
        object_schema(unevaluatedProperties={}),
        object_schema(unevaluatedProperties=STRING),
        ["UNEVALUATED_PROPERTIES_NARROWED #/unevaluatedProperties"],
    ),
    (
        object_schema(unevaluatedProperties=STRING),
        object_schema(unevaluatedProperties={}),
        ["UNEVALUATED_PROPERTIES_EXTENDED #/unevaluatedProperties"],
    ),
    (
        object_schema(unevaluatedProperties=INTEGER),
        object_schema(unevaluatedProperties=NUMBER),
        ["TYPE_EXTENDED #/unevaluatedProperties"],
    ),
    (
        object_schema(unevaluatedProperties=STRING),
        object_schema({"a": STRING}, unevaluatedProperties=STRING),
        [
            "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a",
            "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a",
        ],
    ),
    (array_schema(), array_schema(unevaluatedItems=False), ["UNEVALUATED_ITEMS_REMOVED #/unevaluatedItems"]),
    (array_schema(), array_schema(items=False), ["ADDITIONAL_ITEMS_REMOVED #/additionalItems"]),
    (array_schema(), array_schema(items=True), []),
    (object_schema(), object_schema(dependencies={"a": ["b"]}), []),
    (object_schema(), object_schema(dependentRequired={"a": ["b"]}), ["DEPENDENCY_ARRAY_ADDED #/dependencies/a"]),
    (object_schema(), object_schema(dependentSchemas={"a": STRING}), ["DEPENDENCY_SCHEMA_ADDED #/dependencies/a"]),
    (array_schema(), array_schema(contains=STRING), ["MIN_CONTAINS_ADDED #/minContains"]),
    (
        array_schema(contains=STRING),
        array_schema(contains=STRING, minContains=2),
        ["MIN_CONTAINS_INCREASED #/minContains"],
    ),
    (array_schema(), array_schema(maxContains=2), []),
    (INTEGER, {"type": "integer", "format": "int32"}, []),
    (
        object_schema({"a": STRING}),
        object_schema({"a": {"type": "string", "default": None}}, required=["a"]),
        ["REQUIRED_ATTRIBUTE_ADDED #/required/a"],
    ),
    # branches that are products of parts are replaced by the parts, in the order of the text
    ({"anyOf": [PAIR]}, {"anyOf": [STRING]}, ["SUM_TYPE_NARROWED #/"]),
    (
        {"minimum": 2, "enum": [1]},
        {"minimum": 1, "enum": [1, 2]},
        ["MINIMUM_DECREASED #/allOf/0/minimum", "ENUM_ARRAY_EXTENDED #/allOf/1/enum"],
    ),
]


@pytest.mark.parametrize(("writer", "reader", "expected"), LATER_TABLE)
def test_change_list_since_2019_09(writer: Any, reader: Any, expected: list[str]) -> None:
    """Keywords of draft 2019-09 count in schemas of 2019-09 and later only."""
    assert list_differences({"$schema": LATER, **writer}, {"$schema": LATER, **reader}) == expected


def test_what_is_behind_a_reference_is_not_seen_beside_a_property() -> None:
    """A reference counts neither as an empty schema nor as `false`, and a default of its target does not count."""
    definitions = {"any": {}, "never": False, "named": {"type": "string", "default": ""}}

    def refers(name: str, **keywords: Any) -> dict[str, Any]:
        return object_schema({"a": {"$ref": f"#/definitions/{name}"}}, definitions=definitions, **keywords)

    bare = object_schema(definitions=definitions)
    assert list_differences(bare, refers("any")) == ["OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"]
    assert list_differences(refers("never", **CLOSED), {**bare, **CLOSED}) == [
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/a"
    ]
    assert list_differences(refers("named"), refers("named", required=["a"])) == [
        "REQUIRED_ATTRIBUTE_ADDED #/required/a"
    ]


def test_the_identifier_of_draft_04_is_id() -> None:
    """`$id` has no meaning in draft-04, and `id` has none later."""
    fourth = {"$schema": "http://json-schema.org/draft-04/schema#", "type": "string"}
    assert list_differences(fourth, {**fourth, "id": "http://a/"}) == ["ID_CHANGED #/"]
    assert list_differences(fourth, {**fourth, "$id": "http://a/"}) == []
    assert list_differences(STRING, {"type": "string", "id": "http://a/"}) == []


def test_tuples_of_2020_12_are_read_like_the_older_ones() -> None:
    """`prefixItems` with `items` is compared like the older `items` with `additionalItems`."""
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    old = {**draft, **array_schema(prefixItems=[STRING], items=False)}
    new = {**draft, **array_schema(prefixItems=[STRING, STRING], items=False)}
    assert list_differences(old, new) == ["ITEM_ADDED_TO_CLOSED_CONTENT_MODEL #/items/1"]
    assert list_differences(old, {**draft, **array_schema(prefixItems=[STRING])}) == [
        "ADDITIONAL_ITEMS_ADDED #/additionalItems"
    ]


def test_siblings_of_a_reference_count_since_2019_09() -> None:
    """Up to draft-07 keywords beside `$ref` are ignored, later they are one more condition."""
    definitions = {"definitions": {"s": STRING}, "$defs": {"s": STRING}}
    old, new = {"$ref": "#/$defs/s", **definitions}, {"$ref": "#/$defs/s", "maxLength": 3, **definitions}
    assert is_compatible(old, new)
    draft = {"$schema": "https://json-schema.org/draft/2019-09/schema"}
    assert not is_compatible({**draft, **old}, {**draft, **new})


def test_recursive_schemas_are_compared_through_their_cycles() -> None:
    """A list node is compatible with itself; a breaking change is reported in the node and once more in the next."""
    node = {"type": "object", "properties": {"next": {"$ref": "#"}, "value": INTEGER}}
    assert list_differences(node, node) == []
    assert list_differences(node, {**node, "properties": {"next": {"$ref": "#"}, "value": NUMBER}}) == [
        "TYPE_EXTENDED #/properties/value"
    ]
    assert list_differences(node, {**node, "properties": {"next": {"$ref": "#"}, "value": STRING}}) == [
        "TYPE_CHANGED #/properties/next/properties/value",
        "TYPE_CHANGED #/properties/value",
    ]


def test_a_cycle_through_branches_is_refused_for_a_change_far_inside() -> None:
    """Twelve node types that may hold each other: one changed constant breaks the branch it is in."""

    def tree(changed: int) -> dict[str, Any]:
        kids = {"type": "array", "items": {"oneOf": [{"$ref": f"#/definitions/n{i}"} for i in range(12)]}}
        nodes = {f"n{i}": object_schema({"kind": {"const": i + (i == 3) * changed}, "kids": kids}) for i in range(12)}
        return {"$ref": "#/definitions/n0", "definitions": nodes}

    assert is_compatible(tree(0), tree(0))
    assert list_differences(tree(0), tree(100)) == ["COMBINED_TYPE_SUBSCHEMAS_CHANGED #/properties/kids/items"]


def test_a_matching_is_maximum_even_when_the_first_choice_blocks() -> None:
    """An augmenting path moves earlier pairs: greedy pairing alone would leave one branch over."""
    edges = {0: [0, 1], 1: [0], 2: [1, 2]}
    assert maximum_matching(3, 3, lambda left: edges[left], {0: 0, 2: 1}) == [(0, 1), (1, 0), (2, 2)]


def test_findings_say_where_what_and_how_to_mend() -> None:
    """A finding carries the rule, the pointer, both texts and two sentences."""
    writer = JSON_SCHEMA.parse(json.dumps(object_schema({"a": STRING})).encode(), {})
    reader = JSON_SCHEMA.parse(json.dumps(object_schema({"a": INTEGER})).encode(), {})
    (finding,) = JSON_SCHEMA.check(reader, writer)
    assert (finding.rule, finding.path) == ("TYPE_CHANGED", "#/properties/a")
    assert (finding.reader, finding.writer) == ('{"type":"integer"}', '{"type":"string"}')
    assert finding.breaks
    assert finding.why.endswith(".")
    assert finding.fix.endswith(".")
