"""CPU seconds of decoding framed Avro records in Spark: all engines, against Spark's own functions and a Python UDF.

    python -m bench.spark_decode [records, default 1000000]

Three writer versions are mixed row by row in one column. Every line reads Parquet and ends in Spark's `noop` sink, so
the first line is the minimum. Besides the engines:

    from_json    the same records, written as JSON
    from_avro    the same records in the newest version only (it knows one writer) and without their frames; from
                 the jar AVRO_JAR, which Spark fetches from Maven Central
    fastavro     the usual UDF: fastavro's schemaless reader, row by row, in mapInArrow

CPU is that of the JVM and all Python workers, user and system, the least of several alternating rounds. Wall-clock time
is unreliable on a busy machine. Linux only (it reads /proc).
"""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyspark
from bench.report import Row, report
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import from_avro

from stele.client import ResolvedSchema, SchemaSnapshot
from stele.spark import from_registry, local_session, to_registry
from stele.spark.decode.formats import type_for

SUBJECT = "orders-value"
ROUNDS = 3
RECORDS = 1_000_000
AVRO_JAR = "org.apache.spark:spark-avro_2.13:4.1.1"
"""The jar of `from_avro`. It holds only the expressions; the code that they call is inside PySpark."""
PACKAGES = {
    "spark__jars__packages": AVRO_JAR,
    "spark__jars__excludes": "org.scala-lang.modules:scala-parallel-collections_2.13,org.tukaani:xz",
}
"""Settings to fetch the jar without its dependencies, which are inside PySpark."""
SLOW = {"fastavro UDF", "from_registry, python", "upb UDF"}
"""Runs that are measured once, without a warm-up round, because compile time is small against theirs."""

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
    """Return three versions of one record: a promoted field, a new field with a default, a new nullable field."""
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
    schemas = []
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
        schemas.append(_record("Order", *fields, *more))
    newest = json.loads(json.dumps(schemas[-1]))
    newest["fields"].append({"name": "priority", "type": ["null", "int"], "default": None})
    return [*schemas, newest]


def snapshot() -> SchemaSnapshot:
    """Return the versions under ids 101 to 103, so that no registry is needed."""
    schemas = [
        ResolvedSchema(json.dumps(document), id=101 + place, subject=SUBJECT, version=1 + place)
        for place, document in enumerate(versions())
    ]
    return SchemaSnapshot(tuple(schemas))


def write_data(spark: SparkSession, folder: Path, records: int) -> None:
    """Write the records as framed Avro in mixed order, and the same ones in one version, as columns and as JSON."""
    known = snapshot()
    frames: list[DataFrame] = []
    more = ("", ", 'EUR' AS currency", ", 'EUR' AS currency, cast(id % 5 AS int) AS priority")
    for place, extra in enumerate(more):
        rows = spark.range(place, records, 3).selectExpr("id AS n", *split_columns(COLUMNS + extra))
        text = known.schemas[place].text
        frames.append(to_registry(rows, subject=SUBJECT, registry=known, schema=text, keep=["n"]))
    mixed = frames[0].union(frames[1]).union(frames[2]).orderBy(f.xxhash64("n"))
    mixed.select("value").coalesce(2).write.parquet(str(folder / "avro"))
    decoded = from_registry(spark.read.parquet(str(folder / "avro")), subject=SUBJECT, registry=known)
    decoded.select("value.*").coalesce(2).write.parquet(str(folder / "wide"))
    wide = spark.read.parquet(str(folder / "wide"))
    to_registry(wide, subject=SUBJECT, registry=known).write.parquet(str(folder / "single"))
    wide.select(f.to_json(f.struct("*")).alias("value")).write.parquet(str(folder / "json"))


