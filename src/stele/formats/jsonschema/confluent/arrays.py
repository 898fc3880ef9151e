"""Rules for arrays: one schema for all items, tuples, sizes, uniqueness, content model."""

from __future__ import annotations

from collections.abc import Iterator

from stele.formats.jsonschema.confluent.content import ContentModel, Rest, compare_rest, compare_unevaluated, parse_rest
from stele.formats.jsonschema.confluent.engine import Comparison, InnerPair, LocalChange
from stele.formats.jsonschema.confluent.scalars import compare_bound, compare_limits
from stele.formats.jsonschema.shapes import Shape
from stele.formats.jsonschema.text import Json


def compare_arrays(comparison: Comparison, old: Shape, new: Shape) -> Iterator[LocalChange | InnerPair]:
    """All that two arrays can differ in; of `contains` only its bounds are looked at."""
    yield from _compare_item_schemas(old, new)
    before, after = _content_model(old), _content_model(new)
    yield from _compare_positions(comparison, before, after)
    yield from compare_rest(before, after, "additionalItems", "ADDITIONAL_ITEMS")
    yield from compare_unevaluated(before, after, "unevaluatedItems", "UNEVALUATED_ITEMS")
    yield from compare_bound(old, new, "maxItems", "MAX_ITEMS")
    yield from compare_bound(old, new, "minItems", "MIN_ITEMS")
    unique_before, unique_after = (shape.source.get("uniqueItems") is True for shape in (old, new))
    if unique_before != unique_after:
        yield LocalChange("UNIQUE_ITEMS_REMOVED" if unique_before else "UNIQUE_ITEMS_ADDED", ("uniqueItems",))
    for keyword, stem in (("maxContains", "MAX_CONTAINS"), ("minContains", "MIN_CONTAINS")):
        yield from compare_limits(_contains_bound(old, keyword), _contains_bound(new, keyword), keyword, stem)


def _contains_bound(shape: Shape, keyword: str) -> Json:
    """A bound of `contains`: since 2019-09 it needs one beside it, and is one or more when nothing else is said."""
    if not shape.model.later:
        return shape.source.get(keyword) if shape.whole else None
    if "contains" not in shape.source:
        return None
    return shape.source.get(keyword, 1 if keyword == "minContains" else None)


def _compare_item_schemas(old: Shape, new: Shape) -> Iterator[LocalChange | InnerPair]:
    """The schema of all items, where there is one."""
    before, after = _item_schema(old), _item_schema(new)
    if before is not None and after is not None:
        yield InnerPair(old.model.get_shape(before), new.model.get_shape(after), ("items",))
    elif before is not None or after is not None:
        yield LocalChange("SCHEMA_ADDED" if before is None else "SCHEMA_REMOVED", ("items",))


def _compare_positions(
    comparison: Comparison, old: ContentModel, new: ContentModel
) -> Iterator[LocalChange | InnerPair]:
    before, after = _tuple_schemas(old.shape), _tuple_schemas(new.shape)
    for index in range(max(len(before), len(after))):
        path = ("items", str(index))
        if index >= len(after):
            yield from _find_removed_item(comparison, old.shape, before[index], new, path)
        elif index >= len(before):
            yield from _find_added_item(comparison, old, new.shape, after[index], path)
        else:
            yield InnerPair(old.shape.model.get_shape(before[index]), new.shape.model.get_shape(after[index]), path)


def _find_removed_item(
    comparison: Comparison, old: Shape, gone: Json, content: ContentModel, path: tuple[str, ...]
) -> Iterator[LocalChange | InnerPair]:
    if content.is_open:
        yield LocalChange("ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL", path)
        return
    cover = content.covering_schema("")
    if cover is not None:
        item = old.model.get_shape(gone)
        covered = "IS" if comparison.is_compatible(item, cover) else "NOT"
        yield InnerPair(item, cover, path)
        yield LocalChange(f"ITEM_REMOVED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)
    elif gone is False:
        yield LocalChange("ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)
    else:
        yield LocalChange("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)


def _find_added_item(
    comparison: Comparison, content: ContentModel, new: Shape, added: Json, path: tuple[str, ...]
) -> Iterator[LocalChange | InnerPair]:
    if content.is_open:
        item = "ITEM_WITH_EMPTY_SCHEMA" if new.model.allows_anything(added) else "ITEM"
        yield LocalChange(f"{item}_ADDED_TO_OPEN_CONTENT_MODEL", path)
        return
    cover = content.covering_schema("")
    if cover is None:
        yield LocalChange("ITEM_ADDED_TO_CLOSED_CONTENT_MODEL", path)
        return
    shape = new.model.get_shape(added)
    covered = "IS" if comparison.is_compatible(cover, shape) else "NOT"
    yield InnerPair(cover, shape, path)
    yield LocalChange(f"ITEM_ADDED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)


def _tuple_schemas(shape: Shape) -> list[Json]:
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
        return schema if isinstance(schema, dict) and not _tuple_schemas(shape) else None
    return schema if isinstance(schema, dict | bool) else None


def _content_model(shape: Shape) -> ContentModel:
    if not shape.model.later:
        return ContentModel(shape, (), _additional_items(shape), None)
    items = shape.source.get("items")
    if isinstance(items, list):
        items = shape.source.get("additionalItems")
    elif isinstance(items, dict) and not _tuple_schemas(shape):
        items = None
    return ContentModel(shape, (), parse_rest(items), shape.source.get("unevaluatedItems"))


def _additional_items(shape: Shape) -> Rest:
    """`additionalItems` up to draft-07: it forbids nothing beside one schema for all items."""
    value = shape.source.get("additionalItems")
    return parse_rest(None if value is False and _item_schema(shape) is not None else value)
