"""Threads for work off the event loop: limits on running and waiting calls, and interruption of abandoned work.

A future of the standard library cannot be cancelled once it runs. Here that raises `WorkInterrupted` in its thread, so
a client that disconnects, or a timeout, ends the work as well. Python code is interrupted between two instructions; a
call into C ends first.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, ParamSpec, TypeVar

from stele.errors import Overloaded

P = ParamSpec("P")
T = TypeVar("T")

_REPEAT_SECONDS: Final = 1.0
"""Seconds after which an interruption is repeated, if code has swallowed it."""


class WorkInterrupted(BaseException):
    """Raised in a thread whose result is no longer needed. `except Exception` does not catch it."""


class _Job(Future[Any]):
    """A call, and its future: cancelling it interrupts the thread that runs it."""

    def __init__(self, call: Callable[[], Any]) -> None:
        super().__init__()
        self._call: Callable[[], Any] | None = call
        self._guard = threading.Lock()
        self._thread = 0
        self._is_interrupted = False

    def cancel(self) -> bool:
        """Cancel a waiting job and return True, or interrupt a running one and return False: it has not ended yet."""
        if super().cancel():
            return True
        with self._guard:
            if self._thread:
                self._is_interrupted = True
                _raise_in_thread(self._thread, WorkInterrupted)
                again = threading.Timer(_REPEAT_SECONDS, self.cancel)
                again.daemon = True
                again.start()
        return False

    def run(self) -> None:
        """Run the call in this thread, unless it was cancelled while it waited."""
        call, self._call = self._call, None
        if call is None or not self.set_running_or_notify_cancel():
            return
        with self._guard:
            self._thread = threading.get_ident()
        try:
            result = call()
        except BaseException as error:  # The future raises it, as with every executor.
            self.close()
            self.set_exception(error)
        else:
            self.close()
            self.set_result(result)

    def close(self) -> None:
        """End the time in which the thread can be interrupted, and receive an interruption that is still pending."""
        with self._guard:
            self._thread = 0
        if self._is_interrupted:
            _receive_interruption()
            self._is_interrupted = False


class WorkThreads(ThreadPoolExecutor):
    """An executor with limits. Its threads do not keep the process from ending.

    Args:
        threads: Maximum number of calls that run at a time.
        waiting: Maximum number of further calls that wait.
        name: Name of the work, for error messages and names of threads.
    """

    def __init__(self, threads: int, waiting: int, name: str) -> None:
        super().__init__(threads, name)
        self._limits = threads, waiting
        self._name = name
        self._jobs: deque[_Job] = deque()
        self._running: set[_Job] = set()
        self._started = 0
        self._is_closed = False
        self._changed = threading.Condition()

    @property
    def waiting(self) -> int:
        """How many calls wait for a thread."""
        return len(self._jobs)

    @property
    def running(self) -> int:
        """Number of calls that run."""
        return len(self._running)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a call in a thread. Raises `Overloaded` when too many wait, RuntimeError after `shutdown`."""
        job = _Job(lambda: fn(*args, **kwargs))
        threads, waiting = self._limits
        with self._changed:
            if self._is_closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            is_free = self._started - len(self._running) > len(self._jobs)
            if not is_free and self._started == threads and len(self._jobs) >= waiting:
                self._jobs = deque(job for job in self._jobs if not job.cancelled())
                if len(self._jobs) >= waiting:
                    raise Overloaded(f"the server is overloaded: {waiting} requests are waiting for {self._name}")
            self._jobs.append(job)
            if not is_free and self._started < threads:
                self._started += 1
                threading.Thread(target=self._run_jobs, name=f"stele-{self._name}", daemon=True).start()
            self._changed.notify()
        return job

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls, and interrupt those that run or wait. Does not wait for calls into C to end."""
        with self._changed:
            self._is_closed = True
            jobs = [*self._running, *self._jobs]
            self._changed.notify_all()
        for job in jobs:
            job.cancel()

    def _run_jobs(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._jobs or self._is_closed)
                if not self._jobs:
                    return
                job = self._jobs.popleft()
                self._running.add(job)
            # An interruption may arrive in the last moment, when the job is done but not closed.
            with contextlib.suppress(WorkInterrupted):
                job.run()
            with contextlib.suppress(WorkInterrupted):
                job.close()
            job.close()
            if not job.done():
                job.set_exception(WorkInterrupted())
            with self._changed:
                self._running.discard(job)


def _raise_in_thread(thread: int, error: type[BaseException]) -> None:
    """Raise an exception in a thread. It replaces one that is still pending there."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


def _receive_interruption() -> None:
    """Wait for the interruption of this thread.

    CPython marks the whole interpreter until the exception is raised. Meanwhile every thread is slower, and a traced
    thread (by a debugger or a coverage tool) stands still. Withdrawing an exception leaves the mark. Therefore a
    pending exception is replaced by one that is received here.
    """
    with contextlib.suppress(WorkInterrupted):
        _raise_in_thread(threading.get_ident(), WorkInterrupted)
        while True:
            time.sleep(0)
