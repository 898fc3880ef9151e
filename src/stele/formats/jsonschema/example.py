"""Guessing small data that fit a schema. Guesses only: the codec validates before it shows one."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from stele.formats.jsonschema.parsed import ParsedJsonSchema
from stele.formats.jsonschema.text import Json, to_builtin

MAX_DEPTH = 12
"""Levels of nesting a guess goes down."""

MAX_NODES = 2_000
"""Values one guess may hold."""

_WORDS = (
    *("example", "a", "A", "0", "1", "abc", "ABC", "123", "1234", "12345", "a1", "A1", "a-b", "a_b", "a.b", "a b"),
    *("2024-01-31", "12:30:00Z", "2024-01-31T12:30:00Z", "user@example.com", "https://example.com/", "example.com"),
    *(
        "192.0.2.1",
        "2001:db8::1",
        "123e4567-e89b-12d3-a456-426614174000",
        "+15550100",
        "+1 555 0100",
        "#00ff00",
        "1.0.0",
    ),
)
_BY_FORMAT = {
    "date": "2024-01-31",
    "time": "12:30:00Z",
    "date-time": "2024-01-31T12:30:00Z",
    "email": "user@example.com",
    "uri": "https://example.com/",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
}


def make_candidates(parsed: ParsedJsonSchema) -> Iterator[Any]:
    """Data that may fit, best first: the author's own examples, guesses with all and with required members only."""
    root = parsed.root
    if isinstance(root, dict):
        own = root.get("examples")
        yield from (to_builtin(value) for value in (own if isinstance(own, list) else []))
        yield from (to_builtin(root[keyword]) for keyword in ("default",) if keyword in root)
    for everything in (True, False):
        for choice in range(4):
            yield _ExampleMaker(parsed, everything=everything, choice=choice).make_value(root, 0)
    yield from ({}, [], None, True, 0, 1, *_WORDS)


class _ExampleMaker:
    """One way to fill a schema: everything or only what is required, and which branch of sums to take."""

    def __init__(self, parsed: ParsedJsonSchema, *, everything: bool, choice: int) -> None:
        from stele.formats.jsonschema.confluent.content import pattern_matches

        self._matches = pattern_matches
        self._links = parsed.links
        self._everything = everything
        self._choice = choice
        self._nodes = 0

    def make_value(self, schema: Json, depth: int) -> Any:
        """A value for one schema."""
        self._nodes += 1
        schema = self._merge_schema(schema)
        for keyword in ("const", "default"):
            if keyword in schema:
                return to_builtin(schema[keyword])
        for keyword in ("enum", "examples"):
            values = schema.get(keyword)
            if isinstance(values, list) and values:
                return to_builtin(values[self._choice % len(values)])
        kind = _type_word(schema)
        if kind == "object":
            return self._make_object(schema, depth)
        if kind == "array":
            return self._make_array(schema, depth)
        if kind in ("integer", "number"):
            return _make_number(schema, whole=kind == "integer")
        if kind == "string":
            return self._make_string(schema)
        return kind == "boolean" or None

    def _merge_schema(self, schema: Json) -> dict[str, Json]:
        """A schema with references followed, factors of products added and one branch of sums taken."""
        merged: dict[str, Json] = {}
        pending, seen = [schema], set()
        while pending:
            part = self._links.follow_references(pending.pop(0))
            if not isinstance(part, dict) or id(part) in seen:
                continue
            seen.add(id(part))
            for keyword, value in part.items():
                if keyword == "properties" and isinstance(value, dict):
                    merged[keyword] = {**merged.get(keyword, {}), **value}
                elif keyword == "required" and isinstance(value, list):
                    merged[keyword] = [*merged.get(keyword, []), *value]
                else:
                    merged.setdefault(keyword, value)
            pending.extend(part["allOf"] if isinstance(part.get("allOf"), list) else [])
            for keyword in ("anyOf", "oneOf"):
                branches = part.get(keyword)
                if isinstance(branches, list) and branches:
                    pending.append(branches[self._choice % len(branches)])
        return merged

    def _make_object(self, schema: dict[str, Json], depth: int) -> dict[str, Any]:
        properties: dict[str, Json] = schema["properties"] if isinstance(schema.get("properties"), dict) else {}
        names = schema.get("required")
        required = [name for name in (names if isinstance(names, list) else []) if isinstance(name, str)]
        deep = depth >= MAX_DEPTH // 2 or self._nodes > MAX_NODES // 2
        wanted = dict.fromkeys([*required, *(properties if self._everything and not deep else [])])
        if depth >= MAX_DEPTH or self._nodes > MAX_NODES:
            return {}
        result = {
            name: self.make_value(properties.get(name, True), depth + 1)
            for name in wanted
            if properties.get(name) is not False
        }
        rest = schema.get("additionalProperties")
        for index in range(_size_limit(schema.get("minProperties")) - len(result)):
            result[f"key{index + 1}"] = self.make_value(rest if isinstance(rest, dict) else True, depth + 1)
        return result

    def _make_array(self, schema: dict[str, Json], depth: int) -> list[Any]:
        if depth >= MAX_DEPTH or self._nodes > MAX_NODES:
            return []
        positions: list[Json] = next(
            (schema[word] for word in ("prefixItems", "items") if isinstance(schema.get(word), list)), []
        )
        items = schema.get("items")
        least = max(_size_limit(schema.get("minItems")), 1 if self._everything and isinstance(items, dict) else 0)
        most = _size_limit(schema.get("maxItems"), 100)
        count = min(max(least, len(positions)), most)
        filler = items if isinstance(items, dict) else schema.get("contains", True)
        result = [self.make_value(positions[i] if i < len(positions) else filler, depth + 1) for i in range(count)]
        if schema.get("uniqueItems") is True:
            result = [
                item + i if isinstance(item, int) and not isinstance(item, bool) else item
                for i, item in enumerate(result)
            ]
        return result

    def _make_string(self, schema: dict[str, Json]) -> str:
        least, most = _size_limit(schema.get("minLength")), _size_limit(schema.get("maxLength"), 10_000)
        known = _BY_FORMAT.get(str(schema.get("format")))
        pattern = schema.get("pattern")
        for word in (*([known] if known else []), *_WORDS, ""):
            stretched = (word + "x" * max(0, least - len(word)))[: max(most, 0)]
            if not isinstance(pattern, str) or self._matches(pattern, stretched):
                return stretched
        return "x" * least


