"""One thread that runs the jobs of an event loop in order.

An executor makes two futures and a handful of callbacks for each job, which costs as much as a short job itself. Here
a job is one entry in a queue, and one call back to the loop.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import ParamSpec, TypeVar

__all__ = ["JobThread"]

P = ParamSpec("P")
T = TypeVar("T")


class JobThread:
    """A daemon thread, started by the first job and ended by `end` or with its owner.

    A job that is running when the process ends is cut off, as a killed process would cut it off.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._is_started = False
        weakref.finalize(self, self._jobs.put, None)

    def run_job(self, job: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Run a job after those before it; its result or error is for the running loop.

        A job whose future is cancelled before its turn never runs.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self.start_job(_run_for_loop, loop, future, partial(job, *args, **kwargs))
        return future

    def start_job(self, job: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Run a job after those before it, which must not raise."""
        self._jobs.put(partial(job, *args, **kwargs))
        if not self._is_started:
            self._is_started = True
            threading.Thread(target=_run_jobs, args=(self._jobs,), name=self._name, daemon=True).start()

    def end(self) -> None:
        """End the thread after the jobs that wait. Ending twice is fine."""
        self._jobs.put(None)


def _run_jobs(jobs: SimpleQueue[Callable[[], object] | None]) -> None:
    """In the thread."""
    while (job := jobs.get()) is not None:
        job()
        del job  # or what it holds would live until the next one


def _run_for_loop(loop: asyncio.AbstractEventLoop, future: asyncio.Future[T], job: Callable[[], T]) -> None:
    """In the thread: run a job and give the loop its result or error."""
    if future.cancelled():
        return
    try:
        settle: Callable[[], None] = partial(_set_result, future, job())
    except BaseException as error:
        settle = partial(_set_error, future, error)
    try:
        loop.call_soon_threadsafe(settle)
    except RuntimeError:  # the loop has been closed meanwhile: nobody waits
        return


def _set_result(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _set_error(future: asyncio.Future[T], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
