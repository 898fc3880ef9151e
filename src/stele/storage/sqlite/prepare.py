"""Creates the database file and its tables, or recognises an existing one; old layouts are upgraded to the newest."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from stele.errors import DamagedLog, StoreError
from stele.storage.layouts import describe_newer_layout
from stele.storage.sqlite.file import (
    APPLICATION_ID,
    SCHEMA_VERSION,
    SHA256_LAYOUT,
    ensure_wal,
    lock_path,
    mark_path,
    open_connection,
    query_value,
    store_error,
    transaction,
)
from stele.storage.sqlite.upgrade import UNCHECKED_LAYOUT, upgrade_layout

__all__ = ["create_layout", "make_private_file", "prepare_file", "read_layout"]

_LAYOUT = (
    "CREATE TABLE record (seq INTEGER PRIMARY KEY, stored BLOB NOT NULL)",
    "CREATE TABLE state (seq INTEGER PRIMARY KEY, sealed BLOB NOT NULL)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)


def prepare_file(path: Path, busy_timeout: float) -> int:
    """Create the file if there is none, check that it is a log of Stele with checksums, and return its layout.

    Raises `StoreError`.

    Safe against other processes doing the same: creation and upgrade happen while the lock file is locked.
    """
    try:
        _make_folder(path.parent)
        _refuse_traces(path)
        make_private_file(path)
        with closing(open_connection(path, busy_timeout)) as connection:
            layout = read_layout(path, connection)
            if layout not in {SHA256_LAYOUT, SCHEMA_VERSION}:
                with _hold_lock(lock_path(path)):
                    layout = read_layout(path, connection)
                    if layout is None:
                        ensure_wal(path, connection, busy_timeout)
                        create_layout(connection)
                        layout = SCHEMA_VERSION
                    elif layout == UNCHECKED_LAYOUT:
                        ensure_wal(path, connection, busy_timeout)
                        upgrade_layout(path, connection, _LAYOUT)
                        layout = SCHEMA_VERSION
            ensure_wal(path, connection, busy_timeout)
            return layout
    except (sqlite3.Error, OSError) as error:
        raise store_error(path, error) from error


def _refuse_traces(path: Path) -> None:
    """Raise `DamagedLog` where files of an older log remain without it: its ids would be assigned again."""
    mark, wal = mark_path(path), path.with_name(path.name + "-wal")
    traces = [mark] if mark.exists() else []
    traces += [wal] if wal.exists() and wal.stat().st_size > 0 else []
    # Check the size after the mark: a mark that exists while the file is empty belongs to an older log.
    if traces and not (path.exists() and path.stat().st_size > 0):
        names = " and ".join(map(str, traces))
        raise DamagedLog(
            f"The log {path} is missing or empty, but {names} still exists. Restore the newest"
            f" backup; to begin a new registry, which gives out the same ids again, remove {names} first"
        )


def make_private_file(path: Path) -> None:
    """Create an empty file that only its owner may read: keys and secrets are in the log."""
    with suppress(OSError):  # the file exists; or SQLite reports the error later
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def read_layout(path: Path, connection: sqlite3.Connection) -> int | None:
    """Return the layout of a log of Stele, None for an empty database. Raises `StoreError` for anything else."""
    # One transaction; otherwise another process could create the tables between two of the queries.
    connection.execute("BEGIN")
    try:
        application, version = (
            query_value(connection, f"PRAGMA {name}") for name in ("application_id", "user_version")
        )
        tables = query_value(connection, "SELECT count(*) FROM sqlite_master")
    finally:
        connection.execute("ROLLBACK")
    if application == APPLICATION_ID:
        if version not in {UNCHECKED_LAYOUT, SHA256_LAYOUT, SCHEMA_VERSION}:
            raise StoreError(describe_newer_layout(f"The log {path} has", int(version), SCHEMA_VERSION))
        return int(version)
    if application or version or tables:
        raise StoreError(f"{path} is a SQLite database of another program; name another file")
    return None


def create_layout(connection: sqlite3.Connection) -> None:
    """Create the tables of an empty log, and mark the file as a log of Stele."""
    with transaction(connection):
        for statement in _LAYOUT:
            connection.execute(statement)


@contextmanager
def _hold_lock(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _make_folder(folder: Path) -> None:
    """Create missing folders and write their names to disk: an fsync of the file does not cover the names."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for place in missing:
        descriptor = os.open(place.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
