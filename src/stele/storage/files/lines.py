r"""The form of records in a segment: one line each, of printable ASCII, so that `less` and `grep` read it.

    # stele-log 1: sequence number, place in its batch, CRC-32 of this line's other parts, record
    1 1/1 5c1f03e1 \xc1\x01…\xaaRegistered…{"type": "record", "name": "Order"}…

In a record, each byte that is not printable is a backslash escape (`\n`, `\\`, `\xe4`), so that a line ends where a
record ends. A batch counts as written when its last line is written. The checksum reveals a line that was written only
in part.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from zlib import crc32

__all__ = ["HEADER", "HEADER_START", "LAYOUT", "Line", "print_line", "read_line", "read_seq"]

LAYOUT: Final = 1
"""The layout of segments that this release writes. A folder with a higher one is rejected."""

HEADER_START: Final = b"# stele-log "
HEADER: Final = (
    HEADER_START + b"%d: sequence number, place in its batch, CRC-32 of this line's other parts, record\n" % LAYOUT
)


class Line(NamedTuple):
    """One record; first and last are the sequence numbers of the batch that it was written in."""

    seq: int
    first: int
    last: int
    record: bytes


_PATTERN: Final = re.compile(rb"(([0-9]+) ([0-9]+)/([0-9]+)) ([0-9a-f]{8}) ([ -~]*)\n")


def print_line(line: Line) -> bytes:
    """Return the line with its end."""
    place = b"%d %d/%d" % (line.seq, line.seq - line.first + 1, line.last - line.first + 1)
    text = line.record.decode("latin-1").encode("unicode_escape")
    return b"%b %08x %b\n" % (place, crc32(text, crc32(place)), text)


def read_line(data: bytes) -> Line | None:
    """Return the record of a line with its end; None when the line is damaged or has another form."""
    match = _PATTERN.fullmatch(data)
    if match is None or int(match[5], 16) != crc32(match[6], crc32(match[1])):
        return None
    seq = int(match[2])
    first = seq - int(match[3]) + 1
    return Line(seq, first, first + int(match[4]) - 1, match[6].decode("unicode_escape").encode("latin-1"))


def read_seq(data: bytes) -> int | None:
    """Return the sequence number that a line claims; None when it has none."""
    seq = data.partition(b" ")[0]
    return int(seq) if seq.isdigit() else None
