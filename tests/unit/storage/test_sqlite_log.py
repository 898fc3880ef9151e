"""Tests of the SQLite log beyond the contract: erased bytes, snapshots, forks, an event loop that is never blocked."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path

import pytest

from stele.errors import StoreError
from stele.storage.sqlite import SqliteLog


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[SqliteLog]:
    """A handle on a new file."""
    log = await SqliteLog.open(tmp_path / "log.db", busy_timeout=120, patience=120)
    yield log
    await log.close()


def _holding(folder: Path, needle: str) -> list[str]:
    """Return the files that contain the needle.

    A separate process reads them, since closing them here would drop SQLite's locks.
    """
    code = "import sys; from pathlib import Path\nfor p in Path(sys.argv[1]).iterdir():\n"
    code += "    if sys.argv[2].encode() in p.read_bytes(): print(p.name)"
    return subprocess.run(
        [sys.executable, "-c", code, str(folder), needle], check=True, capture_output=True, text=True
    ).stdout.split()


async def test_erased_bytes_are_gone(log: SqliteLog, tmp_path: Path) -> None:
    """After an erasure no file of the log contains the old text, whether it was short or covered many pages."""
    for body in (b"the-secret", b"the-secret " * 3000):
        head = await log.head()
        assert await log.append(head, [b"before", body, b"after" * 500])
        assert _holding(tmp_path, "the-secret")
        await log.erase(head + 2, b"purged")
        assert _holding(tmp_path, "the-secret") == []
        assert (await log.tail(head + 1, 1))[0].record == b"purged"


async def test_erasure_says_when_a_reader_keeps_the_bytes(log: SqliteLog, tmp_path: Path) -> None:
    """An erasure raises an error while another reader keeps the old bytes; a second erasure scrubs them."""
    log._writer._connection.execute("PRAGMA busy_timeout = 100")
    assert await log.append(0, [b"the-secret"])
    with closing(sqlite3.connect(tmp_path / "log.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM record").fetchall()
        with pytest.raises(StoreError, match="erase it again"):
            await log.erase(1, b"purged")
        assert await log.tail(0, 1) == [(1, b"purged")]
        assert _holding(tmp_path, "the-secret")
    await log.erase(1, b"purged")
    assert _holding(tmp_path, "the-secret") == []


async def test_replaced_snapshot_is_gone(log: SqliteLog, tmp_path: Path) -> None:
    """Only the newest snapshot is kept, and the next scrubbing removes the bytes of the others."""
    assert await log.append(0, [b"a", b"b"])
    await log.save_snapshot(1, b"the-secret " * 1000)
    await log.save_snapshot(2, b"state")
    await log.erase(1, b"purged")
    assert _holding(tmp_path, "the-secret") == []


async def test_waiting_for_a_lock_does_not_block_the_loop(log: SqliteLog, tmp_path: Path) -> None:
    """While an append and a turn wait for other programs, the event loop and reads continue."""
    other = await SqliteLog.open(tmp_path / "log.db")
    assert await log.append(0, [b"a"])
    with closing(sqlite3.connect(tmp_path / "log.db", isolation_level=None)) as program:
        program.execute("BEGIN IMMEDIATE")
        async with other.turn():
            append = asyncio.create_task(log.append(1, [b"b"]))
            turn = asyncio.create_task(_take(log))
            worst = 0.0
            for _ in range(100):
                start = time.perf_counter()
                await asyncio.sleep(0.001)
                assert await log.tail(0, 9) == [(1, b"a")]
                worst = max(worst, time.perf_counter() - start)
            assert not append.done()
            assert not turn.done()
        program.execute("ROLLBACK")
    assert await append
    await turn
    assert worst < 60  # busy_timeout is 120
    await other.close()


async def _until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - looks between any two steps of the loop
        await asyncio.sleep(0)


async def _take(log: SqliteLog) -> None:
    async with log.turn():
        pass


async def test_hanging_holder_is_overtaken(log: SqliteLog, tmp_path: Path) -> None:
    """A holder that hangs delays the other writers once; then they continue without turns until it ends."""
    hasty = await SqliteLog.open(tmp_path / "log.db", patience=2)
    async with log.turn():
        start = time.monotonic()
        await _take(hasty)
        first = time.monotonic() - start
        assert 1.9 < first < 60
        start = time.monotonic()
        for _ in range(20):
            await _take(hasty)
        assert time.monotonic() - start < 39  # twenty times the patience are 40
    await _until(lambda: not hasty._turn._overdue)
    async with hasty.turn():  # a real one again
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(_take(log), 0.1)
    await hasty.close()


async def test_turn_granted_in_the_moment_of_cancellation(log: SqliteLog, tmp_path: Path) -> None:
    """A task that is cancelled after its turn was granted releases the turn; closing the log closes the file."""
    other = await SqliteLog.open(tmp_path / "log.db")
    async with log.turn():
        waiting = asyncio.create_task(_take(other))
        await _until(lambda: other._turn._heir is not None)
    heir = other._turn._heir
    assert heir is not None
    await _until(heir.done)  # the grant comes between two steps of this task, and wakes the waiter after it
    lock = heir.result()
    assert lock is not None
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.wait_for(_take(log), 60)  # patience is 120
    await other.close()
    assert lock.closed


async def test_turn_outlives_no_loop(tmp_path: Path) -> None:
    """A loop that ends while a task waits for its turn leaves no lock behind in the process."""
    log = await SqliteLog.open(tmp_path / "log.db", patience=120)

    async def abandon() -> None:
        other = await SqliteLog.open(tmp_path / "log.db")
        waiting = asyncio.create_task(_take(other))
        await _until(lambda: other._turn._asking)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await other.close()

    async with log.turn():
        await asyncio.to_thread(asyncio.run, abandon())
    await asyncio.wait_for(_take(log), 60)  # patience is 120
    await log.close()


async def test_turn_of_a_killed_process_ends_with_it(log: SqliteLog, tmp_path: Path) -> None:
    """The turn of a killed process is released, and its unfinished write is rolled back."""
    code = (
        "import asyncio, sys, time; from stele.storage.sqlite import SqliteLog\n"
        "async def main():\n"
        "    log = await SqliteLog.open(sys.argv[1])\n"
        "    async with log.turn():\n"
        "        c = log._writer._connection; c.execute('BEGIN IMMEDIATE')\n"
        "        c.execute('INSERT INTO record VALUES (1, x\\'00\\')'); print('in', flush=True); time.sleep(600)\n"
        "asyncio.run(main())"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "log.db")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: ASYNC220 - it is killed below
    assert process.stdout is not None
    process.stdout.readline()
    waiting = asyncio.create_task(_take(log))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    process.kill()
    process.communicate()
    await asyncio.wait_for(waiting, 60)  # patience is 120
    assert await log.append(0, [b"mine"])
    assert await log.tail(0, 9) == [(1, b"mine")]


async def test_forked_handle_says_so(log: SqliteLog) -> None:
    """A handle used after a fork raises an error with a remedy, and the parent's handle stays usable."""
    assert await log.append(0, [b"a"])
    child = os.fork()
    if child == 0:
        try:
            log.has_changed()
        except StoreError as error:
            os._exit(7 if "open it again" in str(error) else 8)
        finally:
            os._exit(9)
    _, status = os.waitpid(child, 0)  # noqa: ASYNC222 - the child ends at once
    assert os.waitstatus_to_exitcode(status) == 7
    assert await log.append(1, [b"b"])


