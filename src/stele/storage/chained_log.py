"""A log that detects damage, over any driver: the checksum of every record is chained to that of the record before it.

The parts that every driver needs are here once. Records are sealed when they are written and verified when they are
read. Snapshots store the link of their record. Where the driver has a place for it, a high-water mark records how far
the log has come. A log that lost acknowledged records does not open.
"""

from __future__ import annotations

import asyncio
import logging
import mmap
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from hashlib import sha256
from typing import Final, Self

from stele.core.ports import Log, LogEntry
from stele.errors import DamagedLog, StoreError
from stele.storage.heap import return_memory
from stele.storage.high_water_mark import HighWaterMark, LogPosition
from stele.storage.record_chain import (
    FIRST_LINK,
    LINK_BYTES,
    Checksum,
    DamagedRecord,
    chain_records,
    read_link,
    replace_record,
    verify_record,
    verify_records,
)

__all__ = ["ChainedLog", "seal_snapshot"]

_LOGGER = logging.getLogger(__name__)
_DIGEST_BYTES: Final = 32
_HEADER_BYTES: Final = LINK_BYTES + _DIGEST_BYTES

REPAIR_HINT: Final = (
    "Going on could give ids out twice: restore the newest backup, or let 'stele log verify' say what is lost and"
    " 'stele log repair' go on without it"
)


