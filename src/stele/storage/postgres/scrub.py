"""Rewrites the tables, which removes the bytes of overwritten records from their files.

`VACUUM FULL` writes a table into another file and removes the old one. It locks the table meanwhile.

See https://www.postgresql.org/docs/current/sql-vacuum.html
"""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from stele.storage.postgres.database import SCRUB_LOCK
from stele.storage.scrubber import warn_of_traces

__all__ = ["scrub_tables"]


async def scrub_tables(connection: AsyncConnection[Any], place: str) -> None:
    """Rewrite the tables if records were overwritten since the last time.

    Does nothing while another node rewrites them.
    """
    erasures, scrubbed = await _fetch_row(connection, "SELECT erasures, scrubbed FROM stele_store")
    if erasures == scrubbed:
        return
    if not (await _fetch_row(connection, f"SELECT pg_try_advisory_lock({SCRUB_LOCK}, 0)"))[0]:
        return
    for table in ("stele_log", "stele_snapshot"):
        file = f"SELECT pg_relation_filenode('{table}')"
        before = await _fetch_row(connection, file)
        await connection.execute(f"VACUUM FULL {table}")
        # Without the right to it, the server only warns.
        if await _fetch_row(connection, file) == before:
            warn_of_traces(place, f"this user does not own the table {table}: its owner can remove them by VACUUM FULL")
            return
    await connection.execute("UPDATE stele_store SET scrubbed = greatest(scrubbed, %s)", (erasures,))


async def _fetch_row(connection: AsyncConnection[Any], query: str) -> tuple[Any, ...]:
    row = await (await connection.execute(query)).fetchone()
    assert row is not None
    return tuple(row)
