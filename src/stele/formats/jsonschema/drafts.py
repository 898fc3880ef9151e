"""The five drafts of JSON Schema: how to detect them, their keywords and formats, and their meta-schemas.

The validator knows only the meta-schema of its own draft. It never requests other documents of the host
`json-schema.org`, because it treats that host as its own. It therefore receives documents in which the host of such
references is renamed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from typing import Final

import jsonschema_rs

from stele.formats.jsonschema.json_text import Json
from stele.formats.lint import shorten_text


class Draft(Enum):
    """A draft. The value is the URI that its schemas have in `$schema`, without scheme and empty fragment."""

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
        """Whether a `$ref` disables all keywords beside it (up to draft-07)."""
        return self in (Draft.DRAFT4, Draft.DRAFT6, Draft.DRAFT7)

    @property
    def id_keyword(self) -> str:
        """The keyword that holds the identifier of a schema resource."""
        return "id" if self is Draft.DRAFT4 else "$id"

    @property
    def definitions_keyword(self) -> str:
        """The keyword that holds definitions."""
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
"""Draft of a schema without `$schema`, or with an unknown one. It is also the default of the Confluent registry."""

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
"""Keywords that do not constrain data. The CANONICAL form leaves them out."""


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


_ANNOTATING: Final = frozenset(
    [
        *("title", "description", "$comment", "default", "examples", "deprecated", "readOnly", "writeOnly"),
        *("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$defs"),
        *("definitions", "contentEncoding", "contentMediaType", "contentSchema"),
    ]
)
"""Keywords that refuse no document in any draft: harmless where the draft does not know them."""

_SINCE: Final[dict[str, tuple[Draft, Draft]]] = {
    **dict.fromkeys(
        [
            *("$ref", "additionalProperties", "allOf", "anyOf", "enum", "exclusiveMaximum", "exclusiveMinimum"),
            *("format", "items", "maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength"),
            *("minProperties", "minimum", "multipleOf", "not", "oneOf", "pattern", "patternProperties"),
            *("properties", "required", "type", "uniqueItems", "dependencies"),
        ],
        (Draft.DRAFT4, Draft.DRAFT2020),
    ),
    "additionalItems": (Draft.DRAFT4, Draft.DRAFT2019),
    **dict.fromkeys(["const", "contains", "propertyNames"], (Draft.DRAFT6, Draft.DRAFT2020)),
    **dict.fromkeys(["if", "then", "else"], (Draft.DRAFT7, Draft.DRAFT2020)),
    **dict.fromkeys(
        [
            *("dependentRequired", "dependentSchemas", "maxContains", "minContains"),
            *("unevaluatedItems", "unevaluatedProperties"),
        ],
        (Draft.DRAFT2019, Draft.DRAFT2020),
    ),
    "$recursiveRef": (Draft.DRAFT2019, Draft.DRAFT2019),
    **dict.fromkeys(["$dynamicRef", "prefixItems"], (Draft.DRAFT2020, Draft.DRAFT2020)),
}
"""Keywords that can refuse a document: the first and the last draft that knows each."""

FORMATS: Final[dict[str, Draft]] = {
    **dict.fromkeys(["date-time", "email", "hostname", "ipv4", "ipv6", "uri"], Draft.DRAFT4),
    **dict.fromkeys(["uri-reference", "uri-template", "json-pointer"], Draft.DRAFT6),
    **dict.fromkeys(
        [
            *("date", "time", "idn-email", "idn-hostname", "iri", "iri-reference", "regex"),
            "relative-json-pointer",
        ],
        Draft.DRAFT7,
    ),
    **dict.fromkeys(["duration", "uuid"], Draft.DRAFT2019),
}
"""Formats, each with the draft that introduced it."""

_ORDER: Final = {draft: number for number, draft in enumerate(Draft)}
WORDS: Final = (*_SINCE, *_ANNOTATING)
"""All keywords of all drafts."""


def is_asserting(word: str) -> bool:
    """Return whether the keyword can reject documents in some draft."""
    return word in _SINCE


def is_known_keyword(word: str, draft: Draft) -> bool:
    """Return whether the draft knows the keyword, or it is some tool's own: `x-…`, or with a dot or colon in it."""
    if word in _ANNOTATING or word.startswith("x-") or "." in word or ":" in word:
        return True
    span = _SINCE.get(word)
    return span is not None and _ORDER[span[0]] <= _ORDER[draft] <= _ORDER[span[1]]


