"""One process that appends to a log as fast as it can. The suites and benchmarks run several of them and kill some.

    python -m stele.testing.log_worker --url sqlite:////tmp/log.db --name w1 --acks w1.acks --seconds 2 --turn

It prints `ready` on standard output, starts at the first line on standard input, and ends with one line of JSON
(`WorkerReport`). Each acknowledged batch is written to the acks file, if one is named, and fsynced there before the
next batch is appended.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from hashlib import shake_128
from io import FileIO

import msgspec

from stele.core.ports import Log
from stele.storage import open_log

__all__ = ["WorkerReport", "record_of"]

_CHUNK = 1000


class WorkerReport(msgspec.Struct, frozen=True):
    """Counts of a worker: records acknowledged, appends refused because the head had moved, latencies in ms."""

    acknowledged: int
    conflicts: int
    p50: float
    p99: float


class Order(msgspec.Struct, frozen=True):
    """The options of the command line.

    seconds 0 means until killed. size 0 means sizes that vary from record to record.
    """

    url: str
    name: str
    acks: str
    seconds: float
    batch: int
    size: int
    turn: bool


def record_of(name: str, number: int, size: int = 0) -> bytes:
    """Return the record number `number` of a worker: a head with name and number, and bytes derived from the head."""
    head = b"%s %d\n" % (name.encode(), number)
    return head + shake_128(head).digest(max(size or 40 + number * 37 % 2000, len(head) + 16) - len(head))


class _Acks:
    """Stores acknowledgements durably, as lines of `first_seq first_number count`.

    With the path '' it stores nothing.
    """

    def __init__(self, path: str) -> None:
        self._file = FileIO(path, "a") if path else None

    def write(self, seq: int, number: int, count: int) -> None:
        if self._file:
            self._file.write(b"%d %d %d\n" % (seq, number, count))
            os.fsync(self._file.fileno())


async def work(log: Log, order: Order, acks: _Acks) -> WorkerReport:
    """Append numbered records until the time is up."""
    head = await log.head()
    number = conflicts = 0
    latencies: list[float] = []
    end = time.monotonic() + order.seconds if order.seconds else float("inf")
    while (start := time.monotonic()) < end:
        batch = [record_of(order.name, number + i, order.size) for i in range(order.batch)]
        written = False
        while not written:
            async with log.turn() if order.turn else nullcontext():
                if order.turn or conflicts:
                    head = await catch_up(log, head)
                written = await log.append(head, batch)
            conflicts += not written
        latencies.append(time.monotonic() - start)
        acks.write(head + 1, number, len(batch))
        head += len(batch)
        number += len(batch)
    latencies.sort()
    p50, p99 = (latencies[int(len(latencies) * q)] * 1000 if latencies else 0.0 for q in (0.5, 0.99))
    return WorkerReport(number, conflicts, round(p50, 3), round(p99, 3))


async def catch_up(log: Log, head: int) -> int:
    """Read the records after head, like a node, and return the new head."""
    while entries := await log.tail(head, _CHUNK):
        if [entry.seq for entry in entries] != list(range(head + 1, head + 1 + len(entries))):
            raise AssertionError(f"the tail after {head} is not dense")
        head += len(entries)
    return head


async def run(order: Order) -> WorkerReport:
    """Open the log, wait for the start signal, append, and close."""
    log = await open_log(order.url)
    acks = _Acks(order.acks)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.readline)
    try:
        return await work(log, order, acks)
    finally:
        await log.close()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m stele.testing.log_worker", description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--acks", default="")
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--size", type=int, default=0)
    parser.add_argument("--turn", action="store_true")
    report = asyncio.run(run(msgspec.convert(vars(parser.parse_args(arguments)), Order)))
    sys.stdout.write(msgspec.json.encode(report).decode() + "\n")


if __name__ == "__main__":
    main()
