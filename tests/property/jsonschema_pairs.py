"""Pairs of JSON Schemas that differ in a few places, and documents, for laws about containment."""

from __future__ import annotations

import json
from functools import partial
from random import Random
from typing import Any

URIS = {
    4: "http://json-schema.org/draft-04/schema#",
    6: "http://json-schema.org/draft-06/schema#",
    7: "http://json-schema.org/draft-07/schema#",
    19: "https://json-schema.org/draft/2019-09/schema",
    20: "https://json-schema.org/draft/2020-12/schema",
}
NAMES = ("a", "b", "c", "ab")
SCALARS = (
    None,
    True,
    False,
    0,
    1,
    2,
    3,
    4,
    6,
    -1,
    1.5,
    0.5,
    10,
    "",
    "a",
    "b",
    "ab",
    "abc",
    "aa",
    "0",
    "A",
    "1999-12-31",
)


def random_document(chance: Random, depth: int = 3) -> Any:
    """Return a JSON value. It has no float that is a whole number, because drafts differ on those."""
    kind = chance.random()
    if depth == 0 or kind < 0.55:
        return chance.choice(SCALARS)
    if kind < 0.75:
        return [random_document(chance, depth - 1) for _ in range(chance.randint(0, 3))]
    return {chance.choice((*NAMES, "zz")): random_document(chance, depth - 1) for _ in range(chance.randint(0, 3))}