def explain_unknown_keyword(word: str, draft: Draft, near: str | None) -> tuple[str, str]:
    """Return why an unknown keyword has no effect and what to do; near is a known keyword of a similar name."""
    span = _SINCE.get(word)
    if span is not None:
        newer = _ORDER[span[0]] > _ORDER[draft]
        bound = f"it was added in {draft_name(span[0])}" if newer else f"it was removed after {draft_name(span[1])}"
        return (
            f"{word!r} has no effect in {draft_name(draft)}: {bound}.",
            "Use keywords of this draft, or change $schema.",
        )
    keyword = shorten_text(word, 60)
    why = f"No draft knows the keyword {keyword!r}, so it has no effect."
    return why, f"Did you mean {near!r}?" if near else "Remove it, or begin its name with x- if a tool uses it."


def is_known_format(name: str, draft: Draft) -> bool:
    """Return whether the draft defines the format."""
    return name in FORMATS and _ORDER[FORMATS[name]] <= _ORDER[draft]


def explain_unknown_format(name: str, draft: Draft, near: str | None) -> tuple[str, str]:
    """Return why an unknown format has no effect, and how to fix it. near is a known format of a similar name."""
    if name in FORMATS:
        why = f"The format {name!r} says nothing in {draft_name(draft)}: it came with {draft_name(FORMATS[name])}."
        return why, "Take that draft, or a pattern."
    why = f"No draft defines the format {shorten_text(name, 60)!r}, so validators ignore it."
    return why, f"Did you mean {near!r}?" if near else "Say it with a pattern, or with minimum and maximum."


def draft_name(draft: Draft) -> str:
    """Return the common name of a draft: `draft-07`, `2020-12`."""
    return draft.value.removeprefix("json-schema.org/").removeprefix("draft/").removesuffix("/schema")


def is_anchored_at_end(pattern: str) -> bool:
    """Return whether the pattern ends in an anchor, not in an escaped dollar sign."""
    body = pattern.removesuffix("$")
    return body != pattern and (len(body) - len(body.rstrip("\\"))) % 2 == 0


_HOST: Final = "://json-schema.org/"
_RENAMED: Final = "://json-schema.org.invalid/"
_NAMING_KEYWORDS: Final = ("$ref", "$id", "id")


def find_metaschema(uri: str) -> Json:
    """Return the meta-schema published under an absolute URI, by http or https; None when there is none."""
    return _list_metaschemas().get(uri.partition("://")[2]) if _HOST in uri else None


@cache
def _list_metaschemas() -> Mapping[str, Json]:
    """Return the published meta-schemas by URI without its scheme."""
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]  # here, because few schemas need it

    documents = {uri.rstrip("#").partition("://")[2]: REGISTRY.contents(uri) for uri in REGISTRY}
    return {uri: root for uri, root in documents.items() if "draft-03" not in uri}


def rename_host(document: Json) -> Json:
    """Rename the host in all references to meta-schemas. Changes the document, which must be a copy, and returns it."""
    waiting = [document]
    while waiting:
        schema = waiting.pop()
        if not isinstance(schema, dict):
            continue
        for keyword in _NAMING_KEYWORDS:
            uri = schema.get(keyword)
            if isinstance(uri, str) and find_metaschema(uri.partition("#")[0]) is not None:
                schema[keyword] = uri.replace(_HOST, _RENAMED, 1)
        waiting += [inner for _, inner in list_subschemas(schema)]
    return document


def restore_host(uri: str) -> str:
    """Return the original of a URI with a renamed host."""
    return uri.replace(_RENAMED, _HOST, 1)
