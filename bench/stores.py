"""Cost of each store: registrations and reads through one node and through three.

    python -m bench.stores [--stores sqlite files postgres mysql kafka] [--rounds 3] [--seconds 2]

Every store is real and runs on this machine, with its default durability. One node and three nodes serve the same
store; rounds alternate between them. Clients are connections that send the next request once they are answered, spread
over the nodes.

    register    new versions, by one client and by eight; the ratio shows whether writers obstruct each other
    latest      `GET /subjects/S/versions/latest`: the node asks the store whether anything was written
    by id       `GET /schemas/ids/N`: from memory
    stale       answers through other nodes older than a version acknowledged before

Nodes, store and load share the cores, so reads are compared by the processor seconds of the nodes. With enough cores,
three nodes answer `reads of 3 / 1` times as many reads as one.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import uvloop
from bench.hot_paths import REQUESTS, Tail, never_seen, post, schema_text, send_all
from bench.http_load import Client, Note, cpu_seconds, run_clients
from bench.report import Row, report
from tests.support.server_process import free_port, wait_ready
from tests.system.linearizability.stores import STORES

SUBJECTS, READERS, WRITERS = 500, 16, 8
LATEST, BY_ID = REQUESTS[1], REQUESTS[0]


class Node(NamedTuple):
    """A node that serves a store."""

    port: int
    pid: int


@contextmanager
def running_nodes(count: int, store: str, folder: Path) -> Iterator[list[Node]]:
    """Run nodes with state folders of their own and yield them."""
    with ExitStack() as stack:
        nodes = []
        for _ in range(count):
            port = free_port()
            command = [sys.executable, "-m", "stele.cli", "serve", "--store", store, "--port", str(port)]
            command += ["--log-level", "error", "--state-dir", str(folder / f"state-{port}")]
            process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            stack.callback(process.wait, 30)
            stack.callback(process.terminate)
            nodes.append(Node(port, process.pid))
            wait_ready(f"http://127.0.0.1:{port}", process)
        yield nodes


def spread(nodes: list[Node], count: int, requests: Iterator[bytes], note: Note | None = None) -> Iterator[Client]:
    """Return `count` clients, assigned to the nodes in turn."""
    return (Client(node.port, requests, note) for node in itertools.islice(itertools.cycle(nodes), count))


async def read(nodes: list[Node], requests: Iterator[bytes], seconds: float) -> float:
    """Return the requests answered per processor second of all nodes. Each node has the same number of readers."""
    before = sum(cpu_seconds(node.pid) for node in nodes)
    answered = await run_clients(spread(nodes, READERS * len(nodes), requests), seconds)
    took = sum(cpu_seconds(node.pid) for node in nodes) - before
    return answered / max(took, 0.01)


async def count_stale(nodes: list[Node], seconds: float) -> tuple[int, int]:
    """Return (stale answers, answers) of reads through the other nodes while one client registers through the first."""
    tail = Tail()
    reads = tail.watch(bytes(bytearray(request)) for request in LATEST.make())
    writes = never_seen("/subjects/thing-{}/versions")()
    readers = spread(nodes[1:], READERS, reads, tail.note_read)
    await run_clients([*readers, *spread(nodes[:1], 1, writes, tail.note_registration)], seconds, 0.3)
    return tail.stale, len(tail.seconds)


def measure_store(kind: str, rounds: int, seconds: float) -> list[Row]:
    """Return the rows of a store: one node, and three."""
    figures: dict[tuple[int, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        store = stack.enter_context(STORES[kind](folder))
        nodes = stack.enter_context(running_nodes(3, store.url, folder))
        uvloop.run(send_all(nodes[0].port, _fill()))
        stale = answers = 0
        for _ in range(rounds):
            for count in (1, 3):
                some = nodes[:count]
                for clients in (1, WRITERS):
                    requests = never_seen("/subjects/thing-{}/versions")()
                    done = uvloop.run(run_clients(spread(some, clients, requests), seconds, 0.3))
                    figures.setdefault((count, f"register, {clients}"), []).append(done / seconds)
                for request in (LATEST, BY_ID):
                    for node in some:
                        with suppress(OSError):
                            urllib.request.urlopen(f"http://127.0.0.1:{node.port}/subjects", timeout=30).close()
                    uvloop.run(read(some, request.make(), 0.2))  # fills the caches
                    figures.setdefault((count, request.name), []).append(
                        uvloop.run(read(some, request.make(), seconds))
                    )
            old, all_of_them = uvloop.run(count_stale(nodes, seconds))
            stale, answers = stale + old, answers + all_of_them
    rows: list[Row] = []
    for count in (1, 3):
        median = {name: statistics.median(values) for (n, name), values in figures.items() if n == count}
        one = {name: statistics.median(values) for (n, name), values in figures.items() if n == 1}
        rows.append(
            {
                "store": kind,
                "nodes": count,
                "register/s, 1 client": round(median["register, 1"]),
                f"register/s, {WRITERS} clients": round(median[f"register, {WRITERS}"]),
                f"{WRITERS} / 1": round(median[f"register, {WRITERS}"] / median["register, 1"], 2),
                "latest per CPU s": round(median[LATEST.name]),
                "by id per CPU s": round(median[BY_ID.name]),
                "reads of 3 / 1": round(3 * median[LATEST.name] / one[LATEST.name], 2) if count > 1 else "",
                "stale": f"{stale} of {answers:,}" if count > 1 else "",
            }
        )
    return rows


def _fill() -> Iterator[bytes]:
    return (post(f"/subjects/thing-{n}/versions", schema_text(n, 1)) for n in range(1, SUBJECTS + 1))


def main() -> None:
    """Measure the chosen stores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stores", nargs="*", default=list(STORES), choices=list(STORES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    rows = [row for kind in options.stores for row in measure_store(kind, options.rounds, options.seconds)]
    notes = [
        (
            f"{SUBJECTS} subjects; {READERS} connections read from each node; "
            f"{options.rounds} rounds of {options.seconds:g} s each."
        ),
        "PostgreSQL and MariaDB run without fsync here: their figures say what server and network cost, not the disk.",
    ]
    report("stores", rows, notes)


if __name__ == "__main__":
    main()
