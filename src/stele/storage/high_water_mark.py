"""The high-water mark: a small file that records how far the log of a store has come.

A store in files has it beside them. For a store on a server each node keeps its own.

A damaged store can look complete but shorter: SQLite drops the end of a write-ahead log at the first byte that does not
fit. The mark shows that acknowledged records are missing, so that their ids are not assigned again.
It is written after every append, before other tasks learn of the append, and it is not synced. A crash of the machine
may leave an older mark, never a mark of records that are not durable. A new store gets the mark before its first
record, since records without a mark are those of a copy.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["HighWaterMark", "LogPosition"]

_LINE: Final = b"stele-mark 1 %020d %s "
_PATTERN: Final = re.compile(rb"(stele-mark 1 ([0-9]{20}) ([0-9a-f]{32}) )([0-9a-f]{16})\n\Z")
_BYTES: Final = 84
_SEQ: Final = slice(13, 33)


class LogPosition(NamedTuple):
    """The newest acknowledged record: its sequence number, and its link in the chain of checksums."""

    seq: int
    link: bytes


class HighWaterMark:
    """The mark of one store, shared by all processes that write there, or one that a node keeps for itself.

    Args:
        path: Path of the file.
        is_of_node: Whether it records what one node has seen of a store elsewhere. A store without such a mark is new
            to the node; a store in files without its mark is a copy.
    """

    def __init__(self, path: Path, *, is_of_node: bool = False) -> None:
        self.path = path
        self.is_of_node = is_of_node
        self._descriptor: int | None = None

    def exists(self) -> bool:
        """Return whether the file of the mark exists, readable or not."""
        self._drop_deleted()
        return self._descriptor is not None or self.path.exists()

    def read(self) -> LogPosition | None:
        """Return the mark; None when there is none or it cannot be parsed. Raises `OSError`."""
        try:
            match = _PATTERN.match(self.path.read_bytes())
        except FileNotFoundError:
            return None
        if match is None or _checksum(match[1]) != match[4]:
            return None
        return LogPosition(int(match[2]), bytes.fromhex(match[3].decode()))

    def write(self, mark: LogPosition) -> None:
        """Raise the mark to this position, unless it is there or higher already. Raises `OSError`."""
        self._drop_deleted()
        if self._descriptor is None:
            if self.is_of_node:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        there = os.pread(self._descriptor, _BYTES, 0)[_SEQ]
        if not there.isdigit() or int(there) < mark.seq:
            line = _LINE % (mark.seq, mark.link.hex().encode())
            os.pwrite(self._descriptor, line + _checksum(line) + b"\n", 0)

    def replace(self, mark: LogPosition) -> None:
        """Set the mark to this position, also to a lower one, and make that durable. Raises `OSError`."""
        self.remove()
        self.write(mark)
        assert self._descriptor is not None
        os.fsync(self._descriptor)

    def remove(self) -> None:
        """Delete the mark."""
        self.close()
        with suppress(FileNotFoundError):
            self.path.unlink()

    def _drop_deleted(self) -> None:
        """Close the file when it was deleted."""
        if self._descriptor is not None and os.fstat(self._descriptor).st_nlink == 0:
            self.close()

    def close(self) -> None:
        """Release the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _checksum(line: bytes) -> bytes:
    return sha256(line).hexdigest()[:16].encode()
