"""CPU seconds of decoding JSON and Protobuf in Spark, against Spark's own functions and substitutes for them.

    python -m bench.spark_formats [records, default 1000000]

The records of `spark_decode.py` in one version, as JSON with a schema that declares the type of each member and the
required ones, and as Protobuf messages. Every line reads Parquet and ends in Spark's `noop` sink.

    from_json       Spark's own, which validates nothing
    DynamicMessage  replaces `from_protobuf`, whose jar was not available: its inner loop, rewritten in
                    `java/DynamicMessages.java`. Protobuf's own parser makes a `DynamicMessage` by descriptors, and each
                    of its fields becomes a value of a row
    upb UDF         the usual UDF: Protobuf's Python parser, a dict for each message, one array

CPU time is measured as in `spark_decode.py`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from bench.report import Row, report
from bench.spark_decode import COLUMNS, RECORDS, ROUNDS, measure_case, split_columns
from bench.spark_formats_java import CATALOG, add_catalog, call
from google.protobuf.json_format import MessageToDict
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from stele.client import ResolvedSchema, SchemaSnapshot
from stele.client.serdes.schemas import parse_schema
from stele.spark import from_registry, local_session, to_registry
from stele.spark.decode.formats import type_for

PROTOBUF = """syntax = "proto3"; package bench;
message Order {
  string order_id = 1; int64 customer_id = 2; Status status = 3; string amount = 4; int64 created_at = 5;
  optional int64 updated_at = 6; Address address = 7; repeated Item items = 8; map<string, string> attributes = 9;
  optional string email = 10; string currency = 11; optional int32 priority = 12;
  enum Status { NEW = 0; PAID = 1; SHIPPED = 2; }
  message Address { string street = 1; string city = 2; optional string zip = 3; double lat = 4; double lon = 5; }
  message Item { string sku = 1; int32 qty = 2; double price = 3; }
}
"""


def _members(**members: Any) -> dict[str, Any]:
    nullable = [name for name, kind in members.items() if "null" in kind.get("type", ())]
    required = [name for name in members if name not in nullable]
    return {"type": "object", "properties": members, "required": required}


_TEXT, _NUMBER, _INTEGER = {"type": "string"}, {"type": "number"}, {"type": "integer"}
_PERHAPS = {"type": ["null", "string"]}
JSON = {
    "title": "Order",
    **_members(
        order_id=_TEXT | {"minLength": 1},
        customer_id=_INTEGER | {"minimum": 0},
        status={"type": "string", "enum": ["NEW", "PAID", "SHIPPED"]},
        amount=_TEXT,
        created_at=_INTEGER,
        updated_at={"type": ["null", "integer"]},
        address=_members(street=_TEXT, city=_TEXT, zip=_PERHAPS, lat=_NUMBER, lon=_NUMBER),
        items={"type": "array", "items": _members(sku=_TEXT, qty=_INTEGER, price=_NUMBER)},
        attributes={"type": "object", "additionalProperties": _TEXT},
        email=_PERHAPS,
        currency=_TEXT,
        priority={"type": ["null", "integer"], "maximum": 9},
    ),
}


def pin_schema(text: str, schema_type: str) -> SchemaSnapshot:
    """Return a snapshot with a schema under id 1."""
    return SchemaSnapshot((ResolvedSchema(text, schema_type, id=1, subject="orders", version=1),))


def write_data(spark: SparkSession, folder: Path, records: int) -> None:
    """Write the same records in both languages with frames, as JSON without frames, and as bare Protobuf messages."""
    more = ", 'EUR' AS currency, cast(id % 5 AS int) AS priority"
    wide = spark.range(records).selectExpr(*split_columns(COLUMNS + more))
    wide = wide.withColumns(
        {
            "amount": f.col("amount").cast("string"),
            "created_at": f.unix_micros("created_at"),
            "updated_at": f.unix_micros("updated_at"),
        }
    )
    wide.coalesce(2).write.parquet(str(folder / "wide"))
    wide = spark.read.parquet(str(folder / "wide"))
    text = wide.select(f.to_json(f.struct("*")).alias("value"))
    text.write.parquet(str(folder / "json"))
    frame = f.concat(f.lit(b"\0\0\0\0\1"), f.encode("value", "UTF-8"))
    spark.read.parquet(str(folder / "json")).select(frame.alias("value")).write.parquet(str(folder / "framed"))
    proto = to_registry(wide, subject="orders", registry=pin_schema(PROTOBUF, "PROTOBUF"))
    proto.write.parquet(str(folder / "proto"))


def usual_udf(text: str, type_: pa.DataType) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a UDF as users write it: each message is parsed and converted to a dict, a list of those to one array."""

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        kind = parse_schema(ResolvedSchema(text, "PROTOBUF")).parsed.message_class("")
        for batch in batches:
            rows = []
            for frame in batch.column(0).to_pylist():
                row = MessageToDict(kind.FromString(frame[6:]), preserving_proto_field_name=True)
                for name in ("customer_id", "created_at", "updated_at"):  # JSON has 64-bit integers as text
                    row[name] = int(row[name]) if name in row else None
                rows.append(row)
            yield pa.RecordBatch.from_arrays([pa.array(rows, type_)], ["value"])

    return decode


