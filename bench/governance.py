"""CPU seconds of census, backtest, drift and inference over stored records, against reading the same records.

    python -m bench.governance [records, default 1000000]

The records are those of `spark_decode.py`: three writer versions mixed row by row, twelve fields, nested.
`from_registry` decodes all of them with the engine that governance uses (`vm`) and ends in Spark's `noop` sink. What an
audit costs beyond that is its own work. A census of frames alone decodes nothing. Inference reads the same records as
lines of JSON and is compared with `from_json`, which needs a schema, and with Spark's own inference. CPU time is
measured as in `spark_decode.py`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyspark
from bench.report import Row, report
from bench.spark_decode import SUBJECT, cpu_seconds, snapshot, write_data
from pyspark.sql import functions as f

from stele.spark import from_registry, local_session
from stele.spark.data_audit import backtest, census, drift, infer

RECORDS = 1_000_000
ROUNDS = 2


def measure_audit(runs: dict[str, Callable[[], object]]) -> dict[str, tuple[float, float]]:
    """Return the least (CPU, wall) seconds of each run. All runs alternate, after one round that does not count."""
    best: dict[str, tuple[float, float]] = {}
    for number in range(1 + ROUNDS):
        for name, run in runs.items():
            cpu, wall = cpu_seconds(), time.perf_counter()
            run()
            spent = cpu_seconds() - cpu, time.perf_counter() - wall
            if number:
                best[name] = min(best.get(name, spent), spent)
    return best


def main() -> None:
    """Measure, print, keep."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS
    spark = local_session("stele bench")
    with tempfile.TemporaryDirectory() as folder:
        write_data(spark, Path(folder), records)
        avro = spark.read.parquet(f"{folder}/avro")
        spark.read.parquet(f"{folder}/json").write.text(f"{folder}/lines")
        text = spark.read.text(f"{folder}/lines")
        known = snapshot()
        newest = known.schemas[-1].text
        value = (
            from_registry(avro, subject=SUBJECT, registry=known, engine="vm").schema["value"].dataType.simpleString()
        )

        def noop(df: pyspark.sql.DataFrame) -> None:
            df.write.format("noop").mode("overwrite").save()

        best = measure_audit(
            {
                "from_registry, vm": lambda: noop(from_registry(avro, subject=SUBJECT, registry=known, engine="vm")),
                "census, frames only": lambda: census(avro, subject=SUBJECT, registry=known, fields=False),
                "census": lambda: census(avro, subject=SUBJECT, registry=known),
                "drift": lambda: drift(avro, subject=SUBJECT, registry=known),
                "backtest": lambda: backtest(avro, schema=newest, subject=SUBJECT, registry=known),
                "infer (JSON)": lambda: infer(text, "value"),
                "from_json (JSON)": lambda: noop(text.select(f.from_json("value", value))),
                "Spark's own inference (JSON)": lambda: spark.read.json(f"{folder}/lines").schema,
            }
        )
    spark.stop()
    unit = best["from_registry, vm"][0]
    rows: list[Row] = [
        {
            "job": name,
            "CPU s": round(cpu, 2),
            "wall s": round(wall, 2),
            "records/s/core": round(records / cpu),
            "× from_registry": round(cpu / unit, 2),
        }
        for name, (cpu, wall) in best.items()
    ]
    notes = [
        f"{records} records of twelve fields, nested; local[2], least of {ROUNDS} rounds taken in turns",
        "CPU is that of the JVM and all Python workers, the driver's own Python left out",
    ]
    report("governance", rows, notes, {"pyspark": pyspark.__version__})


if __name__ == "__main__":
    main()
