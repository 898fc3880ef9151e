"""Conversions of each type between schema languages and Spark, determined by running them.

The rows are those of a reference page. Each comes from a schema of one field that is really converted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from stele.client.snapshot import ResolvedSchema
from stele.errors import CannotConvert, DataError, Invalid
from stele.formats.registry import get_format
from stele.spark.functions import to_spark_types
from stele.spark.types import schema_for, spark_schema

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

_AVRO: Final[dict[str, object]] = {
    **{kind: kind for kind in ("null", "boolean", "int", "long", "float", "double", "bytes", "string")},
    "fixed": {"type": "fixed", "name": "F", "size": 4},
    "enum": {"type": "enum", "name": "E", "symbols": ["A"]},
    "array": {"type": "array", "items": "int"},
    "map": {"type": "map", "values": "int"},
    "record": {"type": "record", "name": "Inner", "fields": [{"name": "y", "type": "int"}]},
    "union of null and T": ["null", "int"],
    "union of several": ["int", "string"],
    "record inside itself": ["null", "R"],
    "decimal(10, 2)": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
    "decimal(50, 2)": {"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 2},
    **{name: {"type": "int", "logicalType": name} for name in ("date", "time-millis")},
    **{
        name: {"type": "long", "logicalType": name}
        for name in (
            "time-micros",
            "timestamp-millis",
            "timestamp-micros",
            "timestamp-nanos",
            "local-timestamp-millis",
            "local-timestamp-micros",
        )
    },
    "uuid": {"type": "string", "logicalType": "uuid"},
    "duration": {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"},
}
_PROTOBUF: Final = {
    **{
        kind: f"{kind} x = 1;"
        for kind in (
            *("double", "float", "bool", "string", "bytes", "int32", "int64", "uint32", "uint64", "sint32", "sint64"),
            *("fixed32", "fixed64", "sfixed32", "sfixed64"),
        )
    },
    "optional": "optional int32 x = 1;",
    "repeated": "repeated int32 x = 1;",
    "map": "map<string, int32> x = 1;",
    "enum": "enum E { A = 0; } E x = 1;",
    "message": "message Inner { int32 y = 1; } Inner x = 1;",
    "oneof": "oneof x { int32 a = 1; string b = 2; }",
    "message inside itself": "R x = 1;",
    **{
        name: f"google.protobuf.{name} x = 1;"
        for name in ("Timestamp", "Duration", "Int32Value", "UInt64Value", "StringValue", "Struct", "FieldMask", "Any")
    },
}
_JSON: Final[dict[str, object]] = {
    **{kind: {"type": kind} for kind in ("boolean", "integer", "number", "string", "null")},
    "string, format date-time": {"type": "string", "format": "date-time"},
    "string, format uuid": {"type": "string", "format": "uuid"},
    "enum": {"enum": ["a", "b"]},
    "array": {"type": "array", "items": {"type": "integer"}},
    "array of anything": {"type": "array"},
    "object with properties": {"type": "object", "properties": {"y": {"type": "integer"}}},
    "object of values": {"type": "object", "additionalProperties": {"type": "integer"}},
    "object of anything": {"type": "object"},
    "null or a type": {"type": ["null", "integer"]},
    "several types": {"type": ["integer", "string"]},
    "anything": {},
    "schema inside itself": {"$ref": "#"},
}
_THRIFT: Final = {
    **{kind: f"1: {kind} x" for kind in ("bool", "i8", "i16", "i32", "i64", "double", "string", "binary", "uuid")},
    "list": "1: list<i32> x",
    "set": "1: set<i32> x",
    "map": "1: map<string, i32> x",
    "map with struct keys": "1: map<Inner, i32> x",
    "enum": "1: E x",
    "struct": "1: Inner x",
    "union": "1: U x",
    "struct inside itself": "1: R x",
}
_IMPORTS: Final = "".join(
    f'import "google/protobuf/{name}.proto"; '
    for name in ("timestamp", "duration", "wrappers", "struct", "field_mask", "any")
)


class ReadSupport(NamedTuple):
    """A type of a schema language in Spark: `data` is the type from `from_registry`, `schema` that from `spark_schema`.

    Either is '' where there is none. `losses` are those that `spark_schema` reports.
    """

    format: str
    type: str
    data: str
    schema: str
    losses: tuple[str, ...]


class WriteSupport(NamedTuple):
    """A Spark type in a schema language by `schema_for`: '' where it is impossible, and the losses."""

    spark: str
    format: str
    type: str
    losses: tuple[str, ...]


def reading() -> Iterator[ReadSupport]:
    """Yield a row for each type of each language. Raises `NotInstalled`."""
    for format_name, name, text in _sample_schemas():
        try:
            struct, losses = spark_schema(format_name, text)
            spark_type = struct["x"].dataType.simpleString() if "x" in struct.names else struct.simpleString()
            lost = tuple(dict.fromkeys(loss.what for loss in losses))
        except (CannotConvert, Invalid) as error:
            spark_type, lost = "", (str(error),)
        yield ReadSupport(format_name, name, _data_type(format_name, text), spark_type, lost)


def writing() -> Iterator[WriteSupport]:
    """Yield a row for each Spark type in each language. Raises `NotInstalled`."""
    from pyspark.sql import types as t

    for kind in _spark_samples():
        struct = t.StructType([t.StructField("x", kind)])
        for format_name in ("avro", "protobuf", "json", "thrift"):
            try:
                text, losses = schema_for(struct, format_name, name="r.Row")
            except CannotConvert as error:
                yield WriteSupport(kind.simpleString(), format_name, "", (str(error),))
                continue
            schema_format = get_format(format_name)
            fields = schema_format.fields(schema_format.parse(text.encode(), {}))
            field_type = next((field.type for field in fields if field.path.rpartition(".")[2] == "x"), "")
            yield WriteSupport(
                kind.simpleString(), format_name, field_type, tuple(dict.fromkeys(loss.what for loss in losses))
            )


def _sample_schemas() -> Iterator[tuple[str, str, str]]:
    """Yield (format, name of the type, a schema with the one field x)."""
    for name, kind in _AVRO.items():
        yield "avro", name, json.dumps({"type": "record", "name": "R", "fields": [{"name": "x", "type": kind}]})
    for name, body in _PROTOBUF.items():
        yield "protobuf", name, f'syntax = "proto3"; {_IMPORTS} message R {{ {body} }}'
    for name, schema in _JSON.items():
        yield "json", name, json.dumps({"title": "R", "type": "object", "properties": {"x": schema}})
    for name, field in _THRIFT.items():
        around = "enum E { A = 0 } struct Inner { 1: i32 y } union U { 1: i32 a, 2: string b }"
        yield "thrift", name, f"{around} struct R {{ {field} }}"


def _data_type(format_name: str, text: str) -> str:
    """Return the type `from_registry` gives the field, '' where the schema has no columns for data."""
    from stele.spark.decode.formats import type_for

    try:
        data_type = type_for(ResolvedSchema(text, format_name.upper()))
        struct = to_spark_types([data_type])[0]
    except (Invalid, DataError):
        return ""
    named = {field.name: field.dataType.simpleString() for field in getattr(struct, "fields", ())}
    return named.get("x") or struct.simpleString()


def _spark_samples() -> list[DataType]:
    from pyspark.sql import types as t

    plain = [
        *(t.BooleanType(), t.ByteType(), t.ShortType(), t.IntegerType(), t.LongType(), t.FloatType(), t.DoubleType()),
        *(t.DecimalType(10, 2), t.DecimalType(38, 0), t.StringType(), t.VarcharType(5), t.BinaryType()),
        *(t.DateType(), t.TimestampType(), t.TimestampNTZType(), t.DayTimeIntervalType(), t.CalendarIntervalType()),
        *(t.VariantType(), t.NullType()),
    ]
    if hasattr(t, "TimeType"):
        plain.append(t.TimeType(6))
    inner = t.StructType([t.StructField("y", t.IntegerType())])
    return [
        *plain,
        t.ArrayType(t.IntegerType()),
        t.MapType(t.StringType(), t.IntegerType()),
        t.MapType(t.TimestampType(), t.IntegerType()),
        inner,
    ]
