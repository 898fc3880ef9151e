"""The database: the form of its URL, its tables, and error messages in plain words."""

from __future__ import annotations

import re
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from stele.errors import InvalidRequest, StoreError
from stele.storage.credentials import find_credentials
from stele.storage.layouts import require_known_layout

__all__ = [
    "CREATE_TABLES",
    "LAYOUT",
    "LAYOUT_LOCK",
    "SCRUB_LOCK",
    "TURN_LOCK",
    "connect_options",
    "require_layout",
    "store_error",
]

LAYOUT: Final = 1
"""The version of the tables, kept in `stele_store`. A database with a higher one is rejected."""

LAYOUT_LOCK: Final = 0x5374656C
"""ASCII `Stel`: the advisory lock under which tables are created."""
SCRUB_LOCK: Final = 0x53746573
"""First half of the advisory lock that a node holds while it rewrites the tables."""
TURN_LOCK: Final = 0x53746574
"""First half of the advisory locks of turns. The second half is the number of the table, so that logs do not share."""

CREATE_TABLES: Final = (
    "CREATE TABLE stele_log (seq bigint PRIMARY KEY, stored bytea NOT NULL)",
    # Records and snapshots are packed already, or short.
    "ALTER TABLE stele_log ALTER stored SET STORAGE EXTERNAL",
    "CREATE TABLE stele_snapshot (seq bigint, part integer, sealed bytea NOT NULL, PRIMARY KEY (seq, part))",
    "ALTER TABLE stele_snapshot ALTER sealed SET STORAGE EXTERNAL",
    """
    CREATE TABLE stele_store (
        only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
        layout integer NOT NULL,
        is_restored boolean NOT NULL DEFAULT false,
        erasures bigint NOT NULL DEFAULT 0,
        scrubbed bigint NOT NULL DEFAULT 0
    )
    """,
    f"INSERT INTO stele_store (layout) VALUES ({LAYOUT})",  # noqa: S608 - a number of ours
)
"""Statements that create the tables.

is_restored  the log was restored, and its original may have continued
erasures     how many records were overwritten
scrubbed     how many of them have no bytes left in the files of the tables
"""

_DEFAULTS: Final[dict[str, Any]] = {
    "application_name": "stele",
    "client_encoding": "utf8",
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}

_WHY: Final = {
    "25006": "is read-only",
    "28P01": "refuses the password",
    "42501": "does not give this user a right that it needs",
    "42P01": "has lost its tables",
    "53100": "has no space left on its disk",
    "53200": "has no memory left",
    "53300": "has too many connections",
    "54000": "cannot take a record of that size",
    "55P03": "is locked by another program for too long",
    "57014": "took too long",
    "XX001": "is damaged; restore the newest backup",
    "XX002": "is damaged; restore the newest backup",
}
"""Parts of error messages by SQLSTATE. See https://www.postgresql.org/docs/current/errcodes-appendix.html"""


def connect_options(url: str) -> dict[str, Any]:
    """Return the options of libpq for a URL in libpq's form, completed from the environment.

    Raises `InvalidRequest`.
    """
    scheme, _, rest = url.partition(":")
    try:
        parameters = conninfo_to_dict(f"{scheme.lower()}:{rest}") if rest.startswith("//") else None
    except psycopg.Error:
        parameters = None
    if parameters is None:
        raise InvalidRequest(
            "A PostgreSQL store has the form postgresql://user@host:5432/database, with percent escapes in names and"
            " libpq's parameters after '?', such as sslmode=verify-full"
        )
    credentials = find_credentials()
    if credentials.user is not None:
        parameters.setdefault("user", credentials.user)
    if credentials.password is not None:
        parameters.setdefault("password", credentials.password)
    options = {**_DEFAULTS, **parameters}
    if "," in str(parameters.get("host", "")):
        options.setdefault("target_session_attrs", "read-write")
    return options


def store_error(place: str, error: psycopg.Error) -> StoreError:
    """Return the `StoreError` for an error of PostgreSQL or its client library."""
    why = _WHY.get(error.sqlstate or "", "cannot be used" if error.sqlstate else "cannot be reached")
    text = (error.diag.message_primary if error.sqlstate else None) or str(error)
    first = re.split(r"\n\t|\nMultiple|\n- ", text.strip())[0]
    return StoreError(f"The store {place} {why}: {' '.join(first.split())}")


def require_layout(place: str, layout: int) -> None:
    """Raise `StoreError` for tables of a newer release."""
    require_known_layout(f"The store {place} has", layout, LAYOUT)
