"""A server in this process without a port: its application runs in an event loop of its own, usable from any other.

It is used by commands that open a store themselves, and by the registry that `stele.testing` offers to users' tests.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar, cast

import httpx

from stele.server.app import Server
from stele.server.asgi import App, AsgiScope, Message, Receive, Send
from stele.server.settings import ServerSettings
from stele.service.registry import Registry
from stele.storage import open_log

T = TypeVar("T")

_SECONDS = 600.0
"""Timeout in seconds of a start or of one request."""


class InProcessServer:
    """A server whose event loop runs in a thread. Raises what `Server.start` raises.

    It is an ASGI application itself: other event loops may call it. It is one more node of its store, so other
    processes may serve the same store meanwhile.

    Args:
        settings: What to serve; host, port and workers are ignored.
        wrap: Returns the application to serve, given the server's; for tests that intercept requests.
    """

    def __init__(self, settings: ServerSettings, wrap: Callable[[App], App] = lambda app: app) -> None:
        self._store = settings.store
        self._server = Server(settings)
        self._app = wrap(self._server)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="stele-server", daemon=True)
        self._thread.start()
        try:
            self.registry: Registry = self.run(self._server.start())
        except BaseException:
            self._end_thread()
            raise

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine in the server's event loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the server's event loop, and block until it is done."""
        return self.submit(work).result(_SECONDS)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Answer one request of any event loop, as an ASGI application. The server is started and stopped elsewhere."""
        if scope["type"] == "lifespan":
            await _answer_lifespan(receive, send)
            return
        loop = asyncio.get_running_loop()
        if loop is self._loop:
            await self._app(scope, receive, send)
            return

        async def receive_there() -> Message:
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_coroutine(receive()), loop))

        async def send_there(message: Message) -> None:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_coroutine(send(message)), loop))

        await asyncio.wrap_future(self.submit(_coroutine(self._app(scope, receive_there, send_there))))

    def empty_log(self) -> None:
        """Start again with an empty log; for logs in memory."""
        self.run(self._empty_log())

    async def _empty_log(self) -> None:
        await self.registry.reset(await open_log(self._store))

    def stop(self) -> None:
        """Finish writes, close the store and end the thread."""
        if self._thread.is_alive():
            self.run(self._server.stop())
            self._end_thread()

    def _end_thread(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class InProcessTransport(httpx.BaseTransport):
    """Answers the requests of a blocking httpx client from a server in this process."""

    def __init__(self, server: InProcessServer) -> None:
        self.server = server
        self._asgi = httpx.ASGITransport(server)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return the complete response to one request."""
        return self.server.run(self._answer_request(request))

    async def _answer_request(self, request: httpx.Request) -> httpx.Response:
        if not isinstance(request.stream, httpx.AsyncByteStream):  # an iterator of bytes, for blocking clients alone
            request = httpx.Request(request.method, request.url, headers=request.headers, content=request.read())
        response = await self._asgi.handle_async_request(request)
        # The bytes as they were sent: compressed, where the headers say so.
        parts = [part async for part in cast("httpx.AsyncByteStream", response.stream)]
        response.stream = httpx.ByteStream(b"".join(parts))
        return response


async def _coroutine(awaitable: Any) -> Any:
    return await awaitable


async def _answer_lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
