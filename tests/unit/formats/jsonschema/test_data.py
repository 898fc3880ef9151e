"""Fields, columns and data of JSON Schemas."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from stele.core.ports import Codec, Field, Format
from stele.errors import DecodeError, EncodeError
from stele.formats.jsonschema import JSON_SCHEMA, ParsedJsonSchema


def parse(schema: Any) -> ParsedJsonSchema:
    """Parse a schema given as a value."""
    return JSON_SCHEMA.parse(json.dumps(schema).encode(), {})


ORDER = {
    "title": "Order",
    "type": "object",
    "required": ["id", "lines"],
    "properties": {
        "id": {"type": "integer", "description": "number of the order"},
        "note": {"type": ["string", "null"], "default": None},
        "at": {"type": "string", "format": "date-time"},
        "to": {"$ref": "#/definitions/address", "default": {}},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"price": {"type": "number"}}}},
        "tags": {"type": "object", "additionalProperties": {"type": "boolean"}},
        "state": {"enum": ["open", "done"]},
        "either": {"oneOf": [{"type": "null"}, {"type": "integer"}]},
        "mixed": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "self": {"$ref": "#"},
        "free": True,
    },
    "definitions": {"address": {"title": "An address", "allOf": [{"properties": {"city": {"type": "string"}}}]}},
}


def test_fields_are_listed_depth_first() -> None:
    """Every property has path, type, default and doc; arrays, maps and combinations are entered, cycles are not."""
    assert JSON_SCHEMA.fields(parse(ORDER)) == [
        Field("id", "integer", doc="number of the order", optional=False),
        Field("note", "string|null", default="null", optional=True),
        Field("at", "string", optional=True),
        Field("to", "object", default="{}", doc="An address", optional=True),
        Field("to.city", "string"),
        Field("lines", "array", optional=False),
        Field("lines[]", "object"),
        Field("lines[].price", "number", optional=True),
        Field("tags", "object", optional=True),
        Field("tags{}", "boolean"),
        Field("state", "enum", optional=True),
        Field("either", "null|integer", optional=True),
        Field("mixed", "string|integer", optional=True),
        Field("self", "object", doc="Order", optional=True),
        Field("free", "any", optional=True),
    ]


def test_columns() -> None:
    """Each kind of schema has its column type; a schema without a single type becomes a string of JSON."""
    assert JSON_SCHEMA.arrow_schema(parse(ORDER)) == pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("note", pa.string()),
            pa.field("at", pa.string()),
            pa.field("to", pa.struct([pa.field("city", pa.string())])),
            pa.field(
                "lines",
                pa.list_(pa.field("item", pa.struct([pa.field("price", pa.float64())]), nullable=False)),
                nullable=False,
            ),
            pa.field("tags", pa.map_(pa.string(), pa.field("value", pa.bool_(), nullable=False))),
            pa.field("state", pa.string()),
            pa.field("either", pa.int64()),
            pa.field("mixed", pa.string()),
            pa.field("self", pa.string()),
            pa.field("free", pa.string()),
        ]
    )
    assert str(JSON_SCHEMA.arrow_schema(parse({"type": "integer"}))) == "value: int64 not null"


def test_the_codec_writes_compact_json_and_reads_it_back() -> None:
    """Encode and decode are inverse; text stays text, Decimals and long integers keep their digits."""
    codec = JSON_SCHEMA.codec(parse(ORDER))
    datum = {"id": 2**70, "lines": [{"price": 1.5}], "note": "é"}
    data = codec.encode(datum)
    assert data == '{"id":1180591620717411303424,"lines":[{"price":1.5}],"note":"é"}'.encode()
    assert codec.decode(data) == datum
    assert codec.encode({"id": 1, "lines": [{"price": Decimal("1.10")}]}) == b'{"id":1,"lines":[{"price":1.10}]}'


@pytest.mark.parametrize(
    "datum", [{"lines": []}, {"id": "x", "lines": []}, {"id": 1, "lines": {}}, 3, float("nan"), b"x", object()]
)
def test_data_that_do_not_fit_are_not_written(datum: Any) -> None:
    """A datum of another shape, or no JSON at all, is refused with a path."""
    codec = JSON_SCHEMA.codec(parse(ORDER))
    with pytest.raises(EncodeError, match="#"):
        codec.encode(datum)
    assert codec.validate(datum)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"id":1}', '"lines" is a required property'),
        (b'{"id":1,"lines":[]', "not JSON"),
        (b'{"id":1,"lines":[]} ]', "not JSON"),
        (b'{"id":NaN,"lines":[]}', "NaN"),
        (b"\xff", "not UTF-8"),
        (b"[" * 100_000, "nested|recursion"),
        (b"", "not JSON"),
        (b'{"id":' + b"9" * 5000 + b',"lines":[]}', "digits"),
    ],
)
def test_bytes_that_do_not_fit_are_not_read(data: bytes, words: str) -> None:
    """Bytes that are not JSON, or JSON of another structure, raise a decode error with the reason."""
    with pytest.raises(DecodeError, match=words):
        JSON_SCHEMA.codec(parse(ORDER)).decode(data)


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("datum", "fault"),
    [
        ({1, 2}, "#: set is not a JSON type"),
        ({"a": [0, float("nan")]}, "#/a/1: nan is not a JSON number"),
        ([float("-inf")], "#/0: -inf is not a JSON number"),
        ({"a": Decimal("Infinity")}, "#/a: Infinity is not a JSON number"),
        ({"a": {"b": b"x"}}, "#/a/b: bytes is not a JSON type"),
        ({1: 2}, "#: the member name 1 is not a string"),
        (["\ud800"], "#/0: half a surrogate pair is not valid text"),
        (LOOP, "nested deeper than 200 levels"),
    ],
)
def test_what_json_cannot_say_is_refused_even_where_the_schema_allows_anything(datum: Any, fault: str) -> None:
    """Sets, NaN, infinities, bytes, odd names and endless nesting are faults with a path, in any schema."""
    codec = JSON_SCHEMA.codec(parse({}))
    (problem,) = codec.validate(datum)
    assert problem.endswith(fault)
    with pytest.raises(EncodeError):
        codec.encode(datum)


@pytest.mark.parametrize("data", [b'{"a":1e999}', b"[-1E+400]", b"1" * 400 + b".0"])
def test_numbers_beyond_all_floats_are_not_read_as_infinity(data: bytes) -> None:
    """A number that no float can hold raises a decode error, and is not read as infinity."""
    with pytest.raises(DecodeError, match="inf is not a JSON number"):
        JSON_SCHEMA.codec(parse({})).decode(data)


def test_a_reader_schema_decides_what_is_read() -> None:
    """With a reader's schema the data have to fit that one."""
    codec = JSON_SCHEMA.codec(parse({"type": "string"}), parse({"maxLength": 1}))
    assert codec.decode(codec.encode("a")) == "a"
    with pytest.raises(DecodeError, match="longer than 1"):
        codec.decode(codec.encode("ab"))


