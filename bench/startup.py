"""Processor time of the command line at its start: for the version, for a check, and until a server answers.

    python -m bench.startup [--rounds 5]

Seconds are user and system time of the process and its children, so a busy machine changes them little. Each figure is
the median of the rounds. The ratio is to a Python that does nothing, measured in the same rounds. The figure of the
server is the time until it has answered its first request, on an empty log.
"""

from __future__ import annotations

import argparse
import http.client
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.report import report

GOALS = {"stele --version": 0.15, "stele check FILE": 0.4, "stele serve, first answer": 1.2}
SCHEMA = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""Environment of the commands. The first round compiles modules to bytecode, and the other rounds load it."""
_TICKS = os.sysconf("SC_CLK_TCK")


def command_seconds(*arguments: str) -> float:
    """Return the processor seconds of a command from its start to its end."""
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, arguments
    return usage.ru_utime + usage.ru_stime


def serve_seconds(folder: Path, *flags: str) -> float:
    """Return the processor seconds of a server and its workers until the first request is answered."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    store = f"sqlite:///{folder / str(port)}.db"
    command = [sys.executable, "-m", "stele.cli", "serve", "--store", store, "--port", str(port), *flags]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
    try:
        while not has_answered(port):
            assert process.poll() is None
            time.sleep(0.01)
        return tree_seconds(process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def has_answered(port: int) -> bool:
    """Return whether the server answers a request for its subjects."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/subjects")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def tree_seconds(pid: int) -> float:
    """Return the processor seconds of a process and its children so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return (int(fields[11]) + int(fields[12])) / _TICKS + sum(tree_seconds(int(child)) for child in children)


def main() -> None:
    """Measure in interleaved rounds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        ENVIRONMENT["PYTHONPYCACHEPREFIX"] = name
        file = Path(name) / "order.avsc"
        file.write_text(SCHEMA)
        measures = {
            "python -c pass": lambda: command_seconds("-c", "pass"),
            "stele --version": lambda: command_seconds("-m", "stele.cli", "--version"),
            "stele check FILE": lambda: command_seconds("-m", "stele.cli", "check", "--allow-first", str(file)),
            "stele serve, first answer": lambda: serve_seconds(Path(name)),
            "stele serve --workers 4, first answer": lambda: serve_seconds(Path(name), "--workers", "4"),
        }
        figures: dict[str, list[float]] = {what: [] for what in measures}
        for turn in range(rounds + 1):
            for what, measure in measures.items():
                seconds = measure()
                if turn:  # the first round fills caches
                    figures[what].append(seconds)
    base = statistics.median(figures["python -c pass"])
    rows = [
        {
            "command": what,
            "CPU seconds": round(statistics.median(timings), 3),
            "goal": GOALS.get(what, ""),
            "ratio": round(statistics.median(timings) / base, 1),
        }
        for what, timings in figures.items()
    ]
    report("startup", rows, [f"median of {rounds} interleaved rounds; ratio to a Python that does nothing"])


if __name__ == "__main__":
    main()
