"""The vocabulary of the structural diff: every type of change, and which of them a policy lets pass.

The names are those the Confluent registry reports, so that its users find what they know.
"""

from __future__ import annotations

from typing import NamedTuple


class Change(NamedTuple):
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
