"""Long loops on the event loop, cut into short slices: everybody else is served in between.

What is folded belongs to the event loop, and a thread would read it in the middle of a change. So a list of 100,000
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
    """The long loops of one event loop: of all together, one slice runs in each of its iterations."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def iterate(self, items: Iterable[T]) -> AsyncIterator[T]:
        """Give the items that are there now, one after the other, and let others run now and then.

        Each item is as it is when it is given: whoever looks at the state may find that it has moved on.
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