def main() -> None:
    """Measure, print, keep."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS
    spark = local_session("stele bench")
    with tempfile.TemporaryDirectory() as folder:
        add_catalog(spark, Path(folder))
        write_data(spark, Path(folder), records)
        text, framed, proto = (spark.read.parquet(f"{folder}/{kind}") for kind in ("json", "framed", "proto"))

        def decode_column(df: DataFrame, schema: str, schema_type: str) -> DataFrame:
            return from_registry(df, subject="orders", registry=pin_schema(schema, schema_type))

        ours = decode_column(proto, PROTOBUF, "PROTOBUF").schema
        json_schema = json.dumps(JSON)
        json_type = decode_column(framed, json_schema, "JSON").schema["value"].dataType
        udf = usual_udf(PROTOBUF, type_for(pin_schema(PROTOBUF, "PROTOBUF").schemas[0]))
        descriptors = parse_schema(pin_schema(PROTOBUF, "PROTOBUF").schemas[0]).parsed
        stand_in = call(descriptors, "bench.Order", ours["value"].dataType)
        same = proto.select(f.expr("substring(value, 7)").alias("p")).select(
            f.call_function(stand_in, "p").alias("value")
        )
        theirs, mine = (
            same.where("value.priority = 3").first(),
            decode_column(proto, PROTOBUF, "PROTOBUF").where("value.priority = 3").first(),
        )
        assert theirs == mine, f"{CATALOG} does not do the same: {theirs} {mine}"
        best = measure_case(
            {
                "read the JSON only": lambda: text,
                "from_json": lambda: text.select(f.from_json("value", json_type)),
                "from_registry, JSON, validated": lambda: decode_column(framed, json_schema, "JSON"),
                "read the Protobuf only": lambda: proto,
                "DynamicMessage (stands for from_protobuf)": lambda: same,
                "from_registry, Protobuf": lambda: decode_column(proto, PROTOBUF, "PROTOBUF"),
                "upb UDF": lambda: proto.mapInArrow(udf, ours),
            }
        )
    spark.stop()
    rows: list[Row] = [
        {"pipeline": run, "CPU s": round(cpu, 2), "wall s": round(wall, 2), "records/s/core": round(records / cpu)}
        for run, (cpu, wall) in best.items()
    ]
    json_ratio = best["from_json"][0] / best["from_registry, JSON, validated"][0]
    proto_ratio = best["DynamicMessage (stands for from_protobuf)"][0] / best["from_registry, Protobuf"][0]
    report(
        "spark_formats",
        rows,
        [
            f"{records} records of twelve fields, nested; local[2], noop sink, least of {ROUNDS} rounds taken in turns",
            f"JSON with validation is {json_ratio:.2f} times as cheap as from_json without (wanted: 0.6)",
            f"Protobuf is {proto_ratio:.2f} times as cheap as DynamicMessage in the JVM (wanted of from_protobuf: 1.0)",
        ],
    )


if __name__ == "__main__":
    main()
