"""Rules for objects: properties, required, dependencies, sizes, content model."""

from __future__ import annotations

from collections.abc import Iterator

from stele.formats.jsonschema.confluent.content import Members, compare_rest, rest
from stele.formats.jsonschema.confluent.engine import Comparison, Found, Inner
from stele.formats.jsonschema.confluent.scalars import bound
from stele.formats.jsonschema.shapes import Kind, Shape
from stele.formats.jsonschema.text import Json


def objects(comparison: Comparison, old: Shape, new: Shape) -> Iterator[Found | Inner]:
    """All that two objects can differ in; `patternProperties` count for what they cover, `propertyNames` not at all."""
    yield from _required(old, new)
    yield from _properties(comparison, old, new)
    yield from _dependencies(old, new)
    before, after = _members(old), _members(new)
    for index, (keyword, stem) in enumerate(_RESTS):
        yield from compare_rest(before.rests[index], after.rests[index], keyword, stem)
    yield from bound(old, new, "maxProperties", "MAX_PROPERTIES")
    yield from bound(old, new, "minProperties", "MIN_PROPERTIES")


_RESTS = (("additionalProperties", "ADDITIONAL_PROPERTIES"), ("unevaluatedProperties", "UNEVALUATED_PROPERTIES"))


def _members(shape: Shape) -> Members:
    patterns = tuple(shape.named("patternProperties").items())
    return Members(shape, patterns, tuple(rest(shape, shape.source.get(keyword)) for keyword, _ in _RESTS))


def _required(old: Shape, new: Shape) -> Iterator[Found]:
    """Properties both know that became required or free; names that are in no `properties` are not looked at."""
    before, after = _names(old.source.get("required")), _names(new.source.get("required"))
    known = new.named("properties")
    for name in old.named("properties"):
        if name not in known or (name in before) == (name in after):
            continue
        if name in before:
            yield Found("REQUIRED_ATTRIBUTE_REMOVED", ("required", name))
        else:
            change = "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED" if _has_default(new, name) else "REQUIRED_ATTRIBUTE_ADDED"
            yield Found(change, ("required", name))


def _properties(comparison: Comparison, old: Shape, new: Shape) -> Iterator[Found | Inner]:
    before, after = old.named("properties"), new.named("properties")
    for name in {**before, **after}:
        path = ("properties", name)
        if name not in after:
            yield Found(_removed(comparison, old.model.shape(before[name]), _members(new), name), path)
        elif name not in before:
            for change in _added(comparison, _members(old), new, name):
                yield Found(change, path)
        else:
            yield Inner(old.model.shape(before[name]), new.model.shape(after[name]), path)


def _removed(comparison: Comparison, gone: Shape, content: Members, name: str) -> str:
    """Only the content model of the reader counts: what does it make of a member it no longer names?"""
    if content.open:
        return "PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL"
    cover = content.covering(name)
    if cover is not None:
        covered = "IS" if comparison.compatible(gone, cover) else "NOT"
        return f"PROPERTY_REMOVED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
    if gone.kind is Kind.FALSE:
        return "PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL"
    return "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"


def _added(comparison: Comparison, content: Members, new: Shape, name: str) -> Iterator[str]:
    """Only the content model of the writer counts: what may it have put there already?"""
    added = new.model.shape(new.named("properties")[name])
    required = "OPTIONAL_PROPERTY"
    if name in _names(new.source.get("required")):
        required = "REQUIRED_PROPERTY_WITH_DEFAULT" if _has_default(new, name) else "REQUIRED_PROPERTY"
    if content.open:
        if added.kind is Kind.EMPTY and required != "REQUIRED_PROPERTY":
            yield "PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL"
        else:
            yield f"{required}_ADDED_TO_OPEN_CONTENT_MODEL"
        return
    cover = content.covering(name)
    if cover is not None:
        covered = "IS" if comparison.compatible(cover, added) else "NOT"
        yield f"PROPERTY_ADDED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
    yield f"{required}_ADDED_TO_UNOPEN_CONTENT_MODEL"


def _dependencies(old: Shape, new: Shape) -> Iterator[Found | Inner]:
    before, after = _dependency_map(old), _dependency_map(new)
    for name in {**before, **after}:
        yield from _dependency(old, new, before.get(name), after.get(name), ("dependencies", name))


def _dependency(old: Shape, new: Shape, before: Json, after: Json, path: tuple[str, ...]) -> Iterator[Found | Inner]:
    """One dependency: a list of names, a schema, or (on both sides apart) one and then the other."""
    names_before, names_after = _name_set(before), _name_set(after)
    if names_before is not None and names_after is not None:
        if names_before != names_after:
            change = (
                "EXTENDED" if names_before < names_after else "NARROWED" if names_before > names_after else "CHANGED"
            )
            yield Found(f"DEPENDENCY_ARRAY_{change}", path)
        return
    if names_before is not None or names_after is not None:
        yield Found("DEPENDENCY_ARRAY_REMOVED" if names_before is not None else "DEPENDENCY_ARRAY_ADDED", path)
    schema_before, schema_after = _schema(before), _schema(after)
    if schema_before is not None and schema_after is not None:
        yield Inner(old.model.shape(schema_before), new.model.shape(schema_after), path)
    elif schema_before is not None or schema_after is not None:
        yield Found("DEPENDENCY_SCHEMA_REMOVED" if schema_before is not None else "DEPENDENCY_SCHEMA_ADDED", path)


def _dependency_map(shape: Shape) -> dict[str, Json]:
    """`dependencies`, and its two halves since 2019-09."""
    return {**shape.named("dependentSchemas"), **shape.named("dependentRequired"), **shape.named("dependencies")}


def _name_set(value: Json) -> set[str] | None:
    return _names(value) if isinstance(value, list) else None


def _schema(value: Json) -> Json:
    return value if isinstance(value, dict | bool) else None


def _names(value: Json) -> set[str]:
    return {name for name in value if isinstance(name, str)} if isinstance(value, list) else set()


def _has_default(shape: Shape, name: str) -> bool:
    """Whether a property has a default, beside its reference or at the end of it."""
    schema = shape.named("properties").get(name)
    return isinstance(schema, dict) and ("default" in schema or "default" in shape.model.shape(schema).source)
