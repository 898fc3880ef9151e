"""Looking into a document for the search: what a place demands, what else it mentions, and what it accepts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice, product
from typing import TypeAlias

import jsonschema_rs

from stele.formats.jsonschema.confluent.content import matches
from stele.formats.jsonschema.containment.document import Document
from stele.formats.jsonschema.drafts import subschemas
from stele.formats.jsonschema.parsed import PATTERN_LIMITS
from stele.formats.jsonschema.text import Json, plain

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


class View:
    """One document, read as 2020-12: its values are builtin types (Decimal for fractions)."""

    def __init__(self, document: Document) -> None:
        self.root: Json = plain(document.root)
        self._definitions = Document(self.root, exact=document.exact).definitions
        self._targets = self._find_targets()
        self._validators: dict[tuple[int, ...], jsonschema_rs.Validator | None] = {}

    def accepts(self, schemas: Schemas, value: Json) -> bool:
        """Whether a value fits all the schemas; True when they cannot be compiled, as this only sorts guesses."""
        key = tuple(map(id, schemas))
        if key not in self._validators:
            self._validators[key] = self._compile(schemas)
        validator = self._validators[key]
        return validator is None or is_valid(validator, value) is True

    def owns(self, schema: dict[str, Json]) -> bool:
        """Whether a schema with a reference is one of this document."""
        return id(schema) in self._targets

    def target(self, schema: dict[str, Json]) -> Json:
        """The schema a reference of this document leads to."""
        return self._targets[id(schema)]

    def _find_targets(self) -> dict[int, Json]:
        found: dict[int, Json] = {}
        pending = [self.root]
        while pending:
            schema = pending.pop()
            if isinstance(schema, dict):
                name = _name(schema)
                if name is not None:
                    found[id(schema)] = self._definitions.get(name, True)
                pending.extend(inner for _, inner in subschemas(schema))
        return found

    def _compile(self, schemas: Schemas) -> jsonschema_rs.Validator | None:
        used: dict[str, Json] = {}
        pending = list(schemas)
        while pending:
            schema = pending.pop()
            if not isinstance(schema, dict):
                continue
            pending.extend(inner for _, inner in subschemas(schema))
            name = _name(schema)
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

    def alternatives(self, schemas: Schemas, limit: int) -> list[Parts]:
        """Ways to fit all the schemas: each takes one branch of every choice. At most limit of them."""
        return _Ways(self._definitions, limit).of(schemas)

    def hints(self, schemas: Schemas) -> Parts:
        """Every schema object that has a say about the value, in whatever way; at most `MAX_HINTS`."""
        found: dict[int, dict[str, Json]] = {}
        pending = list(schemas)
        while pending and len(found) < MAX_HINTS:
            schema = pending.pop(0)
            if not isinstance(schema, dict) or id(schema) in found:
                continue
            found[id(schema)] = schema
            name = _name(schema)
            if name is not None:
                pending.append(self._definitions.get(name, True))
            for keyword in _LISTS:
                pending.extend(schema.get(keyword, ()))
            pending.extend(schema[keyword] for keyword in _ONES if keyword in schema)
            pending.extend(needed for _, needed in _dependent(schema))
        return list(found.values())


class _Ways:
    """Lists the ways to meet schemas."""

    def __init__(self, definitions: Mapping[str, Json], limit: int) -> None:
        self._definitions = definitions
        self._limit = limit
        self._looks = 0

    def of(self, schemas: Schemas) -> list[Parts]:
        """The ways to meet all of them at once."""
        found: list[Parts] = [[]]
        for schema in schemas:
            found = self._product(found, self._ways(schema, ()))
        return found

    def _ways(self, schema: Json, above: tuple[int, ...]) -> list[Parts]:
        if not isinstance(schema, dict):
            return [] if schema is False else [[]]
        self._looks += 1
        if id(schema) in above or len(above) > 30 or self._looks > MAX_WAYS_LOOKED_AT:
            return [[]]
        inside = (*above, id(schema))
        found: list[Parts] = [[schema]]
        name = _name(schema)
        if name is not None:
            found = self._product(found, self._ways(self._definitions.get(name, True), inside))
        for branch in schema.get("allOf", ()):
            found = self._product(found, self._ways(branch, inside))
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                branches = schema[keyword][: self._limit]
                found = self._product(found, self._interleave([self._ways(branch, inside) for branch in branches]))
        if "if" in schema:
            met = self._product(self._ways(schema["if"], inside), self._ways(schema.get("then", True), inside))
            found = self._product(found, [*met[:4], *self._ways(schema.get("else", True), inside)[:4]])
        for given, needed in _dependent(schema):
            met = self._product([[{"required": [given]}]], self._ways(needed, inside))
            found = self._product(found, [[], *met[:2]])
        return found

    def _product(self, left: list[Parts], right: list[Parts]) -> list[Parts]:
        """Combine each with each, those on the diagonal first, so that the limit leaves out no branch early."""
        if not left or not right:
            return []
        order = [(i % len(left), i % len(right)) for i in range(max(len(left), len(right)))]
        if len(left) > 1 and len(right) > 1:
            order += list(islice(product(range(len(left)), range(len(right))), 2 * self._limit))
        return [left[i] + right[j] for i, j in list(dict.fromkeys(order))[: self._limit]]

    def _interleave(self, each: list[list[Parts]]) -> list[Parts]:
        """One way of every branch before a second one of any."""
        longest = max(map(len, each), default=0)
        return [ways[i] for i in range(longest) for ways in each if i < len(ways)][: self._limit]


def is_valid(validator: jsonschema_rs.Validator, value: Json) -> bool | None:
    """Whether a value fits; None when the validator gives up (nesting, a pattern that takes too long)."""
    try:
        return bool(validator.is_valid(value))
    except (ValueError, jsonschema_rs.ValidationError):
        return None


def mentions(part: dict[str, Json], name: str) -> bool:
    """Whether a schema says something about a member by its name."""
    return name in part.get("properties", ()) or any(True for _ in _patterns(part, name))


def members(parts: Parts, name: str, *, guess: bool = False) -> Schemas:
    """The schemas that apply to a member of an object; guess adds those for members nothing else seems to evaluate."""
    found: dict[int, Json] = {}
    covered = not guess or any(mentions(part, name) for part in parts)
    for part in parts:
        own = [part["properties"][name]] if name in part.get("properties", ()) else []
        own += [part["patternProperties"][pattern] for pattern in _patterns(part, name)]
        if not own and "additionalProperties" in part:
            own = [part["additionalProperties"]]
        elif not covered and "unevaluatedProperties" in part:
            own = [part["unevaluatedProperties"]]
        found.update((id(schema), schema) for schema in own)
    return tuple(found.values())


def items(parts: Parts, index: int, *, guess: bool = False) -> Schemas:
    """The schemas that apply to an item of an array; guess adds those for items nothing else seems to evaluate."""
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


def needs(part: dict[str, Json]) -> Iterator[tuple[str, list[str]]]:
    """The members each present member asks for."""
    for keyword in ("dependentRequired", "dependencies"):
        for name, wanted in part.get(keyword, {}).items():
            if isinstance(wanted, list):
                yield name, wanted


def _patterns(part: dict[str, Json], name: str) -> Iterator[str]:
    return (pattern for pattern in part.get("patternProperties", ()) if matches(pattern, name))


def _dependent(schema: dict[str, Json]) -> Iterator[tuple[str, Json]]:
    for keyword in ("dependentSchemas", "dependencies"):
        for name, needed in schema.get(keyword, {}).items():
            if not isinstance(needed, list):
                yield name, needed


def _name(schema: dict[str, Json]) -> str | None:
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return None
    return reference.removeprefix("#/$defs/").removeprefix("#/definitions/")
