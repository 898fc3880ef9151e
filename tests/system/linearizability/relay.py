"""Passes TCP connections on: `python relay.py HOST PORT TARGET_HOST TARGET_PORT`; prints `ready` when it listens."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


async def main(host: str, port: str, target: str, target_port: str) -> None:
    """Serve until killed."""

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(target, int(target_port))
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))

    server = await asyncio.start_server(relay, host, int(port))
    print("ready", flush=True)  # noqa: T201 - the parent process waits for it
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
