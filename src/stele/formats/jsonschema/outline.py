"""The declarations of a schema of any draft: its outline, and its flat list of fields for search, pages and lint.

An outline has every subschema at its JSON Pointer, with its keywords as attributes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from stele.core.ports import Field
from stele.formats.capabilities import OutlineLocation, OutlineNode
from stele.formats.jsonschema.drafts import (
    ANNOTATIONS,
    SCHEMA_KEYWORDS,
    SCHEMA_LIST_KEYWORDS,
    SCHEMA_MAP_KEYWORDS,
    list_subschemas,
)
from stele.formats.jsonschema.json_text import Json, json_pointer, write_json
from stele.formats.jsonschema.parse import ParsedJsonSchema
from stele.formats.jsonschema.resolve import REF_KEYWORDS
from stele.formats.outline_builder import MAX_CHARACTERS, MAX_NODES, OutlineBuilder

ROOT: Final = "#"
"""Path of the schema itself."""

MAX_STEPS: Final = 200_000
"""Maximum number of steps of one locator for all its paths together. References can make a path very long."""

_KINDS: Final = {
    "$defs": "definition",
    "allOf": "branch",
    "anyOf": "branch",
    "definitions": "definition",
    "dependencies": "dependency",
    "dependentSchemas": "dependency",
    "items": "items",
    "oneOf": "branch",
    "patternProperties": "pattern property",
    "prefixItems": "item",
    "properties": "property",
}
_SETS: Final = frozenset({"required", "type"})
"""Keywords whose lists are sets of names."""

_BRANCHES: Final = ("allOf", "anyOf", "oneOf")

_Step = tuple[str | int, ...]


class _Site(NamedTuple):
    """A schema, the keyword (and name or index) that leads to it from the enclosing schema, and the paths of both."""

    schema: Json
    step: _Step
    path: str
    parent: str | None
    identity: str = ""


def build_outline(parsed: ParsedJsonSchema) -> list[OutlineNode]:
    """Return the schema and all schemas written inside it, parents first, in the order of the text."""
    builder = OutlineBuilder()
    sites, whole = _walk_sites(parsed.root)
    places = _pointers_by_identity(sites)
    for site in builder.until_full(sites):
        kind = _KINDS.get(str(site.step[0]), str(site.step[0])) if site.step else "schema"
        name = site.step[1] if len(site.step) > 1 and isinstance(site.step[1], str) else ""
        builder.add_node(
            site.path,
            kind,
            _schema_attributes(site.schema),
            parent=site.parent,
            name=name,
            identity=site.identity,
            uses=_used_paths(parsed, site.schema, places),
        )
    if not whole:
        builder.truncate()
    return builder.nodes


def _walk_sites(root: Json) -> tuple[list[_Site], bool]:
    """Return the schemas of a document in the order of the text, within the limits of an outline.

    The second value is whether they are complete.
    """
    sites: list[_Site] = []
    stack = [_Site(root, (), ROOT, None)]
    room = MAX_CHARACTERS
    while stack and len(sites) < MAX_NODES and room >= 0:
        site = stack.pop()
        sites.append(site)
        if not isinstance(site.schema, dict):
            continue
        marks = _branch_marks(site.schema)
        inner: list[_Site] = []
        for step, child in list_subschemas(site.schema):
            path = site.path + json_pointer(step)[1:]
            room -= len(path)
            if room < 0 or len(inner) > MAX_NODES:
                break
            inner.append(_Site(child, step, path, site.path, marks.get(step, "")))
        stack.extend(reversed(inner))
    return sites, not stack and room >= 0


def build_locator(parsed: ParsedJsonSchema) -> Callable[[str], OutlineLocation | None]:
    """Return a function that follows JSON Pointers of findings through references; it gives up after `MAX_STEPS`."""
    sites, _ = _walk_sites(parsed.root)
    known = _pointers_by_identity(sites)
    paths = frozenset(site.path for site in sites)
    left = MAX_STEPS

    def locate(path: str) -> OutlineLocation | None:
        nonlocal left
        left -= path.count("/")
        if not path.startswith(ROOT) or left < 0:
            return None
        place, value = OutlineLocation(ROOT), parsed.root
        here = ROOT
        for token in (step for step in path[1:].split("/") if step):
            target = parsed.links.follow_references(value)
            if target is not value and id(target) in known:
                here = known[id(target)]
                place = OutlineLocation(here)
            elif target is not value:
                return place
            value = _find_member(target, token.replace("~1", "/").replace("~0", "~"))
            here = f"{here}/{token}"
            if here in paths:
                place = OutlineLocation(here)
            else:
                is_missing = value is None and isinstance(target, dict)
                place = OutlineLocation(place.path, place.attribute or token, place.partial or is_missing)
        return place

    return locate


def _pointers_by_identity(sites: Iterable[_Site]) -> dict[int, str]:
    """Return the pointer of every schema object, by identity."""
    return {id(site.schema): site.path for site in sites if isinstance(site.schema, dict)}


def _find_member(value: Json, name: str) -> Json:
    if isinstance(value, dict):
        return value.get(name)
    if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
        return value[int(name)]
    return None


def _used_paths(parsed: ParsedJsonSchema, schema: Json, places: dict[int, str]) -> list[str]:
    target = parsed.links.targets.get(id(schema)) if isinstance(schema, dict) else None
    return [places[id(target)]] if isinstance(target, dict) and id(target) in places else []


# --- attributes -----------------------------------------------------------------------------------------------------


def _schema_attributes(schema: Json) -> dict[str, str]:
    """Return the keywords of a schema as attributes, without those of the schemas inside it."""
    if not isinstance(schema, dict):
        return {"schema": _json_text(schema)}
    attributes: dict[str, str] = {}
    for keyword, value in schema.items():
        if keyword in SCHEMA_MAP_KEYWORDS and isinstance(value, dict):
            plain = {name: inner for name, inner in value.items() if not isinstance(inner, dict | bool)}
            attributes |= {f"{keyword} {name}": _json_text(inner) for name, inner in plain.items()}
        elif keyword in SCHEMA_LIST_KEYWORDS and isinstance(value, list):
            continue
        elif not (keyword in SCHEMA_KEYWORDS and isinstance(value, dict | bool)):
            attributes[keyword] = _names_text(value) if keyword in _SETS else _json_text(value)
    return attributes


def _names_text(value: Json) -> str:
    """Return the value of a keyword that takes one name or several: the names joined by commas, or else JSON."""
    names = value if isinstance(value, list) else [value]
    plain = all(isinstance(name, str) and name.isidentifier() for name in names)
    return ", ".join(sorted(names)) if names and plain else _json_text(value)


def _json_text(value: Json) -> str:
    return write_json(value, order="sorted").decode("utf-8", "surrogatepass")


def _branch_marks(schema: dict[str, Json]) -> dict[_Step, str]:
    """Return labels that identify the branches of a choice better than their position: a reference, a title, a type."""
    marks: dict[_Step, str] = {}
    for keyword in (word for word in _BRANCHES if word in schema):
        branches = schema[keyword]
        if isinstance(branches, list):
            words = [_branch_mark(branch) for branch in branches]
            times = Counter(words)
            marks |= {(keyword, i): f"{keyword} {word}" for i, word in enumerate(words) if word and times[word] == 1}
    return marks


def _branch_mark(branch: Json) -> str:
    if not isinstance(branch, dict):
        return ""
    for keyword in (*REF_KEYWORDS, "title", "const", "type"):
        if keyword in branch:
            return f"{keyword} {_json_text(branch[keyword])}"
    return ""


MAX_FIELDS = 10_000
"""Maximum number of fields listed for one schema; the others are left out."""

_MAX_VISITS = 10 * MAX_FIELDS


def list_fields(parsed: ParsedJsonSchema) -> list[Field]:
    """Return all properties depth first: `a.b`, `[]` for the items of an array, `{}` for unnamed members of an object.

    Branches of combinations are listed together; a schema inside itself is not entered again.
    """
    fields: dict[str, Field] = {}
    stack: list[tuple[_Inner, frozenset[int]]] = [(_Inner("", parsed.root), frozenset())]
    visits = 0
    while stack and len(fields) < MAX_FIELDS and visits < _MAX_VISITS:
        visits += 1
        inner, above = stack.pop()
        schema = parsed.links.follow_references(inner.schema)
        if inner.is_field and above and inner.path not in fields:
            fields[inner.path] = _build_field(parsed, inner, schema)
        if not isinstance(schema, dict) or id(schema) in above:
            continue
        inside = above | {id(schema)}
        steps = [(below, inside) for below in _inner_schemas(schema, inner)]
        stack.extend(reversed(steps))
    return list(fields.values())


class _Inner(NamedTuple):
    """A schema inside another one.

    is_field is whether it is a field of its own and not a branch of a combination. is_optional is whether data may lack
    it, None when that is not known.
    """

    path: str
    schema: Json
    is_field: bool = True
    is_optional: bool | None = None


def _inner_schemas(schema: dict[str, Json], outer: _Inner) -> Iterator[_Inner]:
    """Yield the schemas inside one schema.

    With branches, it is not known whether a property is optional: another branch may require it, or apply in its place.
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
    """Return a field. schema is the target of the references of its own schema."""
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
    """Return a short text for what a schema allows.

    It is its types joined by `|`, else `enum`, `const` or the branches, else `any`.
    """
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
