"""A real server process for tests: `with serving(...) as url`."""

from __future__ import annotations

import fcntl
import http.client
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import IO, Any, Final, NamedTuple

from tests.support.fork_server import Process, can_fork, get_fork_server, start_process
from tests.support.started_workers import listen_to_workers

NEEDS_START = ("PYTHON", "STELE_OTEL", "OTEL_")
"""Prefixes of environment variables that Python or a library reads when it starts or is imported."""
_PORTS: Final = range(20_000, 32_000)
"""Ports below those that systems choose for connections and for servers that accept any port."""
_port_locks: Final = os.open(
    Path(tempfile.gettempdir(), f"stele-test-ports-{os.getuid()}"), os.O_RDWR | os.O_CREAT, 0o600
)
"""Lock file. The byte at the number of a port is locked by the process that handed out the port."""
_given_ports: Final[set[int]] = set()
_giving_port: Final = threading.Lock()


class Running(NamedTuple):
    """A server that answers: its base URL and its (first) process."""

    url: str
    process: Process


class Answer(NamedTuple):
    """Status and decoded JSON body of a request."""

    status: int
    body: Any


def free_port() -> int:
    """Return a TCP port that no process listens on.

    No other process gets the port while this process runs: neither from this function nor from the system. So a server
    may be slow to bind it, and may bind it again after a stop.
    """
    with _giving_port:
        start = secrets.randbelow(len(_PORTS))  # tests seed `random`: all processes would pick the same port
        for port in (*_PORTS[start:], *_PORTS[:start]):
            if port not in _given_ports and _take_port(port):
                _given_ports.add(port)
                return port
    raise OSError("no port is free")


def _take_port(port: int) -> bool:
    """Lock a port against other test processes. Returns False if it is locked or in use."""
    try:
        fcntl.lockf(_port_locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    try:
        with socket.socket() as probe:
            probe.bind(("", port))
    except OSError:
        fcntl.lockf(_port_locks, fcntl.LOCK_UN, 1, port)
        return False
    return True


def call(url: str, method: str = "GET", body: Any = None, raw: bytes | None = None) -> Answer:
    """Send a request and return the answer, also for error statuses.

    Raises: OSError: no connection, or the server ended before its answer was complete.
    """
    data = raw if raw is not None else None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        return _send(request)
    except http.client.HTTPException as error:
        raise ConnectionError(f"the answer was cut short: {error!r}") from error


def _send(request: urllib.request.Request) -> Answer:
    try:
        with urllib.request.urlopen(request, timeout=120) as response:
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
    *flags: str,
    folder: Path,
    environ: dict[str, str] | None = None,
    output: IO[bytes] | None = None,
    starts_anew: bool = False,
) -> Iterator[Running]:
    """Start `stele serve` on a free port, yield it once it is ready, and stop it with SIGTERM at the end.

    The server is forked from a process that has loaded it, unless an environment variable is read at import. With
    several workers, all of them serve when the block begins.

    Args:
        flags: Options of the command.
        folder: Working directory of the server.
        environ: Environment variables in addition to those of the tests.
        output: File for the output of the server; None: that of the tests.
        starts_anew: Start a new Python, as for a user, in place of a fork.
    """
    port = free_port()
    arguments = ["serve", "--port", str(port), "--log-level", "warning", *flags]
    variables = {**os.environ, **(environ or {})}
    starts_anew = starts_anew or any(name.startswith(NEEDS_START) for name in environ or {})
    with ExitStack() as stack:
        started = None
        if "--workers" in flags and "NOTIFY_SOCKET" not in variables:
            started = stack.enter_context(listen_to_workers())
            variables["NOTIFY_SOCKET"] = started.address
        process = start_process(["stele", *arguments], folder, variables, output, starts_anew=starts_anew)
        stack.callback(_end, process)
        url = f"http://127.0.0.1:{port}"
        wait_ready(url, process)
        if started is not None:
            started.wait_for(int(flags[flags.index("--workers") + 1]))
        yield Running(url, process)


def run_command(*arguments: str, folder: Path, environ: dict[str, str] | None = None) -> CompletedProcess[str]:
    """Run `stele` with these arguments to its end and return its exit code and output.

    It is forked where `can_fork` allows it.
    """
    program: list[str | Path] = [sys.executable, "-m", "stele.cli"]
    variables = {**os.environ, **(environ or {})}
    if can_fork():
        server = get_fork_server()
        program = [server.programs / "stele"]
        variables |= server.environ
    return subprocess.run(
        [*program, *arguments], cwd=folder, env=variables, capture_output=True, text=True, timeout=180, check=False
    )


def _end(process: Process) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(120)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise


def wait_ready(url: str, process: Process, seconds: float = 240.0) -> None:
    """Wait until the server reports that it is ready. Raises `TimeoutError` after `seconds`."""
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
