"""The ruleset `karapace`: the changes of a JSON schema that Karapace 6.2 allows.

It compares keyword by keyword as `confluent` does, with some different answers. A schema has exactly one kind. A list
of types counts as `anyOf`; combinations come before `not`, types and `enum`; everything else is an object. `true` does
not read everything: it reads objects. Every property added to an open object is refused, even one with an empty schema.

Faults of Karapace that decide verdicts are kept: `items` and dependencies must not be removed, and required members of
an object count only where it is the schema of a property or where a property is new. Requests on which Karapace fails
(with recursive references, for example) are decided here: recursion counts as compatible until a change contradicts it.

Source: docs/protocols/karapace.md#json-schema-rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from stele.core.findings import Finding
from stele.formats.jsonschema.confluent import maximum_matching
from stele.formats.jsonschema.confluent.keyword_rules import compare_bound, compare_numbers, compare_strings
from stele.formats.jsonschema.confluent.schema_diff import STRICT, InnerPair, LocalChange, SchemaDiff, build_findings
from stele.formats.jsonschema.confluent.shapes import Criterion, SchemaShape, ShapeKind, ShapeModel
from stele.formats.jsonschema.json_text import Json, to_hashable
from stele.formats.jsonschema.parse import ParsedJsonSchema
from stele.formats.jsonschema.patterns import pattern_matches

_ADVICE: Final = {
    "SCHEMA_REMOVED": ("Karapace refuses a schema that goes: what it checked is free now.", "Keep the schema."),
    "DEPENDENCY_ARRAY_REMOVED": (
        "Karapace refuses a dependency that goes, in part or as a whole.",
        "Keep the dependency.",
    ),
    "PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL": (
        "The writer's objects are open: Karapace refuses every property added to them.",
        "Close the object (additionalProperties: false) before adding properties.",
    ),
}
"""Why a change matters and how to fix it, for the types of change that no other ruleset refuses."""
_ALLOWED: Final = STRICT - _ADVICE.keys()
_KINDS: Final = {
    kind.value: kind
    for kind in (
        ShapeKind.STRING,
        ShapeKind.NUMBER,
        ShapeKind.BOOLEAN,
        ShapeKind.NULL,
        ShapeKind.OBJECT,
        ShapeKind.ARRAY,
    )
} | {"integer": ShapeKind.NUMBER}
_CONSTANTS: Final = frozenset({ShapeKind.EMPTY, ShapeKind.FALSE})
"""The schemas `true` and `false`."""
_OBJECTS: Final = frozenset({ShapeKind.OBJECT, ShapeKind.EMPTY})
"""Kinds that are compared as objects: `true` counts as an object without keywords."""

_Steps = Iterator[LocalChange | InnerPair]


def check(reader: ParsedJsonSchema, writer: ParsedJsonSchema) -> list[Finding]:
    """Return why Karapace would not let the reader follow the writer. Raises `TooLarge` past a limit of steps."""
    old, new = (_KarapaceModel(parsed).get_shape(parsed.root) for parsed in (writer, reader))
    changes = SchemaDiff(_compare_pair, _ALLOWED).list_changes(old, new)
    return build_findings(changes, _ALLOWED, reader, writer, _ADVICE)


class _KarapaceModel(ShapeModel):
    """The shapes of a schema as Karapace reads it: never split, and keywords beside a reference are ignored."""

    def _is_reference(self, schema: dict[str, Json]) -> bool:
        return id(schema) in self._links.targets

    def _build_shape(self, schema: dict[str, Json]) -> SchemaShape:
        name = schema.get("type")
        if isinstance(name, list):
            members = tuple(self._build_shape({**schema, "type": each}) for each in name)
            return SchemaShape(self, ShapeKind.COMBINED, schema, criterion=Criterion.ANY, members=members)
        for criterion in Criterion:
            branches = schema.get(criterion.value)
            if isinstance(branches, list) and branches:
                return SchemaShape(self, ShapeKind.COMBINED, schema, criterion=criterion, members=tuple(branches))
        if isinstance(schema.get("not"), dict | bool):
            return SchemaShape(self, ShapeKind.NOT, schema)
        if isinstance(name, str) and name in _KINDS:
            return SchemaShape(self, _KINDS[name], schema, integer=name == "integer")
        kind = ShapeKind.ENUM if isinstance(schema.get("enum"), list) else ShapeKind.OBJECT
        return SchemaShape(self, kind, schema)


def _compare_pair(comparison: SchemaDiff, old: SchemaShape, new: SchemaShape) -> _Steps:
    """Yield the changes between one pair, and the pairs inside it."""
    kinds = {old.kind, new.kind}
    if ShapeKind.COMBINED in kinds:
        yield from _compare_combinations(comparison, old, new)
    elif kinds <= _OBJECTS:
        yield from _compare_objects(comparison, old, new)
    elif len(kinds) > 1:
        if not kinds <= _CONSTANTS:
            yield LocalChange("TYPE_CHANGED")
    else:
        yield from _compare_same_kind(comparison, old, new)


def _compare_same_kind(comparison: SchemaDiff, old: SchemaShape, new: SchemaShape) -> _Steps:
    match new.kind:
        case ShapeKind.STRING:
            yield from compare_strings(old, new)
        case ShapeKind.NUMBER:
            yield from compare_numbers(old, new)
        case ShapeKind.ARRAY:
            yield from _compare_arrays(comparison, old, new)
        case ShapeKind.NOT:
            yield _pair_up(old, old.source["not"], new, new.source["not"], "not")
        case ShapeKind.ENUM:
            before, after = ({to_hashable(value) for value in shape.source["enum"]} for shape in (old, new))
            if not before <= after:
                yield LocalChange("ENUM_ARRAY_NARROWED", ("enum",))
        case _:
            return


def _pair_up(old: SchemaShape, before: Json, new: SchemaShape, after: Json, *path: str) -> InnerPair:
    """Return the pair of two schemas inside a pair, at a path."""
    return InnerPair(old.model.get_shape(before), new.model.get_shape(after), path)


# --- arrays ---------------------------------------------------------------------------------------------------------


def _compare_arrays(comparison: SchemaDiff, old: SchemaShape, new: SchemaShape) -> _Steps:
    before, after = old.source.get("items"), new.source.get("items")
    if isinstance(before, list) != isinstance(after, list):
        yield LocalChange("TYPE_CHANGED", ("items",))
        return
    if isinstance(before, list) and isinstance(after, list):
        yield from _compare_tuples(comparison, old, before, new, after)
    elif before is not None and after is not None:
        yield _pair_up(old, before, new, after, "items")
    elif before is not None or after is not None:
        yield LocalChange("SCHEMA_ADDED" if before is None else "SCHEMA_REMOVED", ("items",))
    yield from compare_bound(old, new, "maxItems", "MAX_ITEMS")
    yield from compare_bound(old, new, "minItems", "MIN_ITEMS")
    if new.source.get("uniqueItems") and not old.source.get("uniqueItems"):
        yield LocalChange("UNIQUE_ITEMS_ADDED", ("uniqueItems",))


def _compare_tuples(
    comparison: SchemaDiff, old: SchemaShape, before: list[Json], new: SchemaShape, after: list[Json]
) -> _Steps:
    """Compare the positions of two tuples.

    A tuple must not grow. It can shrink if further items are unrestricted or the removed ones are readable as objects.
    """
    for index, (was, now) in enumerate(zip(before, after, strict=False)):
        yield _pair_up(old, was, new, now, "items", str(index))
    if new.source.get("additionalItems", True) is not True:
        anything = new.model.get_shape(True)
        for index in range(len(after), len(before)):
            if not comparison.is_compatible(old.model.get_shape(before[index]), anything):
                path = ("items", str(index))
                yield LocalChange("ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)
    if len(after) > len(before):
        yield LocalChange("ITEM_ADDED_TO_OPEN_CONTENT_MODEL", ("items", str(len(before))))
    if new.source.get("additionalItems") is False and old.source.get("additionalItems") is not False:
        yield LocalChange("ADDITIONAL_ITEMS_REMOVED", ("additionalItems",))


# --- objects --------------------------------------------------------------------------------------------------------


def _compare_objects(comparison: SchemaDiff, old: SchemaShape, new: SchemaShape) -> _Steps:
    before, after = old.named_schemas("properties"), new.named_schemas("properties")
    for name in (name for name in after if name in before):
        pair = _pair_up(old, before[name], new, after[name], "properties", name)
        if pair.new.source.get("required") and not pair.old.source.get("required"):
            yield LocalChange("REQUIRED_ATTRIBUTE_ADDED", (*pair.path, "required"))
        yield pair
    removed, added = (
        [name for name in some if name not in others] for some, others in ((before, after), (after, before))
    )
    if removed and not _is_open(new):
        for name in removed:
            yield from _find_removed_property(comparison, old, before[name], new, name)
    else:  # If a closed object loses a property, added ones are not checked.
        for name in added:
            yield from _find_added_property(comparison, old, new, after[name], name)
    yield from _compare_dependencies(old, new)
    yield from compare_bound(old, new, "maxProperties", "MAX_PROPERTIES")
    yield from compare_bound(old, new, "minProperties", "MIN_PROPERTIES")
    rest_before, rest_after = (shape.source.get("additionalProperties") for shape in (old, new))
    if rest_before is None and rest_after is not None:
        yield LocalChange("ADDITIONAL_PROPERTIES_NARROWED", ("additionalProperties",))
    elif rest_before and rest_after:
        yield _pair_up(old, rest_before, new, rest_after, "additionalProperties")


def _is_open(shape: SchemaShape) -> bool:
    """Return whether an object allows unnamed members without a restriction; `{}` for them counts as a restriction."""
    return not shape.named_schemas("patternProperties") and shape.source.get("additionalProperties", True) is True


def _find_cover(shape: SchemaShape, name: str) -> Json:
    """Return the schema of an unnamed member; None when there is none."""
    for pattern, schema in shape.named_schemas("patternProperties").items():
        if pattern_matches(f"^(?:{pattern})", name):
            return schema
    return shape.source.get("additionalProperties")


def _find_removed_property(
    comparison: SchemaDiff, old: SchemaShape, removed: Json, new: SchemaShape, name: str
) -> Iterator[LocalChange]:
    cover, path = _find_cover(new, name), ("properties", name)
    if cover is None:
        yield LocalChange("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)
    elif not comparison.is_compatible(old.model.get_shape(removed), new.model.get_shape(cover)):
        kind = "FROM_CLOSED_CONTENT_MODEL" if cover is False else "NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
        yield LocalChange(f"PROPERTY_REMOVED_{kind}", path)


def _find_added_property(
    comparison: SchemaDiff, old: SchemaShape, new: SchemaShape, added: Json, name: str
) -> Iterator[LocalChange]:
    path = ("properties", name)
    shape = new.model.get_shape(added)
    if _is_open(old):
        kind = "OPTIONAL_PROPERTY" if shape.source else "PROPERTY_WITH_EMPTY_SCHEMA"
        yield LocalChange(f"{kind}_ADDED_TO_OPEN_CONTENT_MODEL", path)
        return
    cover = _find_cover(old, name)
    if cover not in (None, False) and not comparison.is_compatible(old.model.get_shape(cover), shape):
        yield LocalChange("PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)
    required = new.source.get("required")
    if isinstance(required, list) and name in required:
        yield LocalChange("REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", path)


def _compare_dependencies(old: SchemaShape, new: SchemaShape) -> _Steps:
    """Compare the writer's dependencies: none may be removed. Added dependencies are ignored."""
    after = new.named_schemas("dependencies")
    for name, was in old.named_schemas("dependencies").items():
        now = after.get(name)
        if not now or not set(_names(was)) <= set(_names(now)):
            yield LocalChange("DEPENDENCY_ARRAY_REMOVED", ("dependencies", name))
    schemas = new.named_schemas("dependentSchemas")
    for name, schema in old.named_schemas("dependentSchemas").items():
        if name in schemas:
            yield _pair_up(old, schema, new, schemas[name], "dependentSchemas", name)
        else:
            yield LocalChange("SCHEMA_REMOVED", ("dependentSchemas", name))


