"""Load on HTTP servers: connections that send the next request once they are answered, and CPU time of the servers."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["CONTENT_LENGTH", "Client", "Note", "cpu_seconds", "get", "run_clients"]

CONTENT_LENGTH = re.compile(rb"content-length: *([0-9]+)", re.IGNORECASE)

Note = Callable[[bytes, bytes, float], None]
"""Callback with a request, its answer, and the time when it was sent."""


class Client(NamedTuple):
    """One connection: its port, its requests, and the callback for answers."""

    port: int
    requests: Iterator[bytes]
    note: Note | None = None


class _Connection(asyncio.Protocol):
    def __init__(self, client: Client) -> None:
        self._client = client
        self._answer = b""
        self.answered = 0
        self.is_stopped = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self._ask()

    def _ask(self) -> None:
        self._request, self._sent = next(self._client.requests), time.perf_counter()
        self.transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Count a complete answer, then send the next request."""
        self._answer += data
        end = self._answer.find(b"\r\n\r\n")
        if end < 0:
            return
        length = CONTENT_LENGTH.search(self._answer, 0, end)
        assert length is not None
        assert self._answer.startswith(b"HTTP/1.1 200"), self._answer[:2000]
        if len(self._answer) < end + 4 + int(length[1]):
            return
        self.answered += 1
        answer, self._answer = self._answer, b""
        if self._client.note is not None:
            self._client.note(self._request, answer, self._sent)
        if not self.is_stopped:
            self._ask()


async def run_clients(clients: Iterable[Client], seconds: float, last_seconds: float = 0.1) -> int:
    """Run clients for a time and return the number of their answers.

    Args:
        clients: Each has a connection of its own.
        seconds: Time in which they send requests.
        last_seconds: Time to wait for the last answers.
    """
    loop = asyncio.get_running_loop()
    connections = [
        await loop.create_connection(lambda client=client: _Connection(client), "127.0.0.1", client.port)  # type: ignore[misc]
        for client in clients
    ]
    await asyncio.sleep(seconds)
    for _, connection in connections:
        connection.is_stopped = True
    await asyncio.sleep(last_seconds)
    for transport, _ in connections:
        transport.close()
    return sum(connection.answered for _, connection in connections)


def get(path: str) -> bytes:
    """Return a GET request as bytes."""
    return f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode()


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
