"""The log over one SQLite file.

Three connections, so that short calls do not wait for long ones. `hint` runs on the event loop and takes microseconds
(head, changed, short tails). `writer` and `reader` have a thread each for what may take longer (fsync; long tails).
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, closing
from math import inf
from pathlib import Path
from sys import getsizeof
from typing import Concatenate, ParamSpec, TypeVar

from stele.core.ports import LogEntry, make_entry
from stele.errors import StoreError
from stele.storage.disk import LEAST_ROOM, require_room
from stele.storage.file_turn import FileTurn
from stele.storage.forks import count_forks
from stele.storage.job_thread import JobThread
from stele.storage.polling import wait_for_growth
from stele.storage.sqlite.file import (
    lock_path,
    open_connection,
    query_value,
    resolve_path,
    store_error,
    transaction,
)
from stele.storage.sqlite.identity import FileIdentity
from stele.storage.sqlite.prepare import prepare_file

__all__ = ["SqliteLog"]

_HEAD = "SELECT coalesce(max(seq), 0) FROM record"
_APPEND = f"INSERT INTO record (seq, stored) VALUES (?, CASE WHEN ({_HEAD}) = ? THEN ? END)"  # noqa: S608 - constants
"""Inserts the first record, or null on any other head, which the table refuses. Further records become further rows."""
_TAIL = "SELECT seq, stored FROM record WHERE seq > ? ORDER BY seq LIMIT ?"

_INLINE = 256
_INLINE_BYTES = 512 << 10
_PAGE = 64
"""Records of a tail that are read at once on the event loop.

