"""The log over one table of a database of MySQL or MariaDB.

The primary key decides which append gets a sequence number. Each handle has a connection with a thread for reading, one
for writing and one for its turn (`GET_LOCK`), made when they are first needed. MySQL sends no notification of appends,
so nodes poll.

See https://dev.mysql.com/doc/refman/8.0/en/locking-functions.html
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any, Final

import pymysql
from pymysql.connections import Connection
from pymysql.constants import ER
from pymysql.cursors import Cursor, SSCursor

from stele.core.ports import LogEntry
from stele.errors import RecordsTooLarge, StoreError, StoreReplaced
from stele.storage.disk import LEAST_ROOM
from stele.storage.drivers import hide_credentials
from stele.storage.forks import count_forks
from stele.storage.mysql.database import (
    CREATE_ROW,
    CREATE_TABLES,
    LAYOUT,
    fetch_row,
    find_doubts,
    read_layout,
)
from stele.storage.mysql.session import MysqlSession
from stele.storage.mysql.url import connect_options
from stele.storage.polling import wait_for_growth
from stele.storage.scrubber import Scrubber

__all__ = ["MysqlLog"]

_LOGGER = logging.getLogger(__name__)

_HEAD: Final = "SELECT COALESCE(MAX(seq), 0) FROM stele_log"
_TAIL: Final = "SELECT seq, stored FROM stele_log WHERE seq > %s ORDER BY seq LIMIT %s"
_INSERT: Final = "INSERT INTO stele_log (seq, stored) VALUES (%s, %s)"
_EXTEND: Final = "UPDATE stele_log SET stored = CONCAT(stored, %s) WHERE seq = %s"
_SNAPSHOT: Final = """
SELECT seq, sealed FROM stele_snapshot WHERE seq = (SELECT MAX(seq) FROM stele_snapshot) ORDER BY part
"""
_STALE_SECONDS: Final = 0.25
"""Seconds after which the log counts as changed when it was not read."""
_SLOW_SECONDS: Final = 3600.0
"""Seconds to wait for the server while it writes a snapshot or rewrites tables."""
_ROW_BYTES: Final = 4096
"""Upper bound in bytes for the part of a row outside its record."""


class _Cursor(Cursor):
    """A cursor that joins small rows into statements of at most `max_stmt_length` bytes."""

    max_stmt_length = 1 << 18


class MysqlLog:
    """A `Log` in a database, made by `MysqlLog.open`. Belongs to one event loop of one process.

    An append that is cancelled may still be written: its outcome is found by reading the log.
    """

    def __init__(self, place: str, options: dict[str, Any], patience: float) -> None:
        """Prepare the sessions without connecting. Callers use `open`."""
        self._place = place
        self._options = options
        self._patience = patience
        self._reader = MysqlSession(place, options, "stele-log-reader")
        self._writer = MysqlSession(place, options, "stele-log-writer")
        self._turn = MysqlSession(place, options, "stele-turn", patience + 15)
        self._queue = asyncio.Lock()
        self._lock_name = f"stele.{sha256(options['database'].encode()).hexdigest()[:40]}"
        self._log_id = b""
        self._packet_bytes = 0
        self._is_restored = False
        self._has_failed = False
        """Whether the last append failed."""
        self._head = self._told_head = -1
        """The head at the last read, and the head that `has_changed` last reported."""
        self._looked_at = 0.0
        self._scrubber: Scrubber | None = None
        self._forks = count_forks()
        self._closed = False

    @classmethod
    async def open(cls, url: str, *, patience: float = 10.0) -> MysqlLog:
        """Open the log of a database, creating its tables when they are missing.

        Args:
            url: URL of the database.
            patience: Seconds to wait for a turn before continuing without one.

        Raises `InvalidRequest` for a malformed URL; `StoreError` when the database cannot be reached or used, or when
        its tables are those of a newer release.
        """
        log = cls(hide_credentials(url), connect_options(url), patience)
        try:
            await log._prepare()
        except BaseException:
            await log.close()
            raise
        return log

    async def _prepare(self) -> None:
        if await self._writer.run(lambda connection: read_layout(self._place, connection)) is None:
            await self._writer.run(self._create_tables)
        has_traces = await self._writer.run(self._read_store)
        self._scrubber = Scrubber(self._scrub, self._place)
        if has_traces:
            self._scrubber.begin()

    def _create_tables(self, connection: Connection[Any]) -> None:
        """Create the tables. Each statement can be repeated, also by several nodes at once; the row comes last."""
        with connection.cursor() as cursor:
            for statement in CREATE_TABLES:
                cursor.execute(statement)
            cursor.execute(CREATE_ROW, (LAYOUT, os.urandom(16)))

    def _read_store(self, connection: Connection[Any]) -> bool:
        """Read the log's id and flags and the server's settings. Returns whether bytes of erased records are left."""
        row = fetch_row(connection, "SELECT log_id, is_restored, erasures > scrubbed FROM stele_store")
        self._log_id, self._is_restored = row[0], bool(row[1])
        self._packet_bytes = fetch_row(connection, "SELECT @@global.max_allowed_packet")[0]
        for doubt in find_doubts(connection):
            _LOGGER.warning("the store %s: %s", self._place, doubt)
        return bool(row[2])

    async def append(self, expected: int, records: Sequence[bytes]) -> bool:
        """Write records at expected+1 … in one durable transaction; return False and write nothing on any other head.

        Raises `RecordsTooLarge` for a record that does not fit the server's `max_allowed_packet`, and `StoreError`.
        """
        self._require_open()
        if not records:
            return await self.head() == expected
        try:
            written = await self._writer.run(
                lambda connection: self._append_records(connection, expected, records), is_repeatable=False
            )
        except RecordsTooLarge:
            raise
        except StoreError:
            self._has_failed = True
            raise
        self._has_failed = False
        return written

    def _append_records(self, connection: Connection[Any], expected: int, records: Sequence[bytes]) -> bool:
        records = [bytes(record) for record in records]
        for record in records:
            self._require_fit(record)
        while True:
            connection.begin()
            if fetch_row(connection, _HEAD)[0] != expected:
                connection.rollback()
                return False
            try:
                with connection.cursor(_Cursor) as cursor:
                    self._insert_records(cursor, expected, records)
                    if self._is_restored:
                        cursor.execute("UPDATE stele_store SET is_restored = 0")
            except (pymysql.IntegrityError, pymysql.OperationalError) as error:
                if error.args[0] not in {ER.DUP_ENTRY, ER.LOCK_DEADLOCK}:
                    raise
                connection.rollback()
                if error.args[0] == ER.DUP_ENTRY:
                    return False
                continue  # two losers of one place may lock each other out: nothing was written
            connection.commit()
            self._is_restored = False
            return True

    def _insert_records(self, cursor: Cursor, expected: int, records: Sequence[bytes]) -> None:
        """Insert small records together and large ones in pieces, since a statement doubles their bytes."""
        piece = self._packet_bytes // 4
        cursor.executemany(_INSERT, [(seq, row[:piece]) for seq, row in enumerate(records, expected + 1)])
        for seq, record in enumerate(records, expected + 1):
            for start in range(piece, len(record), piece):
                cursor.execute(_EXTEND, (record[start : start + piece], seq))

    def _require_fit(self, record: bytes) -> None:
        """Raise `RecordsTooLarge` for a record that the server could not return in one packet."""
        if len(record) + _ROW_BYTES > self._packet_bytes:
            raise RecordsTooLarge(
                f"The store {self._place} cannot take a record of {len(record)} bytes: raise its"
                f" max_allowed_packet, which is {self._packet_bytes}"
            )

    async def tail(self, after: int, limit: int) -> Sequence[LogEntry]:
        """Return at most limit entries with seq > after, in order and without gaps.

        Raises `StoreError` when records are missing.
        """
        self._require_open()
        after, limit = max(after, 0), max(limit, 0)
        if not limit:
            return []

        def read(connection: Connection[Any]) -> list[LogEntry]:
            with connection.cursor() as cursor:
                cursor.execute(_TAIL, (after, limit))
                return [LogEntry(*row) for row in cursor.fetchall()]

        entries = await self._reader.run(read)
        # seq ascends strictly, so the two ends prove that all between is there.
        if entries and (entries[0].seq != after + 1 or entries[-1].seq != after + len(entries)):
            raise StoreError(f"The store {self._place} has lost records after {after}; restore it from a backup")
        if len(entries) < limit:
            self._note_head(max(self._head, after + len(entries)))
        return entries

    async def head(self) -> int:
        """Return the sequence number of the last committed record, 0 when empty.

        It includes every append that finished before the call.
        """
        self._require_open()
        head = int((await self._reader.run(lambda connection: fetch_row(connection, _HEAD)))[0])
        self._note_head(head)
        return head

    def _note_head(self, head: int) -> None:
        self._head, self._looked_at = head, time.monotonic()

    @property
    def notices_at_once(self) -> bool:
        """False: this handle knows of other appends only after it asks the server."""
        return False

    def has_changed(self) -> bool:
        """Return whether the last read found a new head, or the last read or True result is older than 0.25 seconds."""
        self._require_open()
        if self._told_head == self._head and time.monotonic() - self._looked_at < _STALE_SECONDS:
            return False
        self._told_head, self._looked_at = self._head, time.monotonic()
        return True

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Let one writer at a time in, among all nodes of the server.

        After `patience` seconds of waiting the writer continues without a turn.
        """
        self._require_open()
        async with self._queue:
            try:
                await self._turn.run(self._take_lock)
                yield
            finally:
                # Also after a cancellation: the lock request continues in the thread, and the release is queued after
                # it.
                self._turn.submit(self._release_lock)

    def _take_lock(self, connection: Connection[Any]) -> None:
        fetch_row(connection, "SELECT GET_LOCK(%s, %s)", (self._lock_name, self._patience))

    def _release_lock(self, connection: Connection[Any]) -> None:
        fetch_row(connection, "SELECT RELEASE_LOCK(%s)", (self._lock_name,))

    async def wait(self, after: int, timeout: float) -> None:  # noqa: ASYNC109 - part of the driver's contract
        """Return once the head is past `after`, seen within 50 ms of the commit, or after timeout seconds."""
        await wait_for_growth(self.head, after, timeout)

    async def save_snapshot(self, seq: int, data: bytes) -> None:
        """Store the snapshot and drop older ones, in one transaction. Does nothing when a later one exists."""
        self._require_open()
        size = max(self._packet_bytes // 4, 1)

        def save(connection: Connection[Any]) -> None:
            connection.begin()
            with connection.cursor() as cursor:
                # The row of the store is locked, so that only one node saves at a time.
                cursor.execute("SELECT layout FROM stele_store FOR UPDATE")
                if fetch_row(connection, "SELECT COALESCE(MAX(seq), 0) FROM stele_snapshot")[0] <= seq:
                    cursor.execute("DELETE FROM stele_snapshot")
                    for part, start in enumerate(range(0, len(data) or 1, size)):
                        values = (seq, part, bytes(data[start : start + size]))
                        cursor.execute("INSERT INTO stele_snapshot (seq, part, sealed) VALUES (%s, %s, %s)", values)
            connection.commit()

        await self._run_slowly(save)

    async def load_snapshot(self) -> tuple[int, bytes] | None:
        """Return the newest snapshot as (seq, data), or None."""
        self._require_open()

        def load(connection: Connection[Any]) -> tuple[int, bytes] | None:
            # Row after row: a connection keeps the rows of its last query otherwise.
            with connection.cursor(SSCursor) as cursor:
                cursor.execute(_SNAPSHOT)
                rows = list(cursor)
            return (rows[0][0], b"".join(row[1] for row in rows)) if rows else None

        return await self._reader.run(load)

    async def erase(self, seq: int, record: bytes) -> None:
        """Overwrite the record at seq; its old bytes leave the files of the tables soon afterwards.

        Raises `StoreError` when there is no such record.
        """
        self._require_open()

        def overwrite(connection: Connection[Any]) -> None:
            self._require_fit(record)
            connection.begin()
            with connection.cursor(_Cursor) as cursor:
                if not cursor.execute("SELECT seq FROM stele_log WHERE seq = %s FOR UPDATE", (seq,)):
                    connection.rollback()
                    raise StoreError(f"The store {self._place} has no record {seq} to erase")
                cursor.execute("DELETE FROM stele_log WHERE seq = %s", (seq,))
                self._insert_records(cursor, seq - 1, [bytes(record)])
                cursor.execute("UPDATE stele_store SET erasures = erasures + 1")
            connection.commit()

        await self._writer.run(overwrite)
        if self._scrubber is not None:
            self._scrubber.begin()

    async def _scrub(self) -> None:
        """Make the server rewrite the tables into new files and remove the old files."""

        def scrub(connection: Connection[Any]) -> None:
            erasures, scrubbed = fetch_row(connection, "SELECT erasures, scrubbed FROM stele_store")
            if erasures == scrubbed:
                return
            with connection.cursor() as cursor:
                for table in ("stele_log", "stele_snapshot"):
                    cursor.execute(f"ALTER TABLE {table} FORCE")
                cursor.execute("UPDATE stele_store SET scrubbed = GREATEST(scrubbed, %s)", (erasures,))

        await self._run_slowly(scrub)

    async def _run_slowly(self, job: Any) -> None:
        """Run a job that may take long on a connection of its own."""
        session = MysqlSession(self._place, self._options, "stele-log-upkeep", _SLOW_SECONDS)
        try:
            await session.run(job)
        finally:
            await session.close()

    async def require_writable(self) -> None:
        """Raise the `StoreError` of a read-only server. After a failed append, also try a write and raise its error.

        Raises `StoreReplaced` when the log is not the one that was opened.
        """
        self._require_open()
        query = "SELECT log_id, @@global.read_only FROM stele_store"
        log_id, is_read_only = await self._reader.run(lambda connection: fetch_row(connection, query))
        if log_id != self._log_id:
            raise StoreReplaced(
                f"The store {self._place} now holds another log than the one that was opened; restart the server"
            )
        if is_read_only:
            raise StoreError(f"The store {self._place} is read-only: it is a replica, or was set to read-only")
        if self._has_failed:
            await self._writer.run(_try_writing)
            self._has_failed = False

    def may_lack_records(self) -> bool:
        """Return whether the log was restored and nothing was appended since."""
        return self._is_restored

    async def expect_lost_records(self) -> None:
        """Store the note in the database that the log was restored."""
        self._require_open()

        def note(connection: Connection[Any]) -> None:
            with connection.cursor() as cursor:
                cursor.execute("UPDATE stele_store SET is_restored = 1")

        await self._writer.run(note)
        self._is_restored = True

    async def close(self) -> None:
        """Finish the running calls and disconnect. It can be called twice."""
        if self._closed:
            return
        self._closed = True
        if self._scrubber is not None:
            await self._scrubber.close()
        for session in (self._turn, self._reader, self._writer):
            await session.close()

    def _require_open(self) -> None:
        if self._closed:
            raise StoreError(f"The store {self._place} is closed")
        if self._forks != count_forks():
            raise StoreError(f"The store {self._place} was opened before a fork: open it again in the new process")


def _try_writing(connection: Connection[Any]) -> None:
    """Insert a test row of `LEAST_ROOM` bytes, and roll the transaction back."""
    connection.begin()
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, (-1, bytes(LEAST_ROOM)))
    connection.rollback()
