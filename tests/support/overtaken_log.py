"""A log whose node is overtaken by others, exactly when a test says so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

from stele.storage.memory import MemoryLog

Hook = Callable[[], Awaitable[object]]


class OvertakenLog(MemoryLog):
    """A handle that lets others act right before or right behind its next append, before whoever asked knows of it."""

    before: Hook | None = None
    behind: Hook | None = None

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Others write in between: that is what is tested."""
        return nullcontext()

    async def append(self, expected: int, records: Sequence[bytes]) -> bool:
        """See `MemoryLog`."""
        hook, self.before = self.before, None
        if hook is not None:
            await hook()
        written = await super().append(expected, records)
        hook, self.behind = self.behind, None
        if hook is not None:
            await hook()
        return written
