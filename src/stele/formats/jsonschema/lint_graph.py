"""How the schemas of a document hang together: what is reached, what contains itself, what is an object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stele.formats.graph import strongly_connected
from stele.formats.jsonschema.drafts import list_subschemas
from stele.formats.jsonschema.parsed import ParsedJsonSchema
from stele.formats.jsonschema.text import Json, escape_token

_DEFINITIONS = frozenset(("$defs", "definitions"))
_CHOICES = frozenset(("anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"))
MAX_OBJECTS = 20_000
"""Objects of one document that are compared with those of another."""


def reachable_schemas(parsed: ParsedJsonSchema) -> set[int]:
    """The schemas (by identity) that say something about data: all but definitions nobody refers to."""
    found: set[int] = set()
    waiting = [parsed.root]
    while waiting:
        schema = waiting.pop()
        if isinstance(schema, dict) and id(schema) not in found:
            found.add(id(schema))
            waiting += _applied_schemas(parsed, schema)
    return found


def find_recursion(parsed: ParsedJsonSchema, schemas: Sequence[dict[str, Json]]) -> Iterator[tuple[str, list[int]]]:
    """Groups of schemas inside each other, by identity, with the rule they break."""
    known = {id(schema): schema for schema in schemas}

    def list_applied(key: int) -> list[int]:
        return _identities(known, _applied_schemas(parsed, known[key]))

    def list_required(key: int) -> list[int]:
        return _identities(known, _required_schemas(parsed, known[key]))

    yield from (("RECURSIVE_TYPE", group) for group in strongly_connected(list(known), list_applied))
    yield from (("UNBOUNDED_RECURSION", group) for group in strongly_connected(list(known), list_required))


def _identities(known: dict[int, dict[str, Json]], schemas: Iterator[Json]) -> list[int]:
    found = []
    for schema in schemas:
        if isinstance(schema, dict):
            known.setdefault(id(schema), schema)
            found.append(id(schema))
    return found


def _applied_schemas(parsed: ParsedJsonSchema, schema: dict[str, Json]) -> Iterator[Json]:
    """What a schema applies to a value or to what is in it."""
    if id(schema) in parsed.links.targets:
        yield parsed.links.targets[id(schema)]
        if parsed.draft.ref_hides_siblings:
            return
    yield from (child for path, child in list_subschemas(schema) if path[0] not in _DEFINITIONS)


def _required_schemas(parsed: ParsedJsonSchema, schema: dict[str, Json]) -> Iterator[Json]:
    """What every valid value must hold: the value itself, required properties, items there must be."""
    if id(schema) in parsed.links.targets:
        yield parsed.links.targets[id(schema)]
        if parsed.draft.ref_hides_siblings:
            return
    branches = schema.get("allOf")
    yield from branches if isinstance(branches, list) else ()
    properties, required = schema.get("properties"), schema.get("required")
    if schema.get("type") == "object" and isinstance(properties, dict) and isinstance(required, list):
        yield from (properties[name] for name in required if isinstance(name, str) and name in properties)
    least = schema.get("minItems")
    if schema.get("type") == "array" and isinstance(least, int) and least > 0:
        yield schema.get("items")


def list_objects(parsed: ParsedJsonSchema) -> Iterator[tuple[str, frozenset[str], dict[str, Json]]]:
    """Path, required names and properties of every object that is no choice; the same path is the same object."""
    waiting: list[tuple[str, Json]] = [("#", parsed.root)]
    seen = 0
    while waiting and seen < MAX_OBJECTS:
        path, schema = waiting.pop()
        if not isinstance(schema, dict):
            continue
        seen += 1
        required, properties = schema.get("required"), schema.get("properties")
        if isinstance(required, list) or isinstance(properties, dict):
            names = required if isinstance(required, list) else []
            named = properties if isinstance(properties, dict) else {}
            yield path, frozenset(name for name in names if isinstance(name, str)), named
        for steps, child in list_subschemas(schema):
            if steps[0] not in _CHOICES:
                waiting.append(("/".join([path, *(escape_token(str(step)) for step in steps)]), child))
