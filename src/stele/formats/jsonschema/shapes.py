"""The structural view of a schema that comparison works on: one kind, and parts where several keywords say something.

A schema with keywords of several kinds is the product (`allOf`) of one part for each, a list of types is the sum
(`anyOf`) of one part for each. This is the object model of the validator the Confluent registry is built on
(org.everit.json.schema, Apache-2.0), and so the level at which its rules speak.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from stele.formats.jsonschema.parsed import ParsedJsonSchema
from stele.formats.jsonschema.text import Json


class Kind(Enum):
    """What a shape is about."""

    EMPTY = "anything"
    FALSE = "nothing"
    STRING = "string"
    NUMBER = "number"
    BOOLEAN = "boolean"
    NULL = "null"
    OBJECT = "object"
    ARRAY = "array"
    ENUM = "enum"
    CONST = "const"
    NOT = "not"
    CONDITIONAL = "if/then/else"
    COMBINED = "combination"


class Criterion(Enum):
    """How the members of a combination add up."""

    ALL = "allOf"
    ANY = "anyOf"
    ONE = "oneOf"


class Shape:
    """One schema, or one part of one. Compared by identity: a model makes each shape once.

    model     the document it belongs to
    source    the keywords (of the whole schema, also for a part)
    whole     False for the parts a schema was split into: titles and defaults belong to the whole
    criterion and members: for `Kind.COMBINED`
    integer   for `Kind.NUMBER`
    """

    __slots__ = ("criterion", "integer", "kind", "members", "model", "source", "whole")

    def __init__(
        self,
        model: Model,
        kind: Kind,
        source: dict[str, Json],
        *,
        criterion: Criterion = Criterion.ALL,
        members: tuple[Shape | Json, ...] = (),
        integer: bool = False,
    ) -> None:
        self.model = model
        self.kind = kind
        self.source = source
        self.whole = False
        self.criterion = criterion
        self.members = members
        self.integer = integer

    def __repr__(self) -> str:
        return f"Shape({self.kind.value})"

    def member(self, index: int) -> Shape:
        """One member of a combination."""
        return self.model.shape(self.members[index])

    def named(self, keyword: str) -> dict[str, Json]:
        """A keyword that maps names to schemas; empty when it is absent or no object."""
        value = self.source.get(keyword)
        return value if isinstance(value, dict) else {}


_BY_TYPE = {
    "string": Kind.STRING,
    "number": Kind.NUMBER,
    "integer": Kind.NUMBER,
    "boolean": Kind.BOOLEAN,
    "null": Kind.NULL,
    "array": Kind.ARRAY,
    "object": Kind.OBJECT,
}
_SNIFFED = {
    Kind.ARRAY: frozenset(
        [
            "items",
            "prefixItems",
            "additionalItems",
            "minItems",
            "maxItems",
            "uniqueItems",
            "contains",
            "unevaluatedItems",
        ]
    ),
    Kind.OBJECT: frozenset(
        [
            "properties",
            "required",
            "minProperties",
            "maxProperties",
            "dependencies",
            "dependentRequired",
            "dependentSchemas",
            "patternProperties",
            "additionalProperties",
            "propertyNames",
            "unevaluatedProperties",
        ]
    ),
    Kind.NUMBER: frozenset(["minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"]),
    Kind.STRING: frozenset(["minLength", "maxLength", "pattern", "format"]),
}
_CONDITIONAL = frozenset(("if", "then", "else"))


class Model:
    """The shapes of one parsed schema, made on demand and kept."""

    def __init__(self, parsed: ParsedJsonSchema) -> None:
        self._links = parsed.links
        self._hides_siblings = parsed.draft.ref_hides_siblings
        self._shapes: dict[int, Shape] = {}
        self._nothing = Shape(self, Kind.FALSE, {})
        self._anything = Shape(self, Kind.EMPTY, {})

    def shape(self, schema: Shape | Json) -> Shape:
        """The shape of a schema, references followed."""
        if isinstance(schema, Shape):
            return schema
        if not isinstance(schema, dict):
            return self._nothing if schema is False else self._anything
        known = self._shapes.get(id(schema))
        if known is None:
            target = self._deref(schema)
            known = self._shapes.get(id(target)) if isinstance(target, dict) else self.shape(target)
            if known is None:
                known = self._shapes[id(target)] = self._build(target)
            self._shapes[id(schema)] = known
        return known

    def _deref(self, schema: Json) -> Json:
        """Follow references that say all there is to say; a chain that bites its tail constrains nothing."""
        seen: set[int] = set()
        while isinstance(schema, dict) and id(schema) in self._links.targets:
            if id(schema) in seen:
                return True
            seen.add(id(schema))
            if not self._hides_siblings and next(self._own_parts(schema), None) is not None:
                break
            schema = self._links.targets[id(schema)]
        return schema

    def _build(self, schema: dict[str, Json]) -> Shape:
        parts: list[Shape | Json] = list(self._own_parts(schema))
        if id(schema) in self._links.targets and not self._hides_siblings:
            parts.insert(0, self._links.targets[id(schema)])
        if not parts:
            shape = Shape(self, Kind.EMPTY, schema)
        elif len(parts) == 1 and isinstance(parts[0], Shape):
            shape = parts[0]
        else:
            shape = Shape(self, Kind.COMBINED, schema, members=tuple(parts))
        shape.whole = True
        return shape

    def _own_parts(self, schema: dict[str, Json]) -> Iterator[Shape]:
        """One part for each kind of keyword, references aside."""
        if isinstance(schema.get("enum"), list):
            yield Shape(self, Kind.ENUM, schema)
        for criterion in Criterion:
            members = schema.get(criterion.value)
            if isinstance(members, list) and members:
                yield Shape(self, Kind.COMBINED, schema, criterion=criterion, members=tuple(members))
        if isinstance(schema.get("not"), dict | bool):
            yield Shape(self, Kind.NOT, schema)
        if "const" in schema:
            yield Shape(self, Kind.CONST, schema)
        yield from self._typed(schema)
        if not _CONDITIONAL.isdisjoint(schema):
            yield Shape(self, Kind.CONDITIONAL, schema)

    def _typed(self, schema: dict[str, Json]) -> Iterator[Shape]:
        """The part that `type` asks for, or the parts the keywords hint at where there is no `type`."""
        names = schema.get("type")
        if isinstance(names, list):
            members = tuple(self._of_type(name, schema) for name in names if name in _BY_TYPE)
            if members:
                yield Shape(self, Kind.COMBINED, schema, criterion=Criterion.ANY, members=members)
        elif isinstance(names, str):
            if names in _BY_TYPE:
                yield self._of_type(names, schema)
        else:
            for kind, keywords in _SNIFFED.items():
                if not keywords.isdisjoint(schema):
                    yield Shape(self, kind, schema)

    def _of_type(self, name: str, schema: dict[str, Json]) -> Shape:
        return Shape(self, _BY_TYPE[name], schema, integer=name == "integer")