Reading continues page by page up to a limit of memory, since a switch to a thread costs more than the read.
"""
_ONE_STATEMENT = 64
"""Highest number of records that one statement appends. SQLite compiles a statement once per number of records."""

P = ParamSpec("P")
T = TypeVar("T")


class SqliteLog:
    """A `Log` in a SQLite file, made by `SqliteLog.open`. Belongs to one event loop of one process.

    Forked processes must open their own handle; a handle used in another process after a fork raises an error.
    An append that is cancelled may still be written: its outcome is found by reading the log.
    """

    def __init__(self, path: Path, layout: int, busy_timeout: float, patience: float) -> None:
        """Open a file that `prepare_file` has checked. Callers use `open`."""
        self.layout = layout
        self._path = path
        self._hint = open_connection(path, busy_timeout)
        self._writer = _Worker(path, busy_timeout, "stele-log-writer")
        self._reader = _Worker(path, busy_timeout, "stele-log-reader")
        # The first query creates the write-ahead log, whose identity is recorded, too.
        query_value(self._hint, "PRAGMA user_version")
        self._identity = FileIdentity(path)
        self._turn = FileTurn(lock_path(path), patience)
        self._seen = -1
        self._has_failed = False
        """Whether the last append failed."""
        self._forks = count_forks()
        self._closed = False

    @classmethod
    async def open(cls, path: str | Path, *, busy_timeout: float = 10.0, patience: float = 10.0) -> SqliteLog:
        """Open the file, creating it and its folder when missing.

        Args:
            path: Path of the file.
            busy_timeout: Seconds to wait for another program's write lock before raising `StoreError`.
            patience: Seconds to wait for a turn before continuing without one.

        Raises `StoreError` when the file is damaged, foreign, of a newer layout, or out of reach.
        """

        def start() -> SqliteLog:
            # Resolved: a later chdir must not move the log, and processes that use a symbolic link share the lock file.
            place = resolve_path(path)
            layout = prepare_file(place, busy_timeout)
            try:
                return SqliteLog(place, layout, busy_timeout, patience)
            except (sqlite3.Error, OSError) as error:
                raise store_error(place, error) from error

        return await asyncio.to_thread(start)

    async def append(self, expected: int, records: Sequence[bytes]) -> bool:
        """Write records at expected+1 … in one durable transaction.

        Returns False and writes nothing on any other head.
        """
        self._require_open()
        try:
            written = await self._writer.run_job(_append_records, self._identity, expected, records)
        except BaseException:
            self._has_failed = True
            raise
        self._has_failed = False
        return written

    async def tail(self, after: int, limit: int) -> Sequence[LogEntry]:
        """Return at most limit entries with seq > after, in order and without gaps.

        Raises `StoreError` when records are missing.
        """
        after, limit = max(after, 0), max(limit, 0)
        self._require_open()
        try:
            entries = _read_tail(self._hint, self._path, after, min(limit, _INLINE), _INLINE_BYTES)
        except sqlite3.Error as error:
            raise store_error(self._path, error) from error
        count = len(entries)
        if count < limit and count and not count % _PAGE:  # there may be more
            entries += await self._reader.run_job(_read_tail, self._path, after + count, limit - count)
        return entries

    async def head(self) -> int:
        """Return the sequence number of the last committed record, 0 when empty.

        It includes every append that finished before the call.
        """
        return self._query_number(_HEAD)

    @property
    def notices_at_once(self) -> bool:
        """True: `has_changed` knows of every append that has returned."""
        return True

    def has_changed(self) -> bool:
        """Return whether any connection committed since the last call.

        True on the first call and after writes of this handle, too.
        """
        # https://sqlite.org/pragma.html#pragma_data_version
        previous_version, self._seen = self._seen, self._query_number("PRAGMA data_version")
        return previous_version != self._seen

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Return a context manager that lets one writer at a time in, among all processes of the file.

        After `patience` seconds of waiting it continues without a turn.
        """
        self._require_open()
        return self._turn.hold_turn()

    async def wait(self, after: int, timeout: float) -> None:  # noqa: ASYNC109 - part of the driver's contract
        """Return once the head is past `after`, seen within 50 ms of the commit, or after timeout seconds."""
        await wait_for_growth(self.head, after, timeout)

    async def save_snapshot(self, seq: int, data: bytes) -> None:
        """Store the snapshot and drop older ones, in one transaction. Does nothing when a later one exists."""
        self._require_open()
        await self._writer.run_job(_save_snapshot, seq, data)

    async def load_snapshot(self) -> tuple[int, bytes] | None:
        """Return the newest snapshot as (seq, data), or None."""
        self._require_open()
        return await self._reader.run_job(_load_snapshot)

    async def erase(self, seq: int, record: bytes) -> None:
        """Overwrite the record at seq and scrub its old bytes from the database and its write-ahead log.

        Raises `StoreError` when there is no such record, and when another reader keeps the old bytes in the write-ahead
        log.
        In the second case the record is overwritten, and erasing again finishes the scrubbing.
        """
        self._require_open()
        await self._writer.run_job(_erase_record, self._path, seq, record)

    async def require_writable(self) -> None:
        """Raise `StoreReplaced`, or the `StoreError` of a full disk.

        After a failed append, also try a write and raise its error.
        """
        self._require_open()
        self._identity.require_same()
        require_room(self._path)
        if self._has_failed:
            await self._writer.run_job(_try_writing)
            self._has_failed = False

    def may_lack_records(self) -> bool:
        """Return False: the database keeps no such note. The high-water mark of `ChainedLog` does."""
        return False

    async def expect_lost_records(self) -> None:
        """Do nothing: the database keeps no such note. The high-water mark of `ChainedLog` does."""

    async def close(self) -> None:
        """Finish the running calls and release files and threads. It can be called twice."""
        if self._closed:
            return
        self._require_open()
        self._closed = True
        self._turn.close()
        self._hint.close()
        await self._reader.close()
        await self._writer.close()  # last: closing the last connection folds the write-ahead log into the database

    def _query_number(self, question: str) -> int:
        """Return the one number of a query's result. Runs on the event loop."""
        self._require_open()
        try:
            # fetchall, not fetchone: an unfinished statement would pin the connection to an old view of the log.
            answer: int = self._hint.execute(question).fetchall()[0][0]
        except sqlite3.Error as error:
            raise store_error(self._path, error) from error
        return answer

    def _require_open(self) -> None:
        if self._closed:
            raise StoreError(f"The log {self._path} is closed")
        if self._forks != count_forks():
            raise StoreError(f"The log {self._path} was opened before a fork: open it again in the new process")


