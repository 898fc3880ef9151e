"""Receives notifications of appends of other nodes, by LISTEN. A notification that may be lost counts as received."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection, sql

__all__ = ["Listener"]

_PAUSES: Final = (0.05, 2.0)
"""Seconds between two attempts to connect: the first, and the longest."""
_SILENCE_SECONDS: Final = 30.0
"""Seconds without a notification after which the connection is tested."""


class Listener:
    """Notifications of one channel. One may be late, or lost with its connection, so it is only a hint."""

    def __init__(self, options: Mapping[str, Any], channel: str) -> None:
        self._options = options
        self._channel = channel
        self._heard = asyncio.Event()
        self._has_news = True
        self._is_connected = False
        self._task = asyncio.create_task(self._listen())

    def take_news(self) -> bool:
        """Return whether a notification arrived, or may have been missed, since the last call."""
        news, self._has_news = self._has_news, False
        return news or not self._is_connected

    def is_connected(self) -> bool:
        """Return whether the connection that receives notifications is open."""
        return self._is_connected

    def next_notice(self) -> asyncio.Event:
        """Return the event that is set at the next notification."""
        return self._heard

    def _note(self) -> None:
        self._has_news = True
        notified, self._heard = self._heard, asyncio.Event()
        notified.set()

    async def _listen(self) -> None:
        first, longest = _PAUSES
        pause = first
        while True:
            with suppress(psycopg.Error, TimeoutError):
                async with await AsyncConnection.connect(**self._options, autocommit=True) as connection:
                    await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
                    self._is_connected = True
                    self._note()  # earlier notifications were not delivered
                    pause = first
                    while True:
                        async for _ in connection.notifies(timeout=_SILENCE_SECONDS):
                            self._note()
                        async with asyncio.timeout(_SILENCE_SECONDS):
                            await connection.execute("SELECT 1")
            self._is_connected = False
            self._note()
            await asyncio.sleep(pause)
            pause = min(pause * 2, longest)

    async def close(self) -> None:
        """Disconnect."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
