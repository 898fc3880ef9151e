"""A document as the search sees it: what a place demands, what else it mentions, and what it accepts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice, product
from typing import TypeAlias

import jsonschema_rs

from stele.formats.jsonschema.confluent.content import pattern_matches
from stele.formats.jsonschema.containment.document import BundledDocument
from stele.formats.jsonschema.drafts import list_subschemas
from stele.formats.jsonschema.json_text import Json, to_builtin
from stele.formats.jsonschema.parse import PATTERN_LIMITS

Schemas: TypeAlias = tuple[Json, ...]
"""Schemas that apply to one value together."""

Parts: TypeAlias = list[dict[str, Json]]
"""Schema objects, references followed."""

MAX_WAYS_LOOKED_AT = 2_000
"""Schemas entered while the ways to meet one place are listed."""

MAX_HINTS = 80
"""Schema objects of one place that are looked at for borders."""

_LISTS = ("allOf", "anyOf", "oneOf")
_ONES = ("not", "if", "then", "else")


class DocumentView:
    """One document, read as 2020-12: its values are builtin types (Decimal for fractions)."""

    def __init__(self, document: BundledDocument) -> None:
        self.root: Json = to_builtin(document.root)
        self._definitions = BundledDocument(self.root, exact=document.exact).definitions
        self._targets = self._find_targets()
        self._validators: dict[tuple[int, ...], jsonschema_rs.Validator | None] = {}

    def is_accepted(self, schemas: Schemas, value: Json) -> bool:
        """Return whether a value fits all the schemas; True when they cannot be compiled: this only ranks guesses."""
        key = tuple(map(id, schemas))
        if key not in self._validators:
            self._validators[key] = self._compile_validator(schemas)
        validator = self._validators[key]
        return validator is None or is_valid_value(validator, value) is True

    def has_reference(self, schema: dict[str, Json]) -> bool:
        """Return whether a schema with a reference is one of this document."""
        return id(schema) in self._targets

    def reference_target(self, schema: dict[str, Json]) -> Json:
        """Return the schema a reference of this document leads to."""
        return self._targets[id(schema)]

    def _find_targets(self) -> dict[int, Json]:
        found: dict[int, Json] = {}
        pending = [self.root]
        while pending:
            schema = pending.pop()
            if isinstance(schema, dict):
                name = _definition_name(schema)
                if name is not None:
                    found[id(schema)] = self._definitions.get(name, True)
                pending.extend(inner for _, inner in list_subschemas(schema))
        return found

    def _compile_validator(self, schemas: Schemas) -> jsonschema_rs.Validator | None:
        used: dict[str, Json] = {}
        pending = list(schemas)
        while pending:
            schema = pending.pop()
            if not isinstance(schema, dict):
                continue
            pending.extend(inner for _, inner in list_subschemas(schema))
            name = _definition_name(schema)
            if name is not None and name not in used:
                used[name] = self._definitions.get(name, True)
                pending.append(used[name])
        try:
            return jsonschema_rs.Draft202012Validator(
                {"allOf": list(schemas) or [True], "$defs": used},
                validate_formats=False,
                pattern_options=PATTERN_LIMITS,
            )
        except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError):
            return None

    def list_alternatives(self, schemas: Schemas, limit: int) -> list[Parts]:
        """Return at most limit ways to fit all the schemas; each takes one branch of every choice."""
        return _WayLister(self._definitions, limit).list_all(schemas)

    def list_hints(self, schemas: Schemas) -> Parts:
        """Return the schema objects that apply to the value in any way, at most `MAX_HINTS`."""
        found: dict[int, dict[str, Json]] = {}
        pending = list(schemas)
        while pending and len(found) < MAX_HINTS:
            schema = pending.pop(0)
            if not isinstance(schema, dict) or id(schema) in found:
                continue
            found[id(schema)] = schema
            name = _definition_name(schema)
            if name is not None:
                pending.append(self._definitions.get(name, True))
            for keyword in _LISTS:
                pending.extend(schema.get(keyword, ()))
            pending.extend(schema[keyword] for keyword in _ONES if keyword in schema)
            pending.extend(needed for _, needed in _dependent_schemas(schema))
        return list(found.values())


class _WayLister:
    """Lists the ways to meet schemas."""

    def __init__(self, definitions: Mapping[str, Json], limit: int) -> None:
        self._definitions = definitions
        self._limit = limit
        self._looks = 0

    def list_all(self, schemas: Schemas) -> list[Parts]:
        """Return the ways to meet all of them at once."""
        found: list[Parts] = [[]]
        for schema in schemas:
            found = self._combine_ways(found, self._list_ways(schema, ()))
        return found

    def _list_ways(self, schema: Json, above: tuple[int, ...]) -> list[Parts]:
        if not isinstance(schema, dict):
            return [] if schema is False else [[]]
        self._looks += 1
        if id(schema) in above or len(above) > 30 or self._looks > MAX_WAYS_LOOKED_AT:
            return [[]]
        inside = (*above, id(schema))
        found: list[Parts] = [[schema]]
        name = _definition_name(schema)
        if name is not None:
            found = self._combine_ways(found, self._list_ways(self._definitions.get(name, True), inside))
        for branch in schema.get("allOf", ()):
            found = self._combine_ways(found, self._list_ways(branch, inside))
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                branches = schema[keyword][: self._limit]
                found = self._combine_ways(
                    found, self._interleave_ways([self._list_ways(branch, inside) for branch in branches])
                )
        if "if" in schema:
            met = self._combine_ways(
                self._list_ways(schema["if"], inside), self._list_ways(schema.get("then", True), inside)
            )
            found = self._combine_ways(found, [*met[:4], *self._list_ways(schema.get("else", True), inside)[:4]])
        for given, needed in _dependent_schemas(schema):
            met = self._combine_ways([[{"required": [given]}]], self._list_ways(needed, inside))
            found = self._combine_ways(found, [[], *met[:2]])
        return found

    def _combine_ways(self, left: list[Parts], right: list[Parts]) -> list[Parts]:
        """Combine each with each, those on the diagonal first, so that the limit leaves out no branch early."""
        if not left or not right:
            return []
        order = [(i % len(left), i % len(right)) for i in range(max(len(left), len(right)))]
        if len(left) > 1 and len(right) > 1:
            order += list(islice(product(range(len(left)), range(len(right))), 2 * self._limit))
        return [left[i] + right[j] for i, j in list(dict.fromkeys(order))[: self._limit]]

    def _interleave_ways(self, each: list[list[Parts]]) -> list[Parts]:
        """Return one way of every branch before a second one of any."""
        longest = max(map(len, each), default=0)
        return [ways[i] for i in range(longest) for ways in each if i < len(ways)][: self._limit]


def is_valid_value(validator: jsonschema_rs.Validator, value: Json) -> bool | None:
    """Return whether a value fits; None when the validator gives up (nesting, a pattern that takes too long)."""
    try:
        return bool(validator.is_valid(value))
    except (ValueError, jsonschema_rs.ValidationError):
        return None


def has_member_schema(part: dict[str, Json], name: str) -> bool:
    """Return whether a schema says something about a member by its name."""
    return name in part.get("properties", ()) or any(True for _ in _matching_patterns(part, name))


def member_schemas(parts: Parts, name: str, *, guess: bool = False) -> Schemas:
    """Return the schemas of a member; guess adds `unevaluatedProperties` where nothing else seems to apply."""
    found: dict[int, Json] = {}
    covered = not guess or any(has_member_schema(part, name) for part in parts)
    for part in parts:
        own = [part["properties"][name]] if name in part.get("properties", ()) else []
        own += [part["patternProperties"][pattern] for pattern in _matching_patterns(part, name)]
        if not own and "additionalProperties" in part:
            own = [part["additionalProperties"]]
        elif not covered and "unevaluatedProperties" in part:
            own = [part["unevaluatedProperties"]]
        found.update((id(schema), schema) for schema in own)
    return tuple(found.values())


def item_schemas(parts: Parts, index: int, *, guess: bool = False) -> Schemas:
    """Return the schemas of an item; guess adds `unevaluatedItems` where nothing else seems to apply."""
    found: dict[int, Json] = {}
    covered = not guess or any("items" in part or index < len(part.get("prefixItems", ())) for part in parts)
    for part in parts:
        prefix = part.get("prefixItems", ())
        if index < len(prefix):
            found[id(prefix[index])] = prefix[index]
        elif "items" in part:
            found[id(part["items"])] = part["items"]
        elif not covered and "unevaluatedItems" in part:
            found[id(part["unevaluatedItems"])] = part["unevaluatedItems"]
    return tuple(found.values())


def required_with(part: dict[str, Json]) -> Iterator[tuple[str, list[str]]]:
    """Yield each member with the names of those that have to be there with it."""
    for keyword in ("dependentRequired", "dependencies"):
        for name, wanted in part.get(keyword, {}).items():
            if isinstance(wanted, list):
                yield name, wanted


def _matching_patterns(part: dict[str, Json], name: str) -> Iterator[str]:
    return (pattern for pattern in part.get("patternProperties", ()) if pattern_matches(pattern, name))


def _dependent_schemas(schema: dict[str, Json]) -> Iterator[tuple[str, Json]]:
    for keyword in ("dependentSchemas", "dependencies"):
        for name, needed in schema.get(keyword, {}).items():
            if not isinstance(needed, list):
                yield name, needed


def _definition_name(schema: dict[str, Json]) -> str | None:
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return None
    return reference.removeprefix("#/$defs/").removeprefix("#/definitions/")
