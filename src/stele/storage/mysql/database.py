"""The database: its tables, and error messages in plain words."""

from __future__ import annotations

from typing import Any, Final

import pymysql
from pymysql.connections import Connection
from pymysql.constants import CR, ER

from stele.errors import StoreError
from stele.storage.layouts import require_known_layout

__all__ = [
    "CREATE_ROW",
    "CREATE_TABLES",
    "LAYOUT",
    "fetch_row",
    "find_doubts",
    "read_layout",
    "store_error",
]

LAYOUT: Final = 1
"""The version of the tables, kept in `stele_store`. A database with a higher one is rejected."""

CREATE_TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS stele_log (seq BIGINT PRIMARY KEY, stored LONGBLOB NOT NULL) ENGINE = InnoDB",
    """
    CREATE TABLE IF NOT EXISTS stele_snapshot (
        seq BIGINT, part INT, sealed LONGBLOB NOT NULL, PRIMARY KEY (seq, part)
    ) ENGINE = InnoDB
    """,
    """
    CREATE TABLE IF NOT EXISTS stele_store (
        only_row INT PRIMARY KEY,
        layout INT NOT NULL,
        log_id BINARY(16) NOT NULL,
        is_restored INT NOT NULL DEFAULT 0,
        erasures BIGINT NOT NULL DEFAULT 0,
        scrubbed BIGINT NOT NULL DEFAULT 0
    ) ENGINE = InnoDB
    """,
)
CREATE_ROW: Final = "INSERT IGNORE INTO stele_store (only_row, layout, log_id) VALUES (1, %s, %s)"
"""Statement that creates the one row of `stele_store`.

log_id       distinguishes the log from another one in the same place
is_restored  the log was restored, and its original may have continued
erasures     how many records were overwritten
scrubbed     how many of them have no bytes left in the files of the tables

The row is written last: until it exists, the tables do not count as created.
"""

_WHY: Final = {
    CR.CR_CONN_HOST_ERROR: "cannot be reached",
    CR.CR_SERVER_GONE_ERROR: "ended the connection",
    CR.CR_SERVER_LOST: "ended the connection, or gave no answer in time",
    ER.ACCESS_DENIED_ERROR: "refuses the user or the password",
    ER.BAD_DB_ERROR: "is not there",
    ER.CANT_CREATE_TABLE: "cannot make its tables",
    ER.CON_COUNT_ERROR: "has too many connections",
    ER.DBACCESS_DENIED_ERROR: "may not be used by this user",
    ER.DISK_FULL: "has no space left on its disk",
    ER.LOCK_WAIT_TIMEOUT: "is locked by another program for too long",
    ER.NET_PACKET_TOO_LARGE: "takes no record of that size",
    ER.NO_SUCH_TABLE: "has lost its tables",
    ER.OPTION_PREVENTS_STATEMENT: "is read-only",
    ER.RECORD_FILE_FULL: "has no room left",
    ER.TABLEACCESS_DENIED_ERROR: "does not give this user a right that it needs",
}
"""Parts of error messages by error number.

See https://dev.mysql.com/doc/mysql-errors/8.0/en/server-error-reference.html
"""


def store_error(place: str, error: pymysql.MySQLError) -> StoreError:
    """Return the `StoreError` for an error of the server or the client library."""
    number, text = error.args[0] if error.args else 0, str(error.args[-1] if error.args else error)
    return StoreError(f"The store {place} {_WHY.get(number, 'cannot be used')}: {' '.join(text.split())}")


def fetch_row(connection: Connection[Any], query: str, values: tuple[Any, ...] = ()) -> tuple[Any, ...]:
    """Return the one row of a query."""
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        row = cursor.fetchone()
    assert row is not None
    return tuple(row)


def read_layout(place: str, connection: Connection[Any]) -> int | None:
    """Return the version of the tables; None where there are none. Raises `StoreError` for those of a newer release."""
    try:
        layout = fetch_row(connection, "SELECT MAX(layout) FROM stele_store")[0]
    except pymysql.ProgrammingError as error:
        if error.args[0] != ER.NO_SUCH_TABLE:
            raise
        return None
    if layout is None:
        return None
    require_known_layout(f"The store {place} has", int(layout), LAYOUT)
    return int(layout)


def find_doubts(connection: Connection[Any]) -> tuple[str, ...]:
    """Return warnings about settings of the server that may lose acknowledged records, one sentence each."""
    flush, has_binlog, sync = fetch_row(
        connection, "SELECT @@global.innodb_flush_log_at_trx_commit, @@global.log_bin, @@global.sync_binlog"
    )
    doubts = []
    if flush != 1:
        doubts.append(f"innodb_flush_log_at_trx_commit is {flush}, not 1")
    if has_binlog and sync != 1:
        doubts.append(f"sync_binlog is {sync}, not 1")
    return tuple(f"{doubt}: a machine that fails may lose acknowledged records" for doubt in doubts)
