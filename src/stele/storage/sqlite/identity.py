"""Whether the files of a log are still those that were opened.

A database that was deleted or replaced takes writes as before, and nobody will ever read them.
"""

from __future__ import annotations

import os
from pathlib import Path

from stele.errors import StoreReplaced

__all__ = ["FileIdentity"]


class FileIdentity:
    """Device and inode of the database and of its write-ahead log, which stay while a connection is open."""

    def __init__(self, path: Path) -> None:
        """Note what is there. Raises `OSError` when the database is not."""
        self._path = path
        names = (str(path), f"{path}-wal")
        self._known = {name: _identify(os.stat(name)) for name in names if os.path.exists(name)}
        self._bytes = 0

    def require_same(self) -> None:
        """Raise `StoreReplaced` when a file is gone, is another one or was cut."""
        for name, known in self._known.items():
            try:
                found = os.stat(name)
            except OSError as error:
                raise StoreReplaced(f"The log {self._path} cannot be written: {name}: {error.strerror}") from error
            if _identify(found) != known:
                raise StoreReplaced(
                    f"The log {self._path} cannot be written: another file has taken the place of {name}; start again"
                )
        size = os.stat(self._path).st_size
        if size < self._bytes:
            raise StoreReplaced(f"The log {self._path} cannot be written: the file was cut to {size} bytes")
        self._bytes = size


def _identify(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
