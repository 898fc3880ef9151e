"""Removes the bytes of overwritten records from the files of a database, a moment after they were overwritten.

A database keeps the old bytes of a changed row until it rewrites the page. No index or reader leads to those bytes. The
drivers make the database rewrite whole tables, which takes long, so records that are erased together are scrubbed
together.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from stele.errors import StoreError

__all__ = ["Scrubber", "warn_of_traces"]

_LOGGER = logging.getLogger(__name__)
_DELAY_SECONDS: Final = 1.0
"""Seconds to wait for further erasures of the same purge."""
_RETRY_SECONDS: Final = 60.0


class Scrubber:
    """Calls scrub after erasures, and again after a failure. scrub raises `StoreError` when it has to be tried again.

    The database counts erasures, so that a process can finish the scrubbing that another process left.
    """

    def __init__(self, scrub: Callable[[], Awaitable[None]], place: str) -> None:
        self._scrub = scrub
        self._place = place
        self._wanted = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    def begin(self) -> None:
        """Schedule a scrub."""
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
            await self._scrub()
        except StoreError as error:
            self._wanted.set()
            warn_of_traces(self._place, f"trying again: {error}")

    async def close(self) -> None:
        """End the background task, and run a scrub that is still scheduled."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if self._wanted.is_set():
            await self._scrub_once()


def warn_of_traces(place: str, reason: str) -> None:
    """Log a warning that erased texts can still be read from the files of the database."""
    _LOGGER.warning("the bytes of purged texts are still in the files of %s; %s", place, reason)
