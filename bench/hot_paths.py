"""The most frequent requests over HTTP: requests per server CPU-second as a share of a bare ASGI app under uvicorn.

    python -m bench.hot_paths [--rounds 5] [--seconds 1] [--store memory:] [--tail]

The bare app answers every request with a fixed body of 1 KiB. The registry holds 500 subjects with 4 versions each of
an Avro record of 16 fields. The server has one core, and the load has another one: 16 connections that send the next
request as soon as they are answered. Every round measures all requests and the bare app, so that other load affects all
alike. A figure is the median of the rounds. CPU seconds are those of the server process, so the speed of the load does
not matter.

`--tail` measures the wall-clock time of reads, with 32 connections, while one more client registers versions: the 50th
and 99th percentile, and how many answers were older than a version acknowledged before the request. The row `bare`
reads from the bare app while that client registers at the registry. It shows how far the load and the rest of the
machine affect the percentiles of any server.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import uvloop
from bench.http_load import CONTENT_LENGTH, Client, cpu_seconds, get, run_clients
from bench.report import Row, report
from bench.server_process import run_server

SUBJECTS, VERSIONS, CONNECTIONS, TAIL_CONNECTIONS = 500, 4, 16, 32
_VERSION = re.compile(rb'"version":([0-9]+)')
_CORES = sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else [0]
_TYPE = b"application/vnd.schemaregistry.v1+json"


class Request(NamedTuple):
    """A row of the table: name of the request, the wanted share, and a function that returns its messages."""

    name: str
    wanted: float
    make: Callable[[], Iterator[bytes]]
    known: int = SUBJECTS
    """Number of requests to send before the measurement; 0 if no request repeats."""


# --- the requests ---------------------------------------------------------------------------------------------------


def schema_text(subject: int, version: object) -> str:
    """Return an Avro record of 16 fields. Every version of a subject can read the data of every other one."""
    fields: list[dict[str, object]] = [
        {"name": f"field_{i}", "type": "string", "doc": f"attribute {i} of subject {subject}"} for i in range(14)
    ]
    fields.append({"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}})
    fields.append({"name": "note", "type": ["null", "string"], "default": None, "doc": f"version {version}"})
    return json.dumps({"type": "record", "name": f"Thing{subject}", "namespace": "bench", "fields": fields})


def post(path: str, text: str) -> bytes:
    """Return a POST request with a schema as bytes."""
    body = json.dumps({"schema": text}).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Length: {len(body)}\r\nContent-Type: "
    return head.encode() + _TYPE + b"\r\n\r\n" + body


def repeat(make: Callable[[int], bytes], count: int = SUBJECTS) -> Callable[[], Iterator[bytes]]:
    """Return a function that returns an endless cycle of the requests for the numbers from 1 to `count`."""
    messages: list[bytes] = []

    def requests() -> Iterator[bytes]:
        messages.extend([] if messages else [make(number) for number in range(1, count + 1)])
        return itertools.cycle(messages)

    return requests


_numbers = itertools.count(1000)


def never_seen(path: str) -> Callable[[], Iterator[bytes]]:
    """Return a function that returns endless requests, each with a new text, for one subject after the other."""

    def requests() -> Iterator[bytes]:
        while True:
            number = next(_numbers)
            subject = number % SUBJECTS + 1
            yield post(path.format(subject), schema_text(subject, number))

    return requests


REQUESTS = (
    Request("GET /schemas/ids/N", 0.90, repeat(lambda n: get(f"/schemas/ids/{n}"))),
    Request("GET /subjects/S/versions/latest", 0.80, repeat(lambda n: get(f"/subjects/thing-{n}/versions/latest"))),
    Request("GET /subjects (500 names)", 0.45, repeat(lambda n: get("/subjects"), 1)),
    Request("POST /subjects/S, known text", 0.35, repeat(lambda n: post(f"/subjects/thing-{n}", schema_text(n, 2)))),
    Request(
        "POST /subjects/S/versions, known text",
        0.35,
        repeat(lambda n: post(f"/subjects/thing-{n}/versions", schema_text(n, 2))),
    ),
    Request(
        "POST /compatibility, pair seen",
        0.30,
        repeat(lambda n: post(f"/compatibility/subjects/thing-{n}/versions/latest", schema_text(n, "next"))),
    ),
    Request("POST /compatibility, never seen", 0.08, never_seen("/compatibility/subjects/thing-{}/versions/latest"), 0),
    Request("POST /subjects/S/versions, new text", 0.10, never_seen("/subjects/thing-{}/versions"), 0),
)


# --- the servers ----------------------------------------------------------------------------------------------------


async def bare_app(scope: Any, receive: Any, send: Callable[[Any], Awaitable[None]]) -> None:
    """Answer a fixed body of 1 KiB."""
    headers = [(b"content-type", _TYPE), (b"content-length", b"1024")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"x" * 1024})


def serve(kind: str, port: int, store: str) -> None:
    """Run one of the servers until it is ended."""
    if kind == "bare":
        import uvicorn

        options: dict[str, Any] = {"loop": "uvloop", "http": "httptools", "access_log": False, "lifespan": "off"}
        uvicorn.run(bare_app, port=port, log_level="error", **options)
    else:
        from stele.server.run import run_server
        from stele.server.settings import ServerSettings

        run_server(ServerSettings(store=store, port=port))


@contextmanager
def serve_kind(kind: str, folder: Path, store: str) -> Iterator[tuple[int, int]]:
    """Run a server of a kind on the first core and yield (port, pid)."""
    with (
        (folder / f"{kind}.log").open("wb") as log,
        run_server(
            lambda port: [sys.executable, "-m", "bench.hot_paths", "serve", kind, str(port), store],
            Path(__file__).parent.parent,
            output=log,
            core=_CORES[0],
        ) as server,
    ):
        yield server


# --- the load -------------------------------------------------------------------------------------------------------


async def send_all(port: int, requests: Iterator[bytes]) -> None:
    """Send requests one after the other."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for request in requests:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = CONTENT_LENGTH.search(head)
        assert length is not None
        body = await reader.readexactly(int(length[1]))
        assert head.startswith(b"HTTP/1.1 200"), (head, body)
    writer.close()


