"""Documentation of schemas as comments of columns, in every schema language that has documentation."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from pyspark.sql.types import ArrayType, DataType, IntegerType, MapType, StructField, StructType

from stele.client import ResolvedSchema
from stele.spark.decode.formats import type_for
from stele.spark.functions import to_spark_types
from stele.spark.types import with_comments
from stele.spark.types.metadata import comment_of

AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long", "doc": "Number of the order."},
            {
                "name": "lines",
                "doc": "What was ordered.",
                "type": {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "Line",
                        "fields": [{"name": "sku", "type": ["null", "string"], "doc": "Article."}],
                    },
                },
            },
            {
                "name": "by_day",
                "type": {
                    "type": "map",
                    "values": {
                        "type": "record",
                        "name": "Day",
                        "fields": [{"name": "n", "type": "int", "doc": "Pieces."}],
                    },
                },
            },
        ],
    }
)
PROTOBUF = """
syntax = "proto3";
message Order {
  // Number of the order.
  int64 id = 1;
  // What was ordered.
  repeated Line lines = 2;
  message Line {
    // Article.
    string sku = 1;
  }
}
"""
JSON = json.dumps(
    {
        "type": "object",
        "properties": {
            "id": {"type": "integer", "description": "Number of the order."},
            "lines": {
                "description": "What was ordered.",
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"sku": {"type": "string", "description": "Article."}},
                    "required": ["sku"],
                },
            },
        },
        "required": ["id", "lines"],
    }
)
THRIFT = """
struct Line {
  /** Article. */
  1: string sku
}
struct Order {
  /** Number of the order. */
  1: i64 id
  /** What was ordered. */
  2: list<Line> lines
}
"""
EXPECTED = {"id": "Number of the order.", "lines": "What was ordered.", "lines.element.sku": "Article."}


def comments(kind: DataType, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the paths and comments of all columns that have one."""
    match kind:
        case ArrayType():
            yield from comments(kind.elementType, f"{path}element.")
        case MapType():
            yield from comments(kind.valueType, f"{path}value.")
        case StructType():
            for field in kind.fields:
                if comment_of(field):
                    yield path + field.name, comment_of(field)
                yield from comments(field.dataType, f"{path}{field.name}.")


@pytest.mark.parametrize(
    ("text", "language", "message", "more"),
    [
        (AVRO, "AVRO", "", {"by_day.value.n": "Pieces."}),
        (PROTOBUF, "PROTOBUF", "Order", {}),
        (JSON, "JSON", "", {}),
        (THRIFT, "THRIFT", "Order", {}),
    ],
)
def test_documentation_becomes_comments(text: str, language: str, message: str, more: dict[str, str]) -> None:
    """Each field's documentation is the comment of its column, in lists and maps, too. Types do not change."""
    document = ResolvedSchema(text, language)
    (columns,) = to_spark_types([type_for(document, message)])
    assert isinstance(columns, StructType)
    documented = with_comments(columns, document, message)
    assert dict(comments(documented)) == EXPECTED | more
    assert documented.simpleString() == columns.simpleString()
    assert [field.nullable for field in documented.fields] == [field.nullable for field in columns.fields]


def test_schemas_without_documentation_leave_columns_alone() -> None:
    """A type that contains itself has comments on all its columns. Without documentation there is no metadata."""
    tree = {
        "type": "record",
        "name": "T",
        "fields": [
            {"name": "leaf", "type": "int", "doc": "Value."},
            {"name": "next", "type": ["null", "T"], "default": None},
        ],
    }
    leaf = StructField("leaf", IntegerType())
    columns = StructType([leaf, StructField("next", StructType([leaf]))])
    assert dict(comments(with_comments(columns, ResolvedSchema(json.dumps(tree))))) == {"leaf": "Value."}
    plain = json.dumps({"type": "record", "name": "P", "fields": [{"name": "a", "type": "int"}]})
    bare = StructType([StructField("a", IntegerType())])
    assert with_comments(bare, ResolvedSchema(plain)) == bare
