"""The structural view of a schema that is compared: a schema has one kind, and is split if its keywords are of several.

A schema with keywords of several kinds is the product (`allOf`) of one part for each. A list of types is the sum
(`anyOf`) of one part for each. This is the object model of the validator that the Confluent registry uses
(org.everit.json.schema, Apache-2.0), and its rules are defined on that model. Up to draft-07 that validator reads the
text itself. Schemas of later drafts are read by another one (json-sKema, MIT) and converted to the same model, with
differences: parts are in the order of the text, and branches that are products of parts are replaced by these parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple, TypeAlias

from stele.formats.jsonschema.drafts import Draft
from stele.formats.jsonschema.json_text import Json
from stele.formats.jsonschema.parse import ParsedJsonSchema
from stele.formats.jsonschema.resolve import REF_KEYWORDS


class ShapeKind(Enum):
    """The kind of a shape."""

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
    """How many members of a combination must match."""

    ALL = "allOf"
    ANY = "anyOf"
    ONE = "oneOf"


class ReferencePart(NamedTuple):
    """The part of a schema that is a reference with keywords beside it."""

    target: Json


class SchemaShape:
    """One schema, or one part of one. Compared by identity: a model makes each shape once.

    model      the document it belongs to
    source     the keywords (of the whole schema, also for a part)
    whole      False for the parts of a split schema: titles and defaults belong to the whole
    split      True for the product of the parts of one schema, which is not an `allOf` in the text
    criterion  for `ShapeKind.COMBINED`
    members    for `ShapeKind.COMBINED`
    integer    for `ShapeKind.NUMBER`
    """

    __slots__ = ("_members", "_ready", "criterion", "integer", "kind", "model", "source", "split", "whole")

    def __init__(
        self,
        model: ShapeModel,
        kind: ShapeKind,
        source: dict[str, Json],
        *,
        criterion: Criterion = Criterion.ALL,
        members: tuple[Member, ...] = (),
        integer: bool = False,
    ) -> None:
        self.model = model
        self.kind = kind
        self.source = source
        self.whole = False
        self.split = False
        self.criterion = criterion
        self._members = members
        self._ready = not members
        self.integer = integer

    def __repr__(self) -> str:
        return f"Shape({self.kind.value})"

    @property
    def members(self) -> tuple[Member, ...]:
        """The members of a combination, combinations first. Computed on first access, so that nothing recurses."""
        if not self._ready:
            self._members = self.model.arrange_members(self._members)
            self._ready = True
        return self._members

    def get_member(self, index: int) -> SchemaShape:
        """Return one member of a combination."""
        return self.model.get_shape(self.members[index])

    def named_schemas(self, keyword: str) -> dict[str, Json]:
        """Return a keyword that maps names to schemas; empty when it is absent or no object."""
        value = self.source.get(keyword)
        return value if isinstance(value, dict) else {}


Member: TypeAlias = SchemaShape | ReferencePart | Json
"""A member of a combination: a part, or a schema as written."""

_CRITERIA = tuple((criterion.value, criterion) for criterion in Criterion)
_BY_TYPE = {
    "string": ShapeKind.STRING,
    "number": ShapeKind.NUMBER,
    "integer": ShapeKind.NUMBER,
    "boolean": ShapeKind.BOOLEAN,
    "null": ShapeKind.NULL,
    "array": ShapeKind.ARRAY,
    "object": ShapeKind.OBJECT,
}

_Words: TypeAlias = dict[ShapeKind, frozenset[str]]


def _keywords_by_kind(draft: Draft) -> _Words:
    """Return the keywords of a draft that are about one kind of value, in the order in which kinds are looked for."""
    array = {"items", "additionalItems", "minItems", "maxItems", "uniqueItems"}
    members = {"properties", "required", "minProperties", "maxProperties", "patternProperties", "additionalProperties"}
    string = {"minLength", "maxLength", "pattern"}
    if draft is not Draft.DRAFT4:
        array.add("contains")
        members.add("propertyNames")
    if draft.ref_hides_siblings:
        members.add("dependencies")
        string.add("format")
    else:
        array |= {"prefixItems", "unevaluatedItems"}
        members |= {"dependentRequired", "dependentSchemas", "unevaluatedProperties"}
    number = {"minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"}
    kinds = (
        (ShapeKind.ARRAY, array),
        (ShapeKind.OBJECT, members),
        (ShapeKind.NUMBER, number),
        (ShapeKind.STRING, string),
    )
    return {kind: frozenset(words) for kind, words in kinds}


_WORDS = {draft: _keywords_by_kind(draft) for draft in Draft}
_CONDITIONAL = {
    Draft.DRAFT7: frozenset(("if", "then", "else")),
    Draft.DRAFT2019: frozenset(("if",)),
    Draft.DRAFT2020: frozenset(("if",)),
}
_LAST = ("properties", "patternProperties", "unevaluatedItems", "unevaluatedProperties")
"""Keywords that the validator of the later drafts processes after all others."""


class ShapeModel:
    """The shapes of one parsed schema, made on demand and kept.

    later  True since draft 2019-09
    """

    def __init__(self, parsed: ParsedJsonSchema) -> None:
        self._links = parsed.links
        self._draft = parsed.draft
        self._words = _WORDS[parsed.draft]
        self._conditional = _CONDITIONAL.get(parsed.draft, frozenset())
        self._shapes: dict[int, SchemaShape] = {}
        self._nothing = SchemaShape(self, ShapeKind.FALSE, {})
        self._anything = SchemaShape(self, ShapeKind.EMPTY, {})
        self.later = not parsed.draft.ref_hides_siblings
        self.id_keyword = parsed.draft.id_keyword

    def get_shape(self, schema: Member) -> SchemaShape:
        """Return the shape of a schema, references followed."""
        if isinstance(schema, SchemaShape):
            return schema
        if isinstance(schema, ReferencePart):
            schema = schema.target
        if not isinstance(schema, dict):
            return self._nothing if schema is False else self._anything
        known = self._shapes.get(id(schema))
        if known is None:
            target = self._follow_references(schema)
            known = self._shapes.get(id(target)) if isinstance(target, dict) else self.get_shape(target)
            if known is None:
                known = self._shapes[id(target)] = self._build_shape(target)
            self._shapes[id(schema)] = known
        return known

    def allows_anything(self, schema: Json) -> bool:
        """Return whether a schema as written allows every value. A reference does not count."""
        return schema is True or (
            isinstance(schema, dict)
            and not self._is_reference(schema)
            and self.get_shape(schema).kind is ShapeKind.EMPTY
        )

    def arrange_members(self, members: tuple[Member, ...]) -> tuple[Member, ...]:
        """Return the members of a combination, combinations first. Split members are replaced by their parts."""
        flat_members: list[Member] = []
        for member in members:
            if (
                self.later
                and isinstance(member, dict)
                and not self._is_reference(member)
                and self.get_shape(member).split
            ):
                flat_members += self.get_shape(member).members
            else:
                flat_members.append(member)
        return tuple(sorted(flat_members, key=lambda member: not self._is_combination(member)))

    def _is_combination(self, member: Member) -> bool:
        """Return whether a member is itself a combination. The target of a reference does not count."""
        if isinstance(member, SchemaShape):
            return member.kind is ShapeKind.COMBINED
        return (
            isinstance(member, dict)
            and not self._is_reference(member)
            and self.get_shape(member).kind is ShapeKind.COMBINED
        )

    def _is_reference(self, schema: dict[str, Json]) -> bool:
        """Return whether a schema is a reference and nothing else."""
        return id(schema) in self._links.targets and (not self.later or next(self._own_parts(schema), None) is None)

    def _follow_references(self, schema: Json) -> Json:
        """Follow references without other keywords. A circular chain constrains nothing (True)."""
        seen: set[int] = set()
        while isinstance(schema, dict) and id(schema) in self._links.targets:
            if id(schema) in seen:
                return True
            seen.add(id(schema))
            if not self._is_reference(schema):
                break
            schema = self._links.targets[id(schema)]
        return schema

    def _build_shape(self, schema: dict[str, Json]) -> SchemaShape:
        parts: list[SchemaShape | ReferencePart] = list(self._own_parts(schema))
        if id(schema) in self._links.targets and self.later:
            parts.insert(0, ReferencePart(self._links.targets[id(schema)]))
        if not parts:
            shape = SchemaShape(self, ShapeKind.EMPTY, schema)
        elif len(parts) == 1 and isinstance(parts[0], SchemaShape):
            shape = parts[0]
        else:
            if self.later:
                parts.sort(key=_Order(schema, self._words))
            shape = SchemaShape(self, ShapeKind.COMBINED, schema, members=tuple(parts))
            shape.split = True
        shape.whole = True
        return shape

    def _own_parts(self, schema: dict[str, Json]) -> Iterator[SchemaShape]:
        """Yield one part for each kind of keyword, without references."""
        if isinstance(schema.get("enum"), list):
            yield SchemaShape(self, ShapeKind.ENUM, schema)
        for keyword, criterion in _CRITERIA:
            members = schema.get(keyword)
            if isinstance(members, list) and members:
                yield SchemaShape(self, ShapeKind.COMBINED, schema, criterion=criterion, members=tuple(members))
        if isinstance(schema.get("not"), dict | bool):
            yield SchemaShape(self, ShapeKind.NOT, schema)
        if "const" in schema and self._draft is not Draft.DRAFT4:
            yield SchemaShape(self, ShapeKind.CONST, schema)
        yield from self._typed_parts(schema)
        if not self._conditional.isdisjoint(schema):
            yield SchemaShape(self, ShapeKind.CONDITIONAL, schema)

    def _typed_parts(self, schema: dict[str, Json]) -> Iterator[SchemaShape]:
        """Yield the part for `type`, and one for each kind that it does not name but other keywords apply to."""
        names = schema.get("type")
        listed = names if isinstance(names, list) else [names]
        parts = [
            SchemaShape(self, _BY_TYPE[name], schema, integer=name == "integer")
            for name in listed
            if isinstance(name, str) and name in _BY_TYPE
        ]
        if isinstance(names, list) and parts:
            yield SchemaShape(self, ShapeKind.COMBINED, schema, criterion=Criterion.ANY, members=tuple(parts))
        else:
            yield from parts
        kinds = [part.kind for part in parts]
        for kind, words in self._words.items():
            if kind not in kinds and not words.isdisjoint(schema):
                yield SchemaShape(self, kind, schema)


class _Order:
    """Sort key of a part: the position in the text of the schema where its first keyword is."""

    def __init__(self, schema: dict[str, Json], words: _Words) -> None:
        late = {word: len(schema) + place for place, word in enumerate(_LAST)}
        self._places = {word: late.get(word, place) for place, word in enumerate(schema)}
        self._words = words

    def __call__(self, part: SchemaShape | ReferencePart) -> int:
        return min((self._places[word] for word in self._part_keywords(part) if word in self._places), default=0)

    def _part_keywords(self, part: SchemaShape | ReferencePart) -> Iterable[str]:
        """Return the keywords that a part can consist of."""
        if isinstance(part, ReferencePart):
            return REF_KEYWORDS
        if part.kind is ShapeKind.COMBINED and part.criterion.value in part.source:
            return (part.criterion.value,)
        if part.kind in (ShapeKind.ENUM, ShapeKind.CONST, ShapeKind.NOT):
            return (part.kind.value,)
        if part.kind is ShapeKind.CONDITIONAL:
            return ("if",)
        words = self._words.get(part.kind, frozenset())
        name = part.source.get("type")
        named = isinstance(name, list) or (isinstance(name, str) and _BY_TYPE.get(name) is part.kind)
        return words | {"type"} if named else words
