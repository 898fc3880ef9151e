"""Cost of a Python worker of Spark, forked from Spark's own daemon or from the one with imports, `worker_daemon`.

    python -m bench.python_workers [--rounds 3]

Sessions of both kinds start alternately, each in a process of its own. A job has four tasks, two at a time, whose
Python imports what decoding imports and passes 250 rows through. The first job starts the daemon and its workers. The
others show the cost of a task in a running worker. Memory is that of all workers and their daemon, with each shared
page counted once (Pss). Linux only.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from bench.report import report

from stele.spark.session import WORKER_DAEMON, local_session

DAEMONS = {"pyspark.daemon": "pyspark.daemon", "worker_daemon": WORKER_DAEMON}
LATER_JOBS = 30


def pass_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Import what decoding imports, and yield the rows unchanged."""
    import stele.spark.decode.records  # noqa: F401

    yield from batches


def measure_session(daemon: str) -> dict[str, float]:
    """Return the seconds of the first job, the median of the later ones, and the MiB of the workers."""
    spark = local_session("python_workers", spark__python__daemon__module=daemon)
    rows = spark.range(0, 1000, 1, 4)
    rows.agg({"id": "sum"}).collect()  # Java loads its classes for queries
    seconds = []
    for _ in range(1 + LATER_JOBS):
        begin = time.perf_counter()
        rows.mapInArrow(pass_rows, "id long").agg({"id": "sum"}).collect()
        seconds.append(time.perf_counter() - begin)
    memory = sum(map(measure_pss, find_processes(daemon)))
    spark.stop()
    return {"first": seconds[0], "later": statistics.median(seconds[1:]), "MiB": memory / 1024}


def find_processes(module: str) -> Iterator[Path]:
    """Yield the folders in /proc of the daemon and its workers, which share its command line."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if module.encode() in (place / "cmdline").read_bytes().split(b"\0"):
                yield place
        except OSError:
            continue


def measure_pss(process: Path) -> int:
    """Return the proportional set size of a process in KiB: shared pages are divided among their processes."""
    lines = (process / "smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def main() -> None:
    """Measure sessions of both kinds in turns."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--session", help="measure one session with this daemon and print its figures")
    arguments = parser.parse_args()
    if arguments.session:
        print(json.dumps(measure_session(arguments.session)))
        return
    sessions: dict[str, list[dict[str, float]]] = {name: [] for name in DAEMONS}
    for _ in range(arguments.rounds):
        for name, module in DAEMONS.items():
            command = [sys.executable, "-m", "bench.python_workers", "--session", module]
            printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            sessions[name].append(json.loads(printed.splitlines()[-1]))
    middle = {
        name: {key: statistics.median(each[key] for each in runs) for key in runs[0]} for name, runs in sessions.items()
    }
    base = middle["pyspark.daemon"]
    rows: list[dict[str, Any]] = [
        {
            "daemon": name,
            "first job s": round(figures["first"], 2),
            "ratio": round(figures["first"] / base["first"], 2),
            "later jobs ms": round(1000 * figures["later"], 1),
            "ratio of later jobs": round(figures["later"] / base["later"], 2),
            "MiB of workers": round(figures["MiB"]),
        }
        for name, figures in middle.items()
    ]
    report(
        "python_workers",
        rows,
        [f"jobs of four tasks, two at a time; medians of {arguments.rounds} sessions of each kind"],
    )


if __name__ == "__main__":
    main()
