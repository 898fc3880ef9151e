"""The file `head`: how far the log has come, and the lock of its writers.

A reader reads no record after the head. The head is written when a batch is durable, and before the append returns. It
is not synced: after a crash of the machine it may be old, so the next process that opens the log or writes looks for
records after it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from zlib import crc32

from stele.errors import StoreError, StoreReplaced
from stele.storage.file_lock import lock_file, unlock_file
from stele.storage.files.folder import HEAD_NAME
from stele.storage.files.lines import LAYOUT

__all__ = ["Head"]

_LINE: Final = b"stele-files %06d %020d "
_PATTERN: Final = re.compile(rb"(stele-files ([0-9]{6}) ([0-9]{20}) )([0-9a-f]{8})\n")
_BYTES: Final = 49
_RETRIES: Final = 5
"""Number of reads that may meet a half-written line before the file counts as damaged."""
_POLL: Final = (0.0005, 0.02)
"""Seconds between two attempts to lock: the first pause, and the longest."""


class Head:
    """One handle's view of the file."""

    def __init__(self, folder: Path) -> None:
        """Open the file, making an empty one when there is none. Raises `OSError`."""
        self._folder = folder
        self._path = folder / HEAD_NAME
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        status = os.fstat(self._descriptor)
        self._identity = status.st_dev, status.st_ino

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever written: the log is new, or its head was lost."""
        return os.fstat(self._descriptor).st_size == 0

    def read_bytes(self) -> bytes:
        """Return the bytes of the file. Two calls return different bytes when a batch was written in between."""
        return os.pread(self._descriptor, _BYTES, 0)

    def read(self) -> int | None:
        """Return the sequence number of the last durable record; None when the file is damaged or empty.

        Raises `StoreError` for the layout of a newer release.
        """
        for _ in range(_RETRIES):
            match = _PATTERN.fullmatch(self.read_bytes())
            if match is not None and b"%08x" % crc32(match[1]) == match[4]:
                if int(match[2]) > LAYOUT:
                    raise StoreError(
                        f"The log {self._folder} has layout {int(match[2])}, but this program knows only"
                        f" layout {LAYOUT}: use a"
                        " newer Stele"
                    )
                return int(match[3])
            time.sleep(0)  # someone is writing it right now
        return None

    def write(self, seq: int) -> None:
        """Record that the log has durably reached record `seq`. Raises `OSError`."""
        line = _LINE % (LAYOUT, seq)
        os.pwrite(self._descriptor, line + b"%08x\n" % crc32(line), 0)

    @contextmanager
    def hold_lock(self, patience: float) -> Iterator[None]:
        """Exclude all other writers for the block. Raises `StoreError` after `patience` seconds, `StoreReplaced`."""
        deadline = time.monotonic() + patience
        pause, longest = _POLL
        while True:
            try:
                lock_file(self._descriptor, is_waiting=False)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise StoreError(
                        f"The log {self._folder} is locked by another process for too long; nothing was written"
                    ) from None
            time.sleep(pause)
            pause = min(pause * 1.5, longest)
        try:
            self.require_same()
            yield
        finally:
            unlock_file(self._descriptor)

    def require_same(self) -> None:
        """Raise `StoreReplaced` when the file is missing or is another one: its folder was deleted or replaced."""
        try:
            status = os.stat(self._path)
        except OSError as error:
            raise StoreReplaced(f"The log {self._folder} cannot be written: {self._path}: {error.strerror}") from error
        if (status.st_dev, status.st_ino) != self._identity:
            raise StoreReplaced(
                f"The log {self._folder} cannot be written: another folder or file has taken the place of {self._path};"
                " start again"
            )

    def close(self) -> None:
        """Release the file."""
        os.close(self._descriptor)
