"""Calls in separate processes: their results and errors, and the end of abandoned processes."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from stele.core.findings import Finding
from stele.errors import MalformedSchema, TooLarge, Unavailable
from stele.service import process_launcher
from stele.service.convert import SchemaRequest, list_fields
from stele.service.progress import current_progress, track_progress
from stele.service.threads import WorkThreads
from stele.service.work_processes import WorkProcesses, _Process


@pytest.fixture(scope="module")
def processes() -> Iterator[WorkProcesses]:
    """Yield two processes for input of a hundred bytes and more."""
    pool = WorkProcesses(2, 100, 60)
    yield pool
    pool.close()


def test_long_input_is_for_processes(processes: WorkProcesses) -> None:
    """Only long input uses a process, and none does if processes are disabled."""
    assert [processes.takes_input(size) for size in (0, 99, 100, 5000)] == [False, False, True, True]
    assert not WorkProcesses(1, 0, 60).takes_input(1 << 30)


def test_results_and_errors_arrive_whole(processes: WorkProcesses) -> None:
    """A process executes one call after the other, and an error arrives with its position."""
    own = processes.run_call(os.getpid)
    assert own not in {os.getpid(), 0}
    assert processes.run_call(os.getpid) == own
    assert processes.run_call(partial(pow, 3, 200)) == 3**200
    with pytest.raises(MalformedSchema) as refused:
        processes.run_call(partial(list_fields, SchemaRequest("avro", '{"type":\n"recod"}')))
    with pytest.raises(MalformedSchema) as directly:
        list_fields(SchemaRequest("avro", '{"type":\n"recod"}'))
    assert (str(refused.value), vars(refused.value)) == (str(directly.value), vars(directly.value))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        processes.run_call(partial(divmod, 1, 0))
    with pytest.raises(RuntimeError, match="cannot pickle"):
        processes.run_call(partial(memoryview, b"no data"))
    with pytest.raises(TooLarge, match="memory"):
        processes.run_call(partial(bytes, 1 << 60))
    assert processes.run_call(os.getpid) == own


def test_a_process_that_died_is_replaced(processes: WorkProcesses) -> None:
    """The death of an idle process fails no call; the death during a call fails only that call."""
    before = processes.run_call(os.getpid)
    os.kill(before, signal.SIGKILL)
    after = processes.run_call(os.getpid)
    assert after != before
    fresh = WorkProcesses(1, 1, 60)
    with pytest.raises(Unavailable):
        fresh.run_call(partial(os._exit, 1))
    assert fresh.run_call(partial(pow, 2, 3)) == 8
    fresh.close()


def test_a_process_that_has_grown_is_replaced() -> None:
    """A process that has grown too large is replaced, so memory left by calls does not add up."""
    pool = WorkProcesses(1, 1, 60, memory=1)
    assert pool.run_call(os.getpid) != pool.run_call(os.getpid)
    pool.close()


def test_a_call_that_nobody_ends_does() -> None:
    """A call is ended after a wall-clock limit, even if it sleeps."""
    pool = WorkProcesses(1, 1, seconds=1)
    with pytest.raises(Unavailable):
        pool.run_call(partial(time.sleep, 60))
    pool.close()


def compare_slowly(seconds: float) -> str:
    """Make two of three comparisons, with findings."""
    progress = current_progress()
    progress.plan_comparisons(3)
    for number in range(2):
        time.sleep(seconds)
        progress.add_findings([Finding(f"R{number}", "/")])
        progress.count_comparison()
    return str(progress)


def test_progress_is_told(processes: WorkProcesses) -> None:
    """The caller that aborts a call knows its progress, as with a thread."""
    with track_progress() as progress:
        assert processes.run_call(partial(compare_slowly, 0.2)) == "2 of 3 comparisons were made"
    assert str(progress) == "2 of 3 comparisons were made"
    assert [finding.rule for finding in progress.findings] == ["R0", "R1"]
    with track_progress() as fresh:
        processes.run_call(partial(compare_slowly, 0.0))
    assert str(fresh) in {"1 of 3 comparisons were made", "2 of 3 comparisons were made"}


async def test_a_call_that_nobody_waits_for_is_killed() -> None:
    """An aborted call frees its thread and slot at once, and its process ends."""
    threads, pool = WorkThreads(2, 10, "tests"), WorkProcesses(1, 1, 60)
    loop = asyncio.get_running_loop()
    pid = await loop.run_in_executor(threads, pool.run_call, os.getpid)
    asleep = asyncio.ensure_future(loop.run_in_executor(threads, pool.run_call, partial(time.sleep, 60)))
    async with asyncio.timeout(120):
        while pool._slots._value:  # type: ignore[attr-defined]  # noqa: ASYNC110 - until it has the only place
            await asyncio.sleep(0.01)
    waiting = asyncio.ensure_future(loop.run_in_executor(threads, pool.run_call, os.getpid))
    await asyncio.sleep(0.3)
    assert not waiting.done(), "one call at a time"
    asleep.cancel()
    async with asyncio.timeout(120):
        assert await waiting != pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    threads.shutdown()
    pool.close()


def make_start_wait(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let processes load only when a file exists, and return its path."""
    gate, script = folder / "open", folder / "slow.py"
    launch = Path(process_launcher.__file__).read_text()
    script.write_text(f"import os, time\nwhile not os.path.exists({str(gate)!r}):\n    time.sleep(0.01)\n{launch}")
    monkeypatch.setattr(process_launcher, "__file__", str(script))
    return gate


async def test_a_process_starts_whoever_waits_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a call is aborted before its process has started, the process is used for the next call."""
    gate = make_start_wait(tmp_path, monkeypatch)
    started: list[int] = []
    start = _Process.__init__

    def note_start(process: _Process, *bounds: int) -> None:
        start(process, *bounds)
        started.append(process._process.pid)

    monkeypatch.setattr(_Process, "__init__", note_start)
    threads, pool = WorkThreads(2, 10, "tests"), WorkProcesses(1, 1, 60)
    loop = asyncio.get_running_loop()
    given_up = asyncio.ensure_future(loop.run_in_executor(threads, pool.run_call, os.getpid))
    async with asyncio.timeout(120):
        while not started:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        given_up.cancel()
        while not pool._slots._value:  # type: ignore[attr-defined]  # noqa: ASYNC110 - until its place is free
            await asyncio.sleep(0.01)
        gate.touch()
        assert [await loop.run_in_executor(threads, pool.run_call, os.getpid)] == started
    threads.shutdown()
    pool.close()
