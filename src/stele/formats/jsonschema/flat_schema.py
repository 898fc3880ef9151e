"""One flat object of keywords for a schema, and functions that interpret these keywords.

In a flat schema references are followed and `allOf` is merged. What cannot be merged exactly is left out and reported.
A condition that is left out allows more data, so no datum is lost. The only keyword with the opposite effect is
`additionalProperties: false`, which removes members. The functions below `SchemaMerger` return the JSON types that the
flat keywords allow, the texts they list, and whether they describe a record or a map.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from stele.formats.conversion.model import EnumSymbol
from stele.formats.jsonschema.drafts import Draft
from stele.formats.jsonschema.json_text import Json, is_equal
from stele.formats.jsonschema.parse import ParsedJsonSchema
from stele.formats.jsonschema.resolve import REF_KEYWORDS

MAX_FACTORS: Final = 1_000
"""Maximum number of schemas merged into one."""

AddLoss = Callable[[str, str], None]
"""Notes a loss that affects no datum: (what, why)."""

_FIRST: Final = frozenset(
    ["title", "description", "default", "deprecated", "examples", "$comment", "readOnly", "writeOnly", "$schema", "$id"]
)
"""Keywords of which the outermost value is used."""

IGNORED: Final = frozenset([*REF_KEYWORDS, "allOf", "$defs", "definitions", "$anchor", "$dynamicAnchor", "id", "$id"])
"""Keywords that identify or locate schemas, or were merged already."""

_ASSERTING: Final = frozenset(
    [
        *("type", "enum", "const", "anyOf", "oneOf", "allOf", "not", "if", "then", "else", "contains"),
        *("properties", "required", "additionalProperties", "patternProperties", "propertyNames", "dependencies"),
        *("dependentSchemas", "dependentRequired", "unevaluatedProperties", "minProperties", "maxProperties"),
        *("items", "prefixItems", "additionalItems", "unevaluatedItems", "minItems", "maxItems", "uniqueItems"),
        *("minLength", "maxLength", "pattern", "format", "contentEncoding"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    ]
)
"""Keywords that constrain data, also beside a reference."""


class SchemaMerger:
    """Merges schemas, and keeps the merged schemas alive, because they are identified by object identity."""

    def __init__(self, parsed: ParsedJsonSchema) -> None:
        self._links = parsed.links
        self._hides_siblings = parsed.draft.ref_hides_siblings
        self._kept: list[Json] = []
        self.draft: Draft = parsed.draft

    def resolve_target(self, schema: Json) -> Json:
        """Return the schema at the end of a chain of references that have no constraints of their own."""
        seen: set[int] = set()
        while isinstance(schema, dict) and id(schema) in self._links.targets and id(schema) not in seen:
            if not self._hides_siblings and not _ASSERTING.isdisjoint(schema):
                break
            seen.add(id(schema))
            schema = self._links.targets[id(schema)]
        return schema

    def flatten_schema(self, schema: dict[str, Json], lose: AddLoss) -> dict[str, Json]:
        """Return the merged keywords of a schema, its references and its `allOf`."""
        factors: list[dict[str, Json]] = []
        for factor in self._list_factors(schema):
            if len(factors) >= MAX_FACTORS:
                lose("ALL_OF", f"More than {MAX_FACTORS} schemas hold here at once; the others are left out.")
                break
            factors.append(factor)
        if len(factors) == 1:
            return {key: value for key, value in factors[0].items() if key not in IGNORED}
        merged: dict[str, Json] = {}
        for factor in factors:
            self._add_factor(merged, factor, lose)
        self._close_content(merged, factors, lose)
        self._kept.append(merged)
        return merged

    def _list_factors(self, schema: Json) -> Iterator[dict[str, Json]]:
        """Yield the schema and all that its references and `allOf` apply to the same value; each schema once."""
        pending, seen = [schema], set()
        while pending:
            factor = pending.pop(0)
            if not isinstance(factor, dict) or id(factor) in seen:
                if factor is False:
                    yield {"not": {}}
                continue
            seen.add(id(factor))
            refers = id(factor) in self._links.targets
            if not (refers and self._hides_siblings):
                yield factor
                members = factor.get("allOf")
                pending.extend(members if isinstance(members, list) else [])
            if refers:
                pending.append(self._links.targets[id(factor)])

    def _add_factor(self, merged: dict[str, Json], factor: dict[str, Json], lose: AddLoss) -> None:
        for key, value in factor.items():
            if key in IGNORED or key == "additionalProperties":
                continue
            if key not in merged:
                merged[key] = dict(value) if key == "properties" and isinstance(value, dict) else value
            elif key == "properties" and isinstance(value, dict):
                self._add_properties(merged[key], value)
            elif key == "required" and isinstance(value, list):
                merged[key] = [*merged[key], *(name for name in value if name not in merged[key])]
            elif key == "type" and (common := _common_types(merged[key], value)):
                merged[key] = common
            elif key in _BOUNDS and _is_number(value) and _is_number(merged[key]):
                merged[key] = _BOUNDS[key](merged[key], value)
            elif key in ("anyOf", "oneOf") and not is_equal(merged[key], value):
                merged.setdefault("allOf", []).append({key: value})
            elif key not in _FIRST and not is_equal(merged[key], value):
                lose("ALL_OF", f"`{key}` is said twice; only the first is kept.")

    def _add_properties(self, merged: dict[str, Json], properties: dict[str, Json]) -> None:
        for name, schema in properties.items():
            known = merged.get(name)
            if known is None or is_equal(known, schema) or known is True:
                merged[name] = schema
            elif schema is not True:
                merged[name] = {"allOf": [known, schema]}
                self._kept.append(merged[name])

    def _close_content(self, merged: dict[str, Json], factors: list[dict[str, Json]], lose: AddLoss) -> None:
        """Drop members that a closed schema excludes, and set `additionalProperties`.

        If only one of the schemas has a schema for other members, it is kept where that is exact.
        """
        limiting = [factor for factor in factors if factor.get("additionalProperties", True) is not True]
        closed = [factor for factor in limiting if factor["additionalProperties"] is False]
        for factor in closed:
            if "patternProperties" not in factor and isinstance(merged.get("properties"), dict):
                own = factor.get("properties") or {}
                merged["properties"] = {name: value for name, value in merged["properties"].items() if name in own}
        if closed:
            merged["additionalProperties"] = False
        elif limiting and all(factor is limiting[0] or "properties" not in factor for factor in factors):
            merged["additionalProperties"] = limiting[0]["additionalProperties"]
        elif limiting:
            lose("ALL_OF", "What additionalProperties says of the members of another factor is left out.")


_BOUNDS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), min),
}


def _is_number(value: Json) -> bool:
    return not isinstance(value, bool | str | list | dict) and value is not None


def _common_types(one: Json, other: Json) -> Json:
    """Return the types both allow, in the order of the first; None when there are none."""
    ones, others = ([value] if isinstance(value, str) else value for value in (one, other))
    if "number" in others:
        others = [*others, "integer"]
    common = [word for word in ones if word in others]
    if "number" in ones and "integer" in others and "integer" not in common and "number" not in others:
        common.append("integer")
    return common[0] if len(common) == 1 else common or None


JSON_TYPES: Final = ("object", "array", "string", "number", "integer", "boolean", "null")

_HINTS: Final = {
    **dict.fromkeys(("properties", "required", "additionalProperties", "patternProperties", "propertyNames"), "object"),
    **dict.fromkeys(("minProperties", "maxProperties", "unevaluatedProperties"), "object"),
    **dict.fromkeys(("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems"), "array"),
    **dict.fromkeys(("minLength", "maxLength", "pattern", "format", "contentEncoding"), "string"),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), "number"),
}


def json_types_of(flat: dict[str, Json]) -> tuple[list[str], bool, bool]:
    """Return (types besides null, whether null is one, whether keywords of those types only imply them)."""
    names = flat.get("type")
    if names is None and ("enum" in flat or "const" in flat):
        values = flat.get("enum", [flat.get("const")])
        names = list(dict.fromkeys(json_type_of(value) for value in values)) if isinstance(values, list) else None
    if names is not None:
        names = [names] if isinstance(names, str) else names
        words = [name for name in JSON_TYPES if name in names and name != "null"]
        if "number" in words and "integer" in words:
            words.remove("integer")
        return words, "null" in names, False
    hinted = {_HINTS[key] for key in flat if key in _HINTS}
    words = [word for word in JSON_TYPES if word in hinted]
    return words, False, bool(words)


def json_type_of(value: Json) -> str:
    """Return the JSON type of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case int():
            return "integer"
        case list():
            return "array"
        case dict():
            return "object"
    return "integer" if value == value.to_integral_value() else "number"


