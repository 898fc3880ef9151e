"""A TCP relay in front of a server that can drop an answer and close the connection, as a failing network does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

__all__ = ["DroppingRelay", "dropping_relay"]


class DroppingRelay:
    """Passes data between clients and a server.

    Attributes:
        port: Port that clients connect to.
        trigger: Bytes that start the fault. After a client has sent them, its data still reach the server, but when the
            server answers, the relay drops the answer, closes the connection and empties the trigger.
        dropped: Number of answers that were dropped.
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
    """Run a relay to a port of this machine and yield it."""
    relay = DroppingRelay(target)
    server = await asyncio.start_server(relay.handle, "127.0.0.1")
    relay.port = server.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        server.close()