def _type_word(schema: dict[str, Json]) -> str:
    names = schema.get("type")
    if isinstance(names, list):
        names = next((name for name in names if isinstance(name, str) and name != "null"), "null")
    if isinstance(names, str):
        return names
    if "properties" in schema or "required" in schema or "additionalProperties" in schema:
        return "object"
    if "items" in schema or "prefixItems" in schema:
        return "array"
    if "minimum" in schema or "maximum" in schema or "multipleOf" in schema:
        return "number"
    return "string"


def _make_number(schema: dict[str, Json], *, whole: bool) -> int | float:
    """A number inside the bounds: a multiple where asked for, the bound itself or one beyond an exclusive one."""
    lowest, highest = _decimal_limit(schema, "minimum"), _decimal_limit(schema, "maximum")
    above, below = _decimal_limit(schema, "exclusiveMinimum"), _decimal_limit(schema, "exclusiveMaximum")
    step = _decimal_limit(schema, "multipleOf")
    value = Decimal(0)
    if lowest is not None or above is not None:
        value = max(limit for limit in (lowest, above) if limit is not None)
        value = value + 1 if value == above or schema.get("exclusiveMinimum") is True else value
    elif highest is not None or below is not None:
        value = min(limit for limit in (highest, below, Decimal(1)) if limit is not None)
        value = value - 1 if value == below or schema.get("exclusiveMaximum") is True else value
    if (highest is not None and value > highest) or (below is not None and value >= below):
        value = (
            (lowest if lowest is not None else above or Decimal(0)) + (below if below is not None else highest or value)
        ) / 2
    if step:
        value = (value / step).to_integral_value(rounding="ROUND_CEILING") * step
    if whole or value == value.to_integral_value():
        return int(value.to_integral_value(rounding="ROUND_CEILING"))
    return float(value)


def _decimal_limit(schema: dict[str, Json], keyword: str) -> Decimal | None:
    value = schema.get(keyword)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    limit = Decimal(value)
    return limit if limit.adjusted() < 15 else None


def _size_limit(value: Json, default: int = 0) -> int:
    return min(int(value), 1_000) if isinstance(value, int) and not isinstance(value, bool) else default
