"""Rules for arrays: one schema for all items, tuples, sizes, uniqueness, content model."""

from __future__ import annotations

from collections.abc import Iterator

from stele.formats.jsonschema.confluent.content import Members, Rest, compare_rest, compare_unevaluated, rest
from stele.formats.jsonschema.confluent.engine import Comparison, Found, Inner
from stele.formats.jsonschema.confluent.scalars import bound, compare_bounds
from stele.formats.jsonschema.shapes import Shape
from stele.formats.jsonschema.text import Json


def arrays(comparison: Comparison, old: Shape, new: Shape) -> Iterator[Found | Inner]:
    """All that two arrays can differ in; of `contains` only its bounds are looked at."""
    yield from _every(old, new)
    before, after = _members(old), _members(new)
    yield from _tuple(comparison, before, after)
    yield from compare_rest(before, after, "additionalItems", "ADDITIONAL_ITEMS")
    yield from compare_unevaluated(before, after, "unevaluatedItems", "UNEVALUATED_ITEMS")
    yield from bound(old, new, "maxItems", "MAX_ITEMS")
    yield from bound(old, new, "minItems", "MIN_ITEMS")
    unique_before, unique_after = (shape.source.get("uniqueItems") is True for shape in (old, new))
    if unique_before != unique_after:
        yield Found("UNIQUE_ITEMS_REMOVED" if unique_before else "UNIQUE_ITEMS_ADDED", ("uniqueItems",))
    for keyword, stem in (("maxContains", "MAX_CONTAINS"), ("minContains", "MIN_CONTAINS")):
        yield from compare_bounds(_contains(old, keyword), _contains(new, keyword), keyword, stem)


def _contains(shape: Shape, keyword: str) -> Json:
    """A bound of `contains`: since 2019-09 it needs one beside it, and is one or more when nothing else is said."""
    if not shape.model.later:
        return shape.source.get(keyword) if shape.whole else None
    if "contains" not in shape.source:
        return None
    return shape.source.get(keyword, 1 if keyword == "minContains" else None)


def _every(old: Shape, new: Shape) -> Iterator[Found | Inner]:
    """The schema of all items, where there is one."""
    before, after = _item_schema(old), _item_schema(new)
    if before is not None and after is not None:
        yield Inner(old.model.shape(before), new.model.shape(after), ("items",))
    elif before is not None or after is not None:
        yield Found("SCHEMA_ADDED" if before is None else "SCHEMA_REMOVED", ("items",))


def _tuple(comparison: Comparison, old: Members, new: Members) -> Iterator[Found | Inner]:
    before, after = _positions(old.shape), _positions(new.shape)
    for index in range(max(len(before), len(after))):
        path = ("items", str(index))
        if index >= len(after):
            yield from _removed(comparison, old.shape, before[index], new, path)
        elif index >= len(before):
            yield from _added(comparison, old, new.shape, after[index], path)
        else:
            yield Inner(old.shape.model.shape(before[index]), new.shape.model.shape(after[index]), path)


def _removed(
    comparison: Comparison, old: Shape, gone: Json, content: Members, path: tuple[str, ...]
) -> Iterator[Found | Inner]:
    if content.open:
        yield Found("ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL", path)
        return
    cover = content.covering("")
    if cover is not None:
        item = old.model.shape(gone)
        covered = "IS" if comparison.compatible(item, cover) else "NOT"
        yield Inner(item, cover, path)
        yield Found(f"ITEM_REMOVED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)
    elif gone is False:
        yield Found("ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)
    else:
        yield Found("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)


def _added(
    comparison: Comparison, content: Members, new: Shape, added: Json, path: tuple[str, ...]
) -> Iterator[Found | Inner]:
    if content.open:
        item = "ITEM_WITH_EMPTY_SCHEMA" if new.model.unbound(added) else "ITEM"
        yield Found(f"{item}_ADDED_TO_OPEN_CONTENT_MODEL", path)
        return
    cover = content.covering("")
    if cover is None:
        yield Found("ITEM_ADDED_TO_CLOSED_CONTENT_MODEL", path)
        return
    shape = new.model.shape(added)
    covered = "IS" if comparison.compatible(cover, shape) else "NOT"
    yield Inner(cover, shape, path)
    yield Found(f"ITEM_ADDED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)


def _positions(shape: Shape) -> list[Json]:
    """The schemas of a tuple: `prefixItems`, before 2020-12 a list in `items`."""
    for keyword in ("prefixItems", "items") if shape.model.later else ("items",):
        schemas = shape.source.get(keyword)
        if isinstance(schemas, list):
            return schemas
    return []


def _item_schema(shape: Shape) -> Json:
    """`items` as one schema for everything; since 2019-09 a boolean there says as little or as much as for the rest."""
    schema = shape.source.get("items")
    if shape.model.later:
        return schema if isinstance(schema, dict) and not _positions(shape) else None
    return schema if isinstance(schema, dict | bool) else None


def _members(shape: Shape) -> Members:
    if not shape.model.later:
        return Members(shape, (), _additional(shape), None)
    items = shape.source.get("items")
    if isinstance(items, list):
        items = shape.source.get("additionalItems")
    elif isinstance(items, dict) and not _positions(shape):
        items = None
    return Members(shape, (), rest(items), shape.source.get("unevaluatedItems"))


def _additional(shape: Shape) -> Rest:
    """`additionalItems` up to draft-07: it forbids nothing beside one schema for all items."""
    value = shape.source.get("additionalItems")
    return rest(None if value is False and _item_schema(shape) is not None else value)
