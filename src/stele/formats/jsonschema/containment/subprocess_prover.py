"""Proofs that one schema allows all another one allows, from a process that can be stopped.

The prover is the canonical form of jsonschema-rs, whose authors call it experimental and of whose answers only YES is
a proof. Some schemas of a few kilobytes keep it busy for minutes, it cannot be interrupted, and it lets no other
thread of its process run: hence a process of its own with a deadline. An answer takes about 0.2 ms more this way.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO

import jsonschema_rs

from stele.formats.jsonschema.containment import prover_worker
from stele.formats.jsonschema.containment.document import BundledDocument
from stele.formats.jsonschema.drafts import Draft
from stele.formats.jsonschema.json_text import write_json
from stele.formats.jsonschema.parse import BACKTRACK_LIMIT, PATTERN_SIZE_LIMIT

DEADLINE = 1.0
"""Seconds one proof may take; what takes longer counts as not proved."""

_NUMBERS = {
    Draft.DRAFT4: jsonschema_rs.Draft4,
    Draft.DRAFT6: jsonschema_rs.Draft6,
    Draft.DRAFT7: jsonschema_rs.Draft7,
    Draft.DRAFT2019: jsonschema_rs.Draft201909,
    Draft.DRAFT2020: jsonschema_rs.Draft202012,
}


class Prover:
    """One proving process, started when needed and replaced when it had to be stopped.

    Safe to share between threads and across a fork; threads wait for each other.
    """

    def __init__(self, deadline: float = DEADLINE) -> None:
        self._deadline = deadline
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        os.register_at_fork(after_in_child=self._after_fork)
        atexit.register(self.close)

    def can_prove(self, reader: BundledDocument, writer: BundledDocument, draft: Draft, *, formats: bool) -> bool:
        """Return whether it is proved that every document of the writer is one of the reader; both are of `draft`.

        formats says whether `format` refuses. False means nothing: not proved, too slow, or no process to be had.
        """
        if not (reader.exact and writer.exact):
            return False
        limits = (BACKTRACK_LIMIT, PATTERN_SIZE_LIMIT)
        question = write_json([_NUMBERS[draft], formats, *limits, reader.root, writer.root]) + b"\n"
        with self._lock:
            try:
                return self._send_question(question) == b"yes\n"
            except OSError:
                self._stop_process()
                return False

    def _send_question(self, question: bytes) -> bytes:
        process = self._process = self._process or self._start_process()
        alarm = threading.Timer(self._deadline, process.kill)
        alarm.daemon = True
        alarm.start()
        try:
            _require_pipe(process.stdin).write(question)
            _require_pipe(process.stdin).flush()
            answer = _require_pipe(process.stdout).readline()
        finally:
            alarm.cancel()
        if not answer:
            self._stop_process()
        return answer

    @staticmethod
    def _start_process() -> subprocess.Popen[bytes]:
        package = Path(jsonschema_rs.__file__).parent.parent
        return subprocess.Popen(
            [sys.executable, "-I", prover_worker.__file__, str(package)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt typed at a terminal is for the server alone
        )

    def close(self) -> None:
        """End the process; a later question starts a new one."""
        with self._lock:
            self._stop_process()

    def _stop_process(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            _close_pipes(process)

    def _after_fork(self) -> None:
        # The lock may have been held by a thread that does not exist here, and the process belongs to the parent.
        self._lock = threading.Lock()
        process, self._process = self._process, None
        if process is not None:
            _close_pipes(process)
            process.returncode = process.returncode or 0  # keeps Popen from warning about a running child


def _require_pipe(stream: IO[bytes] | None) -> IO[bytes]:
    return stream  # type: ignore[return-value]  # Popen types its pipes as optional; both are asked for above


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            _require_pipe(stream).close()


PROVER = Prover()
"""The one prover of this Python process."""
