"""The thread of a log: order, results, errors, cancelled jobs, and its end."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from stele.storage.file_turn import FileTurn
from stele.storage.job_thread import JobThread

_NAME = "stele-test-jobs"


def _count_threads() -> int:
    return sum(thread.name == _NAME for thread in threading.enumerate())


def _wait_for_no_thread() -> None:
    deadline = time.monotonic() + 60
    while _count_threads() and time.monotonic() < deadline:
        time.sleep(0.001)
    assert _count_threads() == 0


def test_jobs_run_in_order_in_one_thread_and_give_results_and_errors() -> None:
    """One thread runs all jobs in order and returns results and errors; `end` ends it."""

    async def use() -> None:
        thread = JobThread(_NAME)
        assert _count_threads() == 0  # none before the first job
        ran: list[int] = []
        waiting = [thread.run_job(ran.append, number) for number in range(50)]
        await asyncio.gather(*waiting)
        assert ran == list(range(50))
        assert _count_threads() == 1
        assert await thread.run_job(int, "ff", base=16) == 255
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            await thread.run_job(sqlite3.connect(":memory:", check_same_thread=False).execute, "SELECT * FROM missing")
        thread.end()
        thread.end()

    asyncio.run(use())
    _wait_for_no_thread()


def test_a_job_cancelled_before_its_turn_never_runs_and_one_under_way_ends_unheard() -> None:
    """A cancelled job that waits never runs, a running one finishes, and later jobs are not affected."""

    async def use() -> None:
        thread = JobThread(_NAME)
        begun, go_on = threading.Event(), threading.Event()
        ran: list[str] = []

        def hold() -> None:
            begun.set()
            go_on.wait(60)
            ran.append("first")

        first, second = thread.run_job(hold), thread.run_job(ran.append, "second")
        assert await asyncio.to_thread(begun.wait, 60)
        first.cancel()
        second.cancel()
        go_on.set()
        await thread.run_job(ran.append, "third")
        assert ran == ["first", "third"]
        thread.end()

    asyncio.run(use())
    _wait_for_no_thread()


def test_the_thread_ends_with_its_owner_and_outlives_a_closed_loop() -> None:
    """The thread works with a second event loop, and ends when its owner is garbage-collected."""
    go_on = threading.Event()

    async def leave(thread: JobThread) -> None:
        thread.run_job(go_on.wait, 60)

    async def come_back(thread: JobThread) -> int:
        return await thread.run_job(len, "abc")

    thread = JobThread(_NAME)
    asyncio.run(leave(thread))
    go_on.set()  # the event loop of the result is closed
    assert asyncio.run(come_back(thread)) == 3
    del thread
    gc.collect()
    _wait_for_no_thread()


def test_a_turn_opens_its_lock_file_once_and_anew_when_it_was_deleted(tmp_path: Path) -> None:
    """A turn keeps its lock file open, and opens it again when it was deleted."""
    path = tmp_path / "lock"

    async def use() -> None:
        turn = FileTurn(path, 5)
        numbers = set()
        for _ in range(3):
            async with turn.hold_turn():
                numbers.add(path.stat().st_ino)
                assert _count_descriptors(path) == 1
        assert len(numbers) == 1
        path.unlink()
        async with turn.hold_turn():
            assert path.exists()
            turn.close()
        assert _count_descriptors(path) == 0

    asyncio.run(use())


def _count_descriptors(path: Path) -> int:
    """Return how many descriptors of this process are open on a file, deleted or not."""
    places = Path("/proc/self/fd").iterdir()
    return sum(str(place.readlink()).startswith(str(path)) for place in places if place.is_symlink())