class ChainedLog:
    """A `Log` over a driver's log, made by `ChainedLog.open`.

    Args:
        driver: Keeps the stored records.
        place: Name of the store in messages.
        mark: Records how far the log has come. None: no high-water mark is kept.
        checksum: Kind of checksum for new records. Existing records keep theirs.
    """

    def __init__(
        self, driver: Log, place: str, mark: HighWaterMark | None = None, checksum: Checksum = Checksum.SHA256
    ) -> None:
        self.driver = driver
        self.place = place
        self.mark = mark
        self._checksum = checksum
        self._newest = LogPosition(0, FIRST_LINK)
        """The last record this handle has seen."""
        self._due_mark: asyncio.Handle | None = None
        """The scheduled call of the event loop that writes the high-water mark."""
        self._has_put_mark = False
        """Whether this handle has written the high-water mark at least once."""
        self._has_warned = False
        """Whether a warning was logged that the mark cannot be written."""

    @classmethod
    async def open(
        cls, driver: Log, place: str, mark: HighWaterMark | None = None, checksum: Checksum = Checksum.SHA256
    ) -> Self:
        """Open a chained log over a driver's log.

        Raises `DamagedLog` when the log does not reach its high-water mark. On any error the driver's log is closed.
        """
        log = cls(driver, place, mark, checksum)
        try:
            await log._require_mark()
        except BaseException:
            await driver.close()
            raise
        return log

    async def append(self, expected: int, records: Sequence[bytes]) -> bool:
        """Write records at expected+1 …; return False and write nothing when the head is not expected."""
        link = await self._find_link(expected)
        if link is None:
            await self._require_not_shrunk()
            return False
        link, stored = chain_records(link, expected + 1, records, self._checksum)
        if expected == self._newest.seq == 0:
            self._put_mark()  # before the first record: to other processes, records without a mark are those of a copy
        if not await self.driver.append(expected, stored):
            await self._require_not_shrunk()
            return False
        if records:
            self._note_newest(LogPosition(expected + len(records), link))
            self._put_mark_soon()
        return True

    async def tail(self, after: int, limit: int) -> Sequence[LogEntry]:
        """Return at most limit entries with seq > after, in order and without gaps.

        Raises `DamagedLog`, which names the first damaged record.
        """
        after = max(after, 0)
        if after == self._newest.seq:
            link: bytes | None = self._newest.link
        elif after == 0:
            link = FIRST_LINK
        elif limit > 0:
            link = await self._find_link(after)
        else:
            link = None
        if link is None:
            return []
        try:
            link, entries = verify_records(link, await self.driver.tail(after, limit))
        except DamagedRecord as error:
            raise self._make_damage(error.seq) from None
        self._note_newest(LogPosition(entries[-1].seq if entries else after, link))
        if entries and self.mark is not None and self.mark.is_of_node:
            self._put_mark()
        return entries

    async def head(self) -> int:
        """Return the sequence number of the last record, 0 when empty."""
        return await self.driver.head()

    @property
    def notices_at_once(self) -> bool:
        """Whether `has_changed` knows of every finished append at once; the same as for the driver."""
        return self.driver.notices_at_once

    def has_changed(self) -> bool:
        """Return whether the log may have grown since the last call."""
        return self.driver.has_changed()

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Return a context manager that gives writers their turns fairly, as the driver does."""
        return self.driver.turn()

    async def wait(self, after: int, timeout: float) -> None:  # noqa: ASYNC109 - part of the driver's contract
        """Return once the head is past `after`, or after timeout seconds."""
        await self.driver.wait(after, timeout)

    async def save_snapshot(self, seq: int, data: bytes) -> None:
        """Store the snapshot together with the link of its record, so that it is only valid for this history.

        Raises `StoreError` when the log has no record seq.
        """
        link = await self._find_link(seq)
        if link is None:
            raise StoreError(f"The log {self.place} has no record {seq} for the snapshot")
        await self.driver.save_snapshot(seq, await asyncio.to_thread(seal_snapshot, seq, link, data))

    async def load_snapshot(self) -> tuple[int, bytes | memoryview] | None:
        """Return the newest snapshot as (seq, data); None when there is none or it is damaged.

        Without a snapshot the whole log is replayed. Raises `DamagedLog` when the log does not reach the snapshot's
        record, or has another record there.
        """
        stored = await self.driver.load_snapshot()
        if stored is None:
            return None
        seq, sealed = stored
        del stored
        # Free the memory of the driver's read before the data is copied and decoded.
        await asyncio.to_thread(return_memory)
        view = memoryview(sealed if isinstance(sealed, bytes) else b"")  # a flipped bit may make null of it
        link, digest = bytes(view[:LINK_BYTES]), bytes(view[LINK_BYTES:_HEADER_BYTES])
        del sealed
        # The decoder returns the memory to the system piece by piece, which only a separate memory map allows.
        data = await asyncio.to_thread(_map_memory, view[_HEADER_BYTES:])
        del view
        if digest != await asyncio.to_thread(_snapshot_digest, seq, link, data):
            _LOGGER.warning(
                "the snapshot after record %d in %s is damaged; replaying the whole log instead", seq, self.place
            )
            return None
        await self._require_reached(LogPosition(seq, link), "the snapshot")
        self._note_newest(LogPosition(seq, link))
        return seq, data

    async def find_position(self, seq: int) -> LogPosition:
        """Return the position of a record in the chain. Raises `StoreError` when there is no such record."""
        link = await self._find_link(seq)
        if link is None:
            raise StoreError(f"The log {self.place} has no record {seq}")
        return LogPosition(seq, link)

    async def require_position(self, position: LogPosition) -> None:
        """Continue from a record that this process, or its parent, has read before.

        Raises `DamagedLog` if the log does not have it any more.
        """
        await self._require_reached(position, "what was loaded before this worker started")
        self._note_newest(position)

    async def erase(self, seq: int, record: bytes) -> None:
        """Overwrite the record at seq. Raises `StoreError` when there is none."""
        before = await self._find_link(seq - 1)
        entries = [] if before is None else await self.driver.tail(seq - 1, 1)
        if before is None or not entries:
            raise StoreError(f"The log {self.place} has no record {seq} to erase")
        try:
            verify_record(before, seq, entries[0].record)
        except DamagedRecord:
            raise self._make_damage(seq) from None
        await self.driver.erase(seq, replace_record(before, seq, entries[0].record, record))

    async def require_writable(self) -> None:
        """Raise the `StoreError` that an append would meet now."""
        await self.driver.require_writable()
        await self._require_not_shrunk()

    def may_lack_records(self) -> bool:
        """Return whether the store has records but no mark: it is a copy, and its original may have continued."""
        if self.driver.may_lack_records():
            return True
        mark = self.mark
        return mark is not None and not mark.is_of_node and self._newest.seq > 0 and not mark.exists()

    async def expect_lost_records(self) -> None:
        """Delete the high-water mark: the log was restored, and its original may have continued."""
        await self.driver.expect_lost_records()
        if self.mark is not None:
            self._put_due_mark()
            self.mark.remove()

    async def close(self) -> None:
        """Release the driver's log."""
        if self.mark is not None:
            self._put_due_mark()
            self.mark.close()
        await self.driver.close()

    def _make_damage(self, seq: int) -> DamagedLog:
        return DamagedLog(f"Record {seq} of the log {self.place} is damaged. {REPAIR_HINT}")

    async def _find_link(self, seq: int) -> bytes | None:
        """Return the link of a record, None where the log has no such record.

        The link of a record that this handle has not read before is not verified.
        """
        if seq == self._newest.seq:
            return self._newest.link
        if seq <= 0:
            return FIRST_LINK if seq == 0 else None
        entries = await self.driver.tail(seq - 1, 1)
        if not entries:
            return None
        try:
            return read_link(entries[0].record)
        except DamagedRecord:
            raise self._make_damage(seq) from None

    def _note_newest(self, mark: LogPosition) -> None:
        if mark.seq > self._newest.seq:
            self._newest = mark

    def _put_mark_soon(self) -> None:
        """Schedule the write of the mark for the next run of the event loop.

        It is written before any other task learns of the append, and while the next append runs. The first mark is
        written at once, because a log that was restored has none.
        """
        if self._due_mark is not None:
            return
        if self._has_put_mark:
            self._due_mark = asyncio.get_running_loop().call_soon(self._put_mark)
        else:
            self._put_mark()

    def _put_due_mark(self) -> None:
        """Write the mark now if its write is scheduled."""
        if self._due_mark is not None:
            self._due_mark.cancel()
            self._put_mark()

    def _put_mark(self) -> None:
        self._due_mark = None
        if self.mark is None:
            return
        try:
            self.mark.write(self._newest)
            self._has_put_mark = True
        except OSError as error:
            # The records are durable; only the high-water mark fails.
            log = _LOGGER.debug if self._has_warned else _LOGGER.warning
            self._has_warned = True
            log("the high-water mark %s cannot be written: %s", self.mark.path, error.strerror)

    async def _require_mark(self) -> None:
        if self.mark is None:
            return
        try:
            mark = self.mark.read()
        except OSError as error:
            raise StoreError(f"The high-water mark {self.mark.path} cannot be read: {error.strerror}") from error
        if mark is not None:
            await self._require_reached(mark, f"{self.mark.path}")
            self._note_newest(mark)
            return
        head = await self.driver.head()
        if head:
            link = await self._find_link(head)
            assert link is not None
            self._note_newest(LogPosition(head, link))
        if self.mark.exists():
            _LOGGER.warning("the high-water mark %s is damaged; it is written anew", self.mark.path)
            self.mark.remove()
            self._put_mark()

    async def _require_reached(self, mark: LogPosition, source: str) -> None:
        """Raise `DamagedLog` when the log does not contain the record of a mark."""
        head = await self.driver.head()
        if head < mark.seq:
            raise DamagedLog(
                f"The log {self.place} ends with record {head}, but {source} says that record {mark.seq} was"
                f" acknowledged: {mark.seq - head} records are lost. {REPAIR_HINT}"
            )
        if mark.seq and await self._find_link(mark.seq) != mark.link:
            raise DamagedLog(
                f"Record {mark.seq} of the log {self.place} is not the one that {source} says was acknowledged: the log"
                f" was replaced by another one, or is damaged. {REPAIR_HINT}"
            )

    async def _require_not_shrunk(self) -> int:
        """Return the head. Raises `DamagedLog` when it is before a record that this handle has seen."""
        head = await self.driver.head()
        if head < self._newest.seq:
            raise DamagedLog(
                f"The log {self.place} has lost records that were acknowledged: it went back before record"
                f" {self._newest.seq}. {REPAIR_HINT}"
            )
        return head


def seal_snapshot(seq: int, link: bytes, data: bytes) -> bytes:
    """Return the bytes to store for a snapshot taken after the record with that link."""
    return b"".join((link, _snapshot_digest(seq, link, data), data))


def _map_memory(data: memoryview) -> memoryview:
    """Return a copy of the data in its own anonymous memory map; the data itself where the system has no such maps."""
    if not data or not hasattr(mmap, "MAP_ANONYMOUS"):
        return data
    pages = mmap.mmap(-1, len(data), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    pages[:] = data
    return memoryview(pages)


def _snapshot_digest(seq: int, link: bytes, data: bytes | memoryview) -> bytes:
    digest = sha256(seq.to_bytes(8, "big") + link)
    digest.update(data)
    return digest.digest()
