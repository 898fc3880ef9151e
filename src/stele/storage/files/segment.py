"""Reads segments: the lines after a given place, found by binary search, since lines are in order of their numbers."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from stele.errors import DamagedLog
from stele.storage.files.lines import HEADER, HEADER_START, LAYOUT, Line, read_line, read_seq
from stele.storage.layouts import require_known_layout

__all__ = ["SegmentEnd", "damaged_segment", "find_end", "find_line", "read_lines", "require_header"]

_NEAR: Final = 4096
"""Bytes below which lines are read in order rather than by binary search."""


class SegmentEnd(NamedTuple):
    """Where the next batch is written: after record seq, at an offset in bytes."""

    seq: int
    offset: int


def damaged_segment(path: Path, seq: int) -> DamagedLog:
    """Return the error for a record that is missing or differs from what was written."""
    return DamagedLog(
        f"Record {seq} is missing from {path}, or is damaged: restore the newest backup, or let 'stele log verify' say"
        " what is lost and 'stele log repair' go on without it"
    )


def require_header(file: BinaryIO, path: Path) -> None:
    """Raise `DamagedLog` when the file is not a segment, and `StoreError` when it is a segment of a newer release."""
    header = file.readline()
    if header == HEADER:
        return
    layout = header.removeprefix(HEADER_START).partition(b":")[0]
    if header.startswith(HEADER_START) and layout.isdigit():
        require_known_layout(f"{path} has", int(layout), LAYOUT)
    raise DamagedLog(f"{path} does not begin like a segment of a log: restore the newest backup")


def read_lines(file: BinaryIO, path: Path, first: int, offset: int | None = None) -> Iterator[tuple[Line, int]]:
    """Yield each record from `first` on, with the offset after it. Raises `DamagedLog` for one out of order.

    Args:
        file: The segment.
        path: Its name, for messages.
        first: The sequence number to begin with.
        offset: Where that record is expected; it is searched for if it is not there.
    """
    expected = first
    if offset is not None:
        file.seek(offset)
        candidate = read_line(file.readline())
        if candidate is None or candidate.seq != first:
            offset = None
        file.seek(offset or 0)
    if offset is None:
        file.seek(find_line(file, path, first))
    position = file.tell()
    for data in file:
        line = read_line(data)
        if line is None or line.seq != expected:
            raise damaged_segment(path, expected)
        position += len(data)
        yield line, position
        expected += 1


def find_line(file: BinaryIO, path: Path, seq: int) -> int:
    """Return the offset of a record's line, or where it would be. Raises `DamagedLog` when a line has no number."""
    low, high = len(HEADER), os.fstat(file.fileno()).st_size
    # The line begins in [low, high]; low is always the beginning of a line.
    while high - low > _NEAR:
        middle = (low + high) // 2
        file.seek(middle)
        file.readline()
        start = file.tell()
        if start < high and _claim_seq(file.readline(), path, seq) < seq:
            low = start
        else:
            high = middle
    file.seek(low)
    while (data := file.readline()) and _claim_seq(data, path, seq) < seq:
        low += len(data)
    return low


def _claim_seq(data: bytes, path: Path, seq: int) -> int:
    """Return the number of a line.

    A line without an end is still being written, or its writer ended too early; it counts as after all others.
    """
    if not data.endswith(b"\n"):
        return sys.maxsize
    line_seq = read_seq(data)
    if line_seq is None:
        raise damaged_segment(path, seq)
    return line_seq


def find_end(file: BinaryIO, path: Path, durable: SegmentEnd) -> SegmentEnd:
    """Return where the last whole batch ends, at or after a record that is known to be durable.

    What follows it is a batch whose writer or machine failed. Raises `DamagedLog` when lines of a later batch follow:
    then the damaged part was complete once.
    """
    file.seek(durable.offset)
    end, expected, position = durable, durable.seq + 1, durable.offset
    for data in file:
        position += len(data)
        line = read_line(data)
        if line is None:
            continue
        if line.first != end.seq + 1:
            raise damaged_segment(path, end.seq + 1)
        expected += line.seq == expected
        if line.seq == line.last == expected - 1:
            end = SegmentEnd(line.seq, position)
    return end