def _names(dependency: Json) -> list[str]:
    """Return the names in a dependency: names of properties, or the keywords of a schema."""
    return [name for name in dependency if isinstance(name, str)] if isinstance(dependency, list | dict) else []


# --- combinations ---------------------------------------------------------------------------------------------------


def _compare_combinations(comparison: SchemaDiff, old: SchemaShape, new: SchemaShape) -> Iterator[LocalChange]:
    """Compare a pair of which at least one is `allOf`, `anyOf` or `oneOf`.

    A combination of one schema counts as that schema.
    """
    befores, afters = _list_branches(old), _list_branches(new)
    if old.kind is new.kind:
        yield from _compare_branches(comparison, old, befores, new, afters)
        return
    is_sum = new.kind is ShapeKind.COMBINED and new.criterion is not Criterion.ALL
    readable = (len(befores) == 1 and (is_sum or len(afters) == 1)) and any(
        comparison.is_compatible(befores[0], branch) for branch in afters
    )
    if not readable:
        yield LocalChange("TYPE_CHANGED")


def _list_branches(shape: SchemaShape) -> list[SchemaShape]:
    if shape.kind is not ShapeKind.COMBINED:
        return [shape]
    return [shape.get_member(index) for index in range(len(shape.members))]


def _compare_branches(
    comparison: SchemaDiff, old: SchemaShape, befores: list[SchemaShape], new: SchemaShape, afters: list[SchemaShape]
) -> Iterator[LocalChange]:
    if new.criterion not in (Criterion.ANY, old.criterion):
        yield LocalChange("COMBINED_TYPE_CHANGED")
    elif new.criterion is Criterion.ALL and len(befores) < len(afters):
        yield LocalChange("PRODUCT_TYPE_EXTENDED")
    elif new.criterion is not Criterion.ALL and len(befores) > len(afters):
        yield LocalChange("SUM_TYPE_NARROWED")
    else:

        def list_readers(index: int) -> list[int]:
            return [i for i, branch in enumerate(afters) if comparison.is_compatible(befores[index], branch)]

        pairs = maximum_matching(len(befores), len(afters), list_readers, {})
        if len(pairs) < (len(afters) if new.criterion is Criterion.ALL else len(befores)):
            yield LocalChange("COMBINED_TYPE_SUBSCHEMAS_CHANGED")
