"""Formats, wires, several types, SQL and outages in a local Spark; the results by row are tested without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from tests.spark.local_registry import LocalRegistry
from tests.spark.orders import SUBJECT, V1, V2, V3, VERSIONS, drop, frame_record, order

from stele.errors import Invalid
from stele.spark import from_registry, to_registry
from stele.spark.stream_sql.sql_functions import register_sql_functions
from stele.wire import confluent, pravega

PROTO = 'syntax = "proto3"; message Item { string sku = 1; uint64 count = 2; repeated string tags = 3; }'
DOCUMENT = {
    "title": "Item",
    "type": "object",
    "properties": {"sku": {"type": "string"}, "price": {"type": "number"}, "left": {"type": "integer"}},
    "required": ["sku"],
}
THRIFT = "struct Item { 1: required string sku, 2: optional list<i32> sizes }"


def raw(spark: SparkSession, *values: Any, schema: str = "row int, value binary") -> DataFrame:
    """Return records in one partition, with a row number."""
    rows = [(number, *(value if isinstance(value, tuple) else (value,))) for number, value in enumerate(values)]
    return spark.createDataFrame(rows, schema).coalesce(1)


@pytest.mark.parametrize(
    ("schema_type", "text", "columns", "rows"),
    [
        (
            "PROTOBUF",
            PROTO,
            "sku string, count decimal(20,0), tags array<string>",
            [("a", Decimal(2**64 - 1), ["x"]), ("b", Decimal(0), [])],
        ),
        (
            "JSON",
            json.dumps(DOCUMENT),
            "sku string, price double, left bigint",
            [("a", 1.5, 3), ("b", None, None)],
        ),
        ("THRIFT", THRIFT, "sku string, sizes array<int>", [("a", [1, 2]), ("b", None)]),
    ],
    ids=["protobuf", "json", "thrift"],
)
def test_rows_of_every_format_are_written_and_read(
    spark: SparkSession, registry: LocalRegistry, schema_type: str, text: str, columns: str, rows: list[Any]
) -> None:
    """Columns are written as records of the format and decoded to the same values, with bad records beside them."""
    number = registry.add_text("items", text, schema_type)
    df = spark.createDataFrame(rows, columns).coalesce(1)
    records = to_registry(df, subject="items", registry=registry.url)
    frames = [bytes(row.value) for row in records.collect()]
    assert all(frame.startswith(confluent.id_prefix(number)) for frame in frames)
    back = from_registry(
        raw(spark, *frames, None, b"\0\0\0\0\x01\xff\xff", frames[0]),
        subject="items", registry=registry.url, mode="PERMISSIVE", id_column="writer",
    )  # fmt: skip
    values = back.select("value.*").collect()
    assert [tuple(row) for row in values[:2]] == [tuple(row) for row in df.collect()]
    assert values[2] == values[3] != values[4] == values[0]
    errors = [row.value_error for row in back.collect()]
    assert [error is None for error in errors] == [True, True, True, False, True]
    assert errors[3].schema_id == number


def test_wires_with_headers_and_lookups(spark: SparkSession, registry: LocalRegistry) -> None:
    """Guids are read from and written to Kafka's headers column; Pravega's encodings come from the registry."""
    registry.add(SUBJECT, V1)
    orders = from_registry(raw(spark, order(1, 1, 5)), subject=SUBJECT, registry=registry.url).select("value.*")
    records = to_registry(orders, subject=SUBJECT, registry=registry.url, wire="confluent-header")
    assert records.columns == ["value", "headers"]
    assert records.schema["headers"].dataType.simpleString() == "array<struct<key:string,value:binary>>"
    back = from_registry(
        records, subject=SUBJECT, registry=registry.url, wire="confluent-header", headers="headers", id_column="writer"
    )
    assert back.columns == ["headers", "value", "writer"]
    assert [(row.value.id, row.writer) for row in back.collect()] == [(5, registry.get_guid(1))]
    with pytest.raises(Invalid, match="name their column"):
        from_registry(records, subject=SUBJECT, registry=registry.url, wire="confluent-header")
    payload = pravega.frame(0, pravega.compress(pravega.GZIP, order(1, 1, 7)[5:]))
    registry.add_encoding(SUBJECT, 1, pravega.GZIP)
    packed = from_registry(raw(spark, payload), subject=SUBJECT, registry=registry.url, wire="pravega")
    assert packed.select("value.id").collect()[0].id == 7


def test_types_apart(spark: SparkSession, registry: LocalRegistry) -> None:
    """Several subjects make one struct per type; without a subject, records are JSON."""
    registry.add("place", V1["fields"][1]["type"])
    registry.add(SUBJECT, V2)
    frames = [order(2, 2, 1), frame_record(V1["fields"][1]["type"], {"city": "Oslo"}, 1)]
    df = from_registry(raw(spark, *frames), subject=[SUBJECT, "place"], registry=registry.url)
    assert df.select("value.*").columns == ["Order", "Place"]
    assert [tuple(row) for row in df.select("value.Order.id", "value.Place.city").collect()] == [
        (1, None),
        (None, "Oslo"),
    ]
    anything = from_registry(raw(spark, *frames), subject=None, registry=registry.url).select("value.*").collect()
    assert [row.type for row in anything] == ["Order", "Place"]
    assert json.loads(anything[1].json) == {"city": "Oslo"}


def test_sql(spark: SparkSession, registry: LocalRegistry) -> None:
    """Functions of a subject read and write in SQL; the table function takes any subject."""
    for document in VERSIONS:
        registry.add(SUBJECT, document)
    names = register_sql_functions(spark, registry.url, readers={"orders": SUBJECT}, writers={"to_orders": SUBJECT})
    assert names == ["orders", "orders_error", "to_orders", "from_registry_any", "from_registry"]
    raw(spark, order(1, 1, 1), order(3, 3, 2), None, b"bad").createOrReplaceTempView("raw")
    rows = spark.sql(
        "SELECT orders(value).id AS id, orders_error(value).reason AS reason FROM raw ORDER BY row"
    ).collect()
    assert [row.id for row in rows] == [1, 2, None, None]
    assert [row.reason is None for row in rows] == [True, True, True, False]
    again = spark.sql("SELECT orders(to_orders(orders(value))) AS o FROM raw WHERE row < 3 ORDER BY row").collect()
    assert [row.o and row.o.note for row in again] == [None, "note 2", None]
    types = spark.sql("SELECT from_registry_any(value).type AS type FROM raw ORDER BY row").collect()
    assert [row.type for row in types] == ["Order", "Order", None, None]
    table = spark.sql("SELECT * FROM from_registry(TABLE(raw), 'orders-value') ORDER BY row")
    assert table.columns == ["row", "value", "schema_id", "error"]
    assert [(row.schema_id, row.error is None) for row in table.collect()] == [
        (1, True),
        (3, True),
        (None, True),
        (None, False),
    ]
    with pytest.raises(Invalid, match="ids in headers"):
        register_sql_functions(spark, registry.url, wire="confluent-header")


def test_streams_fetch_ids_when_they_come_and_survive_outages(
    spark: SparkSession, registry: LocalRegistry, tmp_path: Path
) -> None:
    """A new id is looked up in the batch that has it. An outage fails the batch, and no record is lost or repeated."""
    registry.add(SUBJECT, V1)
    source, sink, checkpoint = tmp_path / "in", tmp_path / "out", tmp_path / "checkpoint"
    drop(source, "1.parquet", [order(1, 1, 1)])

    def run(patience: float = 60) -> None:
        stream = spark.readStream.schema("value binary").parquet(str(source))
        df = from_registry(stream, subject=SUBJECT, registry=registry.url, reader=json.dumps(V2), patience=patience)
        writer = df.select("value.id").writeStream.option("checkpointLocation", str(checkpoint))
        query = writer.format("parquet").trigger(availableNow=True).start(str(sink))
        query.awaitTermination()

    def read_ids() -> list[int]:
        return sorted(row.id for row in spark.read.parquet(str(sink)).collect())

    run()
    registry.add(SUBJECT, V2)
    drop(source, "2.parquet", [order(2, 2, 2), order(2, 2, 3)])
    run()
    assert read_ids() == [1, 2, 3]
    drop(source, "3.parquet", [order(3, 3, 4), order(1, 1, 5)])
    registry.add("elsewhere", V3)
    registry.break_down("/schemas/ids/3")
    with pytest.raises(StreamingQueryException, match="on purpose"):
        run(patience=0)
    assert read_ids() == [1, 2, 3]
    registry.heal()
    run()
    run()
    assert read_ids() == [1, 2, 3, 4, 5]


CONNECT = """
import sys
sys.path.insert(0, {folder!r})
from tests.spark.orders import SUBJECT, VERSIONS, order
from stele.spark import from_registry, to_registry
from stele.spark.stream_sql.sql_functions import register_sql_functions

