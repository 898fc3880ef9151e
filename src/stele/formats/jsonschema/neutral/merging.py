"""One flat object of keywords for a schema: references followed, `allOf` added up.

What cannot be added up exactly is left out and reported. Leaving out a condition lets more data in, so no datum is lost
by it; the one keyword that works the other way is `additionalProperties: false`, which takes members out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from stele.formats.jsonschema.drafts import Draft
from stele.formats.jsonschema.parsed import ParsedJsonSchema
from stele.formats.jsonschema.resolve import REF_KEYWORDS
from stele.formats.jsonschema.text import Json, is_equal

MAX_FACTORS: Final = 1_000
"""Schemas added up for one place."""

AddLoss = Callable[[str, str], None]
"""Notes a loss that no datum is hurt by: (what, why)."""

_FIRST: Final = frozenset(
    ["title", "description", "default", "deprecated", "examples", "$comment", "readOnly", "writeOnly", "$schema", "$id"]
)
"""Keywords of which the outermost one is taken."""

IGNORED: Final = frozenset([*REF_KEYWORDS, "allOf", "$defs", "definitions", "$anchor", "$dynamicAnchor", "id", "$id"])
"""Keywords that are about where schemas are."""

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
"""Keywords that say something of data, beside a reference as elsewhere."""


class Merger:
    """Adds up schemas; keeps what it makes alive, for the identity of a schema is how it is known."""

    def __init__(self, parsed: ParsedJsonSchema) -> None:
        self._links = parsed.links
        self._hides_siblings = parsed.draft.ref_hides_siblings
        self._kept: list[Json] = []
        self.draft: Draft = parsed.draft

    def resolve_target(self, schema: Json) -> Json:
        """What a schema stands for that says nothing of its own but where to look."""
        seen: set[int] = set()
        while isinstance(schema, dict) and id(schema) in self._links.targets and id(schema) not in seen:
            if not self._hides_siblings and not _ASSERTING.isdisjoint(schema):
                break
            seen.add(id(schema))
            schema = self._links.targets[id(schema)]
        return schema

    def flatten_schema(self, schema: dict[str, Json], lose: AddLoss) -> dict[str, Json]:
        """The keywords of a schema and of all it is the product of."""
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
        """The schema, and what its references and `allOf` say of the same value; each schema once."""
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
        """Members that some factor rules out are no members; what is left over may be typed by one factor alone."""
        said = [factor for factor in factors if factor.get("additionalProperties", True) is not True]
        closed = [factor for factor in said if factor["additionalProperties"] is False]
        for factor in closed:
            if "patternProperties" not in factor and isinstance(merged.get("properties"), dict):
                own = factor.get("properties") or {}
                merged["properties"] = {name: value for name, value in merged["properties"].items() if name in own}
        if closed:
            merged["additionalProperties"] = False
        elif said and all(factor is said[0] or "properties" not in factor for factor in factors):
            merged["additionalProperties"] = said[0]["additionalProperties"]
        elif said:
            lose("ALL_OF", "What additionalProperties says of the members of another factor is left out.")


_BOUNDS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), min),
}


def _is_number(value: Json) -> bool:
    return not isinstance(value, bool | str | list | dict) and value is not None


def _common_types(one: Json, other: Json) -> Json:
    """The types both allow, in the order of the first; None when there are none."""
    ones, others = ([value] if isinstance(value, str) else value for value in (one, other))
    if "number" in others:
        others = [*others, "integer"]
    common = [word for word in ones if word in others]
    if "number" in ones and "integer" in others and "integer" not in common and "number" not in others:
        common.append("integer")
    return common[0] if len(common) == 1 else common or None
