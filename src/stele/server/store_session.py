"""The log of a store alone, for commands that need no registry over it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from stele.core.ports import Log
from stele.storage import open_log


@asynccontextmanager
async def open_log_session(store: str) -> AsyncIterator[Log]:
    """The log for a while; servers may be running on it. Raises what `storage.open_log` raises."""
    log = await open_log(store)
    try:
        yield log
    finally:
        await log.close()
