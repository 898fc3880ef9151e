"""CPU seconds to write framed Avro records into a table: a whole batch of a pipeline, against its parts.

    python -m bench.pipeline [records, default 1000000]

All lines read the same Parquet files of records of three writer versions, mixed row by row, and end in files:

    copied          the binary column alone, by Spark's Parquet writer
    decoded         from_registry, then Spark's Parquet writer: a job without the guarantees of a pipeline
    pipeline, …     one micro-batch with all its work: schemas are pinned, records are judged, counted and cached for
                    the writers. The journal is written, and the batch is committed to a table of that kind and to its
                    dead-letter table.

CPU is that of the JVM and all Python workers (see `spark_decode.py`), the least of several alternating rounds.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyspark
from bench.report import Row, report
from bench.spark_decode import RECORDS, SUBJECT, cpu_seconds, snapshot, write_data
from pyspark.sql import DataFrame, SparkSession

from stele.spark import from_registry, local_session, run_pipeline
from stele.spark.pipeline.config import PipelineConfig, SourceConfig, TableConfig, TableKind

ROUNDS = 3


def _pipeline(spark: SparkSession, folder: Path, kind: TableKind) -> Callable[[Path], None]:
    """Return a function that runs a new pipeline over all files into a new table."""

    def run(place: Path) -> None:
        table = TableConfig(kind, f"sqlite:///{place}/catalog.db" if kind == "iceberg" else "", str(place), "bench.t")
        if kind == "parquet":
            spark.sql("DROP TABLE IF EXISTS bench.t")
        source = SourceConfig(path=str(folder / "avro"), subject=SUBJECT)
        done = run_pipeline(PipelineConfig(str(place / "state"), source, table), spark=spark, registry=snapshot())
        assert done.dead_letters == 0

    return run


def _write_records(df: Callable[[], DataFrame]) -> Callable[[Path], None]:
    return lambda place: df().write.parquet(str(place / "files"))


def main() -> None:
    """Measure, print, keep."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS
    spark = local_session("stele bench")
    best: dict[str, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        write_data(spark, data, records)
        avro = spark.read.parquet(f"{folder}/avro")
        runs = {
            "copied": _write_records(lambda: avro),
            "decoded": _write_records(
                lambda: from_registry(avro, subject=SUBJECT, registry=snapshot()).select("value.*")
            ),
            "pipeline, iceberg": _pipeline(spark, data, "iceberg"),
            "pipeline, parquet": _pipeline(spark, data, "parquet"),
        }
        for number in range(1 + ROUNDS):
            for name, run in runs.items():
                with tempfile.TemporaryDirectory() as place:
                    cpu, wall = cpu_seconds(), time.perf_counter()
                    run(Path(place))
                    spent = cpu_seconds() - cpu, time.perf_counter() - wall
                if number:
                    best[name] = min(best.get(name, spent), spent)
    spark.stop()
    rows: list[Row] = [
        {
            "run": name,
            "CPU s": round(cpu, 2),
            "wall s": round(wall, 2),
            "records/s/core": round(records / cpu),
            "× decoded": round(cpu / best["decoded"][0], 2),
        }
        for name, (cpu, wall) in best.items()
    ]
    notes = [f"{records} records of twelve fields, nested; local[2], least of {ROUNDS} rounds taken in turns"]
    report("pipeline", rows, notes, {"pyspark": pyspark.__version__})


if __name__ == "__main__":
    main()