def fill(port: int) -> None:
    """Register the schemas."""
    rows = itertools.product(range(1, VERSIONS + 1), range(1, SUBJECTS + 1))
    uvloop.run(send_all(port, (post(f"/subjects/thing-{n}/versions", schema_text(n, v)) for v, n in rows)))


# --- the tables -----------------------------------------------------------------------------------------------------


def measure_shares(servers: dict[str, tuple[int, int]], rounds: int, seconds: float) -> list[Row]:
    """Return each request with its share of the bare app. The first round does not count."""
    bare = Request("bare", 1.0, repeat(lambda n: get("/")))
    figures: dict[str, list[float]] = {request.name: [] for request in (bare, *REQUESTS)}
    for turn in range(rounds + 1):
        for request in (bare, *REQUESTS):
            port, pid = servers["bare" if request is bare else "stele"]
            uvloop.run(send_all(port, itertools.islice(request.make(), request.known)))
            before = cpu_seconds(pid)
            clients = itertools.repeat(Client(port, request.make()), CONNECTIONS)
            answered = uvloop.run(run_clients(clients, seconds if turn else 0.2, 0.05))
            if turn:
                figures[request.name].append(answered / max(cpu_seconds(pid) - before, 0.01))
    rows: list[Row] = []
    for request in (bare, *REQUESTS):
        shares = [own / base for own, base in zip(figures[request.name], figures["bare"], strict=True)]
        share = statistics.median(shares)
        rows.append(
            {
                "request": request.name,
                "requests per CPU-second": round(statistics.median(figures[request.name])),
                "share": round(share, 3),
                "wanted": request.wanted,
                "reached": "yes" if share >= request.wanted else "no",
            }
        )
    return rows


