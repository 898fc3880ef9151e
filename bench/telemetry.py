"""Cost of tracing for a registration over HTTP: switched off, and switched on with a receiver that drops everything.

    python -m bench.telemetry [--requests 2000] [--rounds 5]

The servers are ASGI applications in this process, called without a network, on logs in memory. These are the shortest
requests possible, so that the share of tracing is the largest possible. Switched off, tracing is two spans that do
nothing for each write, and nothing for a read. They are timed separately, because their share is below the noise of
requests.
"""

from __future__ import annotations

import argparse
import asyncio
import http.server
import os
import statistics
import threading
import time
from typing import Any

from bench.report import report

from stele.server.app import Server
from stele.server.log_config import configure_logs
from stele.server.settings import load_settings
from stele.service.tracing import NoTracer

_SPANS = 200_000
_PER_WRITE = 2


class _Sink(http.server.BaseHTTPRequestHandler):
    """A receiver of OTLP that drops everything."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


async def _register(server: Server, number: int) -> None:
    """Register a schema. Raises AssertionError for any other answer than 200."""
    body = b'{"schema": "{\\"type\\": \\"fixed\\", \\"name\\": \\"F%d\\", \\"size\\": 4}"}' % number
    path = f"/subjects/s{number}/versions"
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8081),
        "state": {},
    }
    statuses: list[int] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    await server(scope, receive, send)
    assert statuses == [200], statuses


async def _time_registrations(server: Server, first: int, count: int) -> float:
    """Return the seconds per registration."""
    started = time.perf_counter()
    for number in range(first, first + count):
        await _register(server, number)
    return (time.perf_counter() - started) / count


def _time_spans() -> float:
    """Return the seconds of the spans of a write without tracing."""
    tracer = NoTracer()
    started = time.perf_counter()
    for _ in range(_SPANS):
        with tracer.open_span("stele.append", {}):
            pass
    return (time.perf_counter() - started) / _SPANS * _PER_WRITE


async def _measure(requests: int, rounds: int) -> tuple[float, float]:
    """Return the median seconds per registration, off and on, timed alternately."""
    servers = {otel: Server(load_settings({"store": "memory:", "otel": otel})) for otel in (False, True)}
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for server in servers.values():
        await server.start()
        await _time_registrations(server, 0, 200)
    for turn in range(rounds):
        for otel, server in servers.items():
            seconds[otel].append(await _time_registrations(server, 200 + turn * requests, requests))
    for server in servers.values():
        await server.stop()
    return statistics.median(seconds[False]), statistics.median(seconds[True])


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000, help="of each round")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    configure_logs("warning", "console")
    sink = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Sink)
    threading.Thread(target=sink.serve_forever, daemon=True).start()
    os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{sink.server_port}"
    spans = statistics.median(_time_spans() for _ in range(arguments.rounds))
    off, on = asyncio.run(_measure(arguments.requests, arguments.rounds))
    rows = [
        {"what": "a registration, tracing off", "µs": off * 1e6, "ratio": 1.0},
        {"what": "of that: spans that do nothing", "µs": spans * 1e6, "ratio": round(spans / off, 5)},
        {"what": "a registration, tracing on", "µs": on * 1e6, "ratio": round(on / off, 2)},
    ]
    notes = [
        f"Median of {arguments.rounds} rounds of {arguments.requests} registrations, off and on in turn.",
        "No network, and a log in memory: over a connection and with a disk the shares are smaller.",
    ]
    report("telemetry", rows, notes)


if __name__ == "__main__":
    main()
