"""Fields and Arrow schemas of Thrift schemas."""

from __future__ import annotations

import pyarrow as pa
import pytest

from stele.core.ports import Field
from stele.errors import Invalid
from stele.formats.thrift import THRIFT, ThriftSchema, arrow_schema


def parse_schema(text: str) -> ThriftSchema:
    """Parse a schema given as text."""
    return THRIFT.parse(text.encode(), {})


def test_fields() -> None:
    """Fields of the last struct come first, then those of structs it does not use, with defaults as JSON."""
    schema = parse_schema(
        "enum E { A, B }\nconst i32 K = 3\nexception X { 1: string why }\nstruct N { 1: i32 x = K, 2: optional N n }\n"
        "struct S { /** the list */ 1: list<map<N, N>> a, 2: E e = E.B, 3: list<i32> l = [1], 4: map<string, i32> m = "
        '{"k": 1} }'
    )
    assert THRIFT.fields(schema) == [
        Field("a", "list<map<N, N>>", None, "the list"),
        Field("a[]{}.key.x", "i32", "3"),
        Field("a[]{}.key.n", "N", optional=True),
        Field("a[]{}.x", "i32", "3"),
        Field("a[]{}.n", "N", optional=True),
        Field("e", "E", '"B"'),
        Field("l", "list<i32>", "[1]"),
        Field("m", "map<string, i32>", '{"k": 1}'),
        Field("X.why", "string"),
    ]
    assert THRIFT.fields(parse_schema("enum E { A }")) == []


def test_arrow_schema() -> None:
    """Every type has its column, and only required fields are never null."""
    schema = parse_schema(
        "enum E { A }\nunion U { 1: i8 x }\nstruct S { 1: required bool a, 2: byte b, 3: i16 c, 4: i32 d, 5: i64 e, "
        "6: double f, 7: string g, 8: binary h, 9: uuid i, /** doc */ 10: E j, 11: list<i32> k, 12: set<string> l, "
        "13: map<string, i64> m, 14: U n }"
    )
    columns = THRIFT.arrow_schema(schema)
    assert columns.types == [
        *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float64()),
        *(pa.string(), pa.binary(), pa.string(), pa.string()),
        pa.list_(pa.field("element", pa.int32(), nullable=False)),
        pa.list_(pa.field("element", pa.string(), nullable=False)),
        pa.map_(pa.string(), pa.int64()),
        pa.struct([pa.field("x", pa.int8())]),
    ]
    assert [field.name for field in columns if not field.nullable] == ["a"]
    assert columns.field("j").metadata == {b"doc": b"doc"}
    assert arrow_schema(schema, "U").names == ["x"]


def test_decoded_data_fits_the_table() -> None:
    """What the codec decodes can be put into a table of the schema's shape."""
    schema = parse_schema(
        "enum E { A }\nstruct P { 1: required i32 x }\n"
        "struct S { 1: E e, 2: set<P> p, 3: map<P, E> m, 4: map<string, list<double>> d, 5: uuid u }"
    )
    codec = THRIFT.codec(schema)
    row = codec.decode(codec.encode(codec.example()))
    assert pa.Table.from_pylist([row], THRIFT.arrow_schema(schema)).num_rows == 1


def test_recursive_structs_have_no_table() -> None:
    """A struct inside itself is rejected with the cycle."""
    with pytest.raises(Invalid, match="A > B > A"):
        THRIFT.arrow_schema(parse_schema("struct B { 1: list<A> a }\nstruct A { 1: B b }"))
