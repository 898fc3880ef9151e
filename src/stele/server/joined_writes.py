"""The head of an answer and its body leave together, in one call of the system.

The server beneath writes them one after the other. In two calls a process that is killed in between leaves its client
half an answer, and every answer costs the client a second read.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

_MOST_HELD: Final = 64 << 10
"""Bytes that are held back, or joined with what was; more do not leave in one call anyway, and joining copies them."""


class JoinedWriteTransport(asyncio.Transport):
    """A connection that holds a short write back until the next one, or the next turn of the event loop.

    Args:
        transport: The connection itself.
        loop: The event loop that it belongs to.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._held: bytes | bytearray | memoryview = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write what was held back together with this, or hold this back."""
        if len(data) > _MOST_HELD:
            self._write_held()
            self._transport.write(data)
        elif self._held:
            pending, self._held = self._held, b""
            self._transport.writelines((pending, data))
        elif data:
            self._held = data
            self._loop.call_soon(self._write_held)

    def _write_held(self) -> None:
        if self._held:
            pending, self._held = self._held, b""
            if not self._transport.is_closing():
                self._transport.write(pending)

    def write_now(self, data: bytes) -> None:
        """Write what was held back, and this, which nothing follows."""
        self._write_held()
        self._transport.write(data)

    def close(self) -> None:
        """Write what was held back, and close the connection."""
        self._write_held()
        self._transport.close()

    def abort(self) -> None:
        """Close the connection at once. What was held back is lost, as all that was not sent."""
        self._held = b""
        self._transport.abort()

    def get_write_buffer_size(self) -> int:
        """How many bytes were written and not sent."""
        return len(self._held) + self._transport.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """What is known of the connection, as the transport beneath says it."""
        return self._transport.get_extra_info(name, default)

    def is_closing(self) -> bool:
        """Whether the connection is closed, or about to be."""
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        """Read nothing more for a while."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        self._transport.resume_reading()
