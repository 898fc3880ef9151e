"""The log over one table of a PostgreSQL database.

The primary key decides which append gets a sequence number. Each handle has a connection for reading, one for writing,
one for its turn (an advisory lock) and one that receives notifications of appends. Those for writing and for the turn
are made when they are first needed.

See https://www.postgresql.org/docs/current/explicit-locking.html#ADVISORY-LOCKS
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection, errors

from stele.core.ports import LogEntry
from stele.errors import StoreError, StoreReplaced
from stele.storage.disk import LEAST_ROOM
from stele.storage.drivers import hide_credentials
from stele.storage.forks import count_forks
from stele.storage.postgres.database import (
    CREATE_TABLES,
    LAYOUT,
    LAYOUT_LOCK,
    TURN_LOCK,
    connect_options,
    require_layout,
    store_error,
)
from stele.storage.postgres.listener import Listener
from stele.storage.postgres.scrub import scrub_tables
from stele.storage.postgres.session import PostgresSession
from stele.storage.scrubber import Scrubber

__all__ = ["PostgresLog"]

_HEAD: Final = "SELECT coalesce(max(seq), 0) FROM stele_log"
_TAIL: Final = "SELECT seq, stored FROM stele_log WHERE seq > %s ORDER BY seq LIMIT %s"
_APPEND: Final = """
WITH written AS (
    INSERT INTO stele_log (seq, stored)
    SELECT %(expected)s + number, record FROM unnest(%(records)b::bytea[]) WITH ORDINALITY AS given (record, number)
    WHERE (SELECT coalesce(max(seq), 0) FROM stele_log) = %(expected)s
    RETURNING seq
), counted AS (SELECT count(*) AS records FROM written)
SELECT pg_notify(%(channel)s, '') FROM counted WHERE records > 0
"""
"""One statement, all or nothing. A head becomes visible only when it is committed, so sequence numbers have no gaps."""
_SNAPSHOT: Final = """
SELECT seq, sealed FROM stele_snapshot WHERE seq = (SELECT max(seq) FROM stele_snapshot) ORDER BY part
"""
_STORE: Final = "SELECT is_restored, erasures > scrubbed, 'stele_log'::regclass::oid::bigint FROM stele_store"
_CONDITION: Final = """
SELECT coalesce(to_regclass('stele_log')::oid::bigint, 0),
       pg_is_in_recovery() OR current_setting('default_transaction_read_only')::boolean
