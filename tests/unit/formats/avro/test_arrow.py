"""Avro schemas as tables and as lists of fields."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from stele.core.ports import Field
from stele.errors import Invalid
from stele.formats.avro import AVRO


def parse_with_field(kind: Any, **more: Any) -> Any:
    """A record with one field `f`, parsed."""
    text = {"type": "record", "name": "R", "fields": [{"name": "f", "type": kind, **more}]}
    return AVRO.parse(json.dumps(text).encode(), {})


def make_logical_type(kind: str, name: str, **more: Any) -> dict[str, Any]:
    """A type with a logical type."""
    return {"type": kind, "logicalType": name, **more}


@pytest.mark.parametrize(
    ("kind", "expected", "nullable"),
    [
        ("int", pa.int32(), False),
        ("float", pa.float32(), False),
        ("null", pa.null(), True),
        (["null", "string"], pa.string(), True),
        (["int"], pa.int32(), False),
        (["int", "long"], pa.int64(), False),
        (["null", "float", "double"], pa.float64(), True),
        (["string", "null", "int"], pa.struct([("member0", pa.string()), ("member1", pa.int32())]), True),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, pa.string(), False),
        ({"type": "fixed", "name": "F", "size": 3}, pa.binary(3), False),
        ({"type": "fixed", "name": "F", "size": 12, "logicalType": "duration"}, pa.binary(12), False),
        (make_logical_type("string", "uuid"), pa.string(), False),
        (make_logical_type("int", "date"), pa.date32(), False),
        (make_logical_type("int", "time-millis"), pa.time32("ms"), False),
        (make_logical_type("long", "time-micros"), pa.time64("us"), False),
        (make_logical_type("long", "timestamp-millis"), pa.timestamp("ms", "UTC"), False),
        (make_logical_type("long", "timestamp-nanos"), pa.timestamp("ns", "UTC"), False),
        (make_logical_type("long", "local-timestamp-micros"), pa.timestamp("us"), False),
        (make_logical_type("bytes", "decimal", precision=38, scale=3), pa.decimal128(38, 3), False),
        (make_logical_type("bytes", "decimal", precision=39, scale=3), pa.decimal256(39, 3), False),
        ({"type": "array", "items": ["null", "int"]}, pa.list_(pa.field("item", pa.int32())), False),
        ({"type": "map", "values": "int"}, pa.map_(pa.string(), pa.field("value", pa.int32(), nullable=False)), False),
    ],
)
def test_types(kind: Any, expected: pa.DataType, *, nullable: bool) -> None:
    """Each Avro type has its column type and nullability."""
    field = AVRO.arrow_schema(parse_with_field(kind)).field("f")
    assert field.type == expected
    assert field.nullable is nullable


def test_docs_and_other_roots() -> None:
    """Docs become metadata; a root that is not a record becomes one column."""
    assert AVRO.arrow_schema(parse_with_field("int", doc="why")).field("f").metadata == {b"doc": b"why"}
    assert AVRO.arrow_schema(AVRO.parse(b'["null","int"]', {})) == pa.schema([pa.field("value", pa.int32())])


def test_no_table() -> None:
    """Recursion and decimals beyond 76 digits have no table, and the message has the path."""
    with pytest.raises(Invalid, match=r"f\.member0: R contains itself|f: R contains itself"):
        AVRO.arrow_schema(parse_with_field(["null", "R"]))
    with pytest.raises(Invalid, match=r"f: .*77 digits"):
        AVRO.arrow_schema(parse_with_field(make_logical_type("bytes", "decimal", precision=77)))


def test_an_example_fills_the_table() -> None:
    """An example datum loads into the Arrow schema."""
    parsed = parse_with_field(
        {"type": "array", "items": ["null", make_logical_type("bytes", "decimal", precision=5, scale=2)]}
    )
    table = pa.Table.from_pylist([AVRO.codec(parsed).example()], schema=AVRO.arrow_schema(parsed))
    assert table.num_rows == 1


def test_fields() -> None:
    """Fields of all depths have path, short type, default and doc; each use of a type is entered, recursion is not."""
    part = {"type": "record", "name": "P", "fields": [{"name": "x", "type": "int", "default": 1, "doc": "d"}]}
    text = {
        "type": "record",
        "name": "n.R",
        "fields": [
            {"name": "a", "type": ["null", part], "default": None},
            {"name": "b", "type": {"type": "array", "items": {"type": "map", "values": "P"}}},
            {"name": "c", "type": ["null", "R"]},
        ],
    }
    assert AVRO.fields(AVRO.parse(json.dumps(text).encode(), {})) == [
        Field("a", "null | n.P", "null", optional=True),
        Field("a.x", "int", "1", "d", optional=False),
        Field("b", "array<map<n.P>>", optional=False),
        Field("b[]{}.x", "int", "1", "d", optional=False),
        Field("c", "null | n.R", optional=True),
    ]
