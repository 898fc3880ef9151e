"""The database file: its names, how it is opened, and error messages in plain words."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stele.errors import StoreError

__all__ = [
    "APPLICATION_ID",
    "SCHEMA_VERSION",
    "SHA256_LAYOUT",
    "ensure_wal",
    "lock_path",
    "mark_path",
    "open_connection",
    "query_value",
    "resolve_path",
    "store_error",
    "transaction",
]

APPLICATION_ID = 0x5374656C
"""ASCII `Stel` in the file's header: distinguishes files of Stele from other SQLite databases."""

SCHEMA_VERSION = 3
"""The layout that `prepare` creates, kept in `user_version`. A file with a higher one is rejected.

Layout 1 had the tables `log` and `snapshot`, whose records had no checksums: see `upgrade`. The tables of later layouts
have other names, so a process of an older release that still has the file open can write no more.
"""

SHA256_LAYOUT = 2
"""The same tables, with checksums of SHA-256 alone.

A file of this layout keeps it, because the release before this one may write there, too.
"""

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
    sqlite3.SQLITE_FULL: "has no space left on its disk; nothing was written",
    sqlite3.SQLITE_READONLY: "is read-only for this user; nothing was written",
    sqlite3.SQLITE_PERM: "may not be used by this user",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: it is a folder, or this user may not read or create it",
    sqlite3.SQLITE_CORRUPT: "is damaged; restore the newest backup, or see 'stele log verify' and 'stele log repair'",
    sqlite3.SQLITE_NOTADB: "is not a SQLite database; name another file",
    sqlite3.SQLITE_IOERR: "cannot be read or written: the disk reports an error",
    sqlite3.SQLITE_TOOBIG: "cannot take a record of that size; nothing was written",
}


def store_error(path: Path, error: sqlite3.Error | OSError) -> StoreError:
    """Return the `StoreError` for an error of SQLite or the operating system about the file."""
    if isinstance(error, OSError):
        return StoreError(f"The log {path} cannot be made or opened: {error.strerror} ({error.filename or path})")
    # An extended code keeps its family in the low byte (sqlite.org/rescode.html).
    family = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return StoreError(f"The log {path} {_WHY.get(family, 'cannot be used')} ({error})")


def resolve_path(path: str | Path) -> Path:
    """Return the absolute path without symbolic links. Raises `StoreError`."""
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError) as error:  # RuntimeError: links that lead in a circle (Python < 3.13)
        raise StoreError(f"The log {path} cannot be found: {error}") from error


def lock_path(path: Path) -> Path:
    """Return the path of the lock file beside the database. The database file itself must not be opened directly.

    (Closing any descriptor of it would drop the locks SQLite holds in this process: sqlite.org/howtocorrupt.html §2.2.)
    """
    return path.with_name(path.name + ".lock")


def mark_path(path: Path) -> Path:
    """Return the path of the high-water mark beside the database."""
    return path.with_name(path.name + ".mark")


def open_connection(path: Path, busy_timeout: float) -> sqlite3.Connection:
    """Return a connection in autocommit mode that may be passed to another thread. Raises `StoreError`."""
    try:
        connection = sqlite3.connect(path, timeout=busy_timeout, isolation_level=None, check_same_thread=False)
        for setting in _SETTINGS:
            connection.execute(setting).close()
    except sqlite3.Error as error:
        raise store_error(path, error) from error
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run the block in a transaction: take the write lock at once, commit at the end, roll back on any error."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has rolled back by itself after some errors (disk full, I/O).
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def ensure_wal(path: Path, connection: sqlite3.Connection, busy_timeout: float) -> None:
    """Switch the database to write-ahead mode, which is stored in the file.

    Switching needs exclusive access, and SQLite does not call the busy handler for it.
    """
    deadline = time.monotonic() + busy_timeout
    while True:
        try:
            mode = query_value(connection, "PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.005)
            continue
        if mode != "wal":
            raise StoreError(f"The log {path} needs a local file system with shared memory (write-ahead log refused)")
        return


def query_value(connection: sqlite3.Connection, query: str) -> int | str:
    """Return the one value of a query's result. Raises `sqlite3.Error`."""
    value: int | str = connection.execute(query).fetchall()[0][0]
    return value
