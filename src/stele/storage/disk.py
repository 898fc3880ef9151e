"""Free space on the disk of a store in files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from stele.errors import StoreError

LEAST_ROOM: Final = 1 << 16
"""Bytes that must be free on a disk for a store to count as writable."""


def require_room(path: Path) -> None:
    """Raise `StoreError` when the disk of a file or folder is full."""
    room = os.statvfs(path)
    if room.f_frsize * (room.f_bavail if os.geteuid() else room.f_bfree) < LEAST_ROOM:
        raise StoreError(f"The log {path} has no space left on its disk")
