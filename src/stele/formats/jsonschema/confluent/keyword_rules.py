"""Rules for one kind of value: annotations and scalars, then objects and arrays and their unnamed members.

An object or tuple is open, closed, or partially open. `additionalProperties`, `patternProperties` and
`unevaluatedProperties` decide it for objects, `additionalItems` (since 2020-12 `items`) and `unevaluatedItems` for
tuples. The keywords count as they are written: `{}` is a schema for members but `true` is none, and a reference to
`false` does not close the object.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from stele.formats.jsonschema.confluent.schema_diff import InnerPair, LocalChange, SchemaDiff
from stele.formats.jsonschema.confluent.shapes import SchemaShape, ShapeModel
from stele.formats.jsonschema.json_text import Json, is_equal, to_hashable
from stele.formats.jsonschema.patterns import pattern_matches


def compare_annotations(old: SchemaShape, new: SchemaShape) -> Iterator[LocalChange]:
    """Compare ids, titles, descriptions and defaults, whose changes no policy refuses."""
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


class Rest(NamedTuple):
    """The keyword about members that no other keyword names, such as `additionalProperties`.

    permitted  False when no such members are allowed
    schema     the schema of these members; None when all or none are allowed
    """

    permitted: bool
    schema: Json


def parse_rest(value: Json) -> Rest:
    """Return the value of such a keyword as a `Rest`; None stands for an absent keyword."""
    return Rest(permitted=value is not False, schema=value if isinstance(value, dict) else None)


class ContentModel(NamedTuple):
    """The content model of one object or tuple.

    patterns     (pattern, schema) of `patternProperties`
    rest         `additionalProperties` or its counterpart for items
    unevaluated  the value of `unevaluatedProperties` or its counterpart, None when it is absent
    """

    shape: SchemaShape
    patterns: tuple[tuple[str, Json], ...]
    rest: Rest
    unevaluated: Json

    @property
    def is_open(self) -> bool:
        """Whether an unnamed member can have any value."""
        if self.patterns or not self.rest.permitted or self.rest.schema is not None:
            return False
        return self.unevaluated is None or self.shape.model.allows_anything(self.unevaluated)

    def covering_schema(self, name: str) -> SchemaShape | None:
        """Return the schema of an unnamed member; None when there is none."""
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
    """Compare `unevaluatedProperties` or its counterpart. Adding `true` where it was absent counts as narrowing."""
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


def compare_objects(comparison: SchemaDiff, old: SchemaShape, new: SchemaShape) -> Iterator[LocalChange | InnerPair]:
    """Compare two objects; `patternProperties` count for what they cover, `propertyNames` not at all."""
    yield from _compare_required(old, new)
    before, after = _object_content(old), _object_content(new)
    yield from _compare_properties(comparison, before, after)
    yield from _compare_dependencies(old, new)
    yield from compare_rest(before, after, "additionalProperties", "ADDITIONAL_PROPERTIES")
    yield from compare_unevaluated(before, after, "unevaluatedProperties", "UNEVALUATED_PROPERTIES")
    yield from compare_bound(old, new, "maxProperties", "MAX_PROPERTIES")
    yield from compare_bound(old, new, "minProperties", "MIN_PROPERTIES")


def _object_content(shape: SchemaShape) -> ContentModel:
    patterns = tuple(shape.named_schemas("patternProperties").items())
    unevaluated = shape.source.get("unevaluatedProperties") if shape.model.later else None
    return ContentModel(shape, patterns, parse_rest(shape.source.get("additionalProperties")), unevaluated)


def _compare_required(old: SchemaShape, new: SchemaShape) -> Iterator[LocalChange]:
    """Compare what is required; names that are in no `properties` are ignored."""
    before, after = _string_set(old.source.get("required")), _string_set(new.source.get("required"))
    if before == after:
        return
    known = new.named_schemas("properties")
    for name in old.named_schemas("properties"):
        if name not in known or (name in before) == (name in after):
            continue
        if name in before:
            yield LocalChange("REQUIRED_ATTRIBUTE_REMOVED", ("required", name))
        else:
            change = "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED" if _has_default(new, name) else "REQUIRED_ATTRIBUTE_ADDED"
            yield LocalChange(change, ("required", name))


def _compare_properties(
    comparison: SchemaDiff, old: ContentModel, new: ContentModel
) -> Iterator[LocalChange | InnerPair]:
    before, after = old.shape.named_schemas("properties"), new.shape.named_schemas("properties")
    for name in {**before, **after}:
        path = ("properties", name)
        if name not in after:
            yield from _find_removed_member(comparison, old.shape, before[name], new, path, name=name)
        elif name not in before:
            yield from _find_added_property(comparison, old, new.shape, after[name], path)
        else:
            yield InnerPair(old.shape.model.get_shape(before[name]), new.shape.model.get_shape(after[name]), path)


def _find_removed_member(
    comparison: SchemaDiff,
    old: SchemaShape,
    removed: Json,
    content: ContentModel,
    path: tuple[str, ...],
    *,
    name: str = "",
) -> Iterator[LocalChange | InnerPair]:
    """Yield the change for a member that the reader no longer names: only the reader's content model counts.

    name is the name of a property; '' stands for an item of a tuple.
    """
    kind = "PROPERTY" if path[0] == "properties" else "ITEM"
    if content.is_open:
        yield LocalChange(f"{kind}_REMOVED_FROM_OPEN_CONTENT_MODEL", path)
        return
    cover = content.covering_schema(name)
    if cover is not None:
        shape = old.model.get_shape(removed)
        covered = "IS" if comparison.is_compatible(shape, cover) else "NOT"
        yield InnerPair(shape, cover, path)
        yield LocalChange(f"{kind}_REMOVED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)
    elif removed is False:
        yield LocalChange(f"{kind}_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)
    else:
        yield LocalChange(f"{kind}_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)


def _find_added_property(
    comparison: SchemaDiff, content: ContentModel, new: SchemaShape, added: Json, path: tuple[str, str]
) -> Iterator[LocalChange | InnerPair]:
    """Yield the changes for a property that the writer did not name: only the writer's content model counts."""
    required = "OPTIONAL_PROPERTY"
    if path[1] in _string_set(new.source.get("required")):
        required = "REQUIRED_PROPERTY_WITH_DEFAULT" if _has_default(new, path[1]) else "REQUIRED_PROPERTY"
    if content.is_open:
        kind = "PROPERTY_WITH_EMPTY_SCHEMA" if new.model.allows_anything(added) else required
        yield LocalChange(f"{kind}_ADDED_TO_OPEN_CONTENT_MODEL", path)
        return
    cover = content.covering_schema(path[1])
    if cover is not None:
        yield from _compare_with_cover(comparison, cover, new.model.get_shape(added), path, "PROPERTY")
    yield LocalChange(f"{required}_ADDED_TO_UNOPEN_CONTENT_MODEL", path)


