"""Threads with limits: which calls are refused, and how abandoned work ends."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time

import pytest

from stele.errors import Overloaded
from stele.service.threads import WorkInterrupted, WorkThreads


def spin(started: threading.Event, ended: list[str]) -> None:
    """Run without end."""
    try:
        started.set()
        while True:
            sum(range(100))
    except WorkInterrupted:
        ended.append("interrupted")
        raise


def spin_twice(started: threading.Event, ended: list[str]) -> None:
    """Run on after the first interruption."""
    try:
        spin(started, ended)
    except BaseException:
        spin(started, ended)


async def test_results_and_errors_arrive() -> None:
    """Awaiting a call gives its value or error, in order and from several threads."""
    threads = WorkThreads(2, 100, "tests")
    loop = asyncio.get_running_loop()
    assert await asyncio.gather(*(loop.run_in_executor(threads, pow, 2, n) for n in range(50))) == [
        2**n for n in range(50)
    ]
    with pytest.raises(ZeroDivisionError):
        await loop.run_in_executor(threads, divmod, 1, 0)
    until = time.monotonic() + 60
    while (threads.running, threads.waiting) != (0, 0):
        assert time.monotonic() < until
        await asyncio.sleep(0)
    threads.shutdown()
    with pytest.raises(RuntimeError):
        threads.submit(pow, 2, 2)


@pytest.mark.parametrize("work", [spin, spin_twice])
async def test_what_nobody_waits_for_is_interrupted(work: object) -> None:
    """Cancelling a task interrupts its running work, and the thread continues with the next call."""
    threads = WorkThreads(1, 10, "tests")
    loop = asyncio.get_running_loop()
    started = threading.Event()
    ended: list[str] = []
    running = asyncio.ensure_future(loop.run_in_executor(threads, work, started, ended))
    assert await asyncio.to_thread(started.wait, 60)
    waiting = loop.run_in_executor(threads, ended.append, "never")
    waiting.cancel()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await asyncio.wait_for(loop.run_in_executor(threads, pow, 2, 3), 60) == 8
    assert ended == ["interrupted"] * (1 if work is spin else 2)
    threads.shutdown()


async def test_too_many_are_refused() -> None:
    """A call beyond the limit is refused at once; a waiting call that is cancelled makes room."""
    threads = WorkThreads(1, 2, "tests")
    loop = asyncio.get_running_loop()
    started = threading.Event()
    busy = loop.run_in_executor(threads, spin, started, [])
    assert await asyncio.to_thread(started.wait, 60)
    first, second = (loop.run_in_executor(threads, pow, 2, n) for n in (1, 2))
    with pytest.raises(Overloaded, match="tests"):
        threads.submit(pow, 2, 2)
    first.cancel()
    await asyncio.sleep(0)
    third = loop.run_in_executor(threads, pow, 2, 3)
    busy.cancel()
    assert await asyncio.wait_for(asyncio.gather(second, third), 60) == [4, 8]
    threads.shutdown()


async def test_shutting_down_ends_all_work() -> None:
    """A shutdown interrupts running calls, cancels waiting ones, and waits for neither."""
    threads = WorkThreads(1, 10, "tests")
    started = threading.Event()
    running = threads.submit(spin, started, [])
    waiting = threads.submit(pow, 2, 2)
    assert started.wait(60)
    before = time.monotonic()
    threads.shutdown()
    assert time.monotonic() - before < 60  # the work has no end of its own
    assert waiting.cancelled()
    with pytest.raises(WorkInterrupted):
        running.result(60)


TRACED = """
import sys, threading, time
from concurrent.futures import CancelledError
from stele.service.threads import WorkInterrupted, WorkThreads

def spin():
    while True:
        pass

work = WorkThreads(2, 4, "work")
assert work.submit(lambda: 1).result() == 1
running = work.submit(spin)
while not running.running():
    time.sleep(0.01)
running.cancel()
try:
    running.result(60)
except WorkInterrupted:
    pass
sys.settrace(lambda *told: None)
threading.Event().is_set()
print("traced")
"""


def test_no_mark_of_an_interruption_stays() -> None:
    """After finished and interrupted work, traced code runs: no exception stays pending."""
    done = subprocess.run([sys.executable, "-c", TRACED], capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.returncode) == ("traced\n", 0), done.stderr
