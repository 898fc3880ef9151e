"""The ruleset `karapace` decides as Karapace does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stele.formats.jsonschema import RULESETS, JsonSchemaFormat

FORMAT = JsonSchemaFormat()
INT: Any = {"type": "integer"}
STRING: Any = {"type": "string"}


def an_object(closed: bool = False, **properties: Any) -> dict[str, Any]:
    """An object with those properties."""
    return {"type": "object", "properties": properties} | ({"additionalProperties": False} if closed else {})


def refusals(reader: Any, writer: Any) -> list[str]:
    """The kinds of change that are refused, in order."""
    parsed = [FORMAT.parse(json.dumps(schema).encode(), {}) for schema in (reader, writer)]
    findings = FORMAT.check(parsed[0], parsed[1], "karapace")
    assert all(finding.why and finding.fix for finding in findings)
    return [finding.rule for finding in findings]


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        ({}, True),
        (True, {}),
        (False, True),
        (True, False),
        (True, an_object(a=INT)),
        ({"type": "number"}, INT),
        ({"enum": ["A", "B", "C"]}, {"enum": ["A", "B"]}),
        ({"not": {}}, {"not": True}),
        ({"type": ["string", "null"]}, STRING),
        (STRING, {"type": ["string"]}),
        ({"oneOf": [STRING, INT]}, STRING),
        ({"oneOf": [STRING, INT]}, {"oneOf": [STRING]}),
        (STRING, {"oneOf": [STRING]}),
        ({"anyOf": [STRING, INT]}, {"oneOf": [INT, STRING]}),
        ({"type": "array", "items": [INT]}, {"type": "array", "items": [INT, INT]}),
        ({"type": "array"}, {"type": "array", "uniqueItems": True}),
        ({"type": "array", "uniqueItems": False}, {"type": "array"}),
        ({"type": "string"}, {"type": "string", "maxLength": 3, "pattern": "a"}),
        ({"type": "integer", "multipleOf": 2}, {"type": "integer", "multipleOf": 6}),
        (an_object(), an_object(a=INT)),
        (an_object(closed=True, a=INT, b=INT), an_object(closed=True, a=INT)),
        (an_object(b=INT), an_object(closed=True, a=INT)),
        ({"type": "object", "patternProperties": {"^a": {}}}, an_object(a={})),
        ({"type": "object", "propertyNames": {"pattern": "a"}}, an_object(b=INT)),
        (an_object(a={}), {"type": "object", "patternProperties": {"a*": {}}}),
    ],
)
def test_what_may_follow(reader: Any, writer: Any) -> None:
    """Karapace takes these changes."""
    assert refusals(reader, writer) == []


@pytest.mark.parametrize(
    ("reader", "writer", "kind"),
    [
        (an_object(a={}), an_object(), "PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL"),
        (an_object(a=INT), an_object(), "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"),
        (True, INT, "TYPE_CHANGED"),
        (True, {"type": "array"}, "TYPE_CHANGED"),
        (an_object(), False, "TYPE_CHANGED"),
        (False, an_object(a=INT), "TYPE_CHANGED"),
        ({"not": {}}, True, "TYPE_CHANGED"),
        (INT, {"type": "number"}, "TYPE_NARROWED"),
        (INT, {"enum": [1]}, "TYPE_CHANGED"),
        ({"enum": ["B"]}, {"enum": ["A", "B"]}, "ENUM_ARRAY_NARROWED"),
        (INT, {"oneOf": [STRING, INT]}, "TYPE_CHANGED"),
        ({"type": ["string", "null"]}, {"type": "boolean"}, "TYPE_CHANGED"),
        ({"oneOf": [STRING]}, {"oneOf": [STRING, INT]}, "SUM_TYPE_NARROWED"),
        ({"oneOf": [STRING]}, {"anyOf": [STRING]}, "COMBINED_TYPE_CHANGED"),
        ({"allOf": [STRING, {"enum": ["a"]}]}, {"allOf": [STRING]}, "PRODUCT_TYPE_EXTENDED"),
        ({"anyOf": [INT, {"type": "null"}]}, {"anyOf": [INT, STRING]}, "COMBINED_TYPE_SUBSCHEMAS_CHANGED"),
        ({"type": "array"}, {"type": "array", "items": INT}, "SCHEMA_REMOVED"),
        ({"type": "array", "items": INT}, {"type": "array"}, "SCHEMA_ADDED"),
        ({"type": "array", "items": [INT]}, {"type": "array", "items": INT}, "TYPE_CHANGED"),
        ({"type": "array", "items": [INT, INT]}, {"type": "array", "items": [INT]}, "ITEM_ADDED_TO_OPEN_CONTENT_MODEL"),
        (
            {"type": "array", "items": [INT], "additionalItems": False},
            {"type": "array", "items": [INT, INT], "additionalItems": False},
            "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        ),
        ({"type": "array", "uniqueItems": True}, {"type": "array"}, "UNIQUE_ITEMS_ADDED"),
        ({"type": "string", "pattern": "a"}, STRING, "PATTERN_ADDED"),
        ({"type": "integer", "minimum": 2}, {"type": "integer", "minimum": 1}, "MINIMUM_INCREASED"),
        (an_object(closed=True, a=INT), an_object(closed=True, b=INT), "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"),
        (
            {"type": "object", "patternProperties": {"^a": {}}},
            an_object(b=INT),
            "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        ),
        (
            an_object(closed=True, a=INT) | {"required": ["a"]},
            an_object(closed=True),
            "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
        ),
        (an_object(a={"required": ["b"]}), an_object(a={}), "REQUIRED_ATTRIBUTE_ADDED"),
        (
            an_object(closed=True, a=INT),
            {"type": "object", "patternProperties": {"^a": {}}},
            "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        ),
        (an_object() | {"additionalProperties": True}, an_object(), "ADDITIONAL_PROPERTIES_NARROWED"),
        (an_object(), an_object() | {"dependencies": {"a": ["b"]}}, "DEPENDENCY_ARRAY_REMOVED"),
    ],
)
def test_what_may_not_follow(reader: Any, writer: Any, kind: str) -> None:
    """Karapace refuses these changes."""
    assert kind in refusals(reader, writer)


def test_recursion_ends() -> None:
    """Schemas that contain themselves are compared, and what differs inside is found."""
    node = {"type": "object", "properties": {"v": INT, "next": {"$ref": "#"}}}
    changed = {"type": "object", "properties": {"v": STRING, "next": {"$ref": "#"}}}
    assert refusals(node, node) == []
    assert "TYPE_CHANGED" in refusals(changed, node)


def test_the_name_starts_at_version_two() -> None:
    """The ruleset starts at version 2, because the format was released without it: a registry must adopt it first."""
    assert RULESETS.find_ruleset("karapace").name == "karapace@2"
