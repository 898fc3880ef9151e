r"""How records stand in a segment: one line each, of printable ASCII, so that `less` and `grep` read it.

    # stele-log 1: sequence number, last number of its batch, CRC-32 of this line's other parts, record
    1 1 5c1f03e1 \xc1\x01…\xaaRegistered…{"type": "record", "name": "Order"}…

A record has each byte that is not printable as a backslash escape (`\n`, `\\`, `\xe4`), so that a line ends where a
record ends. A batch is written only when its last line is; the checksum tells a line that was written in part.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from zlib import crc32

__all__ = ["HEADER", "HEADER_START", "LAYOUT", "Line", "print_line", "read_line", "read_seq"]

LAYOUT: Final = 1
"""The layout of segments that this release writes; a folder with a higher one is refused."""

HEADER_START: Final = b"# stele-log "
HEADER: Final = (
    HEADER_START + b"%d: sequence number, last number of its batch, CRC-32 of this line's other parts, record\n" % LAYOUT
)


class Line(NamedTuple):
    """One record; last is the sequence number of the last record that was written together with it."""

    seq: int
    last: int
    record: bytes


def print_line(line: Line) -> bytes:
    """Return the line with its end."""
    text = line.record.decode("latin-1").encode("unicode_escape")
    return b"%d %d %08x %s\n" % (line.seq, line.last, _sum_line(line.seq, line.last, text), text)


def read_line(data: bytes) -> Line | None:
    """Return the record of a line with its end; None when it is not one that was written so."""
    parts = data.split(b" ", 3)
    if len(parts) != 4 or not data.endswith(b"\n") or not (parts[0].isdigit() and parts[1].isdigit()):  # noqa: PLR2004 - as printed
        return None
    seq, last, text = int(parts[0]), int(parts[1]), parts[3][:-1]
    if parts[2] != b"%08x" % _sum_line(seq, last, text):
        return None
    return Line(seq, last, text.decode("unicode_escape").encode("latin-1"))


def read_seq(data: bytes) -> int | None:
    """Return the sequence number that a line claims; None when it has none."""
    seq = data.partition(b" ")[0]
    return int(seq) if seq.isdigit() else None


def _sum_line(seq: int, last: int, text: bytes) -> int:
    return crc32(text, crc32(b"%d %d " % (seq, last)))
