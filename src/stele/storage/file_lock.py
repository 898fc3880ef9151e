"""A lock on an open file that excludes other handles of this process as well as other processes and hosts.

Locks on byte ranges are those that network file systems know (NFS, CIFS). Their usual kind belongs to the process and
goes when any descriptor of the file is closed; the kind that belongs to the open file does not, where the system has it
(Linux since 3.15). Elsewhere `flock` takes its place.

See fcntl(2), "Open file description locks".
"""

from __future__ import annotations

import fcntl
import struct
from typing import Final

__all__ = ["lock_file", "unlock_file"]

_WHOLE_FILE: Final = (0, 0, 0)
"""Offset 0, from the start, any length; the process id must be 0 for a lock of an open file."""

_HAS_OPEN_FILE_LOCKS: Final = hasattr(fcntl, "F_OFD_SETLK")


def lock_file(descriptor: int, *, is_waiting: bool) -> None:
    """Lock a file that is open for writing. Raises `OSError`, `BlockingIOError` instead of waiting."""
    if _HAS_OPEN_FILE_LOCKS:
        command = fcntl.F_OFD_SETLKW if is_waiting else fcntl.F_OFD_SETLK
        fcntl.fcntl(descriptor, command, _make_request(fcntl.F_WRLCK))
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if is_waiting else fcntl.LOCK_NB))


def unlock_file(descriptor: int) -> None:
    """Give the lock back. Raises `OSError`."""
    if _HAS_OPEN_FILE_LOCKS:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _make_request(fcntl.F_UNLCK))
    else:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _make_request(kind: int) -> bytes:
    """The C structure `flock`: kind, where the offset counts from, offset, length, process."""
    return struct.pack("hhqqi0q", kind, *_WHOLE_FILE, 0)
