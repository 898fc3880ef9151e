"""Waits by polling: for a log to grow, and for a server to return."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from stele.errors import StoreError

_GROWTH_PAUSES: Final = (0.005, 0.05)
"""Seconds between two reads of a log's head: the first pause, and the longest."""
_CONNECT_PAUSES: Final = (0.05, 2.0)
"""Seconds between two attempts to connect: the first pause, and the longest."""


async def wait_for_growth(read_head: Callable[[], Awaitable[int]], after: int, seconds: float) -> None:
    """Return once the head of a log is past a record, seen within 50 ms, or after so many seconds.

    Args:
        read_head: Returns the number of the newest record. Its errors end the wait.
        after: Number of the record.
        seconds: How long to wait.
    """
    clock = asyncio.get_running_loop().time
    deadline = clock() + seconds
    pause, longest = _GROWTH_PAUSES
    while await read_head() <= after and (left := deadline - clock()) > 0:
        await asyncio.sleep(min(pause, left))
        pause = min(pause * 1.5, longest)


class ConnectBackoff:
    """Refuses to connect again at once after a failure, so that an unavailable server is not tried all the time."""

    def __init__(self) -> None:
        self._pause = 0.0
        self._retry_at = 0.0
        self._failure = ""

    def require_retry(self) -> None:
        """Raise the `StoreError` of the last attempt until the pause after it has passed."""
        if self._failure and time.monotonic() < self._retry_at:
            raise StoreError(self._failure)

    def note_failure(self, failure: StoreError) -> None:
        """Begin a pause, twice as long as the one before."""
        first, longest = _CONNECT_PAUSES
        self._pause = min(max(self._pause * 2, first), longest)
        self._retry_at = time.monotonic() + self._pause
        self._failure = str(failure)

    def note_success(self) -> None:
        """Reset the pause."""
        self._failure, self._pause = "", 0.0