class _Worker:
    """A connection and the one thread that uses it."""

    def __init__(self, path: Path, busy_timeout: float, name: str) -> None:
        self._path = path
        self._connection = open_connection(path, busy_timeout)
        self._thread = JobThread(name)

    async def run_job(
        self, job: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        try:
            return await self._thread.run_job(job, self._connection, *args, **kwargs)
        except sqlite3.Error as error:
            raise store_error(self._path, error) from error

    async def close(self) -> None:
        closing = self._thread.run_job(self._connection.close)
        self._thread.end()
        await asyncio.shield(closing)


def _append_records(
    connection: sqlite3.Connection, identity: FileIdentity, expected: int, records: Sequence[bytes]
) -> bool:
    # Also before the write: this node would otherwise read and return records that it commits into deleted files.
    identity.require_same()
    try:
        return _insert_records(connection, expected, records)
    finally:
        # A commit into deleted files does not count as written, and deleted files explain any error.
        identity.require_same()


def _insert_records(connection: sqlite3.Connection, expected: int, records: Sequence[bytes]) -> bool:
    if 1 <= len(records) <= _ONE_STATEMENT:
        # One statement is a transaction by itself. After each one this thread waits for the event loop to pause.
        values = [expected + 1, expected, records[0]]
        for row in enumerate(records[1:], expected + 2):
            values += row
        try:
            connection.execute(_APPEND + ", (?, ?)" * (len(records) - 1), values)
        except sqlite3.IntegrityError:
            return False
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY and _read_head(connection) != expected:
                return False  # another process wrote records first; no write lock is needed to see that
            raise
        return True
    # Without the write lock: a losing append need not wait for the winner's fsync
    if _read_head(connection) != expected:
        return False
    if records:
        with transaction(connection):
            if _read_head(connection) != expected:
                return False
            connection.executemany("INSERT INTO record (seq, stored) VALUES (?, ?)", enumerate(records, expected + 1))
    return True


def _try_writing(connection: sqlite3.Connection) -> None:
    """Insert test bytes, and roll the transaction back."""
    with transaction(connection):
        connection.execute("INSERT INTO record (seq, stored) VALUES (-1, zeroblob(?))", (LEAST_ROOM,))
        connection.execute("DELETE FROM record WHERE seq = -1")


def _read_head(connection: sqlite3.Connection) -> int:
    head: int = connection.execute(_HEAD).fetchall()[0][0]
    return head


def _read_tail(
    connection: sqlite3.Connection, path: Path, after: int, limit: int, most_bytes: float = inf
) -> list[LogEntry]:
    """Return at most limit entries; read no further page once the entries take most_bytes of memory."""
    entries: list[LogEntry] = []
    # An unfinished query would keep an old snapshot open
    with closing(connection.execute(_TAIL, (after, limit))) as cursor:
        while page := cursor.fetchmany(_PAGE):
            entries += map(make_entry, page)
            if len(page) < _PAGE:
                break
            most_bytes -= sum(getsizeof(stored) for _, stored in page)  # not len: damage may make null of it
            if most_bytes <= 0:
                break
    # seq ascends strictly, so the two ends prove that all between is there.
    if entries and (entries[0].seq != after + 1 or entries[-1].seq != after + len(entries)):
        raise StoreError(f"The log {path} has lost records after {after}; restore it from a backup")
    return entries


def _save_snapshot(connection: sqlite3.Connection, seq: int, data: bytes) -> None:
    with transaction(connection):
        if connection.execute("SELECT 1 FROM state WHERE seq > ?", (seq,)).fetchall():
            return
        connection.execute("DELETE FROM state")
        connection.execute("INSERT INTO state (seq, sealed) VALUES (?, ?)", (seq, data))


def _load_snapshot(connection: sqlite3.Connection) -> tuple[int, bytes] | None:
    rows = connection.execute("SELECT seq, sealed FROM state ORDER BY seq DESC LIMIT 1").fetchall()
    return (rows[0][0], rows[0][1]) if rows else None


def _erase_record(connection: sqlite3.Connection, path: Path, seq: int, record: bytes) -> None:
    with transaction(connection):
        if connection.execute("UPDATE record SET stored = ? WHERE seq = ?", (record, seq)).rowcount != 1:
            raise StoreError(f"The log {path} has no record {seq} to erase")
    busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0]
    if busy:
        raise StoreError(
            f"Record {seq} is overwritten, but a long read still keeps its old bytes in {path}-wal: erase it again"
        )