def _compare_with_cover(
    comparison: SchemaDiff, cover: SchemaShape, shape: SchemaShape, path: tuple[str, ...], kind: str
) -> Iterator[LocalChange | InnerPair]:
    """Compare an added member with the schema that covered it before."""
    covered = "IS" if comparison.is_compatible(cover, shape) else "NOT"
    yield InnerPair(cover, shape, path)
    yield LocalChange(f"{kind}_ADDED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)


def _compare_dependencies(old: SchemaShape, new: SchemaShape) -> Iterator[LocalChange | InnerPair]:
    """Compare dependencies: first those that name properties, then those that are schemas."""
    before, after = (
        {
            name: required_names
            for name, value in _dependency_map(shape, "dependentRequired").items()
            if (required_names := _string_set(value))
        }
        for shape in (old, new)
    )
    for name in {**before, **after}:
        was, now = before.get(name), after.get(name)
        if was != now:
            yield LocalChange(f"DEPENDENCY_ARRAY_{_set_change(was, now)}", ("dependencies", name))
    schemas, others = (
        {
            name: value
            for name, value in _dependency_map(shape, "dependentSchemas").items()
            if isinstance(value, dict | bool)
        }
        for shape in (old, new)
    )
    for name in {**schemas, **others}:
        path = ("dependencies", name)
        if name in schemas and name in others:
            yield InnerPair(old.model.get_shape(schemas[name]), new.model.get_shape(others[name]), path)
        else:
            yield LocalChange(f"DEPENDENCY_SCHEMA_{'REMOVED' if name in schemas else 'ADDED'}", path)


def _set_change(was: set[str] | None, now: set[str] | None) -> str:
    if was is None or now is None:
        return "ADDED" if was is None else "REMOVED"
    return "EXTENDED" if was < now else "NARROWED" if was > now else "CHANGED"


def _dependency_map(shape: SchemaShape, keyword: str) -> dict[str, Json]:
    """Return the value of a dependency keyword. Up to draft-07 `dependencies` stands for both keywords."""
    return shape.named_schemas(keyword if shape.model.later else "dependencies")


def _string_set(value: Json) -> set[str]:
    return {name for name in value if isinstance(name, str)} if isinstance(value, list) else set()


def _has_default(shape: SchemaShape, name: str) -> bool:
    """Return whether a property has a default. For a reference, it must be beside the `$ref`."""
    schema = shape.named_schemas("properties").get(name)
    return isinstance(schema, dict) and has_default(schema, shape.model)


def compare_arrays(comparison: SchemaDiff, old: SchemaShape, new: SchemaShape) -> Iterator[LocalChange | InnerPair]:
    """Compare two arrays; of `contains` only the bounds count."""
    yield from _compare_item_schemas(old, new)
    before, after = _array_content(old), _array_content(new)
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


def _contains_bound(shape: SchemaShape, keyword: str) -> Json:
    """Return a bound of `contains`, None when it is absent.

    Since 2019-09 `minContains` is 1 if there is `contains` without it.
    """
    if not shape.model.later:
        return shape.source.get(keyword) if shape.whole else None
    if "contains" not in shape.source:
        return None
    return shape.source.get(keyword, 1 if keyword == "minContains" else None)


def _compare_item_schemas(old: SchemaShape, new: SchemaShape) -> Iterator[LocalChange | InnerPair]:
    """Compare the schemas of all items, where there are any."""
    before, after = _item_schema(old), _item_schema(new)
    if before is not None and after is not None:
        yield InnerPair(old.model.get_shape(before), new.model.get_shape(after), ("items",))
    elif before is not None or after is not None:
        yield LocalChange("SCHEMA_ADDED" if before is None else "SCHEMA_REMOVED", ("items",))


def _compare_positions(
    comparison: SchemaDiff, old: ContentModel, new: ContentModel
) -> Iterator[LocalChange | InnerPair]:
    before, after = _tuple_schemas(old.shape), _tuple_schemas(new.shape)
    for index in range(max(len(before), len(after))):
        path = ("items", str(index))
        if index >= len(after):
            yield from _find_removed_member(comparison, old.shape, before[index], new, path)
        elif index >= len(before):
            yield from _find_added_item(comparison, old, new.shape, after[index], path)
        else:
            yield InnerPair(old.shape.model.get_shape(before[index]), new.shape.model.get_shape(after[index]), path)


def _find_added_item(
    comparison: SchemaDiff, content: ContentModel, new: SchemaShape, added: Json, path: tuple[str, ...]
) -> Iterator[LocalChange | InnerPair]:
    """Yield the changes for a position of a tuple that the writer did not have."""
    if content.is_open:
        item = "ITEM_WITH_EMPTY_SCHEMA" if new.model.allows_anything(added) else "ITEM"
        yield LocalChange(f"{item}_ADDED_TO_OPEN_CONTENT_MODEL", path)
        return
    cover = content.covering_schema("")
    if cover is None:
        yield LocalChange("ITEM_ADDED_TO_CLOSED_CONTENT_MODEL", path)
        return
    yield from _compare_with_cover(comparison, cover, new.model.get_shape(added), path, "ITEM")


def _tuple_schemas(shape: SchemaShape) -> list[Json]:
    """Return the schemas of a tuple: `prefixItems`, before 2020-12 a list in `items`."""
    for keyword in ("prefixItems", "items") if shape.model.later else ("items",):
        schemas = shape.source.get(keyword)
        if isinstance(schemas, list):
            return schemas
    return []


def _item_schema(shape: SchemaShape) -> Json:
    """Return `items` as one schema for all items, None when it is not one; since 2019-09 a boolean is not one."""
    schema = shape.source.get("items")
    if shape.model.later:
        return schema if isinstance(schema, dict) and not _tuple_schemas(shape) else None
    return schema if isinstance(schema, dict | bool) else None


def _array_content(shape: SchemaShape) -> ContentModel:
    if not shape.model.later:
        return ContentModel(shape, (), _additional_items(shape), None)
    items = shape.source.get("items")
    if isinstance(items, list):
        items = shape.source.get("additionalItems")
    elif isinstance(items, dict) and not _tuple_schemas(shape):
        items = None
    return ContentModel(shape, (), parse_rest(items), shape.source.get("unevaluatedItems"))


def _additional_items(shape: SchemaShape) -> Rest:
    """Return `additionalItems` up to draft-07. `false` has no effect beside one schema for all items."""
    value = shape.source.get("additionalItems")
    return parse_rest(None if value is False and _item_schema(shape) is not None else value)
