"""The file of the audit trail. Several processes append lines to it in turn, and it outlives all of them.

A lock file beside it lets one process write at a time. The process that holds the lock reads what others appended,
chains its lines to theirs, and syncs them to the disk. A line that a killed process left incomplete is removed, and an
entry records that. A full file is renamed with the number of its first line, and the chain continues in a new file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from stele.core.audit_chain import AuditEntry, AuditLine, ChainEnd, print_line, read_end, read_line
from stele.errors import StoreError
from stele.storage.file_lock import lock_file, unlock_file

__all__ = ["AuditFile", "find_files", "iter_lines"]

_TAIL: Final = 1 << 16
"""Bytes read at once in search of the last line."""


class AuditFile:
    """A file to append to; belongs to one thread at a time.

    Args:
        path: The file; its folder is created.
        key: Key of the hashes, b"" for none.
        max_bytes: Length after which a new file begins.
        most_files: Full files that are kept; older ones are deleted.

    Raises:
        StoreError: The file cannot be read or written, or its last line is not one of an audit trail.
    """

    def __init__(self, path: Path, key: bytes = b"", *, max_bytes: int = 100 << 20, most_files: int = 10) -> None:
        self.path = path
        self._key = key
        self._max_bytes = max_bytes
        self._most_files = most_files
        self._lock = -1
        self._identity = (-1, -1)
        """Inode and length of the file after the last write; other values mean that another process wrote."""
        self._end = ChainEnd()
        with _tell_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def read_end(self) -> ChainEnd:
        """Return the end of the chain, including lines of other processes."""
        with _tell_errors(self.path), self._hold_lock():
            self._refresh()
            return self._end

    def append(self, entries: Sequence[AuditEntry], position: int, expected: int | None = None) -> bool:
        """Append entries and sync them to the disk. Return False, and write nothing, if the trail is not at `expected`.

        Args:
            entries: Entries in their order.
            position: Last record of the log that the trail covers after these entries.
            expected: Position from which the entries were made. None: they belong to no records, and position stays.
        """
        with _tell_errors(self.path), self._hold_lock():
            self._refresh()
            if expected is not None and self._end.position != expected:
                return False
            if expected is None:
                position = self._end.position
            end, lines = self._end, []
            for number, entry in enumerate(entries, 1):
                is_last = number == len(entries)
                end, line = print_line(end, position if is_last else self._end.position, entry, self._key)
                lines.append(line)
            self._write(b"".join(lines), end)
        return True

    def close(self) -> None:
        """Close the lock file."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    @contextmanager
    def _hold_lock(self) -> Iterator[None]:
        lock_file(self._lock, is_waiting=True)
        try:
            yield
        finally:
            unlock_file(self._lock)

    def _refresh(self) -> None:
        """Read the end of the chain if another process wrote since, and remove an incomplete last line."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            if self._identity == (-1, -1):
                self._end = self._read_rotated_end()
            self._identity = (0, 0)
            return
        if (status.st_ino, status.st_size) == self._identity:
            return
        whole, last, fragment = _read_last_line(self.path)
        if last is not None:
            self._end = read_end(last)
        elif whole == 0:
            self._end = self._read_rotated_end()
        else:
            raise StoreError(f"The last line of {self.path} is not a line of an audit trail: move the file away")
        self._identity = (status.st_ino, status.st_size)
        if fragment:
            with self.path.open("r+b") as file:
                file.truncate(whole)
                os.fsync(file.fileno())
            details = {"bytes": len(fragment), "sha256": sha256(fragment).hexdigest()}
            entry = AuditEntry(int(status.st_mtime * 1000), "half_line_removed", details=details)
            end, line = print_line(self._end, self._end.position, entry, self._key)
            self._write(line, end)

    def _read_rotated_end(self) -> ChainEnd:
        """End of the chain in the newest full file; the start of a new chain where there is none."""
        for path in reversed(find_files(self.path)):
            _, last, _ = _read_last_line(path)
            if last is not None:
                return read_end(last)
        return ChainEnd()

    def _write(self, data: bytes, end: ChainEnd) -> None:
        if not data:
            return
        if self.path.exists() and self.path.stat().st_size >= self._max_bytes:
            self._rotate()
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            written = 0
            while written < len(data):
                written += os.write(descriptor, data[written:])
            os.fsync(descriptor)
            status = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        self._end, self._identity = end, (status.st_ino, status.st_size)

    def _rotate(self) -> None:
        with self.path.open("rb") as file:
            first = read_line(file.readline()).number
        self.path.rename(self.path.with_name(f"{self.path.name}.{first:012d}"))
        full = [path for path in find_files(self.path) if path != self.path]
        for path in full[: max(len(full) - self._most_files, 0)]:
            path.unlink()


def find_files(path: Path) -> list[Path]:
    """Return the existing files of an audit trail, oldest first: full ones, then the current one."""
    numbers = (entry for entry in path.parent.glob(f"{path.name}.*") if entry.suffix[1:].isdigit())
    return [*sorted(numbers), *([path] if path.exists() else [])]


def iter_lines(path: Path, offset: int = 0) -> Iterator[tuple[int, bytes]]:
    """Return the complete lines of a file from an offset on, each with the offset of its end."""
    with path.open("rb") as file:
        file.seek(offset)
        for line in file:
            if not line.endswith(b"\n"):
                return
            offset += len(line)
            yield offset, line


def _read_last_line(path: Path) -> tuple[int, AuditLine | None, bytes]:
    """Return the length of all complete lines, the last of them (None if invalid), and the bytes after it."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        tail, start = b"", size
        while start > 0 and tail.count(b"\n") < 2:
            start = max(start - _TAIL, 0)
            file.seek(start)
            tail = file.read(size - start)
    whole, _, fragment = tail.rpartition(b"\n")
    if not whole:
        return size - len(fragment), None, fragment
    try:
        return size - len(fragment), read_line(whole.rpartition(b"\n")[2]), fragment
    except msgspec.DecodeError:
        return size - len(fragment), None, fragment


@contextmanager
def _tell_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"The audit trail {path} cannot be written: {error.strerror}") from error
