"""Takes the bytes of overwritten records out of the files of the tables.

PostgreSQL keeps the old bytes of a changed row until its page is written anew, and no index or reader leads there.
`VACUUM FULL` writes a table anew into another file and removes the old one. It locks the table meanwhile, so records
that are erased together are scrubbed together.

Source: https://www.postgresql.org/docs/current/sql-vacuum.html
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from psycopg import AsyncConnection

from stele.errors import StoreError
from stele.storage.postgres.database import SCRUB_LOCK
from stele.storage.postgres.session import Session

__all__ = ["Scrubber"]

_LOGGER = logging.getLogger(__name__)
_DELAY_SECONDS: Final = 1.0
"""For more erasures to come, of the same purge."""
_RETRY_SECONDS: Final = 60.0
_SCRUB_SECONDS: Final = 3600.0


class Scrubber:
    """Scrubs after erasures. The database counts them, so that one process finishes what another one left behind."""

    def __init__(self, session: Session, place: str) -> None:
        self._session = session
        self._place = place
        self._wanted = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    def begin(self) -> None:
        """Have it done soon."""
        self._wanted.set()

    async def _run(self) -> None:
        while True:
            await self._wanted.wait()
            await asyncio.sleep(_DELAY_SECONDS)
            await self._scrub_once()
            if self._wanted.is_set():
                await asyncio.sleep(_RETRY_SECONDS)

    async def _scrub_once(self) -> None:
        self._wanted.clear()
        try:
            await self._session.run(self._scrub_tables, seconds=_SCRUB_SECONDS)
        except StoreError as error:
            self._wanted.set()
            _LOGGER.warning(
                "the bytes of purged texts are still in the files of %s; trying again: %s", self._place, error
            )
        await self._session.close()

    async def _scrub_tables(self, connection: AsyncConnection[Any]) -> None:
        cursor = await connection.execute("SELECT erasures, scrubbed FROM stele_store")
        erasures, scrubbed = await cursor.fetchone() or (0, 0)
        if erasures == scrubbed:
            return
        cursor = await connection.execute("SELECT pg_try_advisory_lock(%s, 0)", (SCRUB_LOCK,))
        if (await cursor.fetchone() or [False])[0] is False:
            return  # another node is at it
        for table in ("stele_log", "stele_snapshot"):
            file = f"SELECT pg_relation_filenode('{table}')"
            before = await (await connection.execute(file)).fetchone()
            await connection.execute(f"VACUUM FULL {table}")
            # Without the right to it, the server only warns.
            if await (await connection.execute(file)).fetchone() == before:
                _LOGGER.warning(
                    "the bytes of purged texts are still in the files of %s: this user does not own the table %s; its"
                    " owner can remove them by VACUUM FULL",
                    self._place,
                    table,
                )
                return
        await connection.execute("UPDATE stele_store SET scrubbed = greatest(scrubbed, %s)", (erasures,))

    async def close(self) -> None:
        """Do what is left, and end."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if self._wanted.is_set():
            await self._scrub_once()
