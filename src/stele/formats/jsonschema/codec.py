"""Encodes, decodes and validates JSON data of a schema. The payload is compact UTF-8 JSON without a frame."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from math import isfinite
from typing import Any, NamedTuple, NoReturn

import jsonschema_rs

from stele.core.json_depth import MAX_JSON_DEPTH, is_nested_deeper
from stele.errors import DecodeError, EncodeError
from stele.formats.jsonschema.json_text import (
    MAX_DEPTH,
    Json,
    SpelledNumber,
    json_pointer,
    shorten_message,
    to_builtin,
    write_json,
)
from stele.formats.jsonschema.parse import ParsedJsonSchema
from stele.formats.jsonschema.patterns import pattern_matches

EXAMPLE_DEPTH = 12
"""Maximum nesting of an example."""

EXAMPLE_NODES = 2_000
"""Maximum number of values in an example."""

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
    """Yield data that may fit: the author's own examples, then guesses with all members, then with required ones."""
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
    """Makes a datum for a schema, with all or only required members, and one fixed choice among branches."""

    def __init__(self, parsed: ParsedJsonSchema, *, everything: bool, choice: int) -> None:
        self._links = parsed.links
        self._everything = everything
        self._choice = choice
        self._nodes = 0

    def make_value(self, schema: Json, depth: int) -> Any:
        """Return a value for one schema."""
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
            return _make_number(schema, is_integer=kind == "integer")
        if kind == "string":
            return self._make_string(schema)
        return kind == "boolean" or None

    def _merge_schema(self, schema: Json) -> dict[str, Json]:
        """Return a schema with its references and `allOf` merged, and one branch of each `anyOf` and `oneOf`."""
        merged: dict[str, Json] = {}
        for part in self._links.iterate_parts(schema, choice=self._choice):
            for keyword, value in part.items():
                if keyword == "properties" and isinstance(value, dict):
                    merged[keyword] = {**merged.get(keyword, {}), **value}
                elif keyword == "required" and isinstance(value, list):
                    merged[keyword] = [*merged.get(keyword, []), *value]
                else:
                    merged.setdefault(keyword, value)
        return merged

    def _make_object(self, schema: dict[str, Json], depth: int) -> dict[str, Any]:
        properties: dict[str, Json] = schema["properties"] if isinstance(schema.get("properties"), dict) else {}
        names = schema.get("required")
        required = [name for name in (names if isinstance(names, list) else []) if isinstance(name, str)]
        deep = depth >= EXAMPLE_DEPTH // 2 or self._nodes > EXAMPLE_NODES // 2
        wanted = dict.fromkeys([*required, *(properties if self._everything and not deep else [])])
        if depth >= EXAMPLE_DEPTH or self._nodes > EXAMPLE_NODES:
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
        if depth >= EXAMPLE_DEPTH or self._nodes > EXAMPLE_NODES:
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
            if not isinstance(pattern, str) or pattern_matches(pattern, stretched):
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


def _make_number(schema: dict[str, Json], *, is_integer: bool) -> int | float:
    """Return a number inside the bounds, a multiple of `multipleOf` where there is one."""
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
    if is_integer or value == value.to_integral_value():
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


MAX_MESSAGES = 50
"""Maximum number of faults listed for one datum."""

_MAY_OVERFLOW = re.compile(r"[eE]\+?[0-9]{3}|[0-9]{309}")
"""Matches every text that holds a number beyond the largest float, which Python would read as infinity."""


