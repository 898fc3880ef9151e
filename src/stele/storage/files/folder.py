"""The folder of a log: the names in it, how files are written durably, and error messages in plain words.

head                           how far the log has come; writers lock this file
log-00000000000000000001.txt   a segment, named after its first record
state-00000000000000020000     a snapshot, named after the record that it was taken after
turn.lock                      fairness between writers
mark                           the high-water mark, of `stele.storage.chained_log`
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from stele.errors import StoreError

__all__ = [
    "HEAD_NAME",
    "MARK_NAME",
    "TURN_NAME",
    "UNFINISHED",
    "list_segments",
    "list_snapshots",
    "make_folder",
    "name_segment",
    "name_snapshot",
    "replace_file",
    "require_own_folder",
    "resolve_folder",
    "store_error",
    "sync_folder",
]

HEAD_NAME: Final = "head"
MARK_NAME: Final = "mark"
TURN_NAME: Final = "turn.lock"
_SEGMENT: Final = re.compile(r"log-([0-9]{20})\.txt")
_SNAPSHOT: Final = re.compile(r"state-([0-9]{20})")
UNFINISHED: Final = ".unfinished"
"""Suffix of the name of a file that is being written."""
_OWN: Final = re.compile(rf"(head|mark|turn\.lock|{_SEGMENT.pattern}|{_SNAPSHOT.pattern})({re.escape(UNFINISHED)})?")
_FOREIGN_BUT_EMPTY: Final = {"lost+found"}
"""Names that a new file system contains from the start."""

_WHY: Final = {
    errno.ENOSPC: "has no space left on its disk; nothing was written",
    errno.EDQUOT: "has no room left in this user's quota; nothing was written",
    errno.EROFS: "is read-only; nothing was written",
    errno.EACCES: "may not be used by this user",
    errno.EPERM: "may not be used by this user",
    errno.EIO: "cannot be read or written: the disk reports an error",
    errno.ENOLCK: "is on a file system that does not lock; use another one",
    errno.ENOTDIR: "is not a folder; name another one",
    errno.EEXIST: "is not a folder; name another one",
}


def store_error(folder: Path, error: OSError) -> StoreError:
    """Return the `StoreError` for an operating system error about the folder or a file in it."""
    why = _WHY.get(error.errno or 0, "cannot be used")
    return StoreError(f"The log {folder} {why} ({error.strerror}: {error.filename or folder})")


def resolve_folder(folder: Path) -> Path:
    """Return the absolute path without symbolic links. Raises `StoreError`."""
    try:
        return folder.resolve()
    except (OSError, RuntimeError) as error:  # RuntimeError: links that lead in a circle (Python < 3.13)
        raise StoreError(f"The log {folder} cannot be found: {error}") from error


def make_folder(folder: Path) -> None:
    """Create missing folders and write their names to disk; only the owner can read the last. Raises `OSError`."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    for place in missing:
        sync_folder(place.parent)


def require_own_folder(folder: Path) -> None:
    """Raise `StoreError` for a folder with files of another program. Raises `OSError` when it cannot be read."""
    foreign = [name for name in os.listdir(folder) if not _OWN.fullmatch(name) and name not in _FOREIGN_BUT_EMPTY]
    if foreign and not (folder / HEAD_NAME).exists():
        raise StoreError(f"{folder} is a folder of another program ({min(foreign)} is in it); name another folder")


def name_segment(seq: int) -> str:
    """Return the name of the segment whose first record is seq."""
    return f"log-{seq:020d}.txt"


def name_snapshot(seq: int) -> str:
    """Return the name of the snapshot that was taken after record seq."""
    return f"state-{seq:020d}"


def list_segments(folder: Path) -> list[int]:
    """Return the first sequence numbers of all segments, in order. Raises `OSError`."""
    return _list_numbers(folder, _SEGMENT)


def list_snapshots(folder: Path) -> list[int]:
    """Return the sequence numbers of all snapshots, in order. Raises `OSError`."""
    return _list_numbers(folder, _SNAPSHOT)


def _list_numbers(folder: Path, pattern: re.Pattern[str]) -> list[int]:
    return sorted(int(match[1]) for name in os.listdir(folder) if (match := pattern.fullmatch(name)))


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable: an fsync of the files does not cover them. Raises `OSError`."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def replace_file(file: Path) -> Iterator[BinaryIO]:
    """Write a new version of a file that replaces the old one durably and atomically. Raises `OSError`.

    Only its owner may read it: keys and secrets are in the log.
    """
    temporary_file = file.with_name(file.name + UNFINISHED)
    with suppress(FileNotFoundError):
        temporary_file.unlink()  # left by a process that ended
    try:
        with open(temporary_file, "xb", opener=_open_private) as new:
            yield new
            new.flush()
            os.fsync(new.fileno())
        os.replace(temporary_file, file)
    except BaseException:
        with suppress(OSError):
            temporary_file.unlink()
        raise
    sync_folder(file.parent)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
