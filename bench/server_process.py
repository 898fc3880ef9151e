"""Starts and stops a server in a process of its own, for the benches that send requests."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import IO, Final

__all__ = ["STELE", "run_server"]

STELE: Final = ("-m", "stele.cli", "serve", "--log-level", "error")
"""Python's arguments for a registry that logs only errors. The port follows."""
_ATTEMPTS: Final = 300
_PAUSE: Final = 0.1


@contextmanager
def run_server(
    command: Callable[[int], Sequence[str]],
    folder: Path,
    environ: Mapping[str, str] | None = None,
    output: IO[bytes] | int | None = None,
    core: int | None = None,
) -> Iterator[tuple[int, int]]:
    """Start a server on a free port, and yield its port and process id once it answers.

    Args:
        command: Returns the command line for a port.
        folder: The working directory.
        environ: Environment variables in addition to those of this process.
        output: File for the output of the server; None: that of the bench.
        core: The only core that the server uses, where the system supports that.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    process = subprocess.Popen(
        command(port), cwd=folder, env={**os.environ, **(environ or {})}, stdout=output, stderr=output
    )
    try:
        if core is not None:
            with suppress(AttributeError, OSError):
                os.sched_setaffinity(process.pid, {core})
        for _ in range(_ATTEMPTS):
            if _is_ready(port):
                break
            time.sleep(_PAUSE)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(30)


def _is_ready(port: int) -> bool:
    """Return whether a server answers.

    An error other than 503 also counts, because servers other than Stele do not have the path.
    """
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/health/ready", timeout=5).close()
    except urllib.error.HTTPError as error:
        return error.code != HTTPStatus.SERVICE_UNAVAILABLE
    except OSError:
        return False
    return True
