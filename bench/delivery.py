"""Delivery of events: delay of an event, events per second, and memory, also with dead subscribers.

Two servers get the same changes alternately: one with a webhook that answers, the other with the same webhook and many
that accept connections and never answer. The delay lasts from the start of the request for a change to the arrival of
its event. The backlog are the events that a subscription receives after a pause.

    python -m bench.delivery
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
from bench.report import Row, report

CHANGES, GAP_SECONDS, BACKLOG, DEAD = 300, 0.02, 2_000, 50
_ANSWER = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"


class Sink:
    """A webhook on a free port that notes the arrival time of each event, or one that never answers."""

    def __init__(self, *, answers: bool = True) -> None:
        self.arrivals: dict[str, float] = {}
        self._answers = answers
        self._came = asyncio.Event()
        self.url = ""

    async def serve(self) -> asyncio.Server:
        """Start the server."""
        server = await asyncio.start_server(self._handle, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        return server

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            if self._answers:
                length = int(head.lower().split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
                event = json.loads(await reader.readexactly(length))
                self.arrivals.setdefault(event["subject"].split("/")[4], time.perf_counter())
                self._came.set()
                writer.write(_ANSWER)
                await writer.drain()
            else:
                await reader.read()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def wait_for(self, count: int) -> None:
        """Wait until events of `count` subjects have arrived."""
        while len(self.arrivals) < count:
            self._came.clear()
            await asyncio.wait_for(self._came.wait(), 120)


class Node:
    """A server with its subscriptions."""

    def __init__(self, client: httpx.AsyncClient, pid: int, sink: Sink) -> None:
        self.client = client
        self.pid = pid
        self.sink = sink
        self.begun: dict[str, float] = {}

    async def register(self, name: str) -> None:
        """Register a schema, which causes one event."""
        self.begun[name] = time.perf_counter()
        answer = await self.client.post(f"/subjects/{name}/versions", json={"schema": '"string"'})
        answer.raise_for_status()

    def resident_megabytes(self) -> float:
        """Return the resident memory of the server process in MB."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@asynccontextmanager
async def running(folder: Path, dead: int) -> AsyncIterator[Node]:
    """Run a server with one webhook that answers and `dead` subscriptions to one that does not."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environ = {**os.environ, "STELE_OUTGOING_NETWORKS": "127.0.0.0/8", "STELE_WEBHOOK_CONSENT": "false"}
    command = [sys.executable, "-m", "stele.cli", "serve", "--port", str(port), "--log-level", "error"]
    process = subprocess.Popen(  # noqa: ASYNC220  # it starts before anything is measured
        [*command, "--store", f"sqlite:///{folder}/log.db"], cwd=folder, env=environ, stderr=subprocess.DEVNULL
    )
    try:
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60))
            for _ in range(600):
                try:
                    if (await client.get("/health/ready")).status_code == 200:
                        break
                except httpx.TransportError:
                    await asyncio.sleep(0.1)
            sink, silent = Sink(), Sink(answers=False)
            for each in (sink, silent):
                await stack.enter_async_context(await each.serve())
            for url in [sink.url, *[silent.url] * dead]:
                body = {"sink": url, "protocol": "HTTP", "filters": [{"prefix": {"subject": "/schemagroups/"}}]}
                (await client.post("/subscriptions", json=body)).raise_for_status()
            yield Node(client, process.pid, sink)
    finally:
        process.kill()
        process.wait()


async def measure(nodes: dict[str, Node]) -> list[Row]:
    """Return a row for each node: delays, memory before and after a backlog, and events per second of the backlog."""
    for node in nodes.values():
        await node.register("warm-up")
        await node.sink.wait_for(1)
    for number in range(CHANGES):
        for node in nodes.values():
            await node.register(f"delay-{number}")
            await asyncio.sleep(GAP_SECONDS)
    rows: list[Row] = []
    for name, node in nodes.items():
        await node.sink.wait_for(CHANGES + 1)
        delays = [node.sink.arrivals[f"delay-{n}"] - node.begun[f"delay-{n}"] for n in range(CHANGES)]
        before = node.resident_megabytes()
        ids = [row["id"] for row in (await node.client.get("/subscriptions")).json() if row["sink"] == node.sink.url]
        await node.client.post(f"/api/subscriptions/{ids[0]}/pause")
        for start in range(0, BACKLOG, 50):
            await asyncio.gather(*(node.register(f"backlog-{start + n}") for n in range(50)))
        await node.client.post(f"/api/subscriptions/{ids[0]}/resume")
        started = time.perf_counter()
        await node.sink.wait_for(CHANGES + 1 + BACKLOG)
        rows.append(
            {
                "subscribers": name,
                "median delay ms": round(statistics.median(delays) * 1000, 1),
                "p99 delay ms": round(sorted(delays)[int(CHANGES * 0.99) - 1] * 1000, 1),
                "events/s of a backlog": round(BACKLOG / (time.perf_counter() - started)),
                "MB before it": round(before, 1),
                f"MB {BACKLOG:,} changes later": round(node.resident_megabytes(), 1),
            }
        )
    alone, with_dead = rows
    rows[1] = {
        **with_dead,
        "p99 delay, times": round(float(with_dead["p99 delay ms"]) / float(alone["p99 delay ms"]), 2),
    }
    return rows


async def _run(folder: Path) -> list[Row]:
    for name in ("alone", "beside"):
        (folder / name).mkdir()
    async with running(folder / "alone", 0) as alone, running(folder / "beside", DEAD) as with_dead:
        return await measure({"one": alone, f"one, and {DEAD} that never answer": with_dead})


def main() -> None:
    """Measure, print and keep."""
    with tempfile.TemporaryDirectory() as folder:
        report("delivery", asyncio.run(_run(Path(folder))))


if __name__ == "__main__":
    main()
