"""The database file: how it is made, recognised and opened, and what its errors mean in plain words."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from stele.errors import StoreError

__all__ = [
    "APPLICATION_ID",
    "SCHEMA_VERSION",
    "lock_path",
    "open_connection",
    "prepare_file",
    "resolve_path",
    "store_error",
    "transaction",
]

APPLICATION_ID = 0x5374656C
"""ASCII `Stel` in the file's header: tells our files from other SQLite databases."""

SCHEMA_VERSION = 1
"""The layout below, kept in `user_version`; a file with a higher one is refused rather than guessed at."""

_LAYOUT = (
    "CREATE TABLE log (seq INTEGER PRIMARY KEY, record BLOB NOT NULL)",
    "CREATE TABLE snapshot (seq INTEGER PRIMARY KEY, digest BLOB NOT NULL, data BLOB NOT NULL)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)

_SETTINGS = (
    "PRAGMA synchronous = FULL",  # a lost tail would hand out its ids again
    "PRAGMA fullfsync = ON",  # macOS: fsync alone does not reach the platter; elsewhere without effect
    "PRAGMA secure_delete = ON",  # erased bodies are overwritten, not just unlinked from the tree
    "PRAGMA trusted_schema = OFF",  # a doctored file must not run functions of ours
    f"PRAGMA journal_size_limit = {64 << 20}",  # a huge snapshot must not leave a huge -wal behind
)

_WHY = {
    sqlite3.SQLITE_BUSY: "is locked by another program for too long; nothing was written",
    sqlite3.SQLITE_LOCKED: "is locked by another program for too long; nothing was written",
    sqlite3.SQLITE_FULL: "has no room left on its disk; nothing was written",
    sqlite3.SQLITE_READONLY: "is read-only for this user; nothing was written",
    sqlite3.SQLITE_PERM: "may not be used by this user",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: it is a folder, or this user may not read or create it",
    sqlite3.SQLITE_CORRUPT: "is damaged; restore it from a backup, or from another node by replication",
    sqlite3.SQLITE_NOTADB: "is not a SQLite database; name another file",
    sqlite3.SQLITE_IOERR: "cannot be read or written: the disk reports an error",
    sqlite3.SQLITE_TOOBIG: "cannot take a record of that size; nothing was written",
}


def store_error(path: Path, error: sqlite3.Error | OSError) -> StoreError:
    """The `StoreError` for what SQLite or the operating system says about the file."""
    if isinstance(error, OSError):
        return StoreError(f"The log {path} cannot be made or opened: {error.strerror} ({error.filename or path})")
    # An extended code keeps its family in the low byte (sqlite.org/rescode.html).
    family = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return StoreError(f"The log {path} {_WHY.get(family, 'cannot be used')} ({error})")


def resolve_path(path: str | Path) -> Path:
    """The absolute path without symbolic links. Raises `StoreError`."""
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError) as error:  # RuntimeError: links that lead in a circle (Python < 3.13)
        raise StoreError(f"The log {path} cannot be found: {error}") from error


def lock_path(path: Path) -> Path:
    """The lock file beside the database; the database itself must not be opened by hand.

    (Closing any descriptor of it would drop the locks SQLite holds in this process: sqlite.org/howtocorrupt.html §2.2.)
    """
    return path.with_name(path.name + ".lock")


def open_connection(path: Path, busy_timeout: float) -> sqlite3.Connection:
    """A connection in autocommit mode that may be handed to another thread. Raises `StoreError`."""
    try:
        connection = sqlite3.connect(path, timeout=busy_timeout, isolation_level=None, check_same_thread=False)
        for setting in _SETTINGS:
            connection.execute(setting).close()
    except sqlite3.Error as error:
        raise store_error(path, error) from error
    return connection


def prepare_file(path: Path, busy_timeout: float) -> None:
    """Make the file if there is none; make sure that it is a log of ours. Raises `StoreError`.

    Safe against other processes doing the same: the making is done under the lock file.
    """
    try:
        _make_folder(path.parent)
        with closing(open_connection(path, busy_timeout)) as connection:
            if not _is_stamped(path, connection):
                with _hold_lock(lock_path(path)):
                    if not _is_stamped(path, connection):
                        _create_layout(path, connection, busy_timeout)
            _ensure_wal(path, connection, busy_timeout)
    except (sqlite3.Error, OSError) as error:
        raise store_error(path, error) from error


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing: takes the write lock at once, commits at the end, rolls back on any error."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has rolled back by itself after some errors (disk full, I/O).
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _is_stamped(path: Path, connection: sqlite3.Connection) -> bool:
    """True for a log of ours, False for an empty database; anything else raises `StoreError`."""
    # One transaction, or another process could lay the file out between two of the questions.
    connection.execute("BEGIN")
    try:
        application, version = (
            _query_value(connection, f"PRAGMA {name}") for name in ("application_id", "user_version")
        )
        tables = _query_value(connection, "SELECT count(*) FROM sqlite_master")
    finally:
        connection.execute("ROLLBACK")
    if application == APPLICATION_ID:
        if version != SCHEMA_VERSION:
            raise StoreError(
                f"The log {path} has layout {version}, this program knows layout {SCHEMA_VERSION}: use a newer Stele"
            )
        return True
    if application or version or tables:
        raise StoreError(f"{path} is a SQLite database of another program; name another file")
    return False


def _create_layout(path: Path, connection: sqlite3.Connection, busy_timeout: float) -> None:
    _ensure_wal(path, connection, busy_timeout)
    with transaction(connection):
        for statement in _LAYOUT:
            connection.execute(statement)


def _ensure_wal(path: Path, connection: sqlite3.Connection, busy_timeout: float) -> None:
    """Write-ahead mode is kept in the file; switching needs it alone and does not ask the busy handler."""
    deadline = time.monotonic() + busy_timeout
    while True:
        try:
            mode = _query_value(connection, "PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.005)
            continue
        if mode != "wal":
            raise StoreError(f"The log {path} needs a local file system with shared memory (write-ahead log refused)")
        return


def _query_value(connection: sqlite3.Connection, query: str) -> int | str:
    value: int | str = connection.execute(query).fetchall()[0][0]
    return value


@contextmanager
def _hold_lock(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _make_folder(folder: Path) -> None:
    """Create missing folders and write their names to disk: an fsync of the file does not cover those."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for place in missing:
        descriptor = os.open(place.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
