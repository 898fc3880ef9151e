"""Opens the log of a store without a registry, for commands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from stele.core.ports import Log
from stele.errors import InvalidRequest
from stele.storage import maintenance, open_log
from stele.storage.log_copy import CompactedLog, CopiedLog
from stele.storage.log_copy import compact_log as compact_records
from stele.storage.log_copy import copy_log as copy_records
from stele.storage.past_log import open_past

__all__ = ["CompactedLog", "CopiedLog", "compact_log", "copy_log", "open_log_session"]


@asynccontextmanager
async def open_log_session(store: str, as_of: str = "") -> AsyncIterator[Log]:
    """Open the log for the block; servers may be running on it. For as_of see `past_log.open_past`.

    Raises what `storage.open_log` raises.
    """
    log: Log = await open_log(store)
    if as_of:
        log = await open_past(log, as_of)
    try:
        yield log
    finally:
        await log.close()


async def copy_log(
    source: str, target: str, *, until: asyncio.Event | None, progress: Callable[[int], None]
) -> CopiedLog:
    """Copy the log of a store to another store; see `log_copy.copy_log`."""
    maintenance.open_files(source)  # opening its log would make one
    if source == target:
        raise InvalidRequest("source and target are the same store")
    async with open_log_session(source) as there, open_log_session(target) as here:
        return await copy_records(there, here, until=until, progress=progress)


async def compact_log(store: str) -> CompactedLog:
    """Compact a log so that it loads faster; see `log_copy.compact_log`."""
    maintenance.open_files(store)
    async with open_log_session(store) as log:
        return await compact_records(log)
