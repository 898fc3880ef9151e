"""A relay in front of a server that can swallow an answer and end the connection, as a network that fails does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

__all__ = ["DroppingRelay", "dropping_relay"]


class DroppingRelay:
    """Passes on what clients and server say.

    Attributes:
        port: Where clients connect to.
        trigger: Once a client has sent these bytes, what it sends still arrives, but no answer comes back: the
            connection ends when the server has said something, and the trigger is empty again.
        dropped: How often that happened.
    """

    def __init__(self, target: int) -> None:
        self.port = 0
        self.trigger = b""
        self.dropped = 0
        self._target = target

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        is_triggered = asyncio.Event()

        async def send() -> None:
            while data := await reader.read(1 << 16):
                if self.trigger and self.trigger in data:
                    is_triggered.set()
                far_writer.write(data)
                await far_writer.drain()

        async def answer() -> None:
            while data := await far_reader.read(1 << 16):
                if is_triggered.is_set():
                    self.dropped += 1
                    self.trigger = b""
                    return
                writer.write(data)
                await writer.drain()

        tasks = [asyncio.create_task(send()), asyncio.create_task(answer())]
        with suppress(OSError):
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for end in (writer, far_writer):
            end.close()


@asynccontextmanager
async def dropping_relay(target: int) -> AsyncIterator[DroppingRelay]:
    """A relay to a port of this machine."""
    relay = DroppingRelay(target)
    server = await asyncio.start_server(relay.handle, "127.0.0.1")
    relay.port = server.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        server.close()
