"""The log over a folder of segments.

Short reads run on the event loop. Writes and long reads have a thread each, so that a read never waits for an fsync.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import islice
from pathlib import Path
from typing import NamedTuple, ParamSpec, TypeVar

from stele.core.ports import LogEntry
from stele.errors import StoreError
from stele.storage.disk import LEAST_ROOM, require_room
from stele.storage.file_turn import FileTurn
from stele.storage.files.folder import (
    TURN_NAME,
    list_segments,
    list_snapshots,
    make_folder,
    name_segment,
    name_snapshot,
    require_own_folder,
    resolve_folder,
    store_error,
)
from stele.storage.files.head import Head
from stele.storage.files.segment import damaged_segment, read_lines
from stele.storage.files.writer import FolderWriter
from stele.storage.forks import count_forks
from stele.storage.job_thread import JobThread
from stele.storage.polling import wait_for_growth

__all__ = ["FilesLog"]

_INLINE = 64
"""Tails of at most this many records are read on the event loop: a switch to a thread costs more than the read."""

P = ParamSpec("P")
T = TypeVar("T")


class _Place(NamedTuple):
    """The place after a record: seq of the record, first record of its segment, and offset in bytes."""

    seq: int
    segment: int
    offset: int


class FilesLog:
    """A `Log` in a folder, made by `FilesLog.open`. Belongs to one event loop of one process.

    Forked processes must open their own handle; a handle used in another process after a fork raises an error.
    An append that is cancelled may still be written: its outcome is found by reading the log.
    """

    def __init__(self, folder: Path, patience: float) -> None:
        """Open a folder that exists. Callers use `open`."""
        self._folder = folder
        self._head = Head(folder)
        self._writer = FolderWriter(folder, self._head, patience)
        self._writing = JobThread("stele-log-writer")
        self._reading = JobThread("stele-log-reader")
        self._turn = FileTurn(folder / TURN_NAME, patience)
        self._behind = _Place(0, 0, 0)
        """Where the last read ended: the next one usually begins there."""
        self._seen = b""
        self._has_failed = False
        """Whether the last append failed."""
        self._forks = count_forks()
        self._closed = False

    @classmethod
    async def open(cls, folder: str | Path, *, patience: float = 10.0) -> FilesLog:
        """Open the folder, creating it when missing.

        Args:
            folder: Folder of the log.
            patience: Seconds to wait for another writer before raising `StoreError`, or before continuing without a
                turn.

        Raises `StoreError` when the folder is damaged, foreign, of a newer layout, or out of reach.
        """

        def start() -> FilesLog:
            # Resolved: a later chdir must not move the log.
            place = resolve_folder(Path(folder))
            try:
                make_folder(place)
                require_own_folder(place)
                log = FilesLog(place, patience)
                log._writer.prepare()
            except OSError as error:
                raise store_error(place, error) from error
            return log

        return await asyncio.to_thread(start)

    async def append(self, expected: int, records: Sequence[bytes]) -> bool:
        """Write records at expected+1 … as one durable batch; return False and write nothing on any other head."""
        self._require_open()
        if self._head.read() not in {expected, None}:
            return False  # A losing append need not wait for the winner's fsync.
        try:
            written = await self._run_job(self._writing, self._writer.append, expected, records)
        except BaseException:
            self._has_failed = True
            raise
        self._has_failed = False
        return written

    async def tail(self, after: int, limit: int) -> Sequence[LogEntry]:
        """Return at most limit entries with seq > after, in order and without gaps.

        Raises `DamagedLog` when records are missing.
        """
        after, limit = max(after, 0), max(limit, 0)
        expected = min(await self.head() - after, limit)
        if expected <= 0:
            return []
        if expected > _INLINE:
            return await self._run_job(self._reading, self._read_tail, after, expected)
        try:
            return self._read_tail(after, expected)
        except OSError as error:
            raise store_error(self._folder, error) from error

    async def head(self) -> int:
        """Return the sequence number of the last durable record, 0 when empty.

        It includes every append that finished before the call.
        """
        self._require_open()
        head = self._head.read()
        if head is None:  # damaged: the segments say what it was
            await self._run_job(self._writing, self._writer.prepare)
            head = self._head.read()
        if head is None:
            raise StoreError(f"The log {self._folder} has a head that cannot be read")
        return head

    @property
    def notices_at_once(self) -> bool:
        """True: `has_changed` knows of every append that has returned."""
        return True

    def has_changed(self) -> bool:
        """Return whether any handle wrote since the last call.

        True on the first call and after appends of this handle, too.
        """
        self._require_open()
        previous_head, self._seen = self._seen, self._head.read_bytes()
        return previous_head != self._seen

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Return a context manager that lets one writer at a time in, among all processes.

        After `patience` seconds of waiting it continues without a turn.
        """
        self._require_open()
        return self._turn.hold_turn()

    async def wait(self, after: int, timeout: float) -> None:  # noqa: ASYNC109 - part of the driver's contract
        """Return once the head is past `after`, seen within 50 ms, or after timeout seconds."""
        await wait_for_growth(self.head, after, timeout)

    async def save_snapshot(self, seq: int, data: bytes) -> None:
        """Store the snapshot and drop older ones. Does nothing when a later one exists."""
        self._require_open()
        await self._run_job(self._writing, self._writer.save_snapshot, seq, data)

    async def load_snapshot(self) -> tuple[int, bytes] | None:
        """Return the newest snapshot as (seq, data), or None."""
        self._require_open()
        return await self._run_job(self._reading, self._read_snapshot)

    async def erase(self, seq: int, record: bytes) -> None:
        """Overwrite the record at seq; no file of the folder contains its old bytes afterwards.

        The file system frees the blocks of the old bytes, but does not overwrite them. Raises `StoreError` when there
        is no such record.
        """
        self._require_open()
        await self._run_job(self._writing, self._writer.erase, seq, record)

    async def require_writable(self) -> None:
        """Raise `StoreReplaced`, or the `StoreError` of a full disk.

        After a failed append, also write a trial file and raise its error.
        """
        self._require_open()
        self._head.require_same()
        require_room(self._folder)
        if self._has_failed:
            await self._run_job(self._writing, self._writer.try_writing, LEAST_ROOM)
            self._has_failed = False

    def may_lack_records(self) -> bool:
        """Return False: a folder keeps no such note. The high-water mark of `ChainedLog` does."""
        return False

    async def expect_lost_records(self) -> None:
        """Do nothing: a folder keeps no such note. The high-water mark of `ChainedLog` does."""

    async def close(self) -> None:
        """Finish the running calls and release files and threads. It can be called twice."""
        if self._closed:
            return
        self._require_open()
        self._closed = True
        self._turn.close()
        self._reading.end()
        closing = self._writing.run_job(self._head.close)
        self._writing.end()
        await asyncio.shield(closing)

    async def _run_job(self, thread: JobThread, job: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await thread.run_job(job, *args, **kwargs)
        except OSError as error:
            raise store_error(self._folder, error) from error

    def _read_tail(self, after: int, count: int) -> list[LogEntry]:
        """Read durable records, over as many segments as needed."""
        entries: list[LogEntry] = []
        behind = self._behind
        while len(entries) < count:
            seq = after + len(entries)
            first = self._find_segment(seq + 1)
            path = self._folder / name_segment(first)
            offset = behind.offset if (behind.seq, behind.segment) == (seq, first) else None
            with path.open("rb", buffering=1 << 16) as file:
                lines = list(islice(read_lines(file, path, seq + 1, offset), count - len(entries)))
            if not lines:
                raise damaged_segment(path, seq + 1)
            entries += [LogEntry(line.seq, line.record) for line, _ in lines]
            last, position = lines[-1]
            behind = self._behind = _Place(last.seq, first, position)
        return entries

    def _find_segment(self, seq: int) -> int:
        if seq == self._behind.seq + 1 and self._behind.segment and not self._is_first(seq):
            return self._behind.segment
        segments = [first for first in list_segments(self._folder) if first <= seq]
        if not segments:
            raise damaged_segment(self._folder / name_segment(seq), seq)
        return segments[-1]

    def _is_first(self, seq: int) -> bool:
        return (self._folder / name_segment(seq)).exists()

    def _read_snapshot(self) -> tuple[int, bytes] | None:
        while snapshots := list_snapshots(self._folder):
            try:
                return snapshots[-1], (self._folder / name_snapshot(snapshots[-1])).read_bytes()
            except FileNotFoundError:  # a later snapshot has replaced it meanwhile
                continue
        return None

    def _require_open(self) -> None:
        if self._closed:
            raise StoreError(f"The log {self._folder} is closed")
        if self._forks != count_forks():
            raise StoreError(f"The log {self._folder} was opened before a fork: open it again in the new process")