async def test_close_waits_for_what_is_under_way(tmp_path: Path) -> None:
    """An append that was started before the close is finished."""
    log = await SqliteLog.open(tmp_path / "log.db")
    append = asyncio.create_task(log.append(0, [b"x" * 100] * 5000))
    await asyncio.sleep(0)
    await log.close()
    assert await append
    again = await SqliteLog.open(tmp_path / "log.db")
    assert await again.head() == 5000
    await again.close()


async def test_close_leaves_nothing_open(tmp_path: Path) -> None:
    """Closing releases every descriptor and thread."""

    def open_files() -> int:
        return len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0

    async def use() -> None:
        log = await SqliteLog.open(tmp_path / "log.db")
        await log.append(await log.head(), [b"x"])
        await _take(log)
        await log.close()

    await use()
    before = open_files()
    for _ in range(5):
        await use()
    assert open_files() <= before


async def test_wait_stays_cheap(log: SqliteLog) -> None:
    """A waiting call checks the file less and less often."""
    looks = 0
    ask = log._query_number

    def counting(question: str) -> int:
        nonlocal looks
        looks += 1
        return ask(question)

    log._query_number = counting  # type: ignore[method-assign]  # counts calls
    await log.wait(0, 3.0)
    assert 4 < looks < 3 * 45