def usual_udf(
    known: SchemaSnapshot, type_: pa.DataType
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a UDF as users write it without an engine: fastavro per record, a list of dicts, one array."""
    texts = {schema.id: schema.text for schema in known.schemas}

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        writers = {number: fastavro.parse_schema(json.loads(text)) for number, text in texts.items()}
        reader = writers[max(writers)]
        for batch in batches:
            rows = []
            for frame in batch.column(0).to_pylist():
                writer = writers[int.from_bytes(frame[1:5], "big")]
                rows.append(fastavro.schemaless_reader(io.BytesIO(frame[5:]), writer, reader))
            yield pa.RecordBatch.from_arrays([pa.array(rows, type_)], ["value"])

    return decode


def split_columns(columns: str) -> list[str]:
    """Return the expressions of a select list, split at commas outside brackets."""
    parts, depth, begin = [], 0, 0
    for place, char in enumerate(columns):
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            parts.append(columns[begin:place])
            begin = place + 1
    return [*parts, columns[begin:]]


_SEEN: dict[tuple[str, str], int] = {}
"""CPU ticks of each process by (pid, start time). Spark ends workers that are idle for a minute."""


def cpu_seconds() -> float:
    """Return the CPU seconds of all descendants of this process, including those that have ended since."""
    processes = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            processes[place.parent.name] = place.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
    mine = {str(os.getpid())}
    while grown := {pid for pid, parts in processes.items() if parts[1] in mine} - mine:
        mine |= grown
    for pid in mine - {str(os.getpid())}:
        _SEEN[pid, processes[pid][19]] = int(processes[pid][11]) + int(processes[pid][12])
    return sum(_SEEN.values()) / os.sysconf("SC_CLK_TCK")


def measure_case(runs: dict[str, Callable[[], DataFrame]]) -> dict[str, tuple[float, float]]:
    """Return the least (CPU, wall) seconds of each run. All runs alternate, after one round that does not count."""
    best: dict[str, tuple[float, float]] = {}
    for number in range(1 + ROUNDS):
        for name, run in runs.items():
            if name in SLOW and number != 1:
                continue
            cpu, wall = cpu_seconds(), time.perf_counter()
            run().write.format("noop").mode("overwrite").save()
            spent = cpu_seconds() - cpu, time.perf_counter() - wall
            if number:
                best[name] = min(best.get(name, spent), spent)
    return best


def print_rows(
    name: str, records: int, best: dict[str, tuple[float, float]], mine: str, others: dict[str, float]
) -> None:
    """Print and save rows with their cost relative to `mine`.

    `others` maps runs to the factor by which `mine` must be cheaper.
    """
    unit = best[mine][0]
    rows: list[Row] = [
        {
            "pipeline": run,
            "CPU s": round(cpu, 2),
            "wall s": round(wall, 2),
            "records/s/core": round(records / cpu),
            f"× {mine}": round(cpu / unit, 2),
        }
        for run, (cpu, wall) in best.items()
    ]
    notes = [
        f"{records} records of twelve fields, nested; local[2], noop sink, least of {ROUNDS} rounds taken in turns",
        *(
            f"{mine} is {best[other][0] / unit:.2f} times as cheap as {other} (wanted: {wanted})"
            for other, wanted in others.items()
        ),
    ]
    report(name, rows, notes, {"pyspark": pyspark.__version__, "spark-avro": AVRO_JAR.rpartition(":")[2]})


def main() -> None:
    """Measure, print, keep."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS
    spark = local_session("stele bench", **PACKAGES)
    with tempfile.TemporaryDirectory() as folder:
        write_data(spark, Path(folder), records)
        avro, single, text = (spark.read.parquet(f"{folder}/{kind}") for kind in ("avro", "single", "json"))
        known = snapshot()
        newest = known.schemas[-1].text

        def decode_column(engine: str) -> DataFrame:
            return from_registry(avro, subject=SUBJECT, registry=known, engine=engine)

        value = decode_column("vm").schema
        udf = usual_udf(known, type_for(known.schemas[-1]))
        best = measure_case(
            {
                "read the column only": lambda: avro,
                "to Python and back (identity)": lambda: avro.mapInArrow(lambda batches: batches, avro.schema),
                "from_registry, jvm": lambda: decode_column("jvm"),
                "from_registry, vm": lambda: decode_column("vm"),
                "from_avro (one version)": lambda: single.select(from_avro(f.expr("substring(value, 6)"), newest)),
                "from_json (the same as JSON)": lambda: text.select(f.from_json("value", value["value"].dataType)),
                "fastavro UDF": lambda: avro.mapInArrow(udf, value),
                "from_registry, python": lambda: decode_column("python"),
            }
        )
    spark.stop()
    wanted = {"from_avro (one version)": 1.5, "from_json (the same as JSON)": 5, "fastavro UDF": 20}
    print_rows("spark_decode", records, best, "from_registry, jvm", wanted)
    by_vm = best["fastavro UDF"][0] / best["from_registry, vm"][0]
    print(f"- from_registry, vm is {by_vm:.2f} times as cheap as fastavro UDF (wanted: 9)")


if __name__ == "__main__":
    main()