class Schemas:
    """Makes schemas of one draft."""

    def __init__(self, chance: Random, draft: int) -> None:
        self._chance = chance
        self._draft = draft

    def make_pair(self) -> tuple[Any, Any]:
        """A schema and a copy of it with three changes."""
        writer = {"definitions": {"d": self.make_schema(2)}, **self._object_schema()}
        reader = self._change_schema(self._change_schema(self._change_schema(writer, 3), 3), 3)
        reader = reader if isinstance(reader, dict) else {"allOf": [reader]} if self._draft > 4 else {}
        return {**writer, "$schema": URIS[self._draft]}, {
            "definitions": {"d": {}},
            **reader,
            "$schema": URIS[self._draft],
        }

    def _object_schema(self) -> dict[str, Any]:
        schema = self.make_schema(3)
        return schema if isinstance(schema, dict) else {}

    def make_schema(self, depth: int) -> Any:
        """A schema, references to `#` and `#/definitions/d` included."""
        chance = self._chance
        if depth == 0 or chance.random() < 0.1:
            plain: list[Any] = [{}, {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}]
            plain += [{"type": ["string", "null"]}, {"$ref": "#/definitions/d"}, {"$ref": "#"}]
            return chance.choice(plain + ([True, False] if self._draft > 4 else []))
        makers = (
            self._string_schema,
            self._number_schema,
            self._make_object_schema,
            self._array_schema,
            self._combined_schema,
            self._listed_schema,
        )
        return chance.choices(makers, (2, 2, 3, 2, 2, 0.5))[0](depth - 1)

    def _some_keywords(self, **keywords: tuple[float, Any]) -> dict[str, Any]:
        """Return some of the keywords, each with its probability; values are made only when needed."""
        return {
            name: make() if callable(make) else make
            for name, (share, make) in keywords.items()
            if self._chance.random() < share
        }

    def _string_schema(self, _depth: int) -> Any:
        pick = self._chance.choice
        return self._some_keywords(
            type=(0.8, lambda: pick(["string", ["string", "integer"]])),
            minLength=(0.4, lambda: pick([0, 1, 2, 3])),
            maxLength=(0.4, lambda: pick([0, 1, 2, 4])),
            pattern=(0.3, lambda: pick(["^a", "b$", "[0-9]+", "^[a-z]*$", "^(a|b)+$"])),
            format=(0.1, "date"),
        )

    def _number_schema(self, _depth: int) -> Any:
        pick = self._chance.choice
        schema = self._some_keywords(
            type=(0.8, lambda: pick(["integer", "number"])),
            minimum=(0.4, lambda: pick([0, 1, 2, -1, 0.5])),
            maximum=(0.4, lambda: pick([0, 1, 2, 5, 10, 3.5])),
            multipleOf=(0.3, lambda: pick([1, 2, 3, 0.5, 4])),
        )
        if self._draft > 4:
            return schema | self._some_keywords(exclusiveMinimum=(0.2, lambda: pick([0, 1])), exclusiveMaximum=(0.2, 5))
        return schema | (self._some_keywords(exclusiveMaximum=(0.4, True)) if "maximum" in schema else {})

    def _make_object_schema(self, depth: int) -> Any:
        chance, inner = self._chance, partial(self.make_schema, depth)
        later = self._draft > 7
        return self._some_keywords(
            type=(0.8, "object"),
            properties=(0.8, lambda: {name: inner() for name in chance.sample(NAMES, chance.randint(0, 3))}),
            required=(0.4, lambda: chance.sample(NAMES, chance.randint(1, 2))),
            additionalProperties=(0.4, lambda: chance.choice([False, True, inner()])),
            patternProperties=(0.2, lambda: {chance.choice(["^a", "b$", "."]): inner()}),
            minProperties=(0.15, lambda: chance.randint(0, 2)),
            maxProperties=(0.15, lambda: chance.randint(0, 3)),
            dependencies=(0.2, lambda: {chance.choice(NAMES): chance.choice([[chance.choice(NAMES)], inner()])}),
            propertyNames=(0.1 * (self._draft > 4), inner),
            dependentRequired=(0.1 * later, {"a": ["b"]}),
            dependentSchemas=(0.1 * later, lambda: {"a": inner()}),
            unevaluatedProperties=(0.15 * later, lambda: chance.choice([False, inner()])),
        )

    def _array_schema(self, depth: int) -> Any:
        chance, inner = self._chance, partial(self.make_schema, depth)

        def several() -> list[Any]:
            return [inner() for _ in range(chance.randint(1, 2))]

        tuples, later = self._draft < 20, self._draft > 7
        return self._some_keywords(
            type=(0.8, "array"),
            items=(0.6, (lambda: chance.choice([inner(), several()])) if tuples else inner),
            additionalItems=(0.3 * tuples, inner if self._draft > 4 else False),
            prefixItems=(0.4 * (not tuples), several),
            minItems=(0.2, lambda: chance.randint(0, 2)),
            maxItems=(0.2, lambda: chance.randint(0, 3)),
            uniqueItems=(0.2, True),
            contains=(0.2 * (self._draft > 4), inner),
            minContains=(0.2 * later, lambda: chance.randint(0, 2)),
            maxContains=(0.2 * later, lambda: chance.randint(1, 2)),
            unevaluatedItems=(0.15 * later, lambda: chance.choice([False, inner()])),
        )

    def _combined_schema(self, depth: int) -> Any:
        chance = self._chance
        keyword = chance.choice(["anyOf", "oneOf", "allOf", "not", *(["if"] if self._draft > 6 else [])])
        schema: dict[str, Any]
        if keyword == "not":
            schema = {"not": self.make_schema(depth)}
        elif keyword == "if":
            inner = partial(self.make_schema, depth)
            schema = {"if": inner(), **self._some_keywords(then=(0.8, inner), **{"else": (0.6, inner)})}
        else:
            schema = {keyword: [self.make_schema(depth) for _ in range(chance.randint(1, 3))]}
        extra = self.make_schema(depth) if chance.random() < 0.4 else {}
        return {**extra, **schema} if isinstance(extra, dict) and "$ref" not in extra else schema

    def _listed_schema(self, _depth: int) -> Any:
        values = self._chance.sample(SCALARS, self._chance.randint(1, 3))
        return {"enum": values} if self._draft == 4 or self._chance.random() < 0.5 else {"const": values[0]}

    def _change_schema(self, schema: Any, depth: int) -> Any:
        """A copy with one thing changed somewhere; one change in seven replaces a whole schema."""
        chance = self._chance
        names = [name for name in schema if name[0] != "$"] if isinstance(schema, dict) else []
        if not names or chance.random() < 0.15:
            return self.make_schema(max(depth, 1))
        copy = json.loads(json.dumps(schema))
        name = chance.choice(names)
        value = copy[name]
        if chance.random() < 0.3:
            del copy[name]
        elif name in ("properties", "patternProperties", "definitions") and value:
            place = chance.choice(list(value))
            value[place] = self._change_schema(value[place], depth - 1)
        elif name in ("anyOf", "oneOf", "allOf"):
            place = chance.randrange(len(value))
            value[place] = self._change_schema(value[place], depth - 1)
        elif isinstance(value, dict) and name in ("items", "not", "additionalProperties", "contains", "if", "then"):
            copy[name] = self._change_schema(value, depth - 1)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            copy[name] = max(value + chance.choice([-1, 1]), int(name == "multipleOf"))
        return copy
