"""Rules for objects: properties, required, dependencies, sizes, content model."""

from __future__ import annotations

from collections.abc import Iterator

from stele.formats.jsonschema.confluent.content import Members, compare_rest, compare_unevaluated, rest
from stele.formats.jsonschema.confluent.engine import Comparison, Found, Inner
from stele.formats.jsonschema.confluent.scalars import bound, has_default
from stele.formats.jsonschema.shapes import Shape
from stele.formats.jsonschema.text import Json


def objects(comparison: Comparison, old: Shape, new: Shape) -> Iterator[Found | Inner]:
    """All that two objects can differ in; `patternProperties` count for what they cover, `propertyNames` not at all."""
    yield from _required(old, new)
    before, after = _members(old), _members(new)
    yield from _properties(comparison, before, after)
    yield from _dependencies(old, new)
    yield from compare_rest(before, after, "additionalProperties", "ADDITIONAL_PROPERTIES")
    yield from compare_unevaluated(before, after, "unevaluatedProperties", "UNEVALUATED_PROPERTIES")
    yield from bound(old, new, "maxProperties", "MAX_PROPERTIES")
    yield from bound(old, new, "minProperties", "MIN_PROPERTIES")


def _members(shape: Shape) -> Members:
    patterns = tuple(shape.named("patternProperties").items())
    unevaluated = shape.source.get("unevaluatedProperties") if shape.model.later else None
    return Members(shape, patterns, rest(shape.source.get("additionalProperties")), unevaluated)


def _required(old: Shape, new: Shape) -> Iterator[Found]:
    """Properties both know that became required or free; names that are in no `properties` are not looked at."""
    before, after = _names(old.source.get("required")), _names(new.source.get("required"))
    if before == after:
        return
    known = new.named("properties")
    for name in old.named("properties"):
        if name not in known or (name in before) == (name in after):
            continue
        if name in before:
            yield Found("REQUIRED_ATTRIBUTE_REMOVED", ("required", name))
        else:
            change = "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED" if _has_default(new, name) else "REQUIRED_ATTRIBUTE_ADDED"
            yield Found(change, ("required", name))


def _properties(comparison: Comparison, old: Members, new: Members) -> Iterator[Found | Inner]:
    before, after = old.shape.named("properties"), new.shape.named("properties")
    for name in {**before, **after}:
        path = ("properties", name)
        if name not in after:
            yield from _removed(comparison, old.shape, before[name], new, path)
        elif name not in before:
            yield from _added(comparison, old, new.shape, after[name], path)
        else:
            yield Inner(old.shape.model.shape(before[name]), new.shape.model.shape(after[name]), path)


def _removed(
    comparison: Comparison, old: Shape, gone: Json, content: Members, path: tuple[str, str]
) -> Iterator[Found | Inner]:
    """Only the content model of the reader counts: what does it make of a member it no longer names?"""
    if content.open:
        yield Found("PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL", path)
        return
    cover = content.covering(path[1])
    if cover is not None:
        shape = old.model.shape(gone)
        covered = "IS" if comparison.compatible(shape, cover) else "NOT"
        yield Inner(shape, cover, path)
        yield Found(f"PROPERTY_REMOVED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)
    elif gone is False:
        yield Found("PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)
    else:
        yield Found("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)


def _added(
    comparison: Comparison, content: Members, new: Shape, added: Json, path: tuple[str, str]
) -> Iterator[Found | Inner]:
    """Only the content model of the writer counts: what may it have put there already?"""
    required = "OPTIONAL_PROPERTY"
    if path[1] in _names(new.source.get("required")):
        required = "REQUIRED_PROPERTY_WITH_DEFAULT" if _has_default(new, path[1]) else "REQUIRED_PROPERTY"
    if content.open:
        kind = "PROPERTY_WITH_EMPTY_SCHEMA" if new.model.unbound(added) else required
        yield Found(f"{kind}_ADDED_TO_OPEN_CONTENT_MODEL", path)
        return
    cover = content.covering(path[1])
    if cover is not None:
        shape = new.model.shape(added)
        covered = "IS" if comparison.compatible(cover, shape) else "NOT"
        yield Inner(cover, shape, path)
        yield Found(f"PROPERTY_ADDED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)
    yield Found(f"{required}_ADDED_TO_UNOPEN_CONTENT_MODEL", path)


def _dependencies(old: Shape, new: Shape) -> Iterator[Found | Inner]:
    """First what a property brings with it as names, then what it brings as schemas."""
    before, after = (
        {name: found for name, value in _dependency_map(shape, "dependentRequired").items() if (found := _names(value))}
        for shape in (old, new)
    )
    for name in {**before, **after}:
        was, now = before.get(name), after.get(name)
        if was != now:
            yield Found(f"DEPENDENCY_ARRAY_{_step(was, now)}", ("dependencies", name))
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
            yield Inner(old.model.shape(schemas[name]), new.model.shape(others[name]), path)
        else:
            yield Found(f"DEPENDENCY_SCHEMA_{'REMOVED' if name in schemas else 'ADDED'}", path)


def _step(was: set[str] | None, now: set[str] | None) -> str:
    if was is None or now is None:
        return "ADDED" if was is None else "REMOVED"
    return "EXTENDED" if was < now else "NARROWED" if was > now else "CHANGED"


def _dependency_map(shape: Shape, keyword: str) -> dict[str, Json]:
    """One half of what was `dependencies` up to draft-07."""
    return shape.named(keyword if shape.model.later else "dependencies")


def _names(value: Json) -> set[str]:
    return {name for name in value if isinstance(name, str)} if isinstance(value, list) else set()


def _has_default(shape: Shape, name: str) -> bool:
    """Whether a property has a default, written beside its reference if it is one."""
    schema = shape.named("properties").get(name)
    return isinstance(schema, dict) and has_default(schema, shape.model)
