"""Memory of four workers forked from a loaded parent, compared with four servers that load by themselves.

    python -m bench.worker_memory [--schemas 100000]

The schemas are those of `bench.load`, one version per subject, in one SQLite store with a snapshot. A figure is the
proportional set size of all processes together: a page that several of them share counts once. It is measured when all
processes answer, and again after the whole list and 500 schemas were read over HTTP.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.load import Shape, fill
from bench.report import Row, report
from tests.support.server_process import call, serving

WORKERS = 4
_READ = 500


def list_processes(pid: int) -> Iterator[int]:
    """Yield a process id and those of all its descendants."""
    yield pid
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        yield from list_processes(int(child))


def sum_memory(pids: Sequence[int]) -> float:
    """Return the MiB of the processes and their children together, with each shared page counted once."""
    rollups = (Path(f"/proc/{each}/smaps_rollup").read_text() for pid in pids for each in list_processes(pid))
    return sum(int(rollup.partition("\nPss:")[2].split()[0]) for rollup in rollups) / 1024


def wait_until_ready(urls: Sequence[str]) -> None:
    """Wait until every worker of every server has answered that it is ready."""
    for url in urls:
        ready = 0
        while ready < 5 * WORKERS:
            ready = ready + 1 if call(f"{url}/health/ready").status == 200 else 0
            time.sleep(0 if ready else 0.1)


def measure(name: str, store: str, folder: Path, servers: Sequence[Sequence[str]]) -> Row:
    """Run servers with these flags over the store and return a row."""
    started = time.perf_counter()
    with ExitStack() as stack:
        running = [stack.enter_context(serving("--store", store, *flags, folder=folder)) for flags in servers]
        urls, pids = [server.url for server in running], [server.process.pid for server in running]
        wait_until_ready(urls)
        seconds, loaded = time.perf_counter() - started, sum_memory(pids)
        for url in urls:
            for turn in range(WORKERS if len(urls) == 1 else 1):
                call(f"{url}/subjects?offset={turn}")
                for number in range(1, _READ + 1):
                    call(f"{url}/schemas/ids/{number}")
        read = sum_memory(pids)
    return {
        "processes": name,
        "seconds": round(seconds, 1),
        "MiB loaded": round(loaded),
        "MiB after reads": round(read),
    }


def main() -> None:
    """Measure both ways."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schemas", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = f"sqlite:///{folder}/log.db"
        asyncio.run(fill(store, Shape(options.schemas, 1)))
        rows = [
            measure(f"{WORKERS} servers", store, folder, [[]] * WORKERS),
            measure(f"1 server, {WORKERS} workers", store, folder, [["--workers", str(WORKERS)]]),
        ]
    for row in rows:
        row["ratio"] = round(float(row["MiB loaded"]) / float(rows[0]["MiB loaded"]), 2)  # type: ignore[index]
    report("worker_memory", rows, [f"{options.schemas:,} schemas, one version per subject, SQLite with a snapshot"])


if __name__ == "__main__":
    main()