"""

_POLL_SECONDS: Final = 0.25
"""Seconds between two reads of the head in `wait` while notifications cannot arrive."""
_SNAPSHOT_SECONDS: Final = 600.0
_SCRUB_SECONDS: Final = 3600.0
_PART_BYTES: Final = 16 << 20
"""Size in bytes of the part of a snapshot in one row. PostgreSQL limits a value to 1 GB."""


class PostgresLog:
    """A `Log` in a database, made by `PostgresLog.open`. Belongs to one event loop of one process.

    An append that is cancelled may still be written: its outcome is found by reading the log.
    """

    def __init__(self, place: str, options: dict[str, Any], patience: float) -> None:
        """Prepare the sessions without connecting. Callers use `open`."""
        self._place = place
        self._options = options
        self._reader = PostgresSession(place, options)
        self._writer = PostgresSession(place, options)
        # While a process waits for a turn, the server detects within a second that the process was killed.
        settings = {"lock_timeout": f"{patience:g}s", "client_connection_check_interval": "1s"}
        self._turn = PostgresSession(place, options, settings)
        self._queue = asyncio.Lock()
        self._table = 0
        self._is_restored = False
        self._has_traces = False
        """Whether bytes of erased records are left in the files of the tables."""
        self._has_failed = False
        """Whether the last append failed."""
        self._listener: Listener | None = None
        self._scrubber: Scrubber | None = None
        self._forks = count_forks()
        self._closed = False

    @classmethod
    async def open(cls, url: str, *, patience: float = 10.0) -> PostgresLog:
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
        if not await self._reader.run(self._read_store):
            await self._reader.run(_create_tables)
            await self._reader.run(self._read_store)
        self._listener = Listener(self._options, self._channel)
        self._scrubber = Scrubber(self._scrub, self._place)
        if self._has_traces:
            self._scrubber.begin()

    async def _read_store(self, connection: AsyncConnection[Any]) -> bool:
        """Read the flags of the log from its tables. Returns False where there are no tables."""
        layout = await _read_layout(connection)
        if layout is None:
            return False
        require_layout(self._place, layout)
        self._is_restored, self._has_traces, self._table = await _fetch_row(connection, _STORE)
        return True

    @property
    def _channel(self) -> str:
        return f"stele_log_{self._table}"

    async def append(self, expected: int, records: Sequence[bytes]) -> bool:
        """Write records at expected+1 … in one durable transaction.

        Returns False and writes nothing on any other head.
        """
        self._require_open()
        if not records:
            return await self.head() == expected
        values = {"expected": expected, "records": [bytes(row) for row in records], "channel": self._channel}

        async def insert(connection: AsyncConnection[Any]) -> bool:
            try:
                async with connection.transaction():
                    cursor = await connection.execute(_APPEND, values)
                    if cursor.rowcount != 1:
                        return False
                    if self._is_restored:
                        await connection.execute("UPDATE stele_store SET is_restored = false")
            except errors.UniqueViolation:
                return False
            self._is_restored = False
            return True

        try:
            written = await self._writer.run(insert, is_repeatable=False)
        except StoreError:
            self._has_failed = True
            raise
        self._has_failed = False
        return written

    async def tail(self, after: int, limit: int) -> Sequence[LogEntry]:
        """Return at most limit entries with seq > after, in order and without gaps.

        Raises `StoreError` when records are missing.
        """
        self._require_open()
        after, limit = max(after, 0), max(limit, 0)
        if not limit:
            return []

        async def read(connection: AsyncConnection[Any]) -> list[LogEntry]:
            cursor = connection.cursor(binary=True)
            await cursor.execute(_TAIL, (after, limit))
            return [LogEntry(*row) for row in await cursor.fetchall()]

        entries = await self._reader.run(read)
        # seq ascends strictly, so the two ends prove that all between is there.
        if entries and (entries[0].seq != after + 1 or entries[-1].seq != after + len(entries)):
            raise StoreError(f"The store {self._place} has lost records after {after}; restore it from a backup")
        return entries

    async def head(self) -> int:
        """Return the sequence number of the last committed record, 0 when empty.

        It includes every append that finished before the call.
        """
        self._require_open()
        return int((await self._reader.run(lambda connection: _fetch_row(connection, _HEAD)))[0])

    @property
    def notices_at_once(self) -> bool:
        """False: a notification passes through the server and may be late."""
        return False

    def has_changed(self) -> bool:
        """Return whether a notification arrived since the last call, or none can arrive."""
        self._require_open()
        return self._listener is None or self._listener.take_news()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Let one writer at a time in, among all nodes of the database.

        After `patience` seconds of waiting the writer continues without a turn.
        """
        self._require_open()
        async with self._queue:
            is_held = await self._take_turn()
            try:
                yield
            finally:
                if is_held:
                    await self._give_turn_back()

    async def _take_turn(self) -> bool:
        connection = await self._turn.connect()
        try:
            await connection.execute(
                "SELECT pg_advisory_lock(%s, %s::bigint::bit(32)::integer)", (TURN_LOCK, self._table)
            )
        except errors.LockNotAvailable:
            return False
        except psycopg.Error as error:
            raise store_error(self._place, error) from error
        except asyncio.CancelledError:
            await self._give_turn_back()  # it may have been granted in the very moment of the cancellation
            raise
        return True

    async def _give_turn_back(self) -> None:
        """Release the advisory lock. When the connection is lost, the server has released it already."""
        with suppress(StoreError):
            await self._turn.run(
                lambda connection: connection.execute("SELECT pg_advisory_unlock_all()"), is_repeatable=False
            )

    async def wait(self, after: int, timeout: float) -> None:  # noqa: ASYNC109 - part of the driver's contract
        """Return once the head is past `after`, at the notification of the commit, or after timeout seconds."""
        self._require_open()
        clock = asyncio.get_running_loop().time
        deadline = clock() + timeout
        while True:
            assert self._listener is not None
            notice = self._listener.next_notice()
            is_connected = self._listener.is_connected()
            if await self.head() > after or (left := deadline - clock()) <= 0:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(left if is_connected else min(left, _POLL_SECONDS)):
                    await notice.wait()

    async def save_snapshot(self, seq: int, data: bytes) -> None:
        """Store the snapshot and drop older ones, in one transaction. Does nothing when a later one exists."""
        self._require_open()

        async def save(connection: AsyncConnection[Any]) -> None:
            async with connection.transaction():
                await connection.execute("LOCK TABLE stele_snapshot IN SHARE ROW EXCLUSIVE MODE")
                newest = await _fetch_row(connection, "SELECT coalesce(max(seq), 0) FROM stele_snapshot")
                if newest[0] > seq:
                    return
                await connection.execute("DELETE FROM stele_snapshot")
                for part, start in enumerate(range(0, len(data) or 1, _PART_BYTES)):
                    await connection.execute(
                        "INSERT INTO stele_snapshot (seq, part, sealed) VALUES (%s, %s, %b)",
                        (seq, part, bytes(data[start : start + _PART_BYTES])),
                    )

        await self._writer.run(save, seconds=_SNAPSHOT_SECONDS)

    async def load_snapshot(self) -> tuple[int, bytes] | None:
        """Return the newest snapshot as (seq, data), or None."""
        self._require_open()

        async def load(connection: AsyncConnection[Any]) -> tuple[int, bytes] | None:
            # One after another: libpq would keep a copy of all rows.
            rows = [row async for row in connection.cursor(binary=True).stream(_SNAPSHOT)]
            return (rows[0][0], b"".join(row[1] for row in rows)) if rows else None

        return await self._reader.run(load, seconds=_SNAPSHOT_SECONDS)

    async def erase(self, seq: int, record: bytes) -> None:
        """Overwrite the record at seq; its old bytes leave the files of the tables soon afterwards (`Scrubber`).

        Raises `StoreError` when there is no such record.
        """
        self._require_open()

        async def overwrite(connection: AsyncConnection[Any]) -> bool:
            async with connection.transaction():
                done = await connection.execute("UPDATE stele_log SET stored = %b WHERE seq = %s", (record, seq))
                if done.rowcount == 1:
                    await connection.execute("UPDATE stele_store SET erasures = erasures + 1")
                return done.rowcount == 1

        if not await self._writer.run(overwrite):
            raise StoreError(f"The store {self._place} has no record {seq} to erase")
        if self._scrubber is not None:
            self._scrubber.begin()

    async def _scrub(self) -> None:
        session = PostgresSession(self._place, self._options)
        try:
            await session.run(lambda connection: scrub_tables(connection, self._place), seconds=_SCRUB_SECONDS)
        finally:
            await session.close()

    async def require_writable(self) -> None:
        """Raise the `StoreError` of a standby or a read-only database.

        After a failed append, also try a write and raise its error.
        Raises `StoreReplaced` when the tables are not those that were opened.
        """
        self._require_open()
        table, is_read_only = await self._reader.run(lambda connection: _fetch_row(connection, _CONDITION))
        if table != self._table:
            raise StoreReplaced(
                f"The store {self._place} now has other tables than those that were opened; restart the server"
            )
        if is_read_only:
            raise StoreError(f"The store {self._place} is read-only: it is a standby, or was set to read-only")
        if self._has_failed:
            await self._writer.run(_try_writing)
            self._has_failed = False

    def may_lack_records(self) -> bool:
        """Return whether the log was restored and nothing was appended since."""
        return self._is_restored

    async def expect_lost_records(self) -> None:
        """Store the note in the database that the log was restored."""
        self._require_open()
        await self._writer.run(lambda connection: connection.execute("UPDATE stele_store SET is_restored = true"))
        self._is_restored = True

    async def close(self) -> None:
        """Finish the running calls and disconnect. It can be called twice."""
        if self._closed:
            return
        self._closed = True
        if self._listener is not None:
            await self._listener.close()
        if self._scrubber is not None:
            await self._scrubber.close()
        for session in (self._turn, self._reader, self._writer):
            await session.close()

    def _require_open(self) -> None:
        if self._closed:
            raise StoreError(f"The store {self._place} is closed")
        if self._forks != count_forks():
            raise StoreError(f"The store {self._place} was opened before a fork: open it again in the new process")


