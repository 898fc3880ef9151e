"""Conversion between types of DataFrames and schemas; no Spark is started."""

from __future__ import annotations

import pytest
from pyspark.sql import types as t

from stele.errors import CannotConvert, TooLarge, UnknownFormat
from stele.formats.conversion.model import (
    ABSENT,
    Array,
    Decimal,
    Duration,
    Enumeration,
    EnumSymbol,
    Fixed,
    Map,
    Model,
    RecordField,
    RecordType,
    Scalar,
    ScalarKind,
    Time,
    Timestamp,
    TimeUnit,
    Type,
    TypeReference,
    Union,
    UnionOption,
)
from stele.spark import from_spark, schema_for, spark_schema, to_spark

INT = Scalar(ScalarKind.INT32)
TYPES = {
    "a.K": Enumeration("a.K", (EnumSymbol("A", 0), EnumSymbol("B", 5, "five")), default="A"),
    "a.F": Fixed("a.F", 4),
    "a.In": RecordType("a.In", (RecordField("x", INT),), doc="inner"),
}


def _name_value(value: object) -> str:
    """Return the part of a test's name for a parameter.

    Members of sets are sorted, so that all processes agree on the name.
    """
    return ",".join(sorted(value)) or "lossless" if isinstance(value, set) else str(value)


def both(kind: Type) -> tuple[t.DataType, set[str], Type]:
    """Return the column for a type, the words of its losses, and the type after the conversion back."""
    types = {"a.R": RecordType("a.R", (RecordField("x", kind),)), **TYPES}
    struct, losses = to_spark(Model(TypeReference("a.R"), types))
    back, _ = from_spark(struct, name="a.R")
    record = back.types["a.R"]
    assert isinstance(record, RecordType)
    if isinstance(kind, TypeReference):
        assert back.types[kind.name] == TYPES[kind.name]
    return struct["x"].dataType, {loss.what for loss in losses}, record.fields[0].type


@pytest.mark.parametrize(
    ("kind", "column", "words"),
    [
        (Scalar(ScalarKind.BOOLEAN), t.BooleanType(), set()),
        (Scalar(ScalarKind.INT8), t.ByteType(), set()),
        (Scalar(ScalarKind.UINT8), t.ShortType(), {"RANGE"}),
        (Scalar(ScalarKind.UINT32), t.LongType(), {"RANGE"}),
        (Scalar(ScalarKind.UINT64), t.DecimalType(20, 0), {"RANGE"}),
        (Scalar(ScalarKind.INTEGER), t.DecimalType(38, 0), {"RANGE"}),
        (Scalar(ScalarKind.NUMBER), t.DoubleType(), {"PRECISION"}),
        (Scalar(ScalarKind.UUID), t.StringType(), {"FORMAT"}),
        (Scalar(ScalarKind.ANY), t.VariantType(), set()),
        (Scalar(ScalarKind.NULL), t.NullType(), set()),
        (Decimal(10, 2), t.DecimalType(10, 2), set()),
        (Decimal(None), t.StringType(), {"DECIMAL"}),
        (Decimal(50, 2), t.StringType(), {"DECIMAL"}),
        (Timestamp(), t.TimestampType(), set()),
        (Timestamp(TimeUnit.MILLI, utc=False), t.TimestampNTZType(), set()),
        (Timestamp(TimeUnit.NANO), t.TimestampType(), {"PRECISION"}),
        (Duration(TimeUnit.MICRO), t.DayTimeIntervalType(0, 3), set()),
        (Duration(TimeUnit.MILLI, calendar=True), t.CalendarIntervalType(), set()),
        (Array(Scalar(ScalarKind.UINT8), nullable=True), t.ArrayType(t.ShortType(), True), {"RANGE"}),
        (Map(INT, Scalar(ScalarKind.UINT16)), t.MapType(t.IntegerType(), t.IntegerType(), False), {"RANGE"}),
        (TypeReference("a.K"), t.StringType(), {"ENUM"}),
        (TypeReference("a.F"), t.BinaryType(), {"FIXED"}),
        (TypeReference("a.In"), t.StructType([t.StructField("x", t.IntegerType(), False)]), set()),
    ],
    ids=_name_value,
)
def test_every_type_has_a_column_and_comes_back(kind: Type, column: t.DataType, words: set[str]) -> None:
    """Each type of the model has the column that the table names, and metadata to be converted back exactly."""
    spark_type, lost, back = both(kind)
    assert spark_type == column
    assert lost == words
    assert back == kind


