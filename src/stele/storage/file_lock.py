"""A lock on an open file that excludes other handles of this process as well as other processes and hosts.

Network file systems (NFS, CIFS) support locks on byte ranges. Their usual kind belongs to the process and is released
when any descriptor of the file is closed. The other kind belongs to the open file and avoids that; Linux has it since
3.15. On other systems `flock` is used.

See fcntl(2), "Open file description locks".
"""

from __future__ import annotations

import fcntl
import struct
from typing import Final

__all__ = ["lock_file", "unlock_file"]

_REQUEST: Final = struct.Struct("hhqqi0q")
"""The C structure `flock`: kind, where the offset counts from, offset, length, process.

It locks the whole file: from the start, offset 0, any length. The process must be 0 for a lock of an open file.
"""

_LOCK: Final = _REQUEST.pack(fcntl.F_WRLCK, 0, 0, 0, 0)
_UNLOCK: Final = _REQUEST.pack(fcntl.F_UNLCK, 0, 0, 0, 0)

_HAS_OPEN_FILE_LOCKS: Final = hasattr(fcntl, "F_OFD_SETLK")


def lock_file(descriptor: int, *, is_waiting: bool) -> None:
    """Lock a file that is open for writing.

    Raises `OSError`; `BlockingIOError` when the file is locked already and `is_waiting` is False.
    """
    if _HAS_OPEN_FILE_LOCKS:
        command = fcntl.F_OFD_SETLKW if is_waiting else fcntl.F_OFD_SETLK
        fcntl.fcntl(descriptor, command, _LOCK)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if is_waiting else fcntl.LOCK_NB))


def unlock_file(descriptor: int) -> None:
    """Release the lock. Raises `OSError`."""
    if _HAS_OPEN_FILE_LOCKS:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _UNLOCK)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
