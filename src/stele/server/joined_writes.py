"""Sends the head and the body of a response together, in one system call.

uvicorn writes them one after the other. With two calls, a process that is killed in between leaves its client half a
response, and every response costs the client a second read.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

_MOST_HELD: Final = 64 << 10
"""Longest write in bytes that is held back or joined.

Longer ones need several calls anyway, and joining copies them.
"""


class JoinedWriteTransport(asyncio.Transport):
    """A connection that holds a short write back until the next write, or the next turn of the event loop.

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
        """Write the held bytes together with these, or hold these back."""
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
        """Write the held bytes, then these, without holding anything back."""
        self._write_held()
        self._transport.write(data)

    def close(self) -> None:
        """Write the held bytes, and close the connection."""
        self._write_held()
        self._transport.close()

    def abort(self) -> None:
        """Close the connection at once. Held bytes are lost, like all others that were not sent."""
        self._held = b""
        self._transport.abort()

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that were written and not sent."""
        return len(self._held) + self._transport.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return a property of the connection, as the wrapped transport does."""
        return self._transport.get_extra_info(name, default)

    def is_closing(self) -> bool:
        """Return whether the connection is closed, or about to be."""
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        """Stop reading until `resume_reading`."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Start reading again."""
        self._transport.resume_reading()
