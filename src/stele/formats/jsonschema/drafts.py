"""The five drafts of JSON Schema: how to tell them apart, and which keywords hold schemas."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

import jsonschema_rs

from stele.formats.jsonschema.json_text import Json


class Draft(Enum):
    """A draft by the URI its schemas name in `$schema`, without scheme and empty fragment."""

    DRAFT4 = "json-schema.org/draft-04/schema"
    DRAFT6 = "json-schema.org/draft-06/schema"
    DRAFT7 = "json-schema.org/draft-07/schema"
    DRAFT2019 = "json-schema.org/draft/2019-09/schema"
    DRAFT2020 = "json-schema.org/draft/2020-12/schema"

    @property
    def validator(self) -> type[jsonschema_rs.Validator]:
        """The validator class of the draft."""
        return _VALIDATORS[self]

    @property
    def ref_hides_siblings(self) -> bool:
        """True where a `$ref` makes every keyword beside it meaningless (up to draft-07)."""
        return self in (Draft.DRAFT4, Draft.DRAFT6, Draft.DRAFT7)

    @property
    def id_keyword(self) -> str:
        """The keyword that names a schema resource."""
        return "id" if self is Draft.DRAFT4 else "$id"

    @property
    def definitions_keyword(self) -> str:
        """The keyword that holds schemas to refer to."""
        return "definitions" if self.ref_hides_siblings else "$defs"


_VALIDATORS: dict[Draft, type[jsonschema_rs.Validator]] = {
    Draft.DRAFT4: jsonschema_rs.Draft4Validator,
    Draft.DRAFT6: jsonschema_rs.Draft6Validator,
    Draft.DRAFT7: jsonschema_rs.Draft7Validator,
    Draft.DRAFT2019: jsonschema_rs.Draft201909Validator,
    Draft.DRAFT2020: jsonschema_rs.Draft202012Validator,
}
_BY_URI = {draft.value: draft for draft in Draft}

DEFAULT_DRAFT = Draft.DRAFT7
"""What a schema without `$schema`, or with an unknown one, is read as: the default of the Confluent registry too."""

SCHEMA_KEYWORDS = frozenset(
    [
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    ]
)
"""Keywords whose value is a schema (`items` also takes a list of them)."""

SCHEMA_LIST_KEYWORDS = frozenset(["allOf", "anyOf", "oneOf", "prefixItems", "items"])
"""Keywords whose value is a list of schemas."""

SCHEMA_MAP_KEYWORDS = frozenset(
    ["$defs", "definitions", "dependentSchemas", "dependencies", "patternProperties", "properties"]
)
"""Keywords whose value maps names to schemas (`dependencies` also to lists of names)."""

ANNOTATIONS = frozenset(["title", "description", "$comment", "examples"])
"""Keywords that say nothing about data: what the CANONICAL form leaves out."""


def detect_draft(schema: Json) -> Draft:
    """Return the draft that `$schema` names; `DEFAULT_DRAFT` without a known one."""
    uri = schema.get("$schema") if isinstance(schema, dict) else None
    if not isinstance(uri, str):
        return DEFAULT_DRAFT
    return _BY_URI.get(uri.removesuffix("#").split("://", 1)[-1], DEFAULT_DRAFT)


def list_subschemas(schema: dict[str, Json]) -> Iterator[tuple[tuple[str | int, ...], Json]]:
    """Yield the schemas directly inside a schema as (path from it, schema), in the order written."""
    for keyword, value in schema.items():
        if isinstance(value, dict):
            if keyword in SCHEMA_MAP_KEYWORDS:
                yield from (((keyword, name), inner) for name, inner in value.items() if _is_schema(inner))
            elif keyword in SCHEMA_KEYWORDS:
                yield (keyword,), value
        elif isinstance(value, list):
            if keyword in SCHEMA_LIST_KEYWORDS:
                yield from (((keyword, index), inner) for index, inner in enumerate(value) if _is_schema(inner))
        elif isinstance(value, bool) and keyword in SCHEMA_KEYWORDS:
            yield (keyword,), value


def _is_schema(value: Json) -> bool:
    return isinstance(value, dict | bool)
