"""The log in memory: for tests, demonstrations and registries that may be forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Final

from stele.core.ports import LogEntry
from stele.errors import InvalidRequest, StoreError
from stele.storage.drivers import StorageDriver

__all__ = ["DRIVER", "MemoryLog", "MemoryStore"]


class MemoryStore:
    """The data that several `MemoryLog` handles share, as several processes share a file. Belongs to one event loop."""

    def __init__(self) -> None:
        self.records: list[bytes] = []
        self.snapshot: tuple[int, bytes] | None = None
        self.turn = asyncio.Lock()
        self.moved = asyncio.Event()


class MemoryLog:
    """A `Log` over a `MemoryStore`: its own, or one shared with other handles.

    Handles that share a store simulate several nodes in one process.
    """

    def __init__(self, shared: MemoryStore | None = None) -> None:
        self._store = MemoryStore() if shared is None else shared
        self._seen = -1
        self._closed = False

    async def append(self, expected: int, records: Sequence[bytes]) -> bool:
        """Write records at expected+1 …; return False and write nothing when the head is not expected."""
        store = self._require_open()
        if len(store.records) != expected:
            return False
        if records:
            store.records.extend(bytes(record) for record in records)
            # Waiting tasks hold the old event. Tasks that wait from now on get a new one.
            store.moved.set()
            store.moved = asyncio.Event()
        return True

    async def tail(self, after: int, limit: int) -> Sequence[LogEntry]:
        """Return at most limit entries with seq > after, in order and without gaps."""
        first = max(after, 0)
        records = self._require_open().records[first : first + max(limit, 0)]
        return [LogEntry(seq, record) for seq, record in enumerate(records, first + 1)]

    async def head(self) -> int:
        """Return the sequence number of the last record, 0 when empty."""
        return len(self._require_open().records)

    @property
    def notices_at_once(self) -> bool:
        """True: `has_changed` knows of every append that has returned."""
        return True

    def has_changed(self) -> bool:
        """Return whether the log grew since the last call. True on the first call and after own appends, too."""
        previous_length, self._seen = self._seen, len(self._require_open().records)
        return previous_length != self._seen

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Return a context manager that serves all handles of the store in order of arrival. Not re-entrant."""
        return self._require_open().turn

    async def wait(self, after: int, timeout: float) -> None:  # noqa: ASYNC109 - part of the driver's contract
        """Return once the head is past `after`, or after timeout seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while len(self._require_open().records) <= after:
                    await self._store.moved.wait()

    async def save_snapshot(self, seq: int, data: bytes) -> None:
        """Store the snapshot unless a later one exists."""
        store = self._require_open()
        if store.snapshot is None or store.snapshot[0] <= seq:
            store.snapshot = (seq, bytes(data))

    async def load_snapshot(self) -> tuple[int, bytes] | None:
        """Return the newest snapshot as (seq, data), or None."""
        return self._require_open().snapshot

    async def erase(self, seq: int, record: bytes) -> None:
        """Overwrite the record at seq. Raises `StoreError` when there is none."""
        records = self._require_open().records
        if not 1 <= seq <= len(records):
            raise StoreError(f"The log has no record {seq} to erase")
        records[seq - 1] = bytes(record)

    async def require_writable(self) -> None:
        """Raise `StoreError` when the handle is closed."""
        self._require_open()

    def may_lack_records(self) -> bool:
        """Return False: a log in memory is never restored."""
        return False

    async def expect_lost_records(self) -> None:
        """Do nothing: a log in memory is never restored."""

    async def close(self) -> None:
        """Detach this handle. Other handles of the store continue."""
        self._closed = True

    def _require_open(self) -> MemoryStore:
        if self._closed:
            raise StoreError("The log in memory is closed")
        return self._store


async def open_url(url: str) -> MemoryLog:
    """Return a new, empty log for `memory:`. Raises `InvalidRequest` when anything follows the scheme."""
    if url.partition(":")[2].strip("/"):
        raise InvalidRequest("A store in memory has no name or place: write 'memory:'")
    return MemoryLog()


DRIVER: Final = StorageDriver(open_url, lambda url: "in memory", is_durable=False)
