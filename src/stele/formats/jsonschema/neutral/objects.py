"""What the keywords of an object come to: a record with members, or a map; and groups of which one member may be there.

All functions take the flat keywords of one schema (see `stele.formats.jsonschema.neutral.merging`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from stele.formats.jsonschema.text import Json

_MATCH_ALL: Final = frozenset(["", ".*", "^.*$", "^.*", ".*$", "^", "$"])
_APPLICATORS: Final = ("anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "dependencies")


def has_structure(flat: dict[str, Json]) -> bool:
    """Whether the schema says what its values are made of, so that alternatives beside that only choose among them."""
    return any(
        key in flat for key in ("properties", "items", "prefixItems", "additionalProperties", "patternProperties")
    )


def is_closed(flat: dict[str, Json]) -> bool:
    """Whether data have no members the schema does not name."""
    if flat.get("patternProperties"):
        return False
    if flat.get("additionalProperties") is False:
        return True
    others = any(key in flat for key in _APPLICATORS)
    return flat.get("unevaluatedProperties") is False and "additionalProperties" not in flat and not others


def is_map(flat: dict[str, Json]) -> bool:
    """Whether members have no names of their own."""
    return not flat.get("properties") and not (is_closed(flat))


def map_values(flat: dict[str, Json]) -> tuple[list[Json], bool, bool]:
    """(schemas of the members, whether that is exactly so, whether every member has a place).

    Names that a pattern leaves to nobody, and requirements on names, make the map inexact.
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
    """(name, schema, whether it is always there); required members that are not described may be anything."""
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
    """Whether something is said of members without a name."""
    return isinstance(flat.get("additionalProperties"), dict) or bool(flat.get("patternProperties"))


def exclusive_groups(flat: dict[str, Json]) -> list[tuple[str, ...]]:
    """Groups of members of which a datum has one at most."""
    factors = [flat, *(factor for factor in flat.get("allOf", ()))]
    groups = [exclusive_group(flat, factor.get("oneOf")) for factor in factors]
    return [found for found in groups if found]


def exclusive_group(flat: dict[str, Json], branches: Json) -> tuple[str, ...] | None:
    """The members, where the branches of a `oneOf` are: each of them required, and none of them."""
    if not isinstance(branches, list) or len(branches) < 2:
        return None
    *present, absent = branches
    names = [_single_required_name(branch) for branch in present]
    if None in names or absent != {"not": {"anyOf": present}}:
        return None
    described = flat.get("properties")
    found = tuple(name for name in names if name is not None)
    return found if isinstance(described, dict) and all(name in described for name in found) else None


def _single_required_name(schema: Json) -> str | None:
    names = schema.get("required") if isinstance(schema, dict) and schema.keys() == {"required"} else None
    return names[0] if isinstance(names, list) and len(names) == 1 and isinstance(names[0], str) else None
