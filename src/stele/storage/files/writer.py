"""All changes to the folder of a log. One thread of a handle makes them, while it holds the lock of the head."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import BinaryIO, Final

from stele.errors import DamagedLog, StoreError
from stele.storage.files.folder import (
    HEAD_NAME,
    MARK_NAME,
    UNFINISHED,
    list_segments,
    list_snapshots,
    name_segment,
    name_snapshot,
    replace_file,
)
from stele.storage.files.head import Head
from stele.storage.files.lines import HEADER, Line, print_line, read_line
from stele.storage.files.segment import SegmentEnd, damaged_segment, find_end, find_line, require_header

__all__ = ["FolderWriter"]

SEGMENT_BYTES: Final = 16 << 20
"""Size in bytes from which a segment gets no further batch. Erasing a record rewrites its segment."""


class FolderWriter:
    """Makes the writes of one handle. Every method may raise `StoreError` and `OSError`.

    Args:
        folder: Folder of the log.
        head: Head of the same handle.
        patience: Seconds to wait for the lock.
    """

    def __init__(self, folder: Path, head: Head, patience: float) -> None:
        self._folder = folder
        self._head = head
        self._patience = patience
        self._end: tuple[Path, SegmentEnd] | None = None
        """Where the last write of this handle ended."""

    def prepare(self) -> None:
        """Create an empty log, or complete the state that a failed writer or machine left."""
        with self._head.hold_lock(self._patience):
            if self._head.is_empty and not list_segments(self._folder):
                self._refuse_mark()
                self._begin_segment(1)
                self._head.write(0)
            else:
                self._recover()

    def append(self, expected: int, records: Sequence[bytes]) -> bool:
        """Write records at expected+1 … as one durable batch; return False and write nothing on any other head."""
        with self._head.hold_lock(self._patience):
            path, end = self._recover()
            if end.seq != expected:
                return False
            if records:
                if end.offset >= SEGMENT_BYTES:
                    path, end = self._begin_segment(expected + 1)
                self._write_batch(path, end, records)
            return True

    def erase(self, seq: int, record: bytes) -> None:
        """Rewrite the segment of a record, with another record in its place."""
        with self._head.hold_lock(self._patience):
            _, end = self._recover()
            if not 1 <= seq <= end.seq:
                raise StoreError(f"The log {self._folder} has no record {seq} to erase")
            self._end = None
            path = self._folder / name_segment(max(first for first in list_segments(self._folder) if first <= seq))
            with path.open("rb") as old, replace_file(path) as new:
                start = find_line(old, path, seq)
                old.seek(start)
                line = read_line(old.readline())
                if line is None or line.seq != seq:
                    raise damaged_segment(path, seq)
                behind = old.tell()
                old.seek(0)
                new.write(old.read(start))
                new.write(print_line(line._replace(record=record)))
                old.seek(behind)
                shutil.copyfileobj(old, new)

    def save_snapshot(self, seq: int, data: bytes) -> None:
        """Store a snapshot and drop older ones. Does nothing when a later one exists."""
        with self._head.hold_lock(self._patience):
            snapshots = list_snapshots(self._folder)
            if snapshots and snapshots[-1] > seq:
                return
            with replace_file(self._folder / name_snapshot(seq)) as file:
                file.write(data)
            for older in snapshots:
                if older != seq:
                    (self._folder / name_snapshot(older)).unlink(missing_ok=True)

    def try_writing(self, size: int) -> None:
        """Write `size` bytes into a separate file, and delete it again."""
        trial = self._folder / f"{HEAD_NAME}{UNFINISHED}"
        with self._head.hold_lock(self._patience):
            try:
                with trial.open("wb") as file:
                    file.write(bytes(size))
                    file.flush()
                    os.fsync(file.fileno())
            finally:
                trial.unlink(missing_ok=True)

    def _refuse_mark(self) -> None:
        """Raise `DamagedLog` for an empty folder where an older log was: its ids would be assigned again."""
        mark = self._folder / MARK_NAME
        if mark.exists():
            raise DamagedLog(
                f"The log {self._folder} is empty, but its high-water mark {mark} still exists. Restore the"
                " newest backup;"
                f" to begin a new registry, which gives out the same ids again, remove {mark} first"
            )

    def _begin_segment(self, first: int) -> tuple[Path, SegmentEnd]:
        path = self._folder / name_segment(first)
        with replace_file(path) as file:
            file.write(HEADER)
        return path, SegmentEnd(first - 1, len(HEADER))

    def _recover(self) -> tuple[Path, SegmentEnd]:
        """Return where the next batch is written.

        A batch that was written completely counts. The rest that a failed writer left is cut off.
        """
        durable = self._head.read()
        firsts = list_segments(self._folder)
        if not firsts:
            raise DamagedLog(f"The log {self._folder} has lost its records: restore the newest backup")
        path = self._folder / name_segment(firsts[-1])
        if self._end is not None:
            known, end = self._end
            if known == path and end.seq == durable and path.stat().st_size == end.offset:
                return self._end
        with path.open("r+b") as file:
            start = _find_durable(file, path, firsts[-1], durable or 0)
            end = find_end(file, path, start)
            if os.fstat(file.fileno()).st_size != end.offset:
                file.truncate(end.offset)
            os.fsync(file.fileno())
        if end.seq != durable:
            self._head.write(end.seq)
        self._end = path, end
        return self._end

    def _write_batch(self, path: Path, end: SegmentEnd, records: Sequence[bytes]) -> None:
        last = end.seq + len(records)
        data = b"".join(
            print_line(Line(seq, end.seq + 1, last, record)) for seq, record in enumerate(records, end.seq + 1)
        )
        with path.open("r+b", buffering=0) as file:
            try:
                _write_all(file, data, end.offset)
                os.fsync(file.fileno())
            except OSError:
                # The next writer would cut the batch off, or find it complete. A batch that was reported as failed must
                # not appear.
                with suppress(OSError):
                    file.truncate(end.offset)
                raise
        self._head.require_same()  # again: a write into a deleted folder does not count
        self._head.write(last)
        self._end = path, SegmentEnd(last, end.offset + len(data))


def _find_durable(file: BinaryIO, path: Path, first: int, durable: int) -> SegmentEnd:
    """Return where the last record that is known to be durable ends, in the last segment."""
    require_header(file, path)
    if durable < first:
        return SegmentEnd(first - 1, len(HEADER))
    file.seek(find_line(file, path, durable))
    line = read_line(file.readline())
    if line is None or line.seq != durable:
        raise damaged_segment(path, durable)
    return SegmentEnd(durable, file.tell())


def _write_all(file: FileIO, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(file.fileno(), view, offset)
        view, offset = view[written:], offset + written
