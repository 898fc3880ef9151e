"""Durable appends per second of a SQLite log: one and eight writers, with and without turns, single and in batches.

    python -m bench.append [--seconds 2] [--rounds 3] [--folder DIR]

Each writer is a process in a closed loop with records of 1 KiB; `synchronous=FULL`, so each append waits for the disk.
The set-ups run one after the other, round by round, because the speed of a disk varies. A figure is the median of its
rounds, and only the ratios within one run mean something.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from bench.report import Row, report

from stele.storage import open_log
from stele.testing.log_crew import Crew, CrewVerdict, examine

SIZE = 1024


class Setup(NamedTuple):
    """A configuration to compare: number of writers, records per append, and whether writers take turns."""

    writers: int
    batch: int
    turn: bool


class Round(NamedTuple):
    """Figures of a set-up in one round. `share` is the slowest writer's part of the mean."""

    records: float
    conflicts: float
    p99: float
    share: float


SETUPS = [Setup(writers, batch, turn) for batch, turn, writers in product((1, 32), (True, False), (1, 8))]


def run(setup: Setup, folder: Path, seconds: float) -> Round:
    """Run one round on a new log and check the log afterwards. Exits when the log is broken."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        url = f"sqlite:///{place}/log.db"
        with Crew(url, Path(place), turn=setup.turn, batch=setup.batch, size=SIZE, seconds=seconds, acks=False) as crew:
            crew.go([crew.hire() for _ in range(setup.writers)])
            reports = crew.reports()
            verdict = asyncio.run(_examine(url))
    shares = [report.acknowledged for report in reports]
    if verdict != (sum(shares), 0, [], [], []):
        raise SystemExit(f"the log is broken: {verdict}")
    return Round(
        sum(shares) / seconds,
        sum(report.conflicts for report in reports) / max(sum(shares) / setup.batch, 1),
        max(report.p99 for report in reports),
        min(shares) / max(statistics.mean(shares), 1),
    )


async def _examine(url: str) -> CrewVerdict:
    log = await open_log(url)
    try:
        return await examine(log, [], SIZE)
    finally:
        await log.close()


def rows_of(rounds: Mapping[Setup, Sequence[Round]]) -> list[Row]:
    """Return the medians, each with its ratio to one writer with single records and turns."""
    medians = {setup: Round(*map(statistics.median, zip(*series, strict=True))) for setup, series in rounds.items()}
    base = medians[SETUPS[0]].records
    return [
        {
            "writers": setup.writers,
            "records per append": setup.batch,
            "turns": "yes" if setup.turn else "no",
            "records/s": round(middle.records),
            "ratio": round(middle.records / base, 2),
            "conflicts per append": round(middle.conflicts, 2),
            "p99 ms": middle.p99,
            "least share": round(middle.share, 2),
        }
        for setup, middle in medians.items()
    ]


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2, help="of each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=tempfile.gettempdir(), help="on the disk to measure")
    arguments = parser.parse_args()
    rounds: dict[Setup, list[Round]] = defaultdict(list)
    for _, setup in product(range(arguments.rounds), SETUPS):
        rounds[setup].append(run(setup, arguments.folder, arguments.seconds))
    report(
        "append",
        rows_of(rounds),
        [
            f"median of {arguments.rounds} rounds of {arguments.seconds} s each, records of {SIZE} bytes, SQLite FULL",
            "after each run the log was read back: as many records as acknowledged, each once, none spoilt",
        ],
        {"sqlite": sqlite3.sqlite_version},
    )


if __name__ == "__main__":
    main()