def constant_symbols(
    target: Callable[[Json], Json], flat: dict[str, Json]
) -> tuple[tuple[EnumSymbol, ...], bool] | None:
    """Return (symbols, whether null is also allowed) of a schema that lists texts; None for any other schema.

    The texts are listed by `enum` or by alternatives with `const`.
    """
    listing = _enum_symbols(flat) or _branch_symbols(target, flat)
    if listing is None:
        return None
    symbols, nullable = listing
    names = flat.get("type", "string")
    names = [names] if isinstance(names, str) else names
    if not symbols or "string" not in names:
        return None
    return symbols, nullable and ("type" not in flat or "null" in names)


def _enum_symbols(flat: dict[str, Json]) -> tuple[tuple[EnumSymbol, ...], bool] | None:
    values = flat.get("enum")
    if (
        not isinstance(values, list)
        or "const" in flat
        or not all(value is None or isinstance(value, str) for value in values)
    ):
        return None
    texts = dict.fromkeys(value for value in values if value is not None)
    return tuple(EnumSymbol(text) for text in texts), None in values


def _branch_symbols(
    target: Callable[[Json], Json], flat: dict[str, Json]
) -> tuple[tuple[EnumSymbol, ...], bool] | None:
    """Return the symbols of a `oneOf` or `anyOf` of constants, each with its own description; None for others."""
    branches = flat.get("oneOf", flat.get("anyOf"))
    if not isinstance(branches, list) or len(branches) < 2 or not flat.keys().isdisjoint(("enum", "const")):
        return None
    symbols: dict[str, EnumSymbol] = {}
    for branch in map(target, branches):
        constant = branch.get("const") if isinstance(branch, dict) else None
        if not isinstance(constant, str) or not branch.keys() <= {"const", "title", "description", "type"}:
            return None
        doc = branch.get("description", branch.get("title", ""))
        symbols.setdefault(constant, EnumSymbol(constant, doc=doc if isinstance(doc, str) else ""))
    return tuple(symbols.values()), False


