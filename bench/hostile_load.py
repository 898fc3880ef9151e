"""Reads of a good client while other clients are hostile: ratio of the 99th percentiles with and without them.

One server, one process. A good client reads schemas by id over four persistent connections. It runs alone and with
hostile clients alternately: 500 connections that send nothing or a few bytes of a request now and then, and four
connections that send schemas which are expensive to parse, compare and refuse. No client authenticates. Both
percentiles come from one run, so the speed and load of the machine cancel out.

    python -m bench.hostile_load [--seconds 10] [--rounds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from bench.get_by_id import schema
from bench.http_load import get
from bench.report import report
from bench.server_process import STELE, run_server

IDLE, GOOD, HOSTILE, SCHEMAS = 500, 4, 4, 200
PAUSE = 0.01
"""Pause between two reads of a connection in seconds. The good client causes little load."""
LIMIT = 5.0


def hostile_bodies() -> list[tuple[str, bytes]]:
    """Return paths and bodies that are slow for the server: deep, wide, with many names, patterns and numbers."""
    doubling: dict[str, object] = {
        f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(60)
    }
    texts = {
        "avro": json.dumps([{"type": "enum", "name": f"E{n}", "symbols": ["A", "B"]} for n in range(5000)]),
        "json": json.dumps({"$ref": "#/$defs/d0", "$defs": {**doubling, "d60": {"enum": list(range(5000))}}}),
        "protobuf": 'syntax = "proto3";' + "".join(f"message M{n} {{ M{n // 2} a = 1; }}" for n in range(2000)),
    }
    rows: list[tuple[str, bytes]] = []
    for language, text in texts.items():
        check = {"format": language, "policy": "FULL", "schema": text, "against": [{"schema": text}] * 3}
        rows.append(("/api/check", json.dumps(check).encode()))
        rows.append(
            (
                f"/subjects/hostile-{language}/versions",
                json.dumps({"schema": text, "schemaType": language.upper()}).encode(),
            )
        )
        rows.append(
            (
                "/api/convert",
                json.dumps(
                    {"format": language, "to": "avro" if language != "avro" else "json", "schema": text}
                ).encode(),
            )
        )
    rows.append(
        ("/api/infer", json.dumps({"to": "avro", "samples": [{f"f{n}": n for n in range(1000)}] * 50}).encode())
    )
    return rows


async def _idle(port: int, number: int) -> None:
    """Hold one connection after the other for as long as the server allows."""
    while True:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                for part in (b"POST /subjects/x HTTP/1.1\r\n", *itertools.repeat(b"X: y\r\n", 30)):
                    if number % 2:
                        writer.write(part)
                        await writer.drain()
                    await asyncio.sleep(0.5)
            finally:
                writer.close()
        await asyncio.sleep(0.1)


async def _attack(port: int, bodies: Iterator[tuple[str, bytes]], sent: list[int]) -> None:
    """Send hostile schemas, one after the other."""
    while True:
        path, body = next(bodies)
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                head = f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
                writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
                await reader.read()
                sent.append(len(body))
            finally:
                writer.close()


async def _be_hostile(port: int) -> None:
    """Run all hostile clients until standard input ends. Print how many schemas were answered."""
    sent: list[int] = []
    bodies = itertools.cycle(hostile_bodies())
    tasks = [asyncio.create_task(_idle(port, number)) for number in range(IDLE)]
    tasks += [asyncio.create_task(_attack(port, bodies, sent)) for _ in range(HOSTILE)]
    await asyncio.to_thread(sys.stdin.read)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    sys.stdout.write(f"{len(sent)}\n")


@contextlib.asynccontextmanager
async def hostile_company(port: int, sent: list[int]) -> AsyncIterator[None]:
    """Run the hostile clients in a process of their own while the block runs."""
    company = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bench.hostile_load",
        "--company",
        str(port),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    await asyncio.sleep(3.0)
    yield
    output, _ = await company.communicate(b"")  # this closes its standard input
    sent.append(int(output))


async def _read(port: int, seconds: float, number: int) -> list[float]:
    """Return the seconds of each answer to one good connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    durations, until = [], time.perf_counter() + seconds
    for turn in itertools.count(number):
        began = time.perf_counter()
        if began > until:
            break
        writer.write(get(f"/schemas/ids/{turn % SCHEMAS + 1}"))
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        length = next(line for line in head.lower().splitlines() if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.partition(b":")[2]))
        durations.append(time.perf_counter() - began)
        await asyncio.sleep(PAUSE)
    writer.close()
    return durations


async def _measure(port: int, seconds: float) -> list[float]:
    parts = await asyncio.gather(*(_read(port, seconds, number) for number in range(GOOD)))
    return [value for part in parts for value in part]


async def _run_rounds(port: int, seconds: float, rounds: int, sent: list[int]) -> tuple[list[float], list[float]]:
    """Return the times of the good client alone and with hostile clients, measured alternately."""
    quiet, hostile = [], []
    await _measure(port, 1.0)
    for _ in range(rounds):
        quiet += await _measure(port, seconds)
        async with hostile_company(port, sent):
            hostile += await _measure(port, seconds)
        await asyncio.sleep(6.0)  # wait for the last hostile checks to end
    return quiet, hostile


def serve_memory(folder: Path) -> AbstractContextManager[tuple[int, int]]:
    """Run a server as users start it, with an empty store in memory, and yield (port, pid)."""
    return run_server(
        lambda port: [sys.executable, *STELE, "--store", "memory:", "--port", str(port)],
        folder,
        output=subprocess.DEVNULL,
    )


def fill(port: int) -> None:
    """Register the schemas that the good client reads."""
    for number in range(1, SCHEMAS + 1):
        body = json.dumps({"schema": schema(number)}).encode()
        url = f"http://127.0.0.1:{port}/subjects/thing-{number}/versions"
        urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": "application/json"})).read()


def main() -> None:
    """Measure in turns, and compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--company", type=int, metavar="PORT", help="only be the hostile clients of a server")
    arguments = parser.parse_args()
    if arguments.company:
        asyncio.run(_be_hostile(arguments.company))
        return
    sent: list[int] = []
    with tempfile.TemporaryDirectory() as name, serve_memory(Path(name)) as (port, _):
        fill(port)
        figures = asyncio.run(_run_rounds(port, arguments.seconds, arguments.rounds, sent))
    rows = []
    base = statistics.quantiles(figures[0], n=100)[98]
    for place, values in zip(("alone", "with hostile clients"), figures, strict=True):
        p99 = statistics.quantiles(values, n=100)[98]
        median = statistics.median(values)
        rows.append(
            {
                "reads": place,
                "number": len(values),
                "median ms": median * 1000,
                "p99 ms": p99 * 1000,
                "ratio": round(p99 / base, 2),
            }
        )
    company = f"{GOOD} good connections that read every {PAUSE * 1000:g} ms; {IDLE} idle and slow ones"
    notes = [
        f"{company}; {HOSTILE} that sent {sum(sent)} hostile schemas",
        f"the ratio should stay below {LIMIT:g}; clients and server share the processors",
    ]
    report("hostile_load", rows, notes)


if __name__ == "__main__":
    main()
