"""The fields of a schema, flat: for search, pages and lint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

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
    stack: list[tuple[_Inner, frozenset[int]]] = [(_Inner("", parsed.root), frozenset())]
    visits = 0
    while stack and len(found) < MAX_FIELDS and visits < _MAX_VISITS:
        visits += 1
        inner, above = stack.pop()
        schema = parsed.links.follow_references(inner.schema)
        if inner.is_field and above and inner.path not in found:
            found[inner.path] = _build_field(parsed, inner, schema)
        if not isinstance(schema, dict) or id(schema) in above:
            continue
        inside = above | {id(schema)}
        steps = [(below, inside) for below in _inner_schemas(schema, inner)]
        stack.extend(reversed(steps))
    return list(found.values())


class _Inner(NamedTuple):
    """A schema inside another one.

    is_field says whether it is a field of its own, not one of several schemas that stand together; is_optional whether
    data may lack it, None where that is not known.
    """

    path: str
    schema: Json
    is_field: bool = True
    is_optional: bool | None = None


def _inner_schemas(schema: dict[str, Json], outer: _Inner) -> Iterator[_Inner]:
    """Yield what is inside one schema.

    Where several schemas stand together, another one may require what this one does not, or hold in its place.
    """
    path = outer.path
    has_branches = any(word in schema for word in _BRANCHES)
    dot = f"{path}." if path else ""
    properties = schema.get("properties")
    if isinstance(properties, dict):
        names = schema.get("required")
        required = set(filter(_is_text, names)) if isinstance(names, list) else set()
        for name, inner in properties.items():
            optional = name not in required
            is_known = outer.is_field and not (optional and has_branches)
            yield _Inner(f"{dot}{name}", inner, is_optional=optional if is_known else None)
    rest = schema.get("additionalProperties")
    if isinstance(rest, dict) and not ANNOTATIONS.issuperset(rest):
        yield _Inner(path + "{}", rest)
    patterns = schema.get("patternProperties")
    if isinstance(patterns, dict):
        yield from (_Inner(path + "{}", inner) for inner in patterns.values())
    for keyword in ("prefixItems", "items"):
        items = schema.get(keyword)
        for inner in items if isinstance(items, list) else [items]:
            if isinstance(inner, dict):
                yield _Inner(path + "[]", inner)
    for keyword in _BRANCHES:
        branches = schema.get(keyword)
        if isinstance(branches, list):
            yield from (_Inner(path, branch, is_field=False) for branch in branches)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _build_field(parsed: ParsedJsonSchema, inner: _Inner, schema: Json) -> Field:
    """Return a field; schema is what its own schema leads to by references."""
    both = [part for part in (inner.schema, schema) if isinstance(part, dict)]
    default = next((part["default"] for part in both if "default" in part), _ABSENT)
    doc = next(
        (part[word] for word in ("description", "title") for part in both if isinstance(part.get(word), str)), ""
    )
    text = None if default is _ABSENT else write_json(default).decode()
    word = type_word(parsed, schema)
    optional = True if "null" in word.split("|") else inner.is_optional
    return Field(path=inner.path, type=word, default=text, doc=doc, optional=optional)


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
