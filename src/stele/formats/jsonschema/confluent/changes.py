"""The vocabulary of the structural diff: every type of change, and which of them a policy lets pass.

The names are those the Confluent registry reports, so that its users find what they know.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from stele.core.findings import Finding
from stele.formats.jsonschema.parse import ParsedJsonSchema, excerpt_at


class SchemaChange(NamedTuple):
    """One difference between two schemas.

    type  name of the kind of change, upper case
    path  where, as `#/` and JSON Pointer tokens from the root of the schema (`#/` is the root)
    """

    type: str
    path: str


_UPPER = ("MAX_LENGTH", "MAXIMUM", "EXCLUSIVE_MAXIMUM", "MAX_PROPERTIES", "MAX_ITEMS", "MAX_CONTAINS")
_LOWER = ("MIN_LENGTH", "MINIMUM", "EXCLUSIVE_MINIMUM", "MIN_PROPERTIES", "MIN_ITEMS", "MIN_CONTAINS")
_CONTENT = ("ADDITIONAL_PROPERTIES", "UNEVALUATED_PROPERTIES", "ADDITIONAL_ITEMS", "UNEVALUATED_ITEMS")

STRICT: frozenset[str] = frozenset(
    [
        *("ID_CHANGED", "DESCRIPTION_CHANGED", "TITLE_CHANGED", "DEFAULT_CHANGED"),
        *("SCHEMA_REMOVED", "TYPE_EXTENDED", "PATTERN_REMOVED", "UNIQUE_ITEMS_REMOVED"),
        *(f"{bound}_REMOVED" for bound in (*_UPPER, *_LOWER)),
        *(f"{bound}_INCREASED" for bound in _UPPER),
        *(f"{bound}_DECREASED" for bound in _LOWER),
        *("MULTIPLE_OF_REMOVED", "MULTIPLE_OF_REDUCED"),
        *("REQUIRED_ATTRIBUTE_REMOVED", "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED"),
        *("DEPENDENCY_ARRAY_REMOVED", "DEPENDENCY_ARRAY_NARROWED", "DEPENDENCY_SCHEMA_REMOVED"),
        *(f"{content}_{verb}" for content in _CONTENT for verb in ("ADDED", "EXTENDED")),
        "PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL",
        "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL",
        "PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL",
        "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL",
        "ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL",
        "ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "ENUM_ARRAY_EXTENDED",
        *("COMBINED_TYPE_EXTENDED", "PRODUCT_TYPE_NARROWED", "SUM_TYPE_EXTENDED", "NOT_TYPE_NARROWED"),
    ]
)
"""What leaves every document of the writer readable, as far as the rules look."""

LENIENT: frozenset[str] = STRICT | frozenset(
    [
        *(f"{content}_{verb}" for content in _CONTENT[:2] for verb in ("NARROWED", "REMOVED")),
        "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    ]
)
"""STRICT, and what is safe as long as writers only send the properties their schema names."""

BREAKING: frozenset[str] = frozenset(
    [
        *("SCHEMA_ADDED", "TYPE_CHANGED", "TYPE_NARROWED", "PATTERN_ADDED", "PATTERN_CHANGED", "UNIQUE_ITEMS_ADDED"),
        *(f"{bound}_ADDED" for bound in (*_UPPER, *_LOWER)),
        *(f"{bound}_DECREASED" for bound in _UPPER),
        *(f"{bound}_INCREASED" for bound in _LOWER),
        *("MULTIPLE_OF_ADDED", "MULTIPLE_OF_EXPANDED", "MULTIPLE_OF_CHANGED"),
        "REQUIRED_ATTRIBUTE_ADDED",
        *(f"DEPENDENCY_ARRAY_{verb}" for verb in ("ADDED", "EXTENDED", "CHANGED")),
        "DEPENDENCY_SCHEMA_ADDED",
        *(f"{content}_{verb}" for content in _CONTENT[2:] for verb in ("NARROWED", "REMOVED")),
        "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "ITEM_ADDED_TO_OPEN_CONTENT_MODEL",
        "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        *("ENUM_ARRAY_NARROWED", "ENUM_ARRAY_CHANGED"),
        *("COMBINED_TYPE_CHANGED", "COMBINED_TYPE_SUBSCHEMAS_CHANGED"),
        *("PRODUCT_TYPE_EXTENDED", "SUM_TYPE_NARROWED", "NOT_TYPE_EXTENDED"),
    ]
)
"""What no policy lets pass."""

ALL: frozenset[str] = LENIENT | BREAKING
"""Every type of change there is."""


class _Advice(NamedTuple):
    why: str
    fix: str


_REFUSED = "The reader refuses documents the writer may have written: "
_EXACT = {
    "TYPE_CHANGED": _Advice(
        _REFUSED + "the two schemas describe values of different kinds.",
        "Keep the kind of value, or allow both by anyOf.",
    ),
    "TYPE_NARROWED": _Advice(_REFUSED + "numbers with a fraction are no integers.", "Keep the type number."),
    "SCHEMA_ADDED": _Advice(_REFUSED + "items were free and now have to fit a schema.", "Leave the items free."),
    "PATTERN_ADDED": _Advice(_REFUSED + "strings were free and now have to match.", "Leave the pattern out."),
    "PATTERN_CHANGED": _Advice(
        "Nobody can tell whether all strings that matched the old pattern match the new one.", "Keep the pattern."
    ),
    "UNIQUE_ITEMS_ADDED": _Advice(_REFUSED + "items may repeat.", "Leave uniqueItems out."),
    "MULTIPLE_OF_ADDED": _Advice(_REFUSED + "numbers were free.", "Leave multipleOf out."),
    "MULTIPLE_OF_EXPANDED": _Advice(_REFUSED + "fewer numbers are multiples.", "Keep multipleOf, or a divisor of it."),
    "MULTIPLE_OF_CHANGED": _Advice(_REFUSED + "other numbers are multiples.", "Keep multipleOf, or a divisor of it."),
    "REQUIRED_ATTRIBUTE_ADDED": _Advice(
        _REFUSED + "the property may be absent.", "Do not require the property, or give it a default."
    ),
    "DEPENDENCY_ARRAY_ADDED": _Advice(_REFUSED + "the property did not need others.", "Leave the dependency out."),
    "DEPENDENCY_ARRAY_EXTENDED": _Advice(_REFUSED + "the property needs more others now.", "Keep the dependency."),
    "DEPENDENCY_ARRAY_CHANGED": _Advice(_REFUSED + "the property needs others than before.", "Keep the dependency."),
    "DEPENDENCY_SCHEMA_ADDED": _Advice(_REFUSED + "the property brought no schema.", "Leave the dependency out."),
    "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": _Advice(
        "The writer's objects are open: a member of this name may hold any value, which the reader now checks.",
        "Close the object (additionalProperties: false) before adding properties, or compare with confluent-lenient.",
    ),
    "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL": _Advice(
        "The writer's objects are open: a member of this name may hold any value, which the reader now checks.",
        "Close the object (additionalProperties: false) before adding properties, or compare with confluent-lenient.",
    ),
    "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": _Advice(
        _REFUSED + "they need not have the property.", "Do not require the property, or give it a default."
    ),
    "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL": _Advice(
        _REFUSED + "they do not have the property.", "Do not require the property, or give it a default."
    ),
    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL": _Advice(
        _REFUSED + "the reader's objects are closed, so the property is one too many.",
        "Keep the property, or open the object; confluent-lenient lets this pass.",
    ),
    "ITEM_ADDED_TO_OPEN_CONTENT_MODEL": _Advice(
        "The writer's arrays may hold anything at this position, which the reader now checks.",
        "Close the tuple (additionalItems: false) before adding positions.",
    ),
    "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL": _Advice(
        _REFUSED + "the reader's tuple is closed, so the item is one too many.", "Keep the item, or open the tuple."
    ),
    "ENUM_ARRAY_NARROWED": _Advice(_REFUSED + "a value is no longer listed.", "Keep every value ever listed."),
    "ENUM_ARRAY_CHANGED": _Advice(_REFUSED + "a value is no longer listed.", "Keep every value ever listed."),
    "COMBINED_TYPE_CHANGED": _Advice(
        _REFUSED + "the branches add up in another way.", "Keep the keyword, or change it to anyOf."
    ),
    "COMBINED_TYPE_SUBSCHEMAS_CHANGED": _Advice(
        _REFUSED + "not every branch of the writer has a branch of its own that reads it.",
        "Change branches compatibly, or add new ones.",
    ),
    "PRODUCT_TYPE_EXTENDED": _Advice(_REFUSED + "there is one more condition to meet.", "Leave allOf as it is."),
    "SUM_TYPE_NARROWED": _Advice(_REFUSED + "a branch is gone.", "Keep every branch."),
    "NOT_TYPE_EXTENDED": _Advice(_REFUSED + "more is forbidden now.", "Forbid less, not more."),
}
_BY_ENDING = {
    "_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": _Advice(
        _REFUSED + "the schema for members nobody names says otherwise.",
        "Give the member the schema that covers its name.",
    ),
    "_NARROWED": _Advice(_REFUSED + "members nobody names have to fit a schema now.", "Leave them free."),
    "_REMOVED": _Advice(_REFUSED + "members nobody names are no longer allowed.", "Keep allowing them."),
    "_ADDED": _Advice(_REFUSED + "there was no such limit.", "Leave the limit out."),
    "_INCREASED": _Advice(_REFUSED + "smaller ones were allowed.", "Keep the lower limit, or lower it."),
    "_DECREASED": _Advice(_REFUSED + "larger ones were allowed.", "Keep the upper limit, or raise it."),
}


def build_findings(
    changes: list[SchemaChange],
    allowed: frozenset[str],
    reader: ParsedJsonSchema,
    writer: ParsedJsonSchema,
    advice: Mapping[str, tuple[str, str]] = MappingProxyType({}),
) -> list[Finding]:
    """Return one finding for each change that is not allowed, once for each place.

    advice has why and what to do for types of change that `change_advice` has nothing to say about.
    """
    return [
        _build_finding(change, reader, writer, advice.get(change.type) or change_advice(change.type))
        for change in dict.fromkeys(changes)
        if change.type not in allowed
    ]


def change_advice(change: str) -> tuple[str, str]:
    """Return why a type of change matters and what to do about it; ('', '') for types that every policy allows."""
    if change in STRICT:
        return "", ""
    if change in _EXACT:
        return _EXACT[change]
    found = next((text for ending, text in _BY_ENDING.items() if change.endswith(ending)), None)
    return found or _EXACT["TYPE_CHANGED"]


def _build_finding(
    change: SchemaChange, reader: ParsedJsonSchema, writer: ParsedJsonSchema, advice: tuple[str, str]
) -> Finding:
    why, fix = advice
    return Finding(
        rule=change.type,
        path=change.path,
        reader=_excerpt_at(reader, change.path),
        writer=_excerpt_at(writer, change.path),
        why=why,
        fix=fix,
    )


def _excerpt_at(parsed: ParsedJsonSchema, path: str) -> str:
    """Return what a schema has at the path of a change, '' where the text has no such path."""
    tokens = path.removeprefix("#/").split("/") if path != "#/" else ()
    return excerpt_at(parsed, (token.replace("~1", "/").replace("~0", "~") for token in tokens))


RULESETS = {"confluent": STRICT, "confluent-lenient": LENIENT}
"""The rulesets of this family with the types of change each lets pass."""
