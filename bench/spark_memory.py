"""Memory of Spark's processes while millions of records are decoded and encoded: it must not grow with their number.

    python -m bench.spark_memory [records, default 10000000]

50,000 of the records of `spark_decode.py` are written once. Each task repeats its rows as often as needed, so that only
the number of records grows. Every run ends in Spark's `noop` sink. A run with a tenth of the records precedes the one
with all. Memory is the resident set of each Python worker and of the driver's JVM, read from /proc four times a second.
The JVM's memory is limited by its heap anyway. Linux only.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyspark
from bench.report import Row, report
from bench.spark_decode import PACKAGES, SUBJECT, snapshot, write_data
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from stele.spark import from_registry, local_session, to_registry

RECORDS = 10_000_000
MADE = 50_000
SLOWER = {"python": 10}
"""Factor by which slow engines get fewer records."""
MIB = 1 << 20


class Watch(threading.Thread):
    """Records the peak resident memory of a Python worker and of the JVM below this process, until it is stopped."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.worker = self.jvm = 0
        self._stopped = threading.Event()

    def run(self) -> None:
        """Read the memory four times a second."""
        while not self._stopped.wait(0.25):
            for name, resident in _processes():
                if name == "java":
                    self.jvm = max(self.jvm, resident)
                elif name.startswith("python"):
                    self.worker = max(self.worker, resident)

    def stop(self) -> None:
        """Stop and wait for the thread."""
        self._stopped.set()
        self.join()


def _processes() -> list[tuple[str, int]]:
    """Return (name, resident bytes) of all descendants of this process."""
    processes: dict[str, tuple[str, str, int]] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = place.read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        rest = text.rpartition(")")[2].split()
        name = text[text.index("(") + 1 : text.rindex(")")]
        processes[place.parent.name] = (rest[1], name, int(rest[21]) * os.sysconf("SC_PAGE_SIZE"))
    mine = {str(os.getpid())}
    while grown := {pid for pid, (parent, _, _) in processes.items() if parent in mine} - mine:
        mine |= grown
    return [processes[pid][1:] for pid in mine - {str(os.getpid())}]


def measure_case(name: str, engine: str, records: int, run: Callable[[int], DataFrame]) -> Row:
    """Return one row of the table."""
    watch = Watch()
    watch.start()
    begin = time.perf_counter()
    run(records).write.format("noop").mode("overwrite").save()
    watch.stop()
    return {
        "function": name,
        "engine": engine,
        "records": records,
        "worker MiB": watch.worker // MIB,
        "JVM MiB": watch.jvm // MIB,
        "wall s": round(time.perf_counter() - begin, 1),
    }


def main() -> None:
    """Measure, print, keep."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS
    spark = local_session("stele bench", **PACKAGES)
    with tempfile.TemporaryDirectory() as folder:
        write_data(spark, Path(folder), MADE)
        known = snapshot()
        files = {kind: spark.read.parquet(f"{folder}/{kind}") for kind in ("avro", "wide")}

        def again(kind: str, wanted: int) -> DataFrame:
            """Return the same rows repeated as a stream, so that they are not in memory."""
            times = f.explode(f.sequence(f.lit(1), f.lit(wanted // MADE))).alias("time")
            return files[kind].select(times, "*").drop("time")

        rows: list[Row] = []
        for engine in ("vm", "python", "jvm"):
            most = records // SLOWER.get(engine, 1)

            def decode(wanted: int, engine: str = engine) -> DataFrame:
                return from_registry(again("avro", wanted), subject=SUBJECT, registry=known, engine=engine)

            def encode(wanted: int, engine: str = engine) -> DataFrame:
                return to_registry(again("wide", wanted), subject=SUBJECT, registry=known, engine=engine)

            for name, run in (("from_registry", decode), ("to_registry", encode)):
                counts = [max(wanted // MADE, 1) * MADE for wanted in (most // 10, most)]
                rows += [measure_case(name, engine, wanted, run) for wanted in counts]
    spark.stop()
    report(
        "spark_memory",
        rows,
        [
            "the most that one Python worker, and the driver's JVM, had resident; two tasks at a time",
            "one session for all lines, so that the JVM's heap is that of the lines before, too",
        ],
        {"pyspark": pyspark.__version__},
    )


if __name__ == "__main__":
    main()
