"""Long calls in separate processes, so that they do not share the interpreter of the event loop.

Threads take turns in one interpreter. If the system stops a thread with long work during its turn, all others wait, the
more so on a busy machine. A process delays nothing, and it can be killed when its result is not needed.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import select
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Final, TypeVar, cast

from stele.errors import Unavailable
from stele.service import process_launcher
from stele.service.process_worker import LENGTH, CallOutcome, write_frame
from stele.service.progress import ComparisonProgress, current_progress
from stele.worker_process import WorkerProcess

T = TypeVar("T")

_LOOK_SECONDS: Final = 0.1
"""Seconds that a thread waits before it can be interrupted (`service.threads`)."""
_MOST_READ: Final = 1 << 20


class WorkProcesses:
    """A few processes that execute calls, started when they are needed. Safe to share between threads.

    Args:
        processes: Maximum number of calls at a time; further threads wait.
        long_bytes: Bytes of input from which on a call runs in a process; 0: never.
        seconds: Maximum duration of a call in wall-clock time, even if a thread still waits for it.
        memory: Bytes of memory that a process may have used after a call; above that, a new one replaces it.
    """

    def __init__(self, processes: int, long_bytes: int, seconds: int, memory: int = 512 << 20) -> None:
        self._long_bytes = long_bytes if sys.platform != "win32" else 0  # it has no select() on pipes
        self._slots = threading.BoundedSemaphore(processes)
        self._idle: list[_Process] = []
        self._is_closed = False
        self._bounds = seconds, memory

    def takes_input(self, size: int) -> bool:
        """Return whether a call with so many bytes of input is made in a process."""
        return 0 < self._long_bytes <= size

    def run_call(self, call: Callable[[], T]) -> T:
        """Execute a call in a process, and wait for its result in this thread. Interrupting the thread ends the call.

        Everything in the call must be importable, and its result and errors plain data.

        Raises:
            SteleError: What the call raises.
            Unavailable: No process can be started, or it was killed.
            RuntimeError: The call raises something else.
        """
        message = pickle.dumps(call)
        with self._take_slot():
            outcome = self._ask_process(message)
        if outcome.error is not None:
            kind, arguments, attributes = outcome.error
            error = kind.__new__(kind, *arguments)
            error.args = arguments
            vars(error).update(attributes)
            raise error
        if outcome.defect:
            raise RuntimeError(f"a call in another process failed:\n{outcome.defect}")
        return cast("T", outcome.result)

    def close(self) -> None:
        """End the processes that wait for calls; those that make one end after it."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()

    @contextlib.contextmanager
    def _take_slot(self) -> Iterator[None]:
        while not self._slots.acquire(timeout=_LOOK_SECONDS):
            pass
        try:
            yield
        finally:
            self._slots.release()

    def _ask_process(self, message: bytes) -> CallOutcome:
        """Return the outcome of a call in a process. Try another process if an idle one turns out to have ended."""
        while True:
            process = self._take_process()
            try:
                process.wait_until_started()
            except BaseException:  # interrupted: keep it for the next call, which need not start another one
                self._keep_process(process)
                raise
            outcome = process.ask(message, current_progress())
            if outcome is not None:
                self._keep_process(process)
                return outcome
            if not process.was_idle:
                raise Unavailable("the process that did the work was killed")

    def _take_process(self) -> _Process:
        try:
            return self._idle.pop()
        except IndexError:
            return _Process(*self._bounds)

    def _keep_process(self, process: _Process) -> None:
        if self._is_closed:
            process.close()
        else:
            process.was_idle = True
            self._idle.append(process)


class _Process(WorkerProcess):
    """One process, used by one thread at a time."""

    def __init__(self, seconds: int, memory: int) -> None:
        self.was_idle = False
        self._has_reported = False
        paths = [path for path in sys.path if path]
        try:
            super().__init__(process_launcher.__file__, json.dumps([paths, seconds, memory]))
        except OSError as error:
            raise Unavailable("a process for the work could not be started") from error

    def wait_until_started(self) -> None:
        """Wait until the process reports that it accepts calls, or until it ends. Does not read the report."""
        while not self._has_reported and not self._has_output():
            pass

    def ask(self, message: bytes, progress: ComparisonProgress) -> CallOutcome | None:
        """Return the outcome of a call; None if the process ended instead. Copies the call's progress to `progress`."""
        outcome = None
        try:
            with contextlib.suppress(OSError):  # the process has ended
                write_frame(self.input, message)
                if not self._has_reported:
                    self._has_reported = self._read_answer() is not None
                while outcome is None and (answer := self._read_answer()) is not None:
                    if isinstance(answer, ComparisonProgress):
                        progress.take_over(answer)
                    else:
                        outcome = answer
        finally:
            if outcome is None:  # also when the thread was interrupted: no other call may get this outcome
                self.close()
        return outcome

    def _read_answer(self) -> ComparisonProgress | CallOutcome | None:
        head = self._read_exactly(LENGTH.size)
        body = None if head is None else self._read_exactly(*LENGTH.unpack(head))
        return None if body is None else pickle.loads(body)  # noqa: S301 - from a process of this program

    def _read_exactly(self, size: int) -> bytes | None:
        """Read a number of bytes; None if the process ended. Bypasses the buffer, which would hide arrived data."""
        buffer = bytearray()
        while len(buffer) < size:
            while not self._has_output():
                pass
            data = os.read(self.output.fileno(), min(size - len(buffer), _MOST_READ))
            if not data:
                return None
            buffer += data
        return bytes(buffer)

    def _has_output(self) -> bool:
        """Wait a moment for output or the end of the process, and return whether either came."""
        return bool(select.select([self.output.fileno()], [], [], _LOOK_SECONDS)[0])
