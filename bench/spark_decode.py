"""CPU seconds of decoding framed Avro records in Spark: both engines, against reading only and against JSON.

    python bench/spark_decode.py [records, default 300000]

Three writer versions are mixed row by row in one column. Every line reads Parquet and ends in Spark's `noop` sink, so
the first is the floor; one decodes the same records, written as JSON, with Spark's own `from_json`. CPU is that of the
JVM and all Python workers, user and system, the least of three rounds; wall-clock time on a busy machine says little.
Linux only (it reads /proc).
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from report import Row, report
from stele.client import ResolvedSchema, SchemaSnapshot
from stele.spark import from_registry, local_session, to_registry

SUBJECT = "orders-value"
ROUNDS = 3

COLUMNS = """
    concat(hex(xxhash64(id)), '-', hex(id)) AS order_id,
    id * 7 % 1000003 AS customer_id,
    element_at(array('NEW', 'PAID', 'SHIPPED'), cast(id % 3 + 1 AS int)) AS status,
    cast(id % 1000000 / 100 AS decimal(12, 2)) AS amount,
    timestamp_micros(1735689600000000 + id * 1000003) AS created_at,
    if(id % 2 = 0, NULL, timestamp_micros(1735689600000000 + id)) AS updated_at,
    named_struct('street', concat(id % 999, ' main street'), 'city', 'São Paulo',
                 'zip', if(id % 3 = 0, NULL, '01000'), 'lat', rand(1), 'lon', rand(2)) AS address,
    transform(sequence(1, cast(1 + id % 3 AS int)),
              n -> named_struct('sku', concat('SKU-', id), 'qty', n, 'price', n / 7D)) AS items,
    map('channel', 'web', concat('k', id % 9), cast(id AS string)) AS attributes,
    if(id % 4 = 0, NULL, concat('u', id, '@example.com')) AS email
"""


def _record(name: str, *fields: tuple[Any, ...]) -> dict[str, Any]:
    keys = ("name", "type", "default")
    return {"type": "record", "name": name, "fields": [dict(zip(keys, field, strict=False)) for field in fields]}


def versions() -> list[dict[str, Any]]:
    """Three versions of one record: a field promoted, one added with a default, one added that may be null."""
    address = _record(
        "Address",
        ("street", "string"),
        ("city", "string"),
        ("zip", ["null", "string"], None),
        ("lat", "double"),
        ("lon", "double"),
    )
    item = _record("Item", ("sku", "string"), ("qty", "int"), ("price", "double"))
    micros = {"type": "long", "logicalType": "timestamp-micros"}
    made = []
    for customer, more in (("int", ()), ("long", (("currency", "string", "EUR"),))):
        fields = (
            ("order_id", "string"),
            ("customer_id", customer),
            ("status", {"type": "enum", "name": "Status", "symbols": ["NEW", "PAID", "SHIPPED"]}),
            ("amount", {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}),
            ("created_at", micros),
            ("updated_at", ["null", micros], None),
            ("address", address),
            ("items", {"type": "array", "items": item}),
            ("attributes", {"type": "map", "values": "string"}),
            ("email", ["null", "string"], None),
        )
        made.append(_record("Order", *fields, *more))
    newest = json.loads(json.dumps(made[-1]))
    newest["fields"].append({"name": "priority", "type": ["null", "int"], "default": None})
    return [*made, newest]


def snapshot() -> SchemaSnapshot:
    """The versions under ids 101 to 103, so that no registry is needed."""
    schemas = [
        ResolvedSchema(json.dumps(document), id=101 + place, subject=SUBJECT, version=1 + place)
        for place, document in enumerate(versions())
    ]
    return SchemaSnapshot(tuple(schemas))


def write_data(spark: SparkSession, folder: Path, records: int) -> None:
    """The records as framed Avro, in mixed order, and the same ones as JSON."""
    known = snapshot()
    frames: list[DataFrame] = []
    more = ("", ", 'EUR' AS currency", ", 'EUR' AS currency, cast(id % 5 AS int) AS priority")
    for place, extra in enumerate(more):
        rows = spark.range(place, records, 3).selectExpr("id AS n", *_split(COLUMNS + extra))
        text = known.schemas[place].text
        frames.append(to_registry(rows, subject=SUBJECT, registry=known, schema=text, keep=["n"]))
    mixed = frames[0].union(frames[1]).union(frames[2]).orderBy(f.xxhash64("n"))
    mixed.select("value").coalesce(2).write.parquet(str(folder / "avro"))
    decoded = from_registry(spark.read.parquet(str(folder / "avro")), subject=SUBJECT, registry=known)
    decoded.select(f.to_json("value").alias("value")).coalesce(2).write.parquet(str(folder / "json"))


def _split(columns: str) -> list[str]:
    """The expressions of a select list: split at commas outside brackets."""
    parts, depth, begin = [], 0, 0
    for place, char in enumerate(columns):
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            parts.append(columns[begin:place])
            begin = place + 1
    return [*parts, columns[begin:]]


def cpu_seconds() -> float:
    """CPU time of all processes below this one, ended ones too."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            parts = place.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        parents[int(place.parent.name)] = int(parts[1])
        ticks[int(place.parent.name)] = sum(int(part) for part in parts[11:15])
    mine = {os.getpid()}
    while grown := {pid for pid, parent in parents.items() if parent in mine} - mine:
        mine |= grown
    return sum(ticks[pid] for pid in mine - {os.getpid()}) / os.sysconf("SC_CLK_TCK")


def measured(runs: dict[str, Callable[[], DataFrame]]) -> dict[str, tuple[float, float]]:
    """The least (CPU, wall) seconds of each run; all runs take turns, after one round that is not counted."""
    best: dict[str, tuple[float, float]] = {}
    for number in range(1 + ROUNDS):
        for name, run in runs.items():
            cpu, wall = cpu_seconds(), time.perf_counter()
            run().write.format("noop").mode("overwrite").save()
            spent = cpu_seconds() - cpu, time.perf_counter() - wall
            if number:
                best[name] = min(best.get(name, spent), spent)
    return best


def main() -> None:
    """Measure, print, keep."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 300_000
    spark = local_session("stele bench")
    with tempfile.TemporaryDirectory() as folder:
        write_data(spark, Path(folder), records)
        avro, text = (spark.read.parquet(f"{folder}/{kind}") for kind in ("avro", "json"))
        known = snapshot()

        def decoded(engine: str) -> DataFrame:
            return from_registry(avro, subject=SUBJECT, registry=known, engine=engine)

        schema = decoded("vm").schema["value"].dataType.simpleString()
        best = measured(
            {
                "read the column only": lambda: avro,
                "to Python and back (identity)": lambda: avro.mapInArrow(lambda batches: batches, avro.schema),
                "from_registry, vm": lambda: decoded("vm"),
                "from_json (same records as JSON)": lambda: text.select(f.from_json("value", schema)),
                "from_registry, python": lambda: decoded("python"),
            }
        )
    spark.stop()
    floor, other = best["read the column only"][0], best["from_json (same records as JSON)"][0]
    rows: list[Row] = [
        {
            "pipeline": name,
            "CPU s": round(cpu, 2),
            "wall s": round(wall, 2),
            "records/s/core": round(records / cpu),
            "× read only": round(cpu / floor, 2),
            "× from_json": round(cpu / other, 2),
        }
        for name, (cpu, wall) in best.items()
    ]
    notes = [f"{records} records of three versions, local[2], noop sink, least of {ROUNDS} rounds taken in turns"]
    report("spark_decode", rows, notes, {"pyspark": pyspark.__version__})


if __name__ == "__main__":
    main()
