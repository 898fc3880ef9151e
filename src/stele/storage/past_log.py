"""A log in an earlier state: up to a record or a time, and read-only."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import UTC, datetime
from typing import NoReturn

import msgspec

from stele.core.events import decode_record
from stele.core.ports import Log, LogEntry
from stele.errors import InvalidRequest, ReadOnly, StoreError

__all__ = ["PastLog", "open_past"]


async def open_past(log: Log, moment: str) -> PastLog:
    """Return a log as of a moment: a sequence number, or a time as in RFC 3339 (`2026-11-23T10:00:00Z`).

    A time without an offset is UTC. Closes the log when it raises: `InvalidRequest` for any other text and for a
    record that does not exist yet; `StoreError`.
    """
    try:
        if moment.isdigit():
            seq = int(moment)
            if seq > (head := await log.head()):
                raise InvalidRequest(f"record {seq} does not exist: the log ends with record {head}")
        else:
            seq = await _find_record(log, _parse_time(moment))
    except BaseException:
        await log.close()
        raise
    return PastLog(log, seq, moment)


def _parse_time(moment: str) -> int:
    """Return a time in milliseconds since 1970."""
    try:
        time = datetime.fromisoformat(moment)
    except ValueError:
        raise InvalidRequest(
            f"{moment!r} is not a moment: write a sequence number, or a time such as 2026-11-23T10:00:00Z"
        ) from None
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)


async def _find_record(log: Log, at: int) -> int:
    """Return the last record that was written at or before a time; times in a log never decrease."""
    low, high = 0, await log.head()
    while low < high:
        middle = (low + high + 1) // 2
        entry = (await log.tail(middle - 1, 1))[0]
        try:
            record = decode_record(entry.record)
        except msgspec.MsgspecError as error:
            raise StoreError(f"record {middle} of the log cannot be read by this version: {error}") from error
        if record.metadata.at <= at:
            low = middle
        else:
            high = middle - 1
    return low


class PastLog:
    """A read-only `Log` that ends with record `last`. moment is named in error messages."""

    def __init__(self, log: Log, last: int, moment: str) -> None:
        self._log = log
        self._last = last
        self._moment = moment
        self._has_been_asked = False

    async def append(self, expected: int, records: Sequence[bytes]) -> bool:
        """Reject the write. Raises `ReadOnly`."""
        self._refuse()

    async def tail(self, after: int, limit: int) -> Sequence[LogEntry]:
        """Return at most limit entries after a sequence number, up to the last record."""
        return await self._log.tail(after, min(limit, self._last - max(after, 0)))

    async def head(self) -> int:
        """Return the sequence number of the last record."""
        return self._last

    @property
    def notices_at_once(self) -> bool:
        """True: the log never changes."""
        return True

    def has_changed(self) -> bool:
        """Return True on the first call only."""
        has_been_asked, self._has_been_asked = self._has_been_asked, True
        return not has_been_asked

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Return a context manager that does not wait: there are no writers."""
        return nullcontext()

    async def wait(self, after: int, timeout: float) -> None:  # noqa: ASYNC109 - part of the driver's contract
        """Return after timeout seconds; at once if there is a record after this one."""
        if after >= self._last:
            await asyncio.sleep(timeout)

    async def save_snapshot(self, seq: int, data: bytes) -> None:
        """Do nothing: the log is read-only."""

    async def load_snapshot(self) -> tuple[int, bytes | memoryview] | None:
        """Return the newest snapshot; None when there is none or it includes later records."""
        snapshot = await self._log.load_snapshot()
        return snapshot if snapshot is not None and snapshot[0] <= self._last else None

    async def erase(self, seq: int, record: bytes) -> None:
        """Reject the write. Raises `ReadOnly`."""
        self._refuse()

    async def require_writable(self) -> None:
        """Do nothing: that the log is read-only is no failure."""

    def may_lack_records(self) -> bool:
        """Return False: nothing is written, so missing records do not matter."""
        return False

    async def expect_lost_records(self) -> None:
        """Reject the write. Raises `ReadOnly`."""
        self._refuse()

    async def close(self) -> None:
        """Release the log."""
        await self._log.close()

    def _refuse(self) -> NoReturn:
        raise ReadOnly(f"This registry is as of {self._moment} and takes no writes", how="as of a moment in the past")
