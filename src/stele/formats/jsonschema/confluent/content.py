"""What a schema says about members it does not name: open, closed, or partially open content.

Objects and tuples share it: `additionalProperties`, `patternProperties` and `unevaluatedProperties` here,
`additionalItems` (since 2020-12 `items`) and `unevaluatedItems` there.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import jsonschema_rs

from stele.formats.jsonschema.confluent.engine import Found, Inner
from stele.formats.jsonschema.parsed import PATTERN_LIMITS
from stele.formats.jsonschema.shapes import Kind, Shape
from stele.formats.jsonschema.text import Json


class Rest(NamedTuple):
    """One keyword about unnamed members: permitted at all, and under which schema (None: under none)."""

    permitted: bool
    schema: Shape | None

    @property
    def open(self) -> bool:
        """True when anything goes."""
        return self.permitted and self.schema is None


def rest(shape: Shape, value: Json) -> Rest:
    """Read the value of such a keyword; None and anything that constrains nothing leave it open."""
    if not isinstance(value, dict | bool):
        return Rest(permitted=True, schema=None)
    schema = shape.model.shape(value)
    if schema.kind is Kind.FALSE:
        return Rest(permitted=False, schema=None)
    return Rest(permitted=True, schema=None if schema.kind is Kind.EMPTY else schema)


def compare_rest(old: Rest, new: Rest, keyword: str, stem: str) -> Iterator[Found | Inner]:
    """Changes of one keyword about unnamed members."""
    if old.permitted != new.permitted:
        yield Found(f"{stem}_ADDED" if new.permitted else f"{stem}_REMOVED", (keyword,))
    elif old.schema is None and new.schema is not None:
        yield Found(f"{stem}_NARROWED", (keyword,))
    elif old.schema is not None and new.schema is None:
        yield Found(f"{stem}_EXTENDED", (keyword,))
    elif old.schema is not None and new.schema is not None:
        yield Inner(old.schema, new.schema, (keyword,))


class Members(NamedTuple):
    """The content model of one object or tuple.

    patterns  (pattern, schema) of `patternProperties`
    rests     the keywords about members that nothing else covers
    """

    shape: Shape
    patterns: tuple[tuple[str, Json], ...]
    rests: tuple[Rest, ...]

    @property
    def open(self) -> bool:
        """True when a member nobody named may be anything."""
        return not self.patterns and all(part.open for part in self.rests)

    def covering(self, name: str) -> Shape | None:
        """The schema that an unnamed member has to meet; None when no schema is there for it."""
        for pattern, schema in self.patterns:
            if matches(pattern, name):
                return self.shape.model.shape(schema)
        return next((part.schema for part in self.rests if part.schema is not None), None)


@lru_cache(maxsize=4096)
def matches(pattern: str, name: str) -> bool:
    """Whether an ECMA-262 pattern is found in a name; False for patterns that are wrong, too big or too slow."""
    try:
        return jsonschema_rs.is_valid({"type": "string", "pattern": pattern}, name, pattern_options=PATTERN_LIMITS)
    except (ValueError, jsonschema_rs.ReferencingError):
        return False
