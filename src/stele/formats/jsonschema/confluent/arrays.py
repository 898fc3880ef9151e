"""Rules for arrays: one schema for all items, tuples, sizes, uniqueness, content model."""

from __future__ import annotations

from collections.abc import Iterator

from stele.formats.jsonschema.confluent.content import Members, compare_rest, rest
from stele.formats.jsonschema.confluent.engine import Comparison, Found, Inner
from stele.formats.jsonschema.confluent.scalars import bound
from stele.formats.jsonschema.shapes import Kind, Shape
from stele.formats.jsonschema.text import Json


def arrays(comparison: Comparison, old: Shape, new: Shape) -> Iterator[Found | Inner]:
    """All that two arrays can differ in; `contains` is not looked at."""
    yield from _every(old, new)
    yield from _tuple(comparison, old, new)
    before, after = _members(old), _members(new)
    yield from compare_rest(before.rests[0], after.rests[0], "additionalItems", "ADDITIONAL_ITEMS")
    yield from compare_rest(before.rests[1], after.rests[1], "unevaluatedItems", "UNEVALUATED_ITEMS")
    yield from bound(old, new, "maxItems", "MAX_ITEMS")
    yield from bound(old, new, "minItems", "MIN_ITEMS")
    unique_before, unique_after = (shape.source.get("uniqueItems") is True for shape in (old, new))
    if unique_before != unique_after:
        yield Found("UNIQUE_ITEMS_REMOVED" if unique_before else "UNIQUE_ITEMS_ADDED", ("uniqueItems",))


def _every(old: Shape, new: Shape) -> Iterator[Found | Inner]:
    """The schema of all items, where there is one."""
    before, after = _item_schema(old), _item_schema(new)
    if before is not None and after is not None:
        yield Inner(old.model.shape(before), new.model.shape(after), ("items",))
    elif before is not None or after is not None:
        yield Found("SCHEMA_ADDED" if before is None else "SCHEMA_REMOVED", ("items",))


def _tuple(comparison: Comparison, old: Shape, new: Shape) -> Iterator[Found | Inner]:
    before, after = _positions(old), _positions(new)
    for index in range(max(len(before), len(after))):
        path = ("items", str(index))
        if index >= len(after):
            yield Found(_removed(comparison, old.model.shape(before[index]), _members(new)), path)
        elif index >= len(before):
            yield Found(_added(comparison, _members(old), new.model.shape(after[index])), path)
        else:
            yield Inner(old.model.shape(before[index]), new.model.shape(after[index]), path)


def _removed(comparison: Comparison, gone: Shape, content: Members) -> str:
    if content.open:
        return "ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL"
    cover = content.covering("")
    if cover is not None:
        covered = "IS" if comparison.compatible(gone, cover) else "NOT"
        return f"ITEM_REMOVED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
    if gone.kind is Kind.FALSE:
        return "ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL"
    return "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL"


def _added(comparison: Comparison, content: Members, added: Shape) -> str:
    if content.open:
        empty = "ITEM_WITH_EMPTY_SCHEMA" if added.kind is Kind.EMPTY else "ITEM"
        return f"{empty}_ADDED_TO_OPEN_CONTENT_MODEL"
    cover = content.covering("")
    if cover is not None:
        covered = "IS" if comparison.compatible(cover, added) else "NOT"
        return f"ITEM_ADDED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
    return "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL"


def _positions(shape: Shape) -> list[Json]:
    """The schemas of a tuple: `prefixItems`, before 2020-12 a list in `items`."""
    for keyword in ("prefixItems", "items"):
        schemas = shape.source.get(keyword)
        if isinstance(schemas, list):
            return schemas
    return []


def _item_schema(shape: Shape) -> Json:
    """`items` as one schema for everything: None beside `prefixItems`, where it speaks of the rest only."""
    schema = shape.source.get("items")
    return schema if isinstance(schema, dict | bool) and not isinstance(shape.source.get("prefixItems"), list) else None


def _members(shape: Shape) -> Members:
    """`additionalItems` speaks beside a tuple only (so does, since 2020-12, `items`)."""
    additional: Json = None
    if isinstance(shape.source.get("prefixItems"), list):
        additional = shape.source.get("items")
    elif not isinstance(shape.source.get("items"), dict | bool):
        additional = shape.source.get("additionalItems")
    return Members(shape, (), (rest(shape, additional), rest(shape, shape.source.get("unevaluatedItems"))))
