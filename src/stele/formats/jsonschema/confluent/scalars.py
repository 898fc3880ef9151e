"""Rules for numbers, strings, enumerations and what every schema has."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

from stele.formats.jsonschema.confluent.engine import Found
from stele.formats.jsonschema.shapes import Model, Shape
from stele.formats.jsonschema.text import Json, equal, frozen


def remarks(old: Shape, new: Shape) -> Iterator[Found]:
    """Names, texts and defaults: reported at the schema that has them, never a reason to refuse."""
    before, after = (shape.source if shape.whole else _NO_REMARKS for shape in (old, new))
    if before.get(old.model.id_keyword) != after.get(new.model.id_keyword):
        yield Found("ID_CHANGED")
    if before.get("title") != after.get("title"):
        yield Found("TITLE_CHANGED")
    if before.get("description") != after.get("description"):
        yield Found("DESCRIPTION_CHANGED")
    defaults = has_default(before, old.model), has_default(after, new.model)
    if defaults[0] != defaults[1] or (all(defaults) and not equal(before["default"], after["default"])):
        yield Found("DEFAULT_CHANGED")


_NO_REMARKS: dict[str, Json] = {}


def has_default(schema: dict[str, Json], model: Model) -> bool:
    """Whether a schema has a default; since 2019-09 null is taken for none."""
    return "default" in schema and (schema["default"] is not None or not model.later)


def string(old: Shape, new: Shape) -> Iterator[Found]:
    """Length and pattern; `format` is not looked at."""
    yield from bound(old, new, "maxLength", "MAX_LENGTH")
    yield from bound(old, new, "minLength", "MIN_LENGTH")
    before, after = old.source.get("pattern"), new.source.get("pattern")
    if before != after:
        change = "ADDED" if before is None else "REMOVED" if after is None else "CHANGED"
        yield Found(f"PATTERN_{change}", ("pattern",))


def number(old: Shape, new: Shape) -> Iterator[Found]:
    """Bounds, divisor, and integer against number."""
    yield from bound(old, new, "maximum", "MAXIMUM")
    yield from bound(old, new, "minimum", "MINIMUM")
    yield from bound(old, new, "exclusiveMaximum", "EXCLUSIVE_MAXIMUM")
    yield from bound(old, new, "exclusiveMinimum", "EXCLUSIVE_MINIMUM")
    yield from _divisor(old, new)
    if old.integer != new.integer:
        yield Found("TYPE_EXTENDED" if old.integer else "TYPE_NARROWED")


def enumeration(old: Shape, new: Shape) -> Iterator[Found]:
    """The values of `enum`, as sets."""
    before = {frozen(value) for value in old.source["enum"]}
    after = {frozen(value) for value in new.source["enum"]}
    if before == after:
        return
    change = "EXTENDED" if before <= after else "NARROWED" if before >= after else "CHANGED"
    yield Found(f"ENUM_ARRAY_{change}", ("enum",))


def constant(old: Shape, new: Shape) -> Iterator[Found]:
    """`const` is an enumeration of one."""
    if not equal(old.source["const"], new.source["const"]):
        yield Found("ENUM_ARRAY_CHANGED", ("const",))


def bound(old: Shape, new: Shape, keyword: str, stem: str) -> Iterator[Found]:
    """A limit that is there or not, and grows or shrinks. The booleans of draft-04 are no limits of their own."""
    yield from compare_bounds(old.source.get(keyword), new.source.get(keyword), keyword, stem)


def compare_bounds(old: Json, new: Json, keyword: str, stem: str) -> Iterator[Found]:
    """Two values of a keyword that sets a limit; what is no number is none."""
    before, after = _number(old), _number(new)
    if before is None and after is None:
        return
    if before is None or after is None:
        yield Found(f"{stem}_ADDED" if before is None else f"{stem}_REMOVED", (keyword,))
    elif before != after:
        yield Found(f"{stem}_INCREASED" if before < after else f"{stem}_DECREASED", (keyword,))


def _divisor(old: Shape, new: Shape) -> Iterator[Found]:
    before, after = _number(old.source.get("multipleOf")), _number(new.source.get("multipleOf"))
    if before == after:
        return
    if before is None or after is None:
        change = "ADDED" if before is None else "REMOVED"
    else:
        ratio = Fraction(after) / Fraction(before) if before else Fraction(1, 3)
        change = "EXPANDED" if ratio.denominator == 1 else "REDUCED" if ratio.numerator == 1 else "CHANGED"
    yield Found(f"MULTIPLE_OF_{change}", ("multipleOf",))


def _number(value: Json) -> int | Decimal | None:
    return value if isinstance(value, int | Decimal) and not isinstance(value, bool) else None
