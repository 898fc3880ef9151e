"""The members of JSON values, for rules, as a JSON Schema describes them.

Only members that a schema names are visited, in `properties`, `items`, combined schemas and references. The branch of
an `anyOf`, `oneOf` or list of types that a value takes is found by validation.
"""

from __future__ import annotations

from typing import Any

import jsonschema_rs

from stele.client.serdes.rules.model import FieldLocation, FieldType, RuleContext, Visit, Walk
from stele.formats.jsonschema import json_text as jsontext
from stele.formats.jsonschema.parse import ParsedJsonSchema
from stele.formats.jsonschema.patterns import PATTERN_LIMITS
from stele.formats.jsonschema.resolve import ROOT_BASE, join_uri

TAGS = "confluent:tags"
"""Keyword of a member's schema with its tags."""

MAX_DEPTH = 200
"""Most levels of nested schemas for one value. It ends circular references."""

MAX_STEPS = 1_000_000
"""Most schemas that are visited for one value: references can multiply exponentially."""

_TYPES = {
    "array": FieldType.ARRAY,
    "string": FieldType.STRING,
    "integer": FieldType.INT,
    "number": FieldType.DOUBLE,
    "boolean": FieldType.BOOLEAN,
    "null": FieldType.NULL,
}
_LEAVES = frozenset({FieldType.ENUM, FieldType.STRING, FieldType.INT, FieldType.DOUBLE, FieldType.BOOLEAN})


class _At:
    """Position in a walk: base URI of the schema, path of the value, member that contains it, depth."""

    __slots__ = ("base", "depth", "field", "path")

    def __init__(self, base: str, path: str, field: tuple[Any, str, frozenset[str]] | None, depth: int) -> None:
        self.base = base
        self.path = path
        self.field = field
        self.depth = depth

    def enter_array(self, base: str | None = None) -> _At:
        return _At(base or self.base, self.path, self.field, self.depth + 1)

    def enter_member(self, message: Any, name: str, tags: frozenset[str]) -> _At:
        return _At(self.base, f"{self.path}.{name}", (message, name, tags), self.depth + 1)


def json_walk(schema: ParsedJsonSchema) -> Walk:
    """Return the walk over the members of a value.

    It visits every string, number and boolean in a named member of an object. Nulls are not visited.
    """
    branches = _Branches(schema)

    def walk(context: RuleContext, visit: Visit, value: Any) -> Any:
        return _Walker(schema, branches, context, visit).walk_value(schema.root, value, _At(ROOT_BASE, "$", None, 0))

    return walk


