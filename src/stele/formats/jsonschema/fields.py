"""The fields of a schema, flat: for search, pages and lint."""

from __future__ import annotations

from collections.abc import Iterator

from stele.core.ports import Field
from stele.formats.jsonschema.drafts import ANNOTATIONS
from stele.formats.jsonschema.json_text import Json, write_json
from stele.formats.jsonschema.parse import ParsedJsonSchema

MAX_FIELDS = 10_000
"""Fields listed of one schema; what lies behind is left out."""

_MAX_VISITS = 10 * MAX_FIELDS
_BRANCHES = ("allOf", "anyOf", "oneOf")


def list_fields(parsed: ParsedJsonSchema) -> list[Field]:
    """Return all properties depth first: `a.b`, `[]` for the items of an array, `{}` for unnamed members of an object.

    Branches of combinations are listed together; a schema inside itself is not entered again.
    """
    found: dict[str, Field] = {}
    stack: list[tuple[str, Json, frozenset[int], bool]] = [("", parsed.root, frozenset(), False)]
    visits = 0
    while stack and len(found) < MAX_FIELDS and visits < _MAX_VISITS:
        visits += 1
        path, written, above, listed = stack.pop()
        schema = parsed.links.follow_references(written)
        if listed and path not in found:
            found[path] = _build_field(parsed, path, written, schema)
        if not isinstance(schema, dict) or id(schema) in above:
            continue
        inside = above | {id(schema)}
        steps = [(step, inner, inside, named) for step, inner, named in _inner_schemas(schema, path)]
        stack.extend(reversed(steps))
    return list(found.values())


def _inner_schemas(schema: dict[str, Json], path: str) -> Iterator[tuple[str, Json, bool]]:
    """Yield what is inside one schema as (path, schema, whether it is a field of its own)."""
    dot = f"{path}." if path else ""
    properties = schema.get("properties")
    if isinstance(properties, dict):
        yield from ((f"{dot}{name}", inner, True) for name, inner in properties.items())
    rest = schema.get("additionalProperties")
    if isinstance(rest, dict) and not ANNOTATIONS.issuperset(rest):
        yield path + "{}", rest, True
    patterns = schema.get("patternProperties")
    if isinstance(patterns, dict):
        yield from ((path + "{}", inner, True) for inner in patterns.values())
    for keyword in ("prefixItems", "items"):
        items = schema.get(keyword)
        for inner in items if isinstance(items, list) else [items]:
            if isinstance(inner, dict):
                yield path + "[]", inner, True
    for keyword in _BRANCHES:
        branches = schema.get(keyword)
        if isinstance(branches, list):
            yield from ((path, branch, False) for branch in branches)


def _build_field(parsed: ParsedJsonSchema, path: str, written: Json, schema: Json) -> Field:
    both = [part for part in (written, schema) if isinstance(part, dict)]
    default = next((part["default"] for part in both if "default" in part), _ABSENT)
    doc = next(
        (part[word] for word in ("description", "title") for part in both if isinstance(part.get(word), str)), ""
    )
    text = None if default is _ABSENT else write_json(default).decode()
    return Field(path=path, type=type_word(parsed, schema), default=text, doc=doc)


_ABSENT = object()


def type_word(parsed: ParsedJsonSchema, schema: Json, *, depth: int = 2) -> str:
    """A short word for what a schema allows: its types joined by `|`, else `enum`, `const`, branches, else `any`."""
    schema = parsed.links.follow_references(schema)
    if not isinstance(schema, dict):
        return "never" if schema is False else "any"
    names = schema.get("type")
    if isinstance(names, str):
        return names
    if isinstance(names, list):
        return "|".join(name for name in names if isinstance(name, str))
    for keyword in ("enum", "const"):
        if keyword in schema:
            return keyword
    for keyword, mark in (("oneOf", "|"), ("anyOf", "|"), ("allOf", "&")):
        branches = schema.get(keyword)
        if isinstance(branches, list) and depth:
            words = [type_word(parsed, branch, depth=depth - 1) for branch in branches[:8]]
            return mark.join(dict.fromkeys(words))
    if "properties" in schema or "additionalProperties" in schema:
        return "object"
    return "array" if "items" in schema or "prefixItems" in schema else "any"
