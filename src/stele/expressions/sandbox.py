"""Evaluates questions in processes that can be killed, so that limits hold for any expression.

The expression libraries cannot be interrupted inside a regex or a long string operation, and would block the other
threads of the process. A process is started on demand, and answers one question after the other. A question that
exceeds its limits ends only its process.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import sys
import threading
from dataclasses import dataclass
from typing import Final

from stele.errors import DataError, TooLarge, Unavailable
from stele.expressions import transport, worker
from stele.expressions.questions import Answer, Question
from stele.worker_process import WorkerProcess

MAX_PROCESSES: Final = min(4, os.cpu_count() or 1)
"""Most questions that are evaluated at a time. Further threads wait."""
_END_SECONDS: Final = 1.0
"""Seconds to wait for the exit of a process that has closed its pipes."""


@dataclass(frozen=True, slots=True)
class ExpressionLimits:
    """Limits of one question.

    seconds  CPU time; in wall-clock time an expression may take four times as long
    memory   bytes for the value, all temporary values, and the result; a serialized answer may have an eighth of it.
             Only Linux enforces this; elsewhere only the answer is limited
    """

    seconds: float = 2.0
    memory: int = 256 << 20


DEFAULT_LIMITS: Final = ExpressionLimits()


def evaluate_bounded(question: Question, limits: ExpressionLimits = DEFAULT_LIMITS) -> Answer:
    """Return the answer to a question.

    Raises `TooLarge` beyond the limits, `DataError` for errors of the expression or its library, `Unavailable` when
    no process can be started.
    """
    return _SANDBOX.evaluate(question, limits)


class Sandbox:
    """A few processes, started when needed. Safe to share between threads and across a fork."""

    def __init__(self, processes: int = MAX_PROCESSES) -> None:
        self._processes = processes
        self._forget_processes()
        os.register_at_fork(after_in_child=self._forget_processes)
        atexit.register(self.close)

    def evaluate(self, question: Question, limits: ExpressionLimits) -> Answer:
        """Return the answer to a question; see `evaluate_bounded`."""
        packed = transport.pack_question(question)
        message = worker.BOUNDS.pack(limits.seconds, limits.memory) + packed.data
        with self._slots:
            answer = self._ask_process(message, limits)
        if answer[:1] == worker.RESULT:
            return transport.unpack_answer(packed, answer[1:])
        raise DataError(answer[1:].decode())

    def close(self) -> None:
        """End the idle processes. A later question starts a new one."""
        while self._idle:
            self._idle.pop().close()

    def _ask_process(self, message: bytes, limits: ExpressionLimits) -> bytes:
        """Return the answer of a process.

        If a process runs out of memory that has answered other questions, the question is repeated in another process.
        """
        while True:
            process = self._take_process()
            is_fresh = process.answered == 0
            answer = process.ask(message, limits)
            if answer is not None and answer[:1] != worker.TOO_LARGE:
                self._idle.append(process)
                return answer
            process.close()
            if answer is None and process.is_out_of_time():
                raise TooLarge(f"the expression takes more than {limits.seconds:g} seconds")
            if is_fresh:
                raise TooLarge(f"the expression takes more than {limits.memory >> 20} MiB of memory")

    def _take_process(self) -> _Process:
        try:
            return self._idle.pop()
        except IndexError:
            return _Process()

    def _forget_processes(self) -> None:
        # After a fork the processes belong to the parent, and a thread of the parent may have held a lock.
        for process in getattr(self, "_idle", ()):
            process.abandon()
        self._idle: list[_Process] = []
        self._slots = threading.BoundedSemaphore(self._processes)


class _Process(WorkerProcess):
    """One process; one thread at a time uses it."""

    def __init__(self) -> None:
        self.answered = 0
        try:
            super().__init__(worker.__file__, json.dumps([path for path in sys.path if path]))
        except OSError as error:
            raise Unavailable("the process for expressions could not be started") from error

    def ask(self, message: bytes, limits: ExpressionLimits) -> bytes | None:
        """Return the answer to a message. None when the process ended, or when its answer is too long."""
        answer = None
        try:
            with contextlib.suppress(OSError):  # the process has ended
                self.input.write(worker.LENGTH.pack(len(message)) + message)
                self.input.flush()
                answer = worker.read_frame(self.output, limits.memory)
        finally:
            if answer is None:  # also after an interrupt: no other question may get this answer
                self.close()
        self.answered += 1
        return answer

    def is_out_of_time(self) -> bool:
        """Return whether its timer ended this dead process."""
        return sys.platform != "win32" and self.find_signal(_END_SECONDS) in {signal.SIGALRM, signal.SIGPROF}


_SANDBOX: Final = Sandbox()
