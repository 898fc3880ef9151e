"""A log to which other nodes write first, exactly when a test decides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

from stele.storage.memory import MemoryLog

Hook = Callable[[], Awaitable[object]]


class OvertakenLog(MemoryLog):
    """A log handle that calls a hook right before or right after its next append.

    The hooks are `before` and `behind`. `behind` runs before the caller of `append` gets the result.
    """

    before: Hook | None = None
    behind: Hook | None = None

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Take no turn, so that the hooks can write in between."""
        return nullcontext()

    async def append(self, expected: int, records: Sequence[bytes]) -> bool:
        """Append the records and call the hooks, each once; see `MemoryLog.append`."""
        hook, self.before = self.before, None
        if hook is not None:
            await hook()
        written = await super().append(expected, records)
        hook, self.behind = self.behind, None
        if hook is not None:
            await hook()
        return written