raw = spark.createDataFrame([(0, order(1, 1, 1)), (1, order(3, 3, 2)), (2, None), (3, b"x")], "row int, value binary")
df = from_registry(raw, subject=SUBJECT, registry={url!r}, mode="PERMISSIVE", engine="python")
print([row.value and row.value.id for row in df.orderBy("row").collect()])
records = to_registry(df.where("row < 2").select("value.*"), subject=SUBJECT, registry={url!r}, engine="python")
print(records.count())
register_sql_functions(spark, {url!r}, readers={{"orders": SUBJECT}}, engine="python")
raw.createOrReplaceTempView("raw")
print([row.id for row in spark.sql("SELECT orders(value).id AS id FROM raw ORDER BY row").collect()])
print(spark.sql("SELECT * FROM from_registry(TABLE(raw), 'orders-value')").columns)
"""


def test_connect(registry: LocalRegistry, run_over_connect: Callable[[str], list[str]]) -> None:
    """All of this works through Spark Connect, in a process of its own."""
    for document in VERSIONS:
        registry.add(SUBJECT, document)
    script = CONNECT.format(folder=str(Path(__file__).parents[2]), url=registry.url)
    assert run_over_connect(script) == [
        "[1, 2, None, None]",
        "2",
        "[1, 2, None, None]",
        "['row', 'value', 'schema_id', 'error']",
    ]