class Tail:
    """Latencies of reads while versions are registered."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.stale = 0
        self._acknowledged: dict[bytes, int] = {}
        self._known_when_sent: dict[int, int] = {}
        self.registered = 0

    def note_registration(self, request: bytes, answer: bytes, _sent: float) -> None:
        """Record an acknowledged version."""
        version = _VERSION.search(answer)
        assert version is not None
        subject = request.split(b"/", 3)[2]
        self._acknowledged[subject] = int(version[1])
        self.registered += 1

    def watch(self, requests: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the requests and record the acknowledged version at the time when each is sent."""
        for request in requests:
            subject = request.split(b"/", 3)[2] if b"/versions/latest " in request else b""
            self._known_when_sent[id(request)] = self._acknowledged.get(subject, 0)
            yield request

    def note_read(self, request: bytes, answer: bytes, sent: float) -> None:
        """Record the duration of a read, and whether its answer is older than the acknowledged version."""
        self.seconds.append(time.perf_counter() - sent)
        version = _VERSION.search(answer) if b"/versions/latest " in request else None
        self.stale += version is not None and int(version[1]) < self._known_when_sent[id(request)]


async def read_while_registering(read_port: int, write_port: int, requests: Iterator[bytes], seconds: float) -> Tail:
    """Read over many connections, register over one more."""
    tail = Tail()
    # A new object each time, because `Tail` looks up the known version by the identity of the request.
    fresh = (bytes(bytearray(request)) for request in requests)
    reader = Client(read_port, tail.watch(fresh), tail.note_read)
    writer = Client(write_port, never_seen("/subjects/thing-{}/versions")(), tail.note_registration)
    await run_clients([*itertools.repeat(reader, TAIL_CONNECTIONS), writer], seconds, 0.2)
    return tail


def measure_tails(bare_port: int, port: int, rounds: int, seconds: float) -> list[Row]:
    """Return each read with its percentiles, as medians of the rounds. Each request is sent once before."""
    reads = [Request("bare", 1.0, repeat(lambda n: get("/")))]
    reads += [request for request in REQUESTS if request.name.startswith("GET")]
    reads += [request for request in REQUESTS if "known text" in request.name and "versions" not in request.name]
    reads += [request for request in REQUESTS if "pair seen" in request.name]
    tails_by_name: dict[str, list[Tail]] = {request.name: [] for request in reads}
    for _ in range(rounds):
        for request in reads:
            read_port = bare_port if request.name == "bare" else port
            uvloop.run(send_all(read_port, itertools.islice(request.make(), request.known)))
            tails_by_name[request.name].append(
                uvloop.run(read_while_registering(read_port, port, request.make(), seconds))
            )
    rows: list[Row] = []
    for name, tails in tails_by_name.items():
        cuts = [statistics.quantiles(tail.seconds, n=100) for tail in tails]
        p50, p99 = (statistics.median(cut[at] for cut in cuts) * 1000 for at in (49, 98))
        rows.append(
            {
                "request": name,
                "p50 ms": round(p50, 2),
                "p99 ms": round(p99, 2),
                "p99 / p50": round(p99 / p50, 1),
                "least of a round": round(min(cut[98] / cut[49] for cut in cuts), 1),
                "reads/s": round(statistics.median(len(tail.seconds) for tail in tails) / seconds),
                "registered/s": round(statistics.median(tail.registered for tail in tails) / seconds),
                "stale": sum(tail.stale for tail in tails),
            }
        )
    return rows


def main() -> None:
    """Fill, then measure in interleaved rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each request in each round")
    parser.add_argument("--store", default="memory:")
    parser.add_argument("--tail", action="store_true", help="percentiles while one client registers")
    options = parser.parse_args()
    with suppress(AttributeError, OSError):
        os.sched_setaffinity(0, {_CORES[-1]})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with serve_kind("bare", folder, "") as bare, serve_kind("stele", folder, options.store) as stele:
            fill(stele[0])
            if options.tail:
                rows = measure_tails(bare[0], stele[0], options.rounds, options.seconds)
                notes = [f"{TAIL_CONNECTIONS} connections read while one registers new versions; store {options.store}"]
                report("hot_paths_tail", rows, notes)
            else:
                rows = measure_shares({"bare": bare, "stele": stele}, options.rounds, options.seconds)
                notes = [f"{CONNECTIONS} connections, {options.rounds} interleaved rounds, store {options.store}"]
                notes += [
                    f"{SUBJECTS} subjects of {VERSIONS} versions, Avro, 16 fields",
                    "The load waits for slow answers; an answer then wakes its core, at the server's cost.",
                    "The load of the bare app never waits.",
                ]
                report("hot_paths", rows, notes)


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    else:
        main()