def test_times_are_text_where_spark_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """In Spark 4.0, which has no time type, the column is text, and is converted back to a time."""
    if hasattr(t, "TimeType"):
        assert both(Time())[0] == t.TimeType(6)
        monkeypatch.delattr(t, "TimeType")
    assert both(Time()) == (t.StringType(), {"TIME"}, Time())


def test_unions_are_structs_of_members() -> None:
    """A union has one nullable column for each option, with the options' names in the metadata."""
    kind = Union((UnionOption(INT, "int"), UnionOption(Array(Scalar(ScalarKind.UUID)), "ids")))
    spark_type, lost, back = both(kind)
    assert isinstance(spark_type, t.StructType)
    assert [(field.name, field.nullable) for field in spark_type] == [("member0", True), ("member1", True)]
    assert lost == {"UNION", "FORMAT"}
    assert back == kind


def test_fields_keep_all_they_say_as_metadata() -> None:
    """Number, default, aliases, constraints, groups and absence are converted back. What Spark ignores is a loss."""
    fields = (
        RecordField(
            "a", INT, number=4, default=5, required=False, doc="words", aliases=("b",), constraints={"minimum": 1}
        ),
        RecordField("c", INT, required=False),
        RecordField("d", INT, nullable=True, required=False, default=None),
    )
    record = RecordType("a.R", fields, at_most_one={"g": ("c", "d")})
    struct, losses = to_spark(Model(TypeReference("a.R"), {"a.R": record}))
    assert [field.nullable for field in struct] == [False, True, True]
    assert struct["a"].metadata["comment"] == "words"
    assert from_spark(struct, name="a.R")[0].types["a.R"] == record
    assert {loss.what for loss in losses} == {"DEFAULT", "ALIAS", "CONSTRAINT", "ONEOF"}
    assert not any(loss.data for loss in losses)


def test_records_inside_themselves_are_variants() -> None:
    """A record inside itself is a struct once and then a variant, and is recursive again after the conversion back."""
    record = RecordType("a.R", (RecordField("next", TypeReference("a.R"), nullable=True),))
    struct, losses = to_spark(Model(TypeReference("a.R"), {"a.R": record}))
    assert struct["next"].dataType == t.VariantType()
    assert [(loss.path, loss.what) for loss in losses] == [("next", "RECURSION")]
    assert from_spark(struct, name="a.R")[0].types["a.R"] == record


@pytest.mark.parametrize(
    ("column", "kind", "words"),
    [
        (t.VarcharType(5), Scalar(ScalarKind.STRING), {"CHAR"}),
        (t.CharType(5), Scalar(ScalarKind.STRING), {"CHAR"}),
        (t.StringType("UTF8_LCASE"), Scalar(ScalarKind.STRING), {"COLLATION"}),
        (t.YearMonthIntervalType(), Duration(TimeUnit.MICRO, calendar=True), {"INTERVAL"}),
        (t.DayTimeIntervalType(0, 1), Duration(TimeUnit.MICRO), {"INTERVAL"}),
        (t.MapType(t.TimestampType(), t.LongType()), Array(TypeReference("Row.XEntry")), {"MAP"}),
        (t.ArrayType(t.VarcharType(5)), Array(Scalar(ScalarKind.STRING), nullable=True), {"CHAR", "CONSTRAINT"}),
    ],
    ids=_name_value,
)
def test_columns_that_say_more_than_the_model(column: t.DataType, kind: Type, words: set[str]) -> None:
    """Lengths, collations, interval fields and unusual map keys are losses."""
    model, losses = from_spark(t.StructType([t.StructField("x", column)]))
    record = model.types["Row"]
    assert isinstance(record, RecordType)
    assert record.fields[0].type == kind
    assert record.fields[0].default is ABSENT
    assert {loss.what for loss in losses} == words


