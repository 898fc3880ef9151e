"""A registry without a server: the same API over a store, for as long as a command runs, on no port."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

_SECONDS = 600.0
"""How long a start or one request may take."""


class StoreTransport(httpx.BaseTransport):
    """Answers requests of a blocking client from a store, in a thread with an event loop of its own.

    Other processes may serve the same store meanwhile: this is one more node of it. Raises what `Server.start` raises.
    """

    def __init__(self, store: str) -> None:
        from stele.server.app import Server
        from stele.server.settings import load_settings

        self._server = Server(load_settings({"store": store}))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="stele-store", daemon=True)
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._server.start(), self._loop).result(_SECONDS)
        except BaseException:
            self._end()
            raise
        self._asgi = httpx.ASGITransport(self._server)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """One request, answered whole."""
        return asyncio.run_coroutine_threadsafe(self._answer(request), self._loop).result(_SECONDS)

    def close(self) -> None:
        """Finish writes and close the store."""
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._server.stop(), self._loop).result(_SECONDS)
            self._end()

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        again = httpx.Request(request.method, request.url, headers=request.headers, content=request.read())
        response = await self._asgi.handle_async_request(again)
        return httpx.Response(response.status_code, headers=response.headers, content=await response.aread())

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextmanager
def offline(store: str) -> Iterator[StoreTransport]:
    """The transport for the length of a command, which logs nothing but trouble."""
    from stele.server.log_config import configure_logs

    configure_logs("warning", "console")
    transport = StoreTransport(store)
    try:
        yield transport
    finally:
        transport.close()
