"""One thread that runs the jobs of an event loop in order.

An executor makes two futures and several callbacks for each job, which costs as much as a short job itself. Here a job
is one entry in a queue, and one call back to the loop.
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

    A job that is running when the process ends is interrupted, as in a killed process.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._is_started = False
        weakref.finalize(self, self._jobs.put, None)

    def run_job(self, job: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Run a job after those before it, and return a future of the running loop for its result or error.

        A job whose future is cancelled before the job starts never runs.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self.start_job(_run_for_loop, loop, future, partial(job, *args, **kwargs))
        return future

    def start_job(self, job: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Run a job after those before it. The job must not raise."""
        self._jobs.put(partial(job, *args, **kwargs))
        if not self._is_started:
            self._is_started = True
            threading.Thread(target=_run_jobs, args=(self._jobs,), name=self._name, daemon=True).start()

    def end(self) -> None:
        """End the thread after the waiting jobs. It can be called twice."""
        self._jobs.put(None)


def _run_jobs(jobs: SimpleQueue[Callable[[], object] | None]) -> None:
    """Run the jobs of a queue until it yields None; the main function of the thread."""
    while (job := jobs.get()) is not None:
        job()
        del job  # or what it holds would live until the next one


def _run_for_loop(loop: asyncio.AbstractEventLoop, future: asyncio.Future[T], job: Callable[[], T]) -> None:
    """Run a job in the thread, and pass its result or error to the event loop."""
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