def test_metadata_that_is_not_ours_is_a_loss_or_passed_over() -> None:
    """Other metadata entries are reported as losses; a note that does not fit the column's type is ignored."""
    odd = [
        *({"stele": "{"}, {"stele": "[]"}, {"stele": 5}, {"stele": '{"type": "uint8"}'}, {"stele": "[" * 9_000}),
        *({"stele": '{"type": {"enum": 1}, "number": "x", "aliases": [1], "constraints": 3}'}, {"mine": 1}),
        {"stele": '{"type": {"recursive": "Nobody"}}'},
    ]
    struct = t.StructType([t.StructField(f"c{n}", t.StringType(), True, metadata) for n, metadata in enumerate(odd)])
    model, losses = from_spark(struct)
    record = model.types["Row"]
    assert isinstance(record, RecordType)
    assert {field.type for field in record.fields} == {Scalar(ScalarKind.STRING)}
    assert [(loss.path, loss.what) for loss in losses] == [("c6", "METADATA")]


def test_hostile_types_are_refused() -> None:
    """Deep nesting, exponential numbers of columns and duplicate names are refused."""
    deep: t.DataType = t.LongType()
    kind: Type = INT
    for _ in range(500):
        deep, kind = t.ArrayType(deep), Array(kind)
    with pytest.raises(TooLarge):
        from_spark(t.StructType([t.StructField("x", deep)]))
    with pytest.raises(TooLarge):
        to_spark(Model(kind))
    doubling = {
        f"R{n}": RecordType(
            f"R{n}", (RecordField("a", TypeReference(f"R{n + 1}")), RecordField("b", TypeReference(f"R{n + 1}")))
        )
        for n in range(40)
    }
    with pytest.raises(TooLarge):
        to_spark(Model(TypeReference("R0"), {**doubling, "R40": RecordType("R40", ())}))
    twice = t.StructType([t.StructField("x", t.LongType()), t.StructField("x", t.LongType())])
    with pytest.raises(CannotConvert):
        from_spark(twice)
    with pytest.raises(CannotConvert):
        to_spark(Model(TypeReference("Nobody")))


def test_schemas_of_every_language_become_columns() -> None:
    """One call converts a document to columns, including references."""
    proto = 'syntax = "proto3"; import "b.proto"; message M { B b = 1; repeated string s = 2; }'
    struct, losses = spark_schema("protobuf", proto, {"b.proto": 'syntax = "proto3"; message B { uint32 n = 1; }'})
    assert struct["b"].dataType["n"].dataType == t.LongType()
    assert struct["s"].dataType == t.ArrayType(t.StringType(), False)
    assert "RANGE" in {loss.what for loss in losses}
    assert spark_schema("thrift", b"struct S { 1: required i64 id }")[0]["id"].dataType == t.LongType()


def test_columns_become_schemas() -> None:
    """One call converts columns to a document, which gives the same columns back."""
    struct = t.StructType(
        [
            t.StructField("id", t.LongType(), False, {"comment": "the key"}),
            t.StructField("amount", t.DecimalType(10, 2)),
            t.StructField("line", t.StructType([t.StructField("sku", t.StringType())])),
        ]
    )
    text, losses = schema_for(struct, "protobuf", name="acme.Order")
    assert "package acme;" in text
    assert "  // the key\n  int64 id = 1;" in text
    assert not [loss for loss in losses if loss.data]
    again, _ = spark_schema("protobuf", text)
    assert [(field.name, field.dataType.typeName()) for field in again] == [
        (field.name, field.dataType.typeName()) for field in struct
    ]
    with pytest.raises(CannotConvert):
        schema_for(struct, "thrift")
    with pytest.raises(CannotConvert):
        spark_schema("opaque", "x")
    with pytest.raises(UnknownFormat):
        schema_for(struct, "nothing")
