"""Work of jsonschema-rs in a process that can be stopped.

Some patterns of a few bytes keep it busy for seconds and take gigabytes, some schemas of a few kilobytes take its
prover minutes. It cannot be interrupted, and it lets no other thread of its process run: hence a process of its own
with a deadline. An answer takes about 0.2 ms more this way.
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
    """One process, started when needed and replaced when it had to be stopped.

    Safe to share between threads and across a fork; threads wait for each other.
    """

    def __init__(self, deadline: float) -> None:
        """Start nothing yet; deadline is in seconds, for one question."""
        self._deadline = deadline
        self._lock = threading.Lock()
        self._process: WorkerProcess | None = None
        os.register_at_fork(after_in_child=self._after_fork)
        atexit.register(self.close)

    def ask(self, question: Sequence[Json], lines: int = 1) -> list[str]:
        """Return so many lines of the answer to a question of `engine_worker`; fewer when the process was stopped.

        Raises `Unavailable` when no process can be started.
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
                if len(answer) < lines:  # also when the thread was interrupted: nobody else may get this answer
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
