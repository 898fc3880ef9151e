"""The contract of `stele.core.ports.Log` as tests, for every driver.

    class TestMyLog(LogConformance):
        @pytest.fixture
        def opener(self, tmp_path): ...     # () -> Awaitable[Log]: another handle on the one log of this test

The log starts empty for each test. Drivers that several processes can share also run `log_process_suite`.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, ClassVar, Final

import pytest
import pytest_asyncio

from stele.core.ports import Log, LogEntry
from stele.errors import StoreError
from stele.testing.log_crew import read_all

__all__ = ["LogConformance", "Opener"]

Opener = Callable[[], Awaitable[Log]]

_MOMENT: Final = 9.0
"""Timeout in seconds for quick operations. It is less than ten: then a driver gives up waiting for a turn."""


async def _do_in_a_moment(work: Coroutine[Any, Any, Any]) -> Any:
    """Await a quick operation, not counting time for which this process is stopped. Raises `TimeoutError`."""
    task = asyncio.create_task(work)
    for _ in range(int(_MOMENT * 10)):
        await asyncio.wait([task], timeout=0.1)
        if task.done():
            return task.result()
    task.cancel()
    raise TimeoutError(f"it takes longer than {_MOMENT:g} s")


async def _append_until_written(log: Log, records: list[bytes]) -> int:
    """Append with retries like a node: on a conflict read the head again. Returns the number of conflicts."""
    conflicts = 0
    while not await log.append(await log.head(), records):
        conflicts += 1
        await asyncio.sleep(0)
    return conflicts


@pytest.mark.asyncio
class LogConformance:
    """Tests of a log within one process, with one or several handles."""

    settles: ClassVar[bool] = True
    """False for a driver whose `has_changed` always returns True."""

    durable: ClassVar[bool] = True
    """False for a driver whose log is lost when its last handle is closed."""

    @pytest_asyncio.fixture
    async def another(self, opener: Opener) -> AsyncIterator[Opener]:
        """Yield a function that opens one more handle on this test's log. The handles are closed after the test."""
        handles: list[Log] = []

        async def open_one() -> Log:
            handles.append(await opener())
            return handles[-1]

        yield open_one
        for handle in handles:
            await handle.close()

    @pytest_asyncio.fixture
    async def log(self, another: Opener) -> Log:
        """Return the first handle on the log."""
        return await another()

    # --- append and tail --------------------------------------------------------------------------------------------

    async def test_starts_empty(self, log: Log) -> None:
        """A new log has head 0, no entries and no snapshot."""
        assert await log.head() == 0
        assert list(await log.tail(0, 10)) == []
        assert await log.load_snapshot() is None

    async def test_is_dense_from_one(self, log: Log) -> None:
        """Records get the numbers 1, 2, 3 …, in batches of any size."""
        assert await log.append(0, [b"a"])
        assert await log.append(1, [b"b", b"c"])
        assert await log.append(3, [b"d"])
        assert list(await log.tail(0, 10)) == [
            LogEntry(1, b"a"),
            LogEntry(2, b"b"),
            LogEntry(3, b"c"),
            LogEntry(4, b"d"),
        ]
        assert await log.head() == 4

    @pytest.mark.parametrize("expected", [-1, 0, 1, 3, 4, 2**40])
    async def test_refuses_any_other_head(self, log: Log, expected: int) -> None:
        """An append that expects a head before or after the real one returns False and writes none of its records."""
        assert await log.append(0, [b"a", b"b"])
        assert await log.append(expected, [b"x", b"y", b"z"]) is False
        assert await read_all(log) == [(1, b"a"), (2, b"b")]
        assert await log.append(2, [b"c"])

    async def test_refuses_what_another_handle_overtook(self, log: Log, another: Opener) -> None:
        """The first writer of all handles wins; the other one succeeds after catching up."""
        other = await another()
        assert await other.append(0, [b"first"])
        assert await log.append(0, [b"second", b"third"]) is False
        assert await other.head() == 1
        assert await log.append(1, [b"second", b"third"])
        assert [entry.record for entry in await other.tail(0, 9)] == [b"first", b"second", b"third"]

    async def test_one_of_many_simultaneous_appends_wins(self, log: Log, another: Opener) -> None:
        """Of concurrent appends at one place, through one or several handles, exactly one is written, completely."""
        handles = [log, log, *[await another() for _ in range(4)]]
        batches = [[b"%d-%d" % (i, j) for j in range(3)] for i in range(len(handles))]
        won = await asyncio.gather(*(handle.append(0, batch) for handle, batch in zip(handles, batches, strict=True)))
        assert sum(won) == 1
        assert [entry.record for entry in await read_all(log)] == batches[won.index(True)]

    async def test_batches_appear_whole(self, log: Log, another: Opener) -> None:
        """A reader always sees either all records of a batch or none."""
        other = await another()
        writing = asyncio.create_task(self._write_batches(log, batches=20, size=50))
        heads = []
        while not writing.done():
            heads.append(len(await other.tail(0, 10_000)))
            await asyncio.sleep(0)
        await writing
        assert [head for head in heads if head % 50] == []
        assert await other.head() == 1000

    @staticmethod
    async def _write_batches(log: Log, batches: int, size: int) -> None:
        for i in range(batches):
            assert await log.append(i * size, [b"%d" % i] * size)

    async def test_appends_nothing(self, log: Log) -> None:
        """An empty batch writes nothing, and returns whether the head is as expected."""
        assert await log.append(0, [])
        assert await log.append(1, []) is False
        assert await log.head() == 0
        assert await log.append(0, [b"a"])
        assert await log.append(1, [])
        assert await log.append(0, []) is False

    async def test_keeps_every_byte(self, log: Log) -> None:
        """Records are read exactly as written: empty ones, all byte values, text, line ends."""
        records = [b"", bytes(range(256)), "Ünïcode ✓".encode(), b"\0\0", b"a\r\nb\n", b'{"a": 1}']
        assert await log.append(0, records)
        assert [entry.record for entry in await log.tail(0, 99)] == records

    async def test_takes_big_records(self, log: Log, another: Opener) -> None:
        """A record of ten megabytes between small ones is stored unchanged."""
        big = bytes(os.urandom(1 << 20)) * 10
        assert await log.append(0, [b"before", big, b"after"])
        assert await (await another()).tail(0, 9) == [(1, b"before"), (2, big), (3, b"after")]

    async def test_tail_keeps_its_limits(self, log: Log) -> None:
        """A tail starts after `after`, ends at the limit or at the head, and is empty when there are no records."""
        assert await log.append(0, [b"%d" % i for i in range(1, 8)])

        async def seqs(after: int, limit: int) -> list[int]:
            return [entry.seq for entry in await log.tail(after, limit)]

        assert await seqs(0, 3) == [1, 2, 3]
        assert await seqs(3, 3) == [4, 5, 6]
        assert await seqs(6, 3) == [7]
        assert await seqs(0, 7) == await seqs(0, 8) == await seqs(-5, 10**12) == list(range(1, 8))
        assert await seqs(7, 3) == await seqs(99, 3) == await seqs(0, 0) == await seqs(0, -1) == []

    async def test_tail_pages_through_many(self, log: Log) -> None:
        """Thousands of records are read in pages of any size without gap or repetition."""
        records = [b"record %d" % i for i in range(3000)]
        assert await log.append(0, records)
        for page in (7, 64, 1000, 5000):
            assert [entry.record for entry in await read_all(log, page)] == records

    async def test_cancelled_append_is_all_or_nothing(self, log: Log, another: Opener) -> None:
        """A cancelled append has written all of its batch or none, and the log stays usable."""
        for i in range(10):
            head = await log.head()
            append = asyncio.create_task(log.append(head, [b"%d" % i] * 5))
            await asyncio.sleep(0.0005 * i)
            append.cancel()
            await asyncio.gather(append, return_exceptions=True)
            # Waits for appends that may still be running
            assert await log.append(await log.head(), []) in {True, False}
            assert await (await another()).head() in {head, head + 5}
        await _append_until_written(log, [b"end"])
        assert (await read_all(log))[-1].record == b"end"

    async def test_many_handles_lose_nothing(self, log: Log, another: Opener) -> None:
        """Twenty handles that append at once, each retrying after conflicts, write every record exactly once."""
        handles = [await another() for _ in range(20)]

        async def write(i: int, handle: Log) -> None:
            for j in range(5):
                await _append_until_written(handle, [b"%d/%d" % (i, j)])

        await asyncio.gather(*(write(i, handle) for i, handle in enumerate(handles)))
        records = [entry.record for entry in await read_all(log)]
        assert sorted(records) == sorted(b"%d/%d" % (i, j) for i in range(20) for j in range(5))
        for i in range(20):
            mine = [record for record in records if record.startswith(b"%d/" % i)]
            assert mine == [b"%d/%d" % (i, j) for j in range(5)]

    # --- head, changed, wait ----------------------------------------------------------------------------------------

    async def test_head_is_a_barrier(self, log: Log, another: Opener) -> None:
        """Once an append has returned, head and tail of every handle include its records."""
        readers = [await another() for _ in range(3)]
        for i in range(30):
            assert await log.append(i, [b"%d" % i])
            for reader in readers:
                assert await reader.head() == i + 1
                assert await reader.tail(i, 5) == [(i + 1, b"%d" % i)]

    async def test_changed_never_misses(self, log: Log, another: Opener) -> None:
        """Once an append has returned, the next `has_changed` of other handles is True, whatever they called before.

        For a log that does not notice at once, it becomes True a moment later.
        """
        other = await another()
        for i in range(30):
            assert await log.append(i, [b"x"])
            if i % 3 == 1:
                await other.head()
            if i % 3 == 2:
                await other.wait(i, 1)
                await other.tail(0, 100)
            deadline = time.monotonic() + (0 if other.notices_at_once else 60)
            while not (has_changed := other.has_changed()) and time.monotonic() < deadline:  # noqa: ASYNC110 - a hint
                await asyncio.sleep(0.01)
            assert has_changed

    async def test_changed_settles(self, log: Log, another: Opener) -> None:
        """While no handle writes, `has_changed` returns False, unless the driver cannot know that."""
        other = await another()
        assert await log.append(0, [b"x"])

        def ask() -> list[bool]:
            return [other.has_changed() for _ in range(3)]

        expected = [not self.settles] * 3
        deadline = time.monotonic() + (0 if other.notices_at_once else 60)
        other.has_changed()
        # A notification may still be on its way.
        while (answer := ask()) != expected and time.monotonic() < deadline:  # noqa: ASYNC110 - a hint
            await asyncio.sleep(0.1)
        assert answer == expected

    async def test_wait_ends_at_once_when_there_is_something(self, log: Log) -> None:
        """`wait` returns at once when there is a record after `after`."""
        assert await log.append(0, [b"a"])
        start = time.monotonic()
        await log.wait(0, 600)
        assert time.monotonic() - start < 120

    async def test_wait_wakes_up(self, log: Log, another: Opener) -> None:
        """An append through another handle, or the same, ends the wait long before its timeout."""
        other = await another()
        for i, writer in enumerate((other, log)):
            waiting = asyncio.create_task(log.wait(i, 600))
            await asyncio.sleep(0.1)
            assert not waiting.done()
            assert await writer.append(i, [b"a"])
            await asyncio.wait_for(waiting, 120)
            assert await log.head() == i + 1

    @pytest.mark.parametrize("timeout", [0.0, 0.2])
    async def test_wait_gives_up(self, log: Log, timeout: float) -> None:  # noqa: ASYNC109 - it is what is tested
        """Without an append the wait ends at its timeout, not before, and without an error."""
        start = time.monotonic()
        await log.wait(0, timeout)
        assert timeout * 0.9 <= time.monotonic() - start < timeout + 120

    # --- turns ------------------------------------------------------------------------------------------------------

    async def test_turns_exclude_each_other(self, log: Log, another: Opener) -> None:
        """Only one task of all handles holds the turn at a time, and every task gets its turn."""
        handles = [log, log, log, *[await another() for _ in range(5)]]
        inside = 0
        order: list[int] = []
        last = time.monotonic()
        longest_rest = 0.0

        async def take(i: int, handle: Log) -> None:
            nonlocal inside, last, longest_rest
            for _ in range(10):
                async with handle.turn():
                    now = time.monotonic()
                    last, longest_rest = now, max(longest_rest, now - last)
                    inside += 1
                    # If this process was stopped for seconds, the others have given up waiting for a turn.
                    assert inside == 1 or longest_rest > 5
                    await asyncio.sleep(0.001)
                    inside -= 1
                    order.append(i)

        await asyncio.wait_for(asyncio.gather(*(take(i, handle) for i, handle in enumerate(handles))), 240)
        assert sorted(order) == sorted(list(range(len(handles))) * 10)

    async def test_appends_in_turns_never_conflict(self, log: Log, another: Opener) -> None:
        """When every writer takes a turn, reads the head and appends within it, no append is refused."""
        handles = [log, *[await another() for _ in range(4)]]

        async def write(handle: Log) -> None:
            for _ in range(5):
                async with handle.turn():
                    assert await handle.append(await handle.head(), [b"x"])

        await asyncio.gather(*map(write, handles))
        assert await log.head() == 25

    async def test_turn_is_not_needed(self, log: Log, another: Opener) -> None:
        """A handle can append while another handle holds the turn."""
        other = await another()
        async with other.turn():
            assert await _do_in_a_moment(log.append(0, [b"a"]))

    async def test_failed_turn_is_given_back(self, log: Log, another: Opener) -> None:
        """An exception within a turn propagates and releases the turn."""
        other = await another()

        async def append_in_turn() -> bool:
            async with other.turn():
                return await other.append(0, [b"a"])

        with pytest.raises(ValueError, match="within"):
            async with log.turn():
                raise ValueError("within")
        assert await _do_in_a_moment(append_in_turn())

    async def test_cancelled_waiter_leaves_no_lock_behind(self, log: Log, another: Opener) -> None:
        """A task cancelled at any moment while waiting for its turn blocks neither its own handle nor the others."""
        other, third = await another(), await another()

        async def take(handle: Log) -> None:
            async with handle.turn():
                await asyncio.sleep(0)

        for i in range(20):
            async with log.turn():
                waiting = [asyncio.create_task(take(other)) for _ in range(3)]
                await asyncio.sleep(0.0002 * i)
                waiting[0].cancel()
                if i % 2:
                    waiting[1].cancel()
            if i % 3 == 0:
                waiting[2].cancel()  # perhaps at the moment when the turn is granted
            await asyncio.gather(*waiting, return_exceptions=True)
            for handle in (third, other, log):
                await _do_in_a_moment(take(handle))

    # --- snapshots and erasure --------------------------------------------------------------------------------------

    async def test_snapshot_comes_back(self, log: Log, another: Opener) -> None:
        """Every handle reads the newest snapshot; saving an older one afterwards does not replace it."""
        assert await log.append(0, [b"x"] * 9)
        other = await another()
        big = os.urandom(3 << 20)
        await log.save_snapshot(3, b"three")
        assert await other.load_snapshot() == (3, b"three")
        await other.save_snapshot(7, big)
        assert await log.load_snapshot() == (7, big)
        await log.save_snapshot(5, b"late")
        assert await other.load_snapshot() == (7, big)
        await log.save_snapshot(7, b"")
        assert await other.load_snapshot() == (7, b"")
        assert await log.head() == 9

    async def test_erase_replaces_one_record(self, log: Log, another: Opener) -> None:
        """An erased record reads as its replacement, shorter or longer. Numbers and other records stay unchanged."""
        other = await another()
        assert await log.append(0, [b"a", b"secret" * 1000, b"c", b"d"])
        await log.erase(2, b"")
        await other.erase(3, b"longer" * 5000)
        for handle in (log, other, await another()):
            assert [entry.record for entry in await read_all(handle)] == [b"a", b"", b"longer" * 5000, b"d"]
        assert await log.append(4, [b"e"])

    @pytest.mark.parametrize("seq", [-1, 0, 3])
    async def test_erase_needs_a_record(self, log: Log, seq: int) -> None:
        """Erasing a record outside of the log raises `StoreError` and writes nothing."""
        assert await log.append(0, [b"a", b"b"])
        with pytest.raises(StoreError):
            await log.erase(seq, b"x")
        assert await read_all(log) == [(1, b"a"), (2, b"b")]

    # --- writability ------------------------------------------------------------------------------------------------

    async def test_a_sound_log_is_writable(self, log: Log, another: Opener) -> None:
        """`require_writable` succeeds and writes nothing; a log that was never restored lacks no records."""
        other = await another()
        await log.require_writable()
        assert await log.append(0, [b"a"])
        for handle in (log, other):
            await handle.require_writable()
            assert not handle.may_lack_records()
        assert await read_all(other) == [(1, b"a")]

    # --- close ------------------------------------------------------------------------------------------------------

    async def test_close_twice(self, log: Log, another: Opener) -> None:
        """A closed handle raises `StoreError`, can be closed again, and does not affect other handles."""
        other = await another()
        assert await log.append(0, [b"a"])
        await log.close()
        await log.close()
        assert await other.append(1, [b"b"])
        uses: list[Awaitable[Any]] = [log.append(2, [b"c"]), log.append(2, []), log.tail(0, 1), log.head()]
        uses += [log.wait(0, 1), log.save_snapshot(1, b""), log.load_snapshot(), log.erase(1, b"")]
        uses.append(log.require_writable())
        for use in uses:
            with pytest.raises(StoreError):
                await use
        with pytest.raises(StoreError):
            log.has_changed()
        assert await other.head() == 2

    async def test_log_outlives_its_handles(self, opener: Opener) -> None:
        """After the last handle is closed, the log can be opened again with all its records."""
        if not self.durable:
            pytest.skip("this log is not durable")
        log = await opener()
        assert await log.append(0, [b"a", b"b"])
        await log.save_snapshot(1, b"state")
        await log.close()
        again = await opener()
        assert await read_all(again) == [(1, b"a"), (2, b"b")]
        assert await again.load_snapshot() == (1, b"state")
        await again.close()
