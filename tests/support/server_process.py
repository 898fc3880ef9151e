"""A real server process for tests: `with serving(...) as url`."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

from tests.support.fork_server import ForkedProcess, can_fork, get_fork_server

Process: TypeAlias = subprocess.Popen[bytes] | ForkedProcess


NEEDS_START = ("PYTHON", "STELE_WORKERS", "STELE_OTEL", "OTEL_")
"""Beginnings of the names of environment variables that Python or a library reads when it starts or is imported."""


class Running(NamedTuple):
    """A server that answers: its base URL and its (first) process."""

    url: str
    process: Process


class Answer(NamedTuple):
    """Status and decoded JSON body of a request."""

    status: int
    body: Any


def free_port() -> int:
    """A TCP port nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def call(url: str, method: str = "GET", body: Any = None, raw: bytes | None = None) -> Answer:
    """One request; error statuses are answers, too.

    Raises: OSError: no connection, or a server that ended before its answer did.
    """
    data = raw if raw is not None else None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        return _send(request)
    except http.client.HTTPException as error:
        raise ConnectionError(f"the answer was cut short: {error!r}") from error


def _send(request: urllib.request.Request) -> Answer:
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return Answer(response.status, _decode_body(response.read()))
    except urllib.error.HTTPError as error:
        return Answer(error.code, _decode_body(error.read()))


def _decode_body(data: bytes) -> Any:
    try:
        return json.loads(data) if data else None
    except ValueError:
        return data.decode()


@contextmanager
def serving(
    *flags: str, folder: Path, environ: dict[str, str] | None = None, output: IO[bytes] | None = None
) -> Iterator[Running]:
    """Start `stele serve` with these flags on a free port; stopped with SIGTERM at the end.

    One worker is forked from a process that has loaded the server, unless a variable is for Python itself; several
    start anew.

    output takes what the server prints; None: it goes where that of the tests goes.
    """
    port = free_port()
    arguments = ["serve", "--port", str(port), "--log-level", "warning", *flags]
    variables = {**os.environ, **(environ or {})}
    process: Process
    if can_fork() and "--workers" not in flags and not any(name.startswith(NEEDS_START) for name in environ or {}):
        process = get_fork_server().start_command(arguments, folder, variables, output)
    else:
        command = [sys.executable, "-m", "stele.cli", *arguments]
        process = subprocess.Popen(
            command, cwd=folder, env=variables, start_new_session=True, stdout=output, stderr=output
        )
    url = f"http://127.0.0.1:{port}"
    try:
        wait_ready(url, process)
        yield Running(url, process)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise


def wait_ready(url: str, process: Process, seconds: float = 120.0) -> None:
    """Return when the server says that it is ready."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        assert process.poll() is None, f"the server ended with {process.returncode}"
        try:
            if call(f"{url}/health/ready").status == 200:
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise TimeoutError("the server did not become ready")