class JsonCodec:
    """Codec of one schema.

    writer  written data must fit it
    reader  read data must fit it (None: the writer's); missing members are not filled with defaults

    `format` is not asserted, in any draft. Numbers with a fraction are read as float; Decimal can be written.
    """

    def __init__(self, writer: ParsedJsonSchema, reader: ParsedJsonSchema | None = None) -> None:
        self._writer = writer
        self._reader = reader or writer

    def encode(self, datum: Any) -> bytes:
        """Return a datum as compact UTF-8 JSON. Raises `EncodeError` when it is not a JSON value or does not fit."""
        faults = self.validate(datum)
        if faults:
            raise EncodeError("; ".join(faults))
        try:
            return json.dumps(datum, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
        except TypeError:  # a Decimal
            return write_json(spell_numbers(datum))
        except ValueError as error:  # an integer of thousands of digits
            raise EncodeError(f"the datum is not a JSON value: {error}") from None

    def decode(self, data: bytes) -> Any:
        """Return one JSON value that fits the reader's schema. Raises `DecodeError`."""
        if is_nested_deeper(data):
            raise DecodeError(f"nested deeper than {MAX_JSON_DEPTH} levels")
        try:
            source = data.decode()
            datum = json.loads(source, parse_constant=_refuse_constant)
        except UnicodeDecodeError as error:
            raise DecodeError("not UTF-8", offset=error.start) from None
        except json.JSONDecodeError as error:
            raise DecodeError(f"not JSON: {error.msg}", offset=len(error.doc[: error.pos].encode())) from None
        except ValueError as error:
            raise DecodeError(f"not readable as JSON: {error}") from None
        faults = _find_foreign_value(datum) if _MAY_OVERFLOW.search(source) else []
        faults = faults or _find_faults(self._reader, datum)
        if faults:
            raise DecodeError("; ".join(faults))
        return datum

    def validate(self, datum: Any) -> list[str]:
        """Return why a datum is not a JSON value, or does not fit the writer's schema: `#/path: reason`.

        At most `MAX_MESSAGES` are listed. A value that JSON cannot express is rejected even where the schema allows
        anything.
        """
        return _find_foreign_value(datum) or _find_faults(self._writer, datum)

    def example(self) -> Any:
        """Return a small datum that was seen to fit the writer's schema. Raises `EncodeError` when none is found."""
        for candidate in make_candidates(self._writer):
            if not self.validate(candidate):
                return candidate
        raise EncodeError("no small datum was found that fits the schema")


def _find_faults(parsed: ParsedJsonSchema, datum: Any) -> list[str]:
    validator = parsed.validator
    try:
        if validator.is_valid(datum):
            return []
        faults: list[str] = []
        for count, error in enumerate(validator.iter_errors(datum)):
            if count == MAX_MESSAGES:
                return [*faults, "and more"]
            faults.append(f"{json_pointer(error.instance_path)}: {shorten_message(error.message)}")
        return faults
    except jsonschema_rs.ValidationError as error:
        return [f"#: {shorten_message(error.message)}"]
    except (ValueError, TypeError, RecursionError) as error:
        return [f"#: {shorten_message(str(error))}"]


def _find_foreign_value(datum: Any) -> list[str]:
    """Return a sentence about the first value in a datum that is not a JSON value; an empty list when all are."""
    foreign_value = _search_foreign(datum, 0)
    return [f"{json_pointer(reversed(foreign_value.path))}: {foreign_value.why}"] if foreign_value else []


class _Foreign(NamedTuple):
    """Something that is not a JSON value; path leads to it, innermost step first."""

    why: str
    path: list[str | int]


def _search_foreign(value: Any, depth: int) -> _Foreign | None:
    kind = type(value)
    if kind is bool or kind is int or value is None:
        return None
    if isinstance(value, str):
        return (
            None if value.isascii() or _is_encodable(value) else _Foreign("half a surrogate pair is not valid text", [])
        )
    if isinstance(value, float | Decimal):
        return None if isfinite(value) else _Foreign(f"{value} is not a JSON number", [])
    if depth >= MAX_DEPTH:
        return _Foreign(f"nested deeper than {MAX_DEPTH} levels", [])
    if isinstance(value, dict):
        for name, member in value.items():
            if not isinstance(name, str):
                return _Foreign(f"the member name {shorten_message(repr(name))} is not a string", [])
            if not name.isascii() and not _is_encodable(name):
                return _Foreign("half a surrogate pair is not valid text", [])
            if foreign_value := _search_foreign(member, depth + 1):
                foreign_value.path.append(name)
                return foreign_value
        return None
    if isinstance(value, list | tuple):
        for index, item in enumerate(value):
            if foreign_value := _search_foreign(item, depth + 1):
                foreign_value.path.append(index)
                return foreign_value
        return None
    return None if isinstance(value, int) else _Foreign(f"{kind.__name__} is not a JSON type", [])


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def spell_numbers(datum: Any, depth: int = 0) -> Any:
    """Return a datum with Decimals and integers as `SpelledNumber`. Raises `EncodeError` when it is too deep."""
    if depth > MAX_DEPTH:
        raise EncodeError(f"the datum is nested deeper than {MAX_DEPTH} levels")
    if isinstance(datum, Decimal):
        return SpelledNumber(str(datum))
    if isinstance(datum, int) and not isinstance(datum, bool):
        return SpelledNumber(str(int(datum)))
    if isinstance(datum, dict):
        return {name: spell_numbers(value, depth + 1) for name, value in datum.items()}
    if isinstance(datum, list | tuple):
        return [spell_numbers(value, depth + 1) for value in datum]
    return datum


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
