"""Registering new schemas over HTTP: the server of this checkout against that of an earlier one, alternately.

    git worktree add ../before COMMIT
    python -m bench.registrations ../before [--rounds 20] [--requests 150]

Every request creates a subject with an Avro record of 14 fields, durably, in a SQLite file. There are one or eight
clients, which wait for each answer before they send the next request. A figure is the median CPU time of the server
process per request, and the ratio is the median over neighbouring rounds, so that other load and the disk cancel out.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from bench.get_by_id import schema
from bench.http_load import CONTENT_LENGTH
from bench.report import Row, report
from bench.server_process import STELE, run_server

CONNECTIONS = (1, 8)
HERE = Path(__file__).resolve().parent.parent


def serve_tree(tree: Path, folder: Path) -> AbstractContextManager[tuple[int, int]]:
    """Run the server of a checkout and yield (port, pid)."""
    folder.mkdir()
    return run_server(
        lambda port: [sys.executable, *STELE, "--port", str(port), "--store", "sqlite:///log.db"],
        folder,
        {"PYTHONPATH": str(tree / "src")},
        subprocess.DEVNULL,
    )


def cpu_micros(pid: int) -> float:
    """Return the CPU time of the threads of a process in microseconds, at a finer resolution than `bench.http_load`."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text(encoding="ascii").split()[0]) for task in tasks) / 1000


async def register_schemas(port: int, numbers: Iterator[int], connections: int) -> None:
    """Register a schema for each number."""

    async def register_in_turn() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in numbers:
            body = json.dumps({"schema": schema(number)}).encode()
            head = (
                f"POST /subjects/thing-{number}/versions HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
            )
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = CONTENT_LENGTH.search(answer)
            assert answer.startswith(b"HTTP/1.1 200"), answer
            assert length is not None
            await reader.readexactly(int(length[1]))
        writer.close()

    await asyncio.gather(*(register_in_turn() for _ in range(connections)))


def main() -> None:
    """Measure in turns, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="the earlier checkout")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--requests", type=int, default=150, help="of each round")
    arguments = parser.parse_args()
    trees = {"before": arguments.before.resolve(), "now": HERE}
    commands = {name: ["git", "-C", str(tree), "rev-parse", "--short", "HEAD"] for name, tree in trees.items()}
    commits = {name: subprocess.check_output(line, text=True).strip() for name, line in commands.items()}
    rows: list[Row] = []
    numbers = itertools.count(1)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as started:
        servers = {name: started.enter_context(serve_tree(tree, Path(folder) / name)) for name, tree in trees.items()}
        for connections in CONNECTIONS:
            micros: dict[str, list[float]] = {name: [] for name in servers}
            for turn in range(arguments.rounds + 1):
                chosen = list(itertools.islice(numbers, arguments.requests))
                for name, (port, pid) in servers.items():
                    before = cpu_micros(pid)
                    asyncio.run(register_schemas(port, iter(chosen), connections))
                    if turn:  # the first round is a warm-up
                        micros[name].append((cpu_micros(pid) - before) / arguments.requests)
            ratios = [now / old for old, now in zip(micros["before"], micros["now"], strict=True)]
            rows.append(
                {
                    "connections": connections,
                    "µs of CPU, before": round(statistics.median(micros["before"])),
                    "µs of CPU, now": round(statistics.median(micros["now"])),
                    "CPU time, times": round(statistics.median(ratios), 3),
                }
            )
    notes = [
        (
            f"medians of {arguments.rounds} rounds of {arguments.requests} new schemas each, in turns;"
            f" before: {commits['before']}"
        )
    ]
    report("registrations", rows, notes)


if __name__ == "__main__":
    main()
