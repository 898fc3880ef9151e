"""A service manager such as systemd passes sockets to `stele serve` and is notified when it is ready."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import pytest
from tests.support.server_process import serving
from tests.support.time_limit import limit_time

_ACTIVATE = """
import fcntl, os, sys
descriptors = [int(text) for text in sys.argv[1].split(",")]
spare = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, 100) for descriptor in descriptors]  # where none of them is
for index, descriptor in enumerate(spare):
    os.dup2(descriptor, 3 + index)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(descriptors))}
os.execv(sys.executable, [sys.executable, "-m", "stele.cli", "serve", *sys.argv[2:]])
"""
"""Starts `stele serve` with sockets as descriptors 3, 4 …, as systemd does."""


@contextmanager
def _activate(sockets: Sequence[socket.socket], *flags: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    descriptors = [listener.fileno() for listener in sockets]
    command = [sys.executable, "-c", _ACTIVATE, ",".join(map(str, descriptors)), "--store", "memory:", *flags]
    with subprocess.Popen(command, pass_fds=descriptors, cwd=folder, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.terminate()


def _listen(family: socket.AddressFamily, address: str | tuple[str, int]) -> socket.socket:
    listening = socket.socket(family)
    listening.bind(address)
    listening.listen()
    return listening


def test_handed_over_sockets_serve(tmp_path: Path) -> None:
    """Passed sockets are served: a TCP port with a request from before the start, a Unix socket, a dialect's port."""
    with ExitStack() as stack:
        everything, dialect = (stack.enter_context(_listen(socket.AF_INET, ("127.0.0.1", 0))) for _ in "12")
        reserved_socket = stack.enter_context(socket.socket())  # reserved: no other process can listen there
        reserved_socket.bind(("127.0.0.1", 0))
        port, own_port, other = (each.getsockname()[1] for each in (everything, dialect, reserved_socket))
        # The path of a socket may have about 100 characters; pytest's folders may be longer.
        short = Path(stack.enter_context(TemporaryDirectory(dir="/tmp")))
        file = stack.enter_context(_listen(socket.AF_UNIX, str(short / "stele.sock")))
        early = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=180))
        early.sendall(b"GET /subjects HTTP/1.0\r\n\r\n")
        flags = ["--port", str(other), "--listen", f"pravega={own_port}"]
        process = stack.enter_context(_activate([everything, dialect, file], *flags, folder=tmp_path))
        answer = b"".join(iter(lambda: early.recv(1 << 16), b""))
        assert answer.startswith(b"HTTP/1.1 200")
        assert answer.endswith(b"[]")
        assert httpx.get(f"http://127.0.0.1:{own_port}/v1/groups?namespace=a", timeout=60).status_code == 200
        assert httpx.get(f"http://127.0.0.1:{own_port}/subjects", timeout=60).status_code == 404
        transport = httpx.HTTPTransport(uds=str(short / "stele.sock"))
        by_file = stack.enter_context(httpx.Client(transport=transport, base_url="http://stele", timeout=60))
        assert by_file.get("/subjects").json() == []
        assert by_file.get("/", headers={"accept": "application/json"}).status_code == 200
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"http://127.0.0.1:{other}/subjects")
        process.terminate()
        assert process.stderr is not None
        output = process.stderr.read().decode()
        assert f"Stele on http://127.0.0.1:{port}" in output
        assert f"pravega alone on http://127.0.0.1:{own_port}" in output
        assert f"Stele on unix:{short}/stele.sock" in output


def test_a_socket_that_does_not_listen_is_refused(tmp_path: Path) -> None:
    """A socket that does not listen is refused with an error about the unit, with the exit code of a wrong setting."""
    with socket.socket() as silent, _activate([silent], folder=tmp_path) as process:
        assert process.wait(180) == 2
        assert process.stderr is not None
        assert "does not listen for connections: use ListenStream= with Accept=no" in " ".join(
            process.stderr.read().decode().split()
        )


@pytest.mark.parametrize("workers", [1, 2])
def test_readiness_is_announced(workers: int, tmp_path: Path) -> None:
    """The service manager is notified when the server is ready, and then repeatedly that it is alive."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as messages:
        messages.bind(str(tmp_path / "notify"))
        messages.settimeout(180)
        environ = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
        flags = ["--store", f"sqlite:///{tmp_path}/log.db", "--workers", str(workers)]
        with serving(*flags, folder=tmp_path, environ=environ) as server:
            assert messages.recv(1000) == b"READY=1\nWATCHDOG=1"
            assert httpx.get(f"{server.url}/health/ready", timeout=60).status_code == 200
            with limit_time(10, time.monotonic):
                assert messages.recv(1000) == b"READY=1\nWATCHDOG=1"
            messages.close()  # closed, since the server would block on a full, unread socket