async def _fetch_row(connection: AsyncConnection[Any], query: str) -> tuple[Any, ...]:
    row = await (await connection.execute(query)).fetchone()
    assert row is not None
    return tuple(row)


async def _read_layout(connection: AsyncConnection[Any]) -> int | None:
    """Return the version of the tables; None where there are none."""
    if (await _fetch_row(connection, "SELECT to_regclass('stele_store')"))[0] is None:
        return None
    return int((await _fetch_row(connection, "SELECT max(layout) FROM stele_store"))[0])


async def _create_tables(connection: AsyncConnection[Any]) -> None:
    """Create the tables unless another node has done so meanwhile."""
    # Outside of the transaction: a transaction that waited for the lock may still see no tables.
    await connection.execute("SELECT pg_advisory_lock(%s, %s)", (LAYOUT_LOCK, LAYOUT))
    try:
        async with connection.transaction():
            if await _read_layout(connection) is None:
                for statement in CREATE_TABLES:
                    await connection.execute(statement)
    finally:
        if not connection.closed:
            await connection.execute("SELECT pg_advisory_unlock(%s, %s)", (LAYOUT_LOCK, LAYOUT))


async def _try_writing(connection: AsyncConnection[Any]) -> None:
    """Insert a test row, and roll the transaction back."""
    async with connection.transaction(force_rollback=True):
        await connection.execute("INSERT INTO stele_log (seq, stored) VALUES (-1, %b)", (bytes(LEAST_ROOM),))
