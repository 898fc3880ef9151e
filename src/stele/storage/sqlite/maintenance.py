"""The files of a SQLite store when no registry has them open, and copies of one that is in use."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from stele.errors import InvalidRequest
from stele.storage.drivers import StoredRecord
from stele.storage.sqlite.file import (
    ensure_wal,
    open_connection,
    resolve_path,
    store_error,
    transaction,
)
from stele.storage.sqlite.prepare import create_layout, make_private_file, read_layout
from stele.storage.sqlite.upgrade import UNCHECKED_LAYOUT
from stele.storage.sqlite.url import parse_url

__all__ = ["SqliteFiles", "make_copy", "write_database"]

_BUSY_SECONDS = 10.0
_PAGE = 500
"""Records read at once."""


class SqliteFiles:
    """`StoreFiles` of a database.

    Raises `InvalidRequest` when there is none, `StoreError` when it is not a log of Stele.
    """

    def __init__(self, url: str) -> None:
        self._path = resolve_path(parse_url(url))
        if not self._path.is_file():
            raise InvalidRequest(f"there is no store {self._path}")
        self.place = str(self._path)
        with closing(self._connect()) as connection:
            try:
                self.is_chained = read_layout(self._path, connection) != UNCHECKED_LAYOUT
            except sqlite3.Error as error:
                raise store_error(self._path, error) from error

    def read_stored(self, until: int) -> Iterator[StoredRecord]:
        """Yield every place from 1 to the last record, at least to `until`."""
        table, column = ("record", "stored") if self.is_chained else ("log", "record")
        with closing(self._connect()) as connection:
            connection.text_factory = bytes
            head = f"SELECT coalesce(max(seq), 0) FROM {table}"  # noqa: S608 - our own names
            try:
                last = max(until, connection.execute(head).fetchone()[0])
            except sqlite3.Error:
                last = until + 1  # how far it goes cannot be read: there is damage behind what is known
            for first in range(1, last + 1, _PAGE):
                yield from _read_page(
                    connection,
                    f"SELECT seq, {column} FROM {table} WHERE seq BETWEEN ? AND ? ORDER BY seq",  # noqa: S608 - as above
                    first,
                    min(first + _PAGE - 1, last),
                )

    def write_anew(self, records: Iterable[bytes]) -> str:
        """Write a new database that takes the name of the old one. Returns the new path of the old database."""
        new = self._path.with_name(self._path.name + ".repaired")
        new.unlink(missing_ok=True)
        make_private_file(new)
        try:
            with closing(open_connection(new, _BUSY_SECONDS)) as connection:
                create_layout(connection)
                with transaction(connection):
                    for seq, stored in enumerate(records, 1):
                        connection.execute("INSERT INTO record (seq, stored) VALUES (?, ?)", (seq, stored))
                ensure_wal(new, connection, _BUSY_SECONDS)
            aside = self._path.with_name(f"{self._path.name}.damaged-{time.strftime('%Y%m%dT%H%M%S')}")
            for ending in ("", "-wal", "-shm"):
                with suppress(FileNotFoundError):
                    os.replace(f"{self._path}{ending}", f"{aside}{ending}")
            os.replace(new, self._path)
        except (sqlite3.Error, OSError) as error:
            raise store_error(self._path, error) from error
        return str(aside)

    def write_copy(self, file: Path) -> None:
        """Copy the database with SQLite's backup function, which includes the write-ahead log; the copy is one file."""
        with make_copy(file) as temporary_file:
            try:
                with closing(self._connect()) as connection, closing(sqlite3.connect(temporary_file)) as copy:
                    connection.backup(copy)
                    copy.execute("PRAGMA journal_mode = DELETE")
            except sqlite3.Error as error:
                raise store_error(self._path, error) from error

    def _connect(self) -> sqlite3.Connection:
        return open_connection(self._path, _BUSY_SECONDS)


@contextmanager
def make_copy(file: Path) -> Iterator[Path]:
    """Yield an empty temporary file, readable by its owner only, that is renamed to `file` once written and durable.

    Raises `InvalidRequest` when `file` exists already or cannot be created; `StoreError`.
    """
    if file.exists():
        raise InvalidRequest(f"{file} already exists; name a new file")
    temporary_file = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        temporary_file.unlink(missing_ok=True)
        temporary_file.touch(mode=0o600, exist_ok=False)  # keys and secrets are in it
    except OSError as error:
        raise InvalidRequest(f"{file} cannot be written: {error.strerror}") from error
    try:
        yield temporary_file
        with temporary_file.open("rb") as written:
            os.fsync(written.fileno())
        temporary_file.replace(file)
    except OSError as error:
        raise store_error(file, error) from error
    finally:
        temporary_file.unlink(missing_ok=True)


def write_database(file: Path, records: Iterable[StoredRecord]) -> None:
    """Write the records of a store of any kind into a new SQLite file. Raises `InvalidRequest`, `StoreError`."""
    with make_copy(file) as temporary_file:
        try:
            with closing(open_connection(temporary_file, _BUSY_SECONDS)) as connection:
                create_layout(connection)
                with transaction(connection):
                    rows = ((seq, stored) for seq, stored in records if stored is not None)
                    connection.executemany("INSERT INTO record (seq, stored) VALUES (?, ?)", rows)
        except sqlite3.Error as error:
            raise store_error(file, error) from error


def _read_page(connection: sqlite3.Connection, query: str, first: int, last: int) -> Iterator[StoredRecord]:
    """Yield the records of a page. Where its pages are damaged, read the records one by one."""
    try:
        records = dict(connection.execute(query, (first, last)).fetchall())
    except sqlite3.Error:
        records = {}
        for seq in range(first, last + 1):
            with suppress(sqlite3.Error):
                records |= connection.execute(query, (seq, seq)).fetchall()
    for seq in range(first, last + 1):
        stored = records.get(seq)
        yield StoredRecord(seq, stored if isinstance(stored, bytes) else None)
