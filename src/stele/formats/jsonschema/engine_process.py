"""Runs jsonschema-rs in a separate process that can be stopped.

Some patterns of a few bytes keep it busy for seconds and take gigabytes, and some schemas of a few kilobytes take its
prover minutes. It cannot be interrupted, and it blocks all other threads of its process. Hence it runs in a process of
its own with a deadline. That adds about 0.2 ms to an answer.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections.abc import Sequence
from pathlib import Path

import jsonschema_rs

from stele.errors import Unavailable
from stele.formats.jsonschema import engine_worker
from stele.formats.jsonschema.json_text import Json, write_json
from stele.worker_process import OWN_FOLDER, WorkerProcess


class EngineProcess:
    """A worker process that is started when needed, and replaced after it had to be stopped.

    Safe to share between threads and across a fork; one thread at a time is served.
    """

    def __init__(self, deadline: float) -> None:
        """Start nothing yet. deadline is the time limit of one question, in seconds."""
        self._deadline = deadline
        self._lock = threading.Lock()
        self._process: WorkerProcess | None = None
        os.register_at_fork(after_in_child=self._after_fork)
        atexit.register(self.close)

    def ask(self, question: Sequence[Json], lines: int = 1) -> list[str]:
        """Send a question to `engine_worker` and return that many lines of the answer.

        There are fewer lines if the process was stopped. Raises `Unavailable` when no process can be started.
        """
        text = write_json(question) + b"\n"
        with self._lock:
            process = self._process = self._process or self._start_process()
            answer: list[str] = []
            try:
                with process.limit_time(self._deadline), contextlib.suppress(OSError):  # OSError: the process is gone
                    process.input.write(text)
                    process.input.flush()
                    while len(answer) < lines and (line := process.output.readline()):
                        answer.append(line.decode().rstrip("\n"))
            finally:
                if len(answer) < lines:  # also after an interrupt: no other caller may get this answer
                    self._stop_process()
            return answer

    @staticmethod
    def _start_process() -> WorkerProcess:
        try:
            libraries = str(Path(jsonschema_rs.__file__).parent.parent)
            return WorkerProcess(engine_worker.__file__, OWN_FOLDER, libraries)
        except OSError as error:
            raise Unavailable("the process for JSON Schema could not be started") from error

    def close(self) -> None:
        """End the process; a later question starts a new one."""
        with self._lock:
            self._stop_process()

    def _stop_process(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.close()

    def _after_fork(self) -> None:
        # The lock may have been held by a thread that does not exist here, and the process belongs to the parent.
        self._lock = threading.Lock()
        process, self._process = self._process, None
        if process is not None:
            process.abandon()
