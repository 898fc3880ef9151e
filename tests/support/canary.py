"""Whether a server answers others while it is attacked, on whatever machine.

    python -m tests.support.canary PID HOST PORT PATH...

The measuring has a process of its own, since the test that attacks is busy, too. It asks for each path again and again
until its input ends. From the time of an answer it takes off how long threads of the server, and itself, were ready to
run but had no processor: that the machine is busy with something else is no fault of the server. Prints one line of
JSON, see `Answers`.
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
"""Seconds that 99 of 100 answers may take."""
_LEAST_SECONDS = 2.0
_PAUSE = 0.02


class Answers(NamedTuple):
    """Seconds of all answers, by the clock and without waiting for a processor; the answers that were no 200."""

    clock: list[float]
    own: list[float]
    bad: list[str]

    def require_soon(self, limit: float) -> None:
        """Raise AssertionError unless all answers were good and 99 of 100 came within so many seconds.

        Requests follow one another, so a server that stands still is asked once. What counts is for which part of the
        time it would have kept a request waiting for too long.
        """
        assert not self.bad, self.bad[:3]
        late = sum(max(0.0, seconds - limit) for seconds in self.own)
        slowest = ", ".join(f"{seconds:.2f}" for seconds in sorted(self.own)[-5:])
        assert late <= (sum(self.own) + _PAUSE * len(self.own) / len(PATHS)) / 100, (
            f"a request would have waited for more than {limit} s at more than 1 % of the time; slowest: {slowest}"
        )


@contextmanager
def watch_answers(server: Running, limit: float = LIMIT) -> Iterator[None]:
    """While the block runs, ask the server. Raises AssertionError when answers fail, or are not there soon."""
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
    """Return how long each thread has waited for a processor, in nanoseconds; nothing where the system does not say."""
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
    """Ask until the input ends, then print."""
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
