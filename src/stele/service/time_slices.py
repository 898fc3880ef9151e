"""Long loops on the event loop, cut into short slices with other work in between.

The folded state belongs to the event loop: a thread could read it in the middle of a change. So a list of 100,000
subjects is made on the loop, a few milliseconds at a time. Several such loops take turns.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable
from typing import Final, TypeVar

T = TypeVar("T")

_SLICE_SECONDS: Final = 0.005


class TimeSlices:
    """The long loops of one event loop. In each iteration of the event loop, one slice of one of them runs."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def iterate(self, items: Iterable[T]) -> AsyncIterator[T]:
        """Yield the items that exist now, one after the other, and let other tasks run in between.

        Items are not copied: by the time an item is yielded, the state may have changed.
        """
        rest = iter(tuple(items))
        if self._waiting:
            await self._wait_for_turn()
        until = time.monotonic() + _SLICE_SECONDS
        for item in rest:
            if time.monotonic() >= until:
                await self._wait_for_turn()
                until = time.monotonic() + _SLICE_SECONDS
            yield item

    async def _wait_for_turn(self) -> None:
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self._waiting.append(turn)
        if len(self._waiting) == 1:
            loop.call_soon(self._give_turn, loop)
        await turn

    def _give_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        turn = self._waiting.popleft()
        if not turn.done():
            turn.set_result(None)
        if self._waiting:
            loop.call_soon(self._give_turn, loop)
