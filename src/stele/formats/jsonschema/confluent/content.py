"""What a schema says about members it does not name: open, closed, or partially open content.

Objects and tuples share it: `additionalProperties`, `patternProperties` and `unevaluatedProperties` here,
`additionalItems` (since 2020-12 `items`) and `unevaluatedItems` there. The keywords are taken as they are written: `{}`
is a schema for members where `true` is none, and a reference to `false` closes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import jsonschema_rs

from stele.formats.jsonschema.confluent.engine import InnerPair, LocalChange
from stele.formats.jsonschema.confluent.shapes import SchemaShape
from stele.formats.jsonschema.json_text import Json
from stele.formats.jsonschema.parse import PATTERN_LIMITS


class Rest(NamedTuple):
    """The keyword about members that no other keyword names.

    permitted  False when there may be none
    schema     what they have to meet; None when anything goes or nothing does
    """

    permitted: bool
    schema: Json


def parse_rest(value: Json) -> Rest:
    """Return the value of such a keyword as a `Rest`; None stands for an absent keyword."""
    return Rest(permitted=value is not False, schema=value if isinstance(value, dict) else None)


class ContentModel(NamedTuple):
    """The content model of one object or tuple.

    patterns     (pattern, schema) of `patternProperties`
    rest         `additionalProperties` and its kin
    unevaluated  the value of `unevaluatedProperties` and its kin, None where there is none
    """

    shape: SchemaShape
    patterns: tuple[tuple[str, Json], ...]
    rest: Rest
    unevaluated: Json

    @property
    def is_open(self) -> bool:
        """True when a member nobody named may be anything."""
        if self.patterns or not self.rest.permitted or self.rest.schema is not None:
            return False
        return self.unevaluated is None or self.shape.model.allows_anything(self.unevaluated)

    def covering_schema(self, name: str) -> SchemaShape | None:
        """Return the schema that an unnamed member has to meet; None when no schema is there for it."""
        for pattern, schema in self.patterns:
            if pattern_matches(pattern, name):
                return self.shape.model.get_shape(schema)
        if self.rest.schema is not None:
            return self.shape.model.get_shape(self.rest.schema)
        if not self.rest.permitted or self.unevaluated is None or self.unevaluated is False:
            return None
        return (
            None if self.shape.model.allows_anything(self.unevaluated) else self.shape.model.get_shape(self.unevaluated)
        )


def compare_rest(old: ContentModel, new: ContentModel, keyword: str, stem: str) -> Iterator[LocalChange | InnerPair]:
    """Compare `additionalProperties` or its counterpart for items."""
    before, after = old.rest, new.rest
    if before.permitted != after.permitted:
        yield LocalChange(f"{stem}_ADDED" if after.permitted else f"{stem}_REMOVED", (keyword,))
    elif before.schema is None and after.schema is not None:
        yield LocalChange(f"{stem}_NARROWED", (keyword,))
    elif before.schema is not None and after.schema is None:
        yield LocalChange(f"{stem}_EXTENDED", (keyword,))
    elif before.schema is not None:
        yield InnerPair(old.shape.model.get_shape(before.schema), new.shape.model.get_shape(after.schema), (keyword,))


def compare_unevaluated(
    old: ContentModel, new: ContentModel, keyword: str, stem: str
) -> Iterator[LocalChange | InnerPair]:
    """Compare `unevaluatedProperties` or its counterpart; writing `true` where nothing was counts as narrowing."""
    before, after = old.unevaluated, new.unevaluated
    if before is None and after is None:
        return
    if (before is False) != (after is False):
        yield LocalChange(f"{stem}_ADDED" if before is False else f"{stem}_REMOVED", (keyword,))
        return
    loose = (
        before is not None and old.shape.model.allows_anything(before),
        after is not None and new.shape.model.allows_anything(after),
    )
    if before is None or (after is not None and loose == (True, False)):
        yield LocalChange(f"{stem}_NARROWED", (keyword,))
    elif after is None or loose == (False, True):
        yield LocalChange(f"{stem}_EXTENDED", (keyword,))
    else:
        yield InnerPair(old.shape.model.get_shape(before), new.shape.model.get_shape(after), (keyword,))


@lru_cache(maxsize=4096)
def pattern_matches(pattern: str, name: str) -> bool:
    """Return whether an ECMA-262 pattern is found in a name; False for patterns that are wrong, too big or too slow."""
    try:
        return jsonschema_rs.is_valid({"type": "string", "pattern": pattern}, name, pattern_options=PATTERN_LIMITS)
    except (ValueError, jsonschema_rs.ReferencingError):
        return False
