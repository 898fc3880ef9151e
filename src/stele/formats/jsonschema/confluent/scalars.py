"""Rules for numbers, strings, enumerations and what every schema has."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

from stele.formats.jsonschema.confluent.engine import LocalChange
from stele.formats.jsonschema.confluent.shapes import SchemaShape, ShapeModel
from stele.formats.jsonschema.json_text import Json, is_equal, to_hashable


def compare_annotations(old: SchemaShape, new: SchemaShape) -> Iterator[LocalChange]:
    """Compare names, texts and defaults, which no policy refuses."""
    before, after = (shape.source if shape.whole else _NO_ANNOTATIONS for shape in (old, new))
    if before.get(old.model.id_keyword) != after.get(new.model.id_keyword):
        yield LocalChange("ID_CHANGED")
    if before.get("title") != after.get("title"):
        yield LocalChange("TITLE_CHANGED")
    if before.get("description") != after.get("description"):
        yield LocalChange("DESCRIPTION_CHANGED")
    defaults = has_default(before, old.model), has_default(after, new.model)
    if defaults[0] != defaults[1] or (all(defaults) and not is_equal(before["default"], after["default"])):
        yield LocalChange("DEFAULT_CHANGED")


_NO_ANNOTATIONS: dict[str, Json] = {}


def has_default(schema: dict[str, Json], model: ShapeModel) -> bool:
    """Return whether a schema has a default; since 2019-09 a default of null counts as none."""
    return "default" in schema and (schema["default"] is not None or not model.later)


def compare_strings(old: SchemaShape, new: SchemaShape) -> Iterator[LocalChange]:
    """Compare the length and pattern of strings; `format` is ignored."""
    yield from compare_bound(old, new, "maxLength", "MAX_LENGTH")
    yield from compare_bound(old, new, "minLength", "MIN_LENGTH")
    before, after = old.source.get("pattern"), new.source.get("pattern")
    if before != after:
        change = "ADDED" if before is None else "REMOVED" if after is None else "CHANGED"
        yield LocalChange(f"PATTERN_{change}", ("pattern",))


def compare_numbers(old: SchemaShape, new: SchemaShape) -> Iterator[LocalChange]:
    """Compare the bounds, the divisor and the type (integer or number) of numbers."""
    yield from compare_bound(old, new, "maximum", "MAXIMUM")
    yield from compare_bound(old, new, "minimum", "MINIMUM")
    yield from compare_bound(old, new, "exclusiveMaximum", "EXCLUSIVE_MAXIMUM")
    yield from compare_bound(old, new, "exclusiveMinimum", "EXCLUSIVE_MINIMUM")
    yield from _compare_multiples(old, new)
    if old.integer != new.integer:
        yield LocalChange("TYPE_EXTENDED" if old.integer else "TYPE_NARROWED")


def compare_enums(old: SchemaShape, new: SchemaShape) -> Iterator[LocalChange]:
    """Compare the values of `enum`, as sets."""
    before = {to_hashable(value) for value in old.source["enum"]}
    after = {to_hashable(value) for value in new.source["enum"]}
    if before == after:
        return
    change = "EXTENDED" if before <= after else "NARROWED" if before >= after else "CHANGED"
    yield LocalChange(f"ENUM_ARRAY_{change}", ("enum",))


def compare_constants(old: SchemaShape, new: SchemaShape) -> Iterator[LocalChange]:
    """Compare two constants: `const` is an enum of one value."""
    if not is_equal(old.source["const"], new.source["const"]):
        yield LocalChange("ENUM_ARRAY_CHANGED", ("const",))


def compare_bound(old: SchemaShape, new: SchemaShape, keyword: str, stem: str) -> Iterator[LocalChange]:
    """Compare a limit that may be absent; the booleans of draft-04 are no limits."""
    yield from compare_limits(old.source.get(keyword), new.source.get(keyword), keyword, stem)


def compare_limits(old: Json, new: Json, keyword: str, stem: str) -> Iterator[LocalChange]:
    """Compare two values of a keyword that sets a limit; a value that is no number counts as absent."""
    before, after = _as_number(old), _as_number(new)
    if before is None and after is None:
        return
    if before is None or after is None:
        yield LocalChange(f"{stem}_ADDED" if before is None else f"{stem}_REMOVED", (keyword,))
    elif before != after:
        yield LocalChange(f"{stem}_INCREASED" if before < after else f"{stem}_DECREASED", (keyword,))


def _compare_multiples(old: SchemaShape, new: SchemaShape) -> Iterator[LocalChange]:
    before, after = _as_number(old.source.get("multipleOf")), _as_number(new.source.get("multipleOf"))
    if before == after:
        return
    if before is None or after is None:
        change = "ADDED" if before is None else "REMOVED"
    else:
        ratio = Fraction(after) / Fraction(before) if before else Fraction(1, 3)
        change = "EXPANDED" if ratio.denominator == 1 else "REDUCED" if ratio.numerator == 1 else "CHANGED"
    yield LocalChange(f"MULTIPLE_OF_{change}", ("multipleOf",))


def _as_number(value: Json) -> int | Decimal | None:
    return value if isinstance(value, int | Decimal) and not isinstance(value, bool) else None
