"""The process that runs inputs. Its parent can see the present input, and kills the process if that takes too long."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from fuzz.engines import MAX_SIZE, OutOfTime, instrumented_target, run_atheris, run_own_engine
from fuzz.judge import Judge
from fuzz.memory import resident_bytes

CURRENT: Final = "current"
"""File with the present input: serial number, start time, length, content."""
STATS: Final = "stats.json"
"""File with the figures so far."""
HEADER: Final = struct.Struct("<QdI")
"""Serial number of the input (0 between two), seconds since 1970, length."""
WARM_UP: Final = 0.25
"""Fraction of a run after which memory is measured, because caches are full by then."""

_EVERY: Final = 2.0


class Worker:
    """Runs one target until its time is over, and writes figures into a folder."""

    def __init__(self, name: str, engine: str, seconds: float, seed: int, folder: Path) -> None:
        self.name, self.engine, self.seed, self.folder = name, engine, seed, folder
        self.start = time.monotonic()
        self.seconds = seconds
        self.next_look = 0.0
        self.memory: list[tuple[float, int]] = []
        with (folder / CURRENT).open("w+b") as file:
            file.truncate(HEADER.size + MAX_SIZE)
            self.current = mmap.mmap(file.fileno(), HEADER.size + MAX_SIZE)
        self.judge = Judge(name, instrumented_target(name, engine), self._is_really_slow)

    def run(self) -> None:
        """Run the engine until the time is over.

        With atheris, the process exits in `_report`, because libFuzzer would report the exception.
        """
        fuzz = run_atheris if self.engine == "atheris" else run_own_engine
        with contextlib.suppress(OutOfTime):
            fuzz(self.judge.target, self._execute, self.seed)

    def _execute(self, data: bytes) -> frozenset[str]:
        now = time.monotonic() - self.start
        if now > self.next_look:
            self._report(now)
        kept = data[:MAX_SIZE]
        HEADER.pack_into(self.current, 0, self.judge.executions + 1, time.time(), len(kept))
        self.current[HEADER.size : HEADER.size + len(kept)] = kept
        notes = self.judge(data)
        HEADER.pack_into(self.current, 0, 0, time.time(), 0)  # time between two inputs belongs to the engine
        return notes

    def _report(self, now: float) -> None:
        """Write the figures. If the time is over, end the run."""
        self.next_look = now + _EVERY
        self.memory.append((now, resident_bytes()))
        over = now > self.seconds
        (self.folder / STATS).write_text(json.dumps(self._figures(now)))
        if over and self.engine == "atheris":
            sys.stderr.flush()
            os._exit(0)  # libFuzzer would catch and report an exception
        if over:
            raise OutOfTime

    def _figures(self, now: float) -> dict[str, Any]:
        warm = [size for at, size in self.memory if at >= self.seconds * WARM_UP]
        return {
            "seconds": round(now, 1),
            "executions": self.judge.executions,
            "accepted": self.judge.accepted,
            "slowest": [round(self.judge.slowest[0], 3), self.judge.slowest[1]],
            "failures": self.judge.failures,
            "memory_warm": warm[0] if warm else 0,
            "memory_peak": max(warm, default=0),
            "memory_end": warm[-1] if warm else 0,
        }

    def _is_really_slow(self, data: bytes) -> bool:
        """Return whether an input is slow in processor time, by running it in a process without instrumentation."""
        path = self.folder / "suspect"
        path.write_bytes(data)
        script = str(Path(__file__).parent / "run.py")
        command = [sys.executable, script, "--target", self.name, "--reproduce", str(path), "--quiet"]
        return subprocess.run(command, check=False, stdin=subprocess.DEVNULL).returncode == 1
