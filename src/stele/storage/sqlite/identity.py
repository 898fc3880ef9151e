"""Checks whether the files of a log are still those that were opened.

A database that was deleted or replaced accepts writes as before, but no process can ever read them.
"""

from __future__ import annotations

import os
from pathlib import Path

from stele.errors import StoreReplaced

__all__ = ["FileIdentity"]


class FileIdentity:
    """Device and inode of the database and of its write-ahead log, which stay while a connection is open."""

    def __init__(self, path: Path) -> None:
        """Record device and inode of the files. Raises `OSError` when the database does not exist."""
        self._path = path
        names = (str(path), f"{path}-wal")
        self._known: dict[str, tuple[int, int]] = {}
        for name in names:
            if os.path.exists(name):
                status = os.stat(name)
                self._known[name] = status.st_dev, status.st_ino

    def require_same(self) -> None:
        """Raise `StoreReplaced` when a file is missing or is another one."""
        for name, known in self._known.items():
            try:
                status = os.stat(name)
            except OSError as error:
                raise StoreReplaced(f"The log {self._path} cannot be written: {name}: {error.strerror}") from error
            if (status.st_dev, status.st_ino) != known:
                raise StoreReplaced(
                    f"The log {self._path} cannot be written: another file has taken the place of {name}; start again"
                )
