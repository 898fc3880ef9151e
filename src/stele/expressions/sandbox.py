"""Evaluates questions in processes that can be killed, so that bounds hold whatever an expression does.

Libraries for expressions cannot be interrupted in the middle of a regex or a long string, and in one process nobody
else would run meanwhile. A process is started when it is needed, and answers one question after the other; a question
that goes beyond its bounds costs its process, and nothing else.
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
"""Questions evaluated at a time; further threads wait."""
_END_SECONDS: Final = 1.0
"""How long a process may take to end that has closed its pipes."""


@dataclass(frozen=True, slots=True)
class ExpressionLimits:
    """What one question may take.

    seconds  of processor time; by the clock an expression may take four times as long
    memory   bytes for the value, all that is made of it, and the result; an answer as bytes may have an eighth of it.
             Only Linux keeps to this; elsewhere only the answer is limited
    """

    seconds: float = 2.0
    memory: int = 256 << 20


DEFAULT_LIMITS: Final = ExpressionLimits()


def evaluate_bounded(question: Question, limits: ExpressionLimits = DEFAULT_LIMITS) -> Answer:
    """Return the answer to a question.

    Raises `TooLarge` beyond the bounds, `DataError` for what the expression or its library raised, `Unavailable` when
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
        """See `evaluate_bounded`."""
        packed = transport.pack_question(question)
        message = worker.BOUNDS.pack(limits.seconds, limits.memory) + packed.data
        with self._slots:
            answer = self._ask_process(message, limits)
        if answer[:1] == worker.RESULT:
            return transport.unpack_answer(packed, answer[1:])
        raise DataError(answer[1:].decode())

    def close(self) -> None:
        """End the processes that wait for questions; a later question starts a new one."""
        while self._idle:
            self._idle.pop().close()

    def _ask_process(self, message: bytes, limits: ExpressionLimits) -> bytes:
        """The answer of a process. One that ran out of memory after other questions may have been full of those."""
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
        # In the child of a fork the processes are the parent's, and a lock may be held by a thread that is not there.
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
        """Return the answer to a message; None when the process ended instead, or its answer is too long."""
        answer = None
        try:
            with contextlib.suppress(OSError):  # the process is gone
                self.input.write(worker.LENGTH.pack(len(message)) + message)
                self.input.flush()
                answer = worker.read_frame(self.output, limits.memory)
        finally:
            if answer is None:  # also when the thread was interrupted: nobody else may get this answer
                self.close()
        self.answered += 1
        return answer

    def is_out_of_time(self) -> bool:
        """Whether its timer ended the process, which is dead."""
        return sys.platform != "win32" and self.find_signal(_END_SECONDS) in {signal.SIGALRM, signal.SIGPROF}


_SANDBOX: Final = Sandbox()
