"""Check that a server still answers other clients while a test attacks it, whatever the speed of the machine.

    python -m tests.support.canary PID HOST PORT PATH...

The measuring runs in a process of its own, because the process of the test is busy with the attack. It requests each
path again and again until its standard input ends. From the time of an answer it subtracts the time that threads of the
server, and its own, were ready to run but had no processor, so that other load on the machine does not count. Prints
one line of JSON, see `Answers`.
"""

from __future__ import annotations

import json
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from tests.support.server_process import Running

PATHS = ("/health/live", "/schemas/ids/1")
LIMIT = 0.25
"""Longest time of 99 of 100 answers, in seconds."""
_LEAST_SECONDS = 2.0
_PAUSE = 0.02


class Answers(NamedTuple):
    """Times of all answers, and the answers that failed.

    clock  seconds by the clock
    own    seconds without the waits for a processor
    bad    path and status line of each answer that was not 200
    """

    clock: list[float]
    own: list[float]
    bad: list[str]

    def require_soon(self, limit: float) -> None:
        """Raise AssertionError unless all answers were 200 and fast enough for 99 % of the time.

        Requests follow one another, so a server that hangs gets only one request. Therefore the check adds up the time
        during which a request would have waited for more than `limit` seconds, and compares it with 1 % of the whole
        time.
        """
        assert not self.bad, self.bad[:3]
        late = sum(max(0.0, seconds - limit) for seconds in self.own)
        slowest = ", ".join(f"{seconds:.2f}" for seconds in sorted(self.own)[-5:])
        assert late <= (sum(self.own) + _PAUSE * len(self.own) / len(PATHS)) / 100, (
            f"a request would have waited for more than {limit} s at more than 1 % of the time; slowest: {slowest}"
        )


@contextmanager
def watch_answers(server: Running, limit: float = LIMIT) -> Iterator[None]:
    """Request paths of the server while the block runs. Raises AssertionError when answers fail or are slow."""
    host, port = server.url.removeprefix("http://").split(":")
    command = [sys.executable, "-m", "tests.support.canary", str(server.process.pid), host, port, *PATHS]
    root = Path(__file__).parents[2]
    watcher = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root, text=True)
    assert watcher.stdout is not None
    try:
        watcher.stdout.readline()
        yield
        output, _ = watcher.communicate()
    finally:
        watcher.kill()
        watcher.wait()
    Answers(**json.loads(output)).require_soon(limit)


def _read_waits(processes: tuple[str, ...]) -> dict[str, int]:
    """Return how long each thread has waited for a processor, in nanoseconds; empty if the system does not tell."""
    waits = {}
    for process in processes:
        for task in Path("/proc", process, "task").glob("*"):
            with suppress(OSError):
                waits[task.name] = int((task / "schedstat").read_text(encoding="ascii").split()[1])
    return waits


def _ask(address: tuple[str, int], path: str) -> bytes:
    with socket.create_connection(address, timeout=60) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: canary\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
    return answer


def main(process: str, host: str, port: int, paths: list[str]) -> None:
    """Request the paths until standard input ends, then print the times."""
    answers = Answers([], [], [])
    for path in paths:
        _ask((host, port), path)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    least = time.monotonic() + _LEAST_SECONDS
    before = _read_waits((process, "self"))
    while not select.select([sys.stdin], [], [], _PAUSE)[0] or time.monotonic() < least:
        for path in paths:
            began = time.perf_counter()
            try:
                head = _ask((host, port), path)[:12]
            except OSError as error:
                head = repr(error).encode()
            seconds = time.perf_counter() - began
            if head != b"HTTP/1.1 200":
                answers.bad.append(f"{path}: {head!r}")
            after = _read_waits((process, "self"))
            waited = sum(time - before.get(task, time) for task, time in after.items()) / 1e9
            answers.clock.append(seconds)
            answers.own.append(max(0.0, seconds - waited))
            before = after
    sys.stdout.write(json.dumps(answers._asdict()))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:])
