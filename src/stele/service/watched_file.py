"""Files that may change while a server runs."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

_LOOK_SECONDS: Final = 1.0
"""Interval in seconds at which a file is checked."""


def identify_file(path: Path) -> tuple[int, int, int] | None:
    """Return size, modification time (ns) and inode of a file; None if it does not exist.

    A changed file has other values.
    """
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino


class WatchedFile:
    """A file whose changes are detected by size, modification time and inode. This costs a system call a second.

    Args:
        path: The file. A missing file counts as unchanged until it exists again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen = identify_file(path)
        self._look_at = time.monotonic() + _LOOK_SECONDS

    def has_changed(self) -> bool:
        """Return whether the file is another one than at the last call that returned True, or at the beginning."""
        now = time.monotonic()
        if now < self._look_at:
            return False
        self._look_at = now + _LOOK_SECONDS
        identity = identify_file(self.path)
        if identity is None or identity == self._seen:
            return False
        self._seen = identity
        return True
