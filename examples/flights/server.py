"""The registry of the demo: a real server process on its own SQLite file."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

PORT = 8081


class Server:
    """A running server, which `run_server` stops at its end unless `leave_up` was called."""

    def __init__(self, url: str, process: subprocess.Popen[bytes]) -> None:
        self.url = url
        self.process = process
        self.stays = False

    def leave_up(self, home: Path) -> None:
        """Let the server run after the demo."""
        self.stays = True
        print(
            f"\nThe registry stays up at {self.url} (log in {home / 'stele.db'}); stop it with: kill {self.process.pid}"
        )
        print(f"  curl {self.url}/subjects/flights-value/versions/latest")
        print(f"  .venv/bin/stele schema list flights-value --registry {self.url}")


@contextmanager
def run_server(home: Path) -> Iterator[Server]:
    """Start `stele serve` and wait until it is ready."""
    port = _port()
    command = [sys.executable, "-m", "stele.cli", "serve", "--port", str(port)]
    command += ["--store", f"sqlite:///{home / 'stele.db'}", "--log-level", "warning"]
    with (home / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    server = Server(f"http://127.0.0.1:{port}", process)
    try:
        _wait_ready(server)
        yield server
    finally:
        if not server.stays:
            process.terminate()
            process.wait(120)


def _port() -> int:
    """Return 8081, or a free port if 8081 is in use."""
    for port in (PORT, 0):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            number: int = probe.getsockname()[1]
            return number
    raise OSError("no free port")


def _wait_ready(server: Server) -> None:
    until = time.monotonic() + 240
    while time.monotonic() < until:
        if server.process.poll() is not None:
            raise RuntimeError("the server ended; see server.log")
        with suppress(httpx.TransportError):
            if httpx.get(f"{server.url}/health/ready").status_code == httpx.codes.OK:
                return
        time.sleep(0.1)
    raise TimeoutError("the server did not become ready")