_MATCH_ALL: Final = frozenset(["", ".*", "^.*$", "^.*", ".*$", "^", "$"])
_APPLICATORS: Final = ("anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "dependencies")


def has_structure(flat: dict[str, Json]) -> bool:
    """Return whether the schema describes members or items; alternatives then only restrict them."""
    return any(
        key in flat for key in ("properties", "items", "prefixItems", "additionalProperties", "patternProperties")
    )


def is_closed(flat: dict[str, Json]) -> bool:
    """Return whether data have no members besides those the schema names."""
    if flat.get("patternProperties"):
        return False
    if flat.get("additionalProperties") is False:
        return True
    others = any(key in flat for key in _APPLICATORS)
    return flat.get("unevaluatedProperties") is False and "additionalProperties" not in flat and not others


def is_map(flat: dict[str, Json]) -> bool:
    """Return whether the schema names no members and allows unnamed ones."""
    return not flat.get("properties") and not (is_closed(flat))


def map_values(flat: dict[str, Json]) -> tuple[list[Json], bool, bool]:
    """Return (schemas of the members, whether they are exact, whether every member has a type).

    The map is inexact if patterns decide which schema applies to a member, or forbid other names.
    """
    patterns = flat.get("patternProperties")
    rest = flat.get("additionalProperties", True)
    if not isinstance(patterns, dict) or not patterns:
        return [rest], True, True
    schemas = list(patterns.values())
    if _MATCH_ALL.issuperset(patterns):
        return schemas, len(schemas) == 1, True
    if isinstance(rest, dict):
        return [*schemas, rest], False, True
    return schemas, False, rest is False


def list_members(flat: dict[str, Json]) -> Iterator[tuple[str, Json, bool]]:
    """Yield (name, schema, whether it is required). Required members without a schema can have any value."""
    properties = flat.get("properties")
    described = properties if isinstance(properties, dict) else {}
    required = [name for name in flat.get("required") or [] if isinstance(name, str)]
    rest = flat.get("additionalProperties", True)
    for name, schema in described.items():
        if schema is not False:
            yield name, schema, name in required
    for name in dict.fromkeys(required):
        if name not in described:
            yield name, rest if isinstance(rest, dict) and "patternProperties" not in flat else True, True


def has_typed_rest(flat: dict[str, Json]) -> bool:
    """Return whether there is a schema for members that the schema does not name."""
    return isinstance(flat.get("additionalProperties"), dict) or bool(flat.get("patternProperties"))


def exclusive_groups(flat: dict[str, Json]) -> list[tuple[str, ...]]:
    """Return the groups of members of which a datum has at most one."""
    factors = [flat, *(factor for factor in flat.get("allOf", ()))]
    groups = [exclusive_group(flat, factor.get("oneOf")) for factor in factors]
    return [group for group in groups if group]


def exclusive_group(flat: dict[str, Json], branches: Json) -> tuple[str, ...] | None:
    """Return the members of a `oneOf` that allows at most one of them; None for any other `oneOf`.

    Each branch of such a `oneOf` requires one member, and the last one forbids them all.
    """
    if not isinstance(branches, list) or len(branches) < 2:
        return None
    *present, absent = branches
    names = [_single_required_name(branch) for branch in present]
    if None in names or absent != {"not": {"anyOf": present}}:
        return None
    described = flat.get("properties")
    members = tuple(name for name in names if name is not None)
    return members if isinstance(described, dict) and all(name in described for name in members) else None


def _single_required_name(schema: Json) -> str | None:
    names = schema.get("required") if isinstance(schema, dict) and schema.keys() == {"required"} else None
    return names[0] if isinstance(names, list) and len(names) == 1 and isinstance(names[0], str) else None
