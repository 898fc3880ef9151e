"""The tables of a log when no registry has them open, and copies of one that is in use."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import Connection, sql

from stele.errors import InvalidRequest
from stele.storage.drivers import StoreCondition, StoredRecord, hide_credentials
from stele.storage.postgres.database import LAYOUT, connect_options, require_layout, store_error
from stele.storage.sqlite.maintenance import write_database

__all__ = ["PostgresTables", "inspect_tables"]

_PAGE: Final = 500
"""Records read at once."""
_READ: Final = "SELECT seq, stored FROM stele_log WHERE seq BETWEEN %s AND %s ORDER BY seq"
_CONDITION: Final = """
SELECT NOT (pg_is_in_recovery() OR current_setting('default_transaction_read_only')::boolean)
       AND CASE WHEN to_regclass('stele_log') IS NULL THEN has_schema_privilege(current_schema(), 'CREATE')
                ELSE has_table_privilege('stele_log', 'INSERT') END,
       coalesce(pg_total_relation_size(to_regclass('stele_log')), 0),
       current_setting('fsync')::boolean,
       current_setting('full_page_writes')::boolean
"""


class PostgresTables:
    """`StoreFiles` of a database. Raises `InvalidRequest` when it has no log, `StoreError` when it cannot be read."""

    is_chained: Final = True

    def __init__(self, url: str) -> None:
        self.place = hide_credentials(url)
        self._options = connect_options(url)
        with self._connect() as connection:
            if _read_layout(self.place, connection) is None:
                raise InvalidRequest(f"there is no store {self.place}")

    def read_stored(self, until: int) -> Iterator[StoredRecord]:
        """Yield every place from 1 to the last record, at least to `until`."""
        with self._connect() as connection:
            last = max(until, connection.execute("SELECT coalesce(max(seq), 0) FROM stele_log").fetchall()[0][0])
            for first in range(1, last + 1, _PAGE):
                yield from _read_page(connection, first, min(first + _PAGE - 1, last))

    def write_anew(self, records: Iterable[bytes]) -> str:
        """Write a new table and swap the names of the tables, in one transaction."""
        aside = f"stele_log_damaged_{time.strftime('%Y%m%dt%H%M%S')}"
        with self._connect() as connection, connection.transaction(), connection.cursor() as cursor:
            cursor.execute("CREATE TABLE stele_log_repaired (LIKE stele_log INCLUDING ALL)")
            cursor.executemany(
                "INSERT INTO stele_log_repaired (seq, stored) VALUES (%s, %b)",
                ((seq, stored) for seq, stored in enumerate(records, 1)),
            )
            cursor.execute(sql.SQL("ALTER TABLE stele_log RENAME TO {}").format(sql.Identifier(aside)))
            cursor.execute("ALTER TABLE stele_log_repaired RENAME TO stele_log")
            cursor.execute("DELETE FROM stele_snapshot")
        return f"in the table {aside}"

    def write_copy(self, file: Path) -> None:
        """Copy the records into a SQLite file."""
        write_database(file, self.read_stored(0))

    @contextmanager
    def _connect(self) -> Iterator[Connection[Any]]:
        try:
            with psycopg.connect(**self._options, autocommit=True) as connection:
                yield connection
        except psycopg.Error as error:
            raise store_error(self.place, error) from error


def _read_page(connection: Connection[Any], first: int, last: int) -> Iterator[StoredRecord]:
    """Yield the records of a page. Where its blocks are damaged, read the records one by one."""
    records: dict[int, bytes] = {}
    try:
        records = dict(connection.execute(_READ, (first, last)).fetchall())
    except psycopg.Error:
        for seq in range(first, last + 1):
            with suppress(psycopg.Error):
                records |= dict(connection.execute(_READ, (seq, seq)).fetchall())
    for seq in range(first, last + 1):
        yield StoredRecord(seq, records.get(seq))


def _read_layout(place: str, connection: Connection[Any]) -> int | None:
    """Return the version of the tables; None where there are none. Raises `StoreError` for those of a newer release."""
    if connection.execute("SELECT to_regclass('stele_store')").fetchall()[0][0] is None:
        return None
    layout = int(connection.execute("SELECT max(layout) FROM stele_store").fetchall()[0][0])
    require_layout(place, layout)
    return layout


def inspect_tables(url: str) -> StoreCondition:
    """Return the condition of the store of a URL. Raises `InvalidRequest` for a malformed URL, `StoreError`."""
    place = hide_credentials(url)
    try:
        with psycopg.connect(**connect_options(url), autocommit=True) as connection:
            layout = _read_layout(place, connection)
            is_writable, size, fsync, full_page_writes = connection.execute(_CONDITION).fetchall()[0]
    except psycopg.Error as error:
        raise store_error(place, error) from error
    risks = {"fsync": fsync, "full_page_writes": full_page_writes}
    doubts = [
        f"{name} is off: a machine that fails may lose acknowledged records" for name, on in risks.items() if not on
    ]
    return StoreCondition(place, layout is not None, is_writable, layout, LAYOUT, size, doubts=tuple(doubts))
