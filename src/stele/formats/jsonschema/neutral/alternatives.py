"""Which of JSON's types a schema allows, and whether it is but a list of texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from stele.formats.conversion.model import EnumSymbol
from stele.formats.jsonschema.text import Json

JSON_TYPES: Final = ("object", "array", "string", "number", "integer", "boolean", "null")

_HINTS: Final = {
    **dict.fromkeys(("properties", "required", "additionalProperties", "patternProperties", "propertyNames"), "object"),
    **dict.fromkeys(("minProperties", "maxProperties", "unevaluatedProperties"), "object"),
    **dict.fromkeys(("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems"), "array"),
    **dict.fromkeys(("minLength", "maxLength", "pattern", "format", "contentEncoding"), "string"),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), "number"),
}


def json_types_of(flat: dict[str, Json]) -> tuple[list[str], bool, bool]:
    """(types besides null, whether null is one, whether they are only implied by keywords of those types)."""
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
    """JSON's type of a value."""
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
    """(symbols, whether null is allowed beside them) of a schema that lists texts, by `enum` or by alternatives."""
    found = _enum_symbols(flat) or _branch_symbols(target, flat)
    if found is None:
        return None
    symbols, nullable = found
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
    """`oneOf` or `anyOf` of constants, each with a description of its own."""
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