class _Walker:
    def __init__(self, schema: ParsedJsonSchema, branches: _Branches, context: RuleContext, visit: Visit) -> None:
        self.schema = schema
        self.branches = branches
        self.context = context
        self.visit = visit
        self.steps = MAX_STEPS

    def walk_value(self, node: Any, value: Any, at: _At) -> Any:
        if value is None or not isinstance(node, dict):
            return value
        self.steps -= 1
        if self.steps < 0:
            raise self.context.rule_failure(f"{at.path}: walking the schema takes more than {MAX_STEPS} steps")
        if at.depth > MAX_DEPTH:
            raise self.context.rule_failure(f"{at.path}: schemas are nested deeper than {MAX_DEPTH} levels")
        types = node.get("type")
        if isinstance(types, list) and types:
            narrowed = next((one for one in _narrow_types(node) if self.branches.is_valid(one, value, at.base)), None)
            if narrowed is not None:
                return self.walk_value(narrowed, value, at.enter_array())
        if any(node.get(word) is not None for word in ("allOf", "anyOf", "oneOf")):
            return self._walk_combined(node, value, at)
        if node.get("items") is not None and isinstance(value, list):
            return [self.walk_value(node["items"], item, at.enter_array()) for item in value]
        if isinstance(node.get("$ref"), str):
            return self._follow_reference(node, value, at)
        kind = type_of(node)
        if kind is FieldType.RECORD:
            return self._walk_members(node, value, at)
        return self._walk_leaf(kind, value, at) if kind in _LEAVES else value

    def _follow_reference(self, node: dict[str, Any], value: Any, at: _At) -> Any:
        target = self.schema.links.targets.get(id(node), True)
        document = str(node["$ref"]).partition("#")[0]
        return self.walk_value(target, value, at.enter_array(join_uri(at.base, document) if document else None))

    def _walk_combined(self, node: dict[str, Any], value: Any, at: _At) -> Any:
        chosen: list[Any] = node.get("allOf") or []
        if not chosen:
            choices: list[Any] = node.get("oneOf") or node.get("anyOf") or []
            chosen = [one for one in choices if isinstance(one, dict) and self.branches.is_valid(one, value, at.base)]
            chosen = chosen[:1] if node.get("oneOf") else chosen
        for one in chosen:
            value = self.walk_value(one, value, at.enter_array())
        if node.get("properties") is not None:
            value = self._walk_members(node, value, at)
        if node.get("items") is not None and isinstance(value, list):
            value = [self.walk_value(node["items"], item, at.enter_array()) for item in value]
        return value

    def _walk_members(self, node: dict[str, Any], value: Any, at: _At) -> Any:
        if not isinstance(value, dict):
            return value
        copy = dict(value)
        for name, member in (node.get("properties") or {}).items():
            if isinstance(member, dict) and copy.get(name) is not None:
                place = at.enter_member(copy, name, frozenset(member.get(TAGS) or ()))
                copy[name] = self.walk_value(member, copy[name], place)
        return copy

    def _walk_leaf(self, kind: FieldType, value: Any, at: _At) -> Any:
        if at.field is None:
            return value
        message, name, inline = at.field
        tags = self.context.tags_of(at.path, tuple(inline))
        if not self.context.applies_to(tags):
            return value
        return self.visit(FieldLocation(message, at.path, name, kind, tags), value)


class _Branches:
    """Validates values against parts of one schema."""

    def __init__(self, schema: ParsedJsonSchema) -> None:
        self._schema = schema
        self._validators: dict[tuple[bytes, str], jsonschema_rs.Validator | None] = {}

    def is_valid(self, part: dict[str, Any], value: Any, base: str) -> bool:
        """Return whether a value is valid. A part that is not a valid schema by itself accepts no value."""
        key = jsontext.write_json(part), base
        if key not in self._validators:
            self._validators[key] = self._compile_branch(part, base)
        validator = self._validators[key]
        try:
            return validator is not None and validator.is_valid(value)
        except (jsonschema_rs.ValidationError, ValueError, TypeError):
            return False

    def _compile_branch(self, part: dict[str, Any], base: str) -> jsonschema_rs.Validator | None:
        schema = self._schema
        documents = {ROOT_BASE: schema.root, **schema.links.documents}

        def retrieve(uri: str) -> Any:
            return jsontext.to_builtin(documents.get(uri.partition("#")[0], True))

        try:
            return schema.draft.validator(
                _resolve_reference(jsontext.to_builtin(part), base),
                validate_formats=False,
                base_uri=f"{ROOT_BASE}part",
                retriever=retrieve,
                pattern_options=PATTERN_LIMITS,
            )
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError):
            return None


def _resolve_reference(node: Any, base: str) -> Any:
    """Return a copy of a part in which each reference includes its base URI."""
    if isinstance(node, list):
        return [_resolve_reference(item, base) for item in node]
    if not isinstance(node, dict):
        return node
    copy = {name: _resolve_reference(item, base) for name, item in node.items()}
    reference = node.get("$ref")
    if isinstance(reference, str):
        copy["$ref"] = base + reference if reference.startswith("#") else join_uri(base, reference)
    return copy


def _narrow_types(node: dict[str, Any]) -> list[dict[str, Any]]:
    """Return one schema for each type of the list. References keep their targets, which are found by identity."""
    return [{**node, "type": kind} for kind in node["type"]]


def type_of(node: dict[str, Any]) -> FieldType:
    """Return the type that a schema gives its values."""
    if node.get("const") is not None or node.get("enum") is not None:
        return FieldType.ENUM
    kind = node.get("type")
    if kind == "object":
        return FieldType.RECORD if node.get("properties") else FieldType.MAP
    if isinstance(kind, str) and kind in _TYPES:
        return _TYPES[kind]
    return FieldType.RECORD if node.get("properties") is not None else FieldType.NULL