@pytest.mark.parametrize(
    "draft", ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"]
)
def test_formats_are_never_asserted(draft: str) -> None:
    """In all drafts `format` is an annotation and rejects no data."""
    assert JSON_SCHEMA.codec(parse({"$schema": draft, "format": "date"})).validate("no date") == []


@pytest.mark.parametrize(
    "schema",
    [
        ORDER,
        True,
        {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
        {"type": "integer", "exclusiveMinimum": 10, "multipleOf": 7},
        {"type": "number", "minimum": 0, "exclusiveMaximum": 1, "exclusiveMinimum": 0},
        {"type": "array", "minItems": 3, "uniqueItems": True, "items": {"type": "integer"}},
        {"type": "array", "prefixItems": [{"const": 1}], "$schema": "https://json-schema.org/draft/2020-12/schema"},
        {"type": "object", "minProperties": 2, "additionalProperties": {"type": "null"}},
        {"oneOf": [{"type": "string", "maxLength": 2}, {"type": "string", "minLength": 2}]},
        {"allOf": [{"required": ["a"]}, {"properties": {"a": {"enum": [[1]]}}}]},
        {"type": "string", "minLength": 30, "maxLength": 30},
        {"examples": [{"a": 1}], "type": "object", "required": ["a"]},
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"], "maxProperties": 3, "examples": []}
        | {"required": []},
    ],
)
def test_examples_fit(schema: Any) -> None:
    """The example of a schema is valid under it."""
    codec = JSON_SCHEMA.codec(parse(schema))
    assert codec.validate(codec.example()) == []


def test_no_example_is_an_error_not_a_lie() -> None:
    """A schema that no datum fits has no example: an error is raised."""
    with pytest.raises(EncodeError, match="no small datum"):
        JSON_SCHEMA.codec(parse(False)).example()


def test_the_ports_are_implemented() -> None:
    """Format and codec fit the contracts the registry is written against, and come in by the entry point."""
    port: Format[ParsedJsonSchema] = JSON_SCHEMA
    codec: Codec = JSON_SCHEMA.codec(parse(True))
    assert port.name == "json"
    assert codec.validate(None) == []
    assert port.media_types[0] == "application/schema+json"
