"""The tables of a log when no registry has them open, and copies of one that is in use."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pymysql
from pymysql.connections import Connection

from stele.errors import InvalidRequest
from stele.storage.drivers import StoreCondition, StoredRecord, hide_credentials
from stele.storage.mysql.database import LAYOUT, fetch_row, find_doubts, read_layout, store_error
from stele.storage.mysql.url import connect_options
from stele.storage.sqlite.maintenance import write_database

__all__ = ["MysqlTables", "inspect_tables"]

_PAGE: Final = 500
"""Records read at once."""
_READ: Final = "SELECT seq, stored FROM stele_log WHERE seq BETWEEN %s AND %s ORDER BY seq"
_SIZE: Final = """
SELECT COALESCE(SUM(data_length + index_length), 0) FROM information_schema.tables
WHERE table_schema = DATABASE() AND table_name IN ('stele_log', 'stele_snapshot', 'stele_store')
"""


class MysqlTables:
    """`StoreFiles` of a database. Raises `InvalidRequest` when it has no log, `StoreError` when it cannot be read."""

    is_chained: Final = True

    def __init__(self, url: str) -> None:
        self._url = url
        self.place = hide_credentials(url)
        with _open_connection(url) as connection:
            if read_layout(self.place, connection) is None:
                raise InvalidRequest(f"there is no store {self.place}")

    def read_stored(self, until: int) -> Iterator[StoredRecord]:
        """Yield every place from 1 to the last record, at least to `until`."""
        with _open_connection(self._url) as connection:
            last = max(until, fetch_row(connection, "SELECT COALESCE(MAX(seq), 0) FROM stele_log")[0])
            for first in range(1, last + 1, _PAGE):
                page = range(first, min(first + _PAGE, last + 1))
                with connection.cursor() as cursor:
                    cursor.execute(_READ, (page[0], page[-1]))
                    records = dict(cursor.fetchall())
                yield from (StoredRecord(seq, records.get(seq)) for seq in page)

    def write_anew(self, records: Iterable[bytes]) -> str:
        """Write a new table and swap the names of the tables. Nodes that run on the old table stop writing."""
        aside = f"stele_log_damaged_{time.strftime('%Y%m%dt%H%M%S')}"
        with _open_connection(self._url) as connection, connection.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS stele_log_repaired")
            cursor.execute("CREATE TABLE stele_log_repaired LIKE stele_log")
            connection.begin()
            for seq, stored in enumerate(records, 1):
                cursor.execute("INSERT INTO stele_log_repaired (seq, stored) VALUES (%s, %s)", (seq, stored))
            cursor.execute("UPDATE stele_store SET log_id = %s", (os.urandom(16),))
            cursor.execute("DELETE FROM stele_snapshot")
            connection.commit()
            cursor.execute(f"RENAME TABLE stele_log TO {aside}, stele_log_repaired TO stele_log")
        return f"in the table {aside}"

    def write_copy(self, file: Path) -> None:
        """Copy the records into a SQLite file."""
        write_database(file, self.read_stored(0))


@contextmanager
def _open_connection(url: str) -> Iterator[Connection[Any]]:
    place = hide_credentials(url)
    try:
        with closing(pymysql.connect(**connect_options(url), autocommit=True)) as connection:
            yield connection
    except pymysql.MySQLError as error:
        raise store_error(place, error) from error


def inspect_tables(url: str) -> StoreCondition:
    """Return the condition of the store of a URL. Raises `InvalidRequest` for a malformed URL, `StoreError`."""
    place = hide_credentials(url)
    with _open_connection(url) as connection:
        layout = read_layout(place, connection)
        size = int(fetch_row(connection, _SIZE)[0])
        is_read_only = fetch_row(connection, "SELECT @@global.read_only")[0]
        doubts = find_doubts(connection)
    return StoreCondition(place, layout is not None, not is_read_only, layout, LAYOUT, size, doubts=doubts)
