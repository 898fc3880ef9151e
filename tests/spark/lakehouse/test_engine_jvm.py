"""The engine's jar on Spark 4.1: the vectors of the other engines, and Spark's own `from_avro` and `to_avro`."""

from __future__ import annotations

import json
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import from_avro, to_avro
from tests.spark.test_jvm_vectors import Case, agree, decode_all, mutants, plain, sort_entries, table
from tests.unit.spark.avro_cases import LEAVES, Cases, frame_record, schema
from tests.unit.spark.test_engines import record
from tests.unit.spark.test_recursion import LIST, chain

from stele.client import ResolvedSchema, SchemaSnapshot
from stele.spark import from_registry, to_registry
from stele.spark.engines.jvm import is_loaded
from stele.spark.engines.resolve import Resolver
from stele.spark.functions import to_spark_types

FOREIGN = {"time-millis", "time-micros", "wide", "null"}
"""Types without parts that `from_avro` maps to another type, or does not support."""
NAMED: dict[str, Any] = {
    "enum": ({"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}, lambda r: (r.choice("ABC"),) * 2),
    "fixed": ({"type": "fixed", "name": "F", "size": 9}, lambda r: (r.randbytes(9),) * 2),
}
KINDS = {name: leaf for name, leaf in {**LEAVES, **NAMED}.items() if name not in FOREIGN}


def pin_schema(document: Any) -> SchemaSnapshot:
    """Return a snapshot with a schema under id 1, so that no registry is needed."""
    return SchemaSnapshot((ResolvedSchema(json.dumps(document), id=1, subject="s", version=1),))


def leaf_record(name: str, kind: Any) -> dict[str, Any]:
    """Return a record with a leaf type alone, nullable, in an array, and in a map."""
    again = kind.get("name", kind) if name in NAMED else kind
    return record(
        ("a", kind),
        ("b", ["null", again]),
        ("c", {"type": "array", "items": ["null", again]}),
        ("m", {"type": "map", "values": again}),
    )


def leaf_frames(name: str, document: Any) -> pa.Array[Any]:
    """Return records of the type. Maps have at most one entry, as Java has an order of its own."""
    random = Random(5)
    make = KINDS[name][1]
    data = [
        {
            "a": make(random)[0],
            "b": make(random)[0] if n % 2 else None,
            "c": [make(random)[0], None][: n % 3],
            "m": {"k": make(random)[0]} if n % 2 else {},
        }
        for n in range(12)
    ]
    return pa.array([frame_record(document, datum) for datum in data], pa.binary())


def by_spark(df: DataFrame, document: Any) -> pa.Array[Any]:
    """Return what `from_avro` makes of the payloads of the column c0, with nullable fields as in Stele's types."""
    type_ = to_spark_types([Resolver(schema(document), for_spark=True).root.type])[0]
    result = df.select(from_avro(f.expr("substring(c0, 6)"), json.dumps(document)).cast(type_).alias("v")).toArrow()
    return result.column(0).combine_chunks()


def test_the_jar_is_there(spark: SparkSession) -> None:
    """A jar that was built with another Spark version loads here."""
    assert spark.version.startswith("4.1.")
    assert is_loaded(spark)


def test_engines_agree(spark: SparkSession) -> None:
    """Damaged records of random schemas, and lists deeper than their levels, give the results of the other engines."""
    lists = [frame_record(LIST, chain(length)) for length in range(1, 6)]
    node = schema(LIST)
    cases = [*mutants(range(300, 312), 60), Case(node, {1: node}.get, pa.array(lists, pa.binary()), 2)]
    bad, total = agree(spark, cases, "vm", "python")
    assert 0.3 < bad / total < 0.99, "the damage must be neither harmless nor always fatal, or this proves little"


def test_from_avro_reads_the_same(spark: SparkSession) -> None:
    """Valid records of every type that Spark's function supports have the same values and types."""
    for name, (kind, _) in KINDS.items():
        document = leaf_record(name, kind)
        column = leaf_frames(name, document)
        df = table(spark, [column])
        theirs = by_spark(df, document)
        mine = from_registry(df, "c0", subject="s", registry=pin_schema(document), engine="jvm")
        type_ = df.select(from_avro("c0", json.dumps(document)).alias("v")).schema["v"].dataType
        assert mine.schema["value"].dataType.simpleString() == type_.simpleString()
        values = mine.toArrow().column("value").combine_chunks()
        assert plain(values) == plain(theirs), name


def test_from_avro_reads_random_records_alike(spark: SparkSession) -> None:
    """Nested records, general unions, arrays and maps of random schemas are decoded as by Spark's function."""
    compared = 0
    for seed in range(400, 425):
        cases = Cases(seed)
        document, make = cases.record()
        text = json.dumps(document)
        if any(each in text for each in ("time-m", '"precision": 76', '"precision": 45', '"null"}', '"type": "null"')):
            continue
        frames = pa.array([frame_record(document, make(cases.random)[0]) for _ in range(15)], pa.binary())
        theirs = by_spark(table(spark, [frames]), document)
        (mine,) = decode_all(spark, [Case(schema(document), {1: schema(document)}.get, frames)])
        assert mine.codes.null_count == len(frames)
        assert sort_entries(plain(mine.values)) == sort_entries(plain(theirs))
        compared += 1
    assert compared > 5


def test_to_avro_writes_the_same(spark: SparkSession) -> None:
    """The bytes behind the frame are those of Spark's function, for every type it knows."""
    for name, (kind, _) in KINDS.items():
        document = leaf_record(name, kind)
        column = leaf_frames(name, document)
        rows = from_registry(table(spark, [column]), "c0", subject="s", registry=pin_schema(document), engine="jvm")
        wide = rows.select("value.*")
        mine = to_registry(wide, subject="s", registry=pin_schema(document), engine="jvm").toArrow().column("value")
        theirs = wide.select(to_avro(f.struct("*"), json.dumps(document)).alias("v")).toArrow().column("v")
        assert [frame[5:] for frame in mine.to_pylist()] == theirs.to_pylist(), name
        assert mine.to_pylist() == column.to_pylist(), name


def test_levels_and_wide_decimals(spark: SparkSession) -> None:
    """A recursive list and a decimal of fifty digits, which Spark's functions refuse, survive a round trip."""
    money = {"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 2}
    document = record(("d", money), ("next", ["null", "Node"], None), name="Node")
    digits = Decimal("9" * 26 + ".25")
    frames = [frame_record(document, {"d": digits, "next": {"d": -digits, "next": None}})]
    df = table(spark, [pa.array(frames, pa.binary())])
    rows = from_registry(df, "c0", subject="s", registry=pin_schema(document), engine="jvm", recursion=1)
    assert rows.first().value.next.d == f"-{digits}"
    again = to_registry(
        rows, subject="s", registry=pin_schema(document), columns="value", engine="jvm", recursion=1, into="v"
    )
    assert bytes(again.first().v) == frames[0]
