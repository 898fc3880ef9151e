"""Lets a thread use the event loop of a server: it runs coroutines and sends requests there."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

import httpx

from stele.errors import SteleError
from stele.service.outgoing import OutgoingClient

T = TypeVar("T")


class Stopped(SteleError):
    """Raised when the server has stopped the work of this thread."""


class LoopBridge:
    """Runs coroutines in an event loop for one thread, until it is stopped.

    Args:
        loop: The event loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lock = threading.Lock()
        self._waiting: set[Future[Any]] = set()
        self._stopped = threading.Event()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result. Raises its errors, and `Stopped`."""
        with self._lock:
            if self._stopped.is_set():
                work.close()
                raise Stopped("the server stops")
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
            self._waiting.add(future)
        try:
            return future.result()
        except CancelledError:
            raise Stopped("the server stops") from None
        finally:
            with self._lock:
                self._waiting.discard(future)

    def sleep(self, seconds: float) -> None:
        """Wait. Raises `Stopped`."""
        if self._stopped.wait(seconds):
            raise Stopped("the server stops")

    def stop(self) -> None:
        """Cancel all running coroutines, and accept no more."""
        with self._lock:
            self._stopped.set()
            for future in self._waiting:
                future.cancel()


class BridgedTransport(httpx.BaseTransport):
    """Sends the requests of a blocking client through the server's own client, which checks the allowed addresses.

    Args:
        bridge: Runs coroutines in the event loop of the client.
        client: Sends requests.
    """

    def __init__(self, bridge: LoopBridge, client: OutgoingClient) -> None:
        self._bridge = bridge
        self._client = client

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return the complete response to one request. Raises `ForbiddenAddress`, `Unavailable`."""
        headers = {name: value for name, value in request.headers.items() if name not in ("host", "content-length")}
        sent = self._client.send_request(request.method, str(request.url), headers=headers, body=request.read())
        answer = self._bridge.run(sent)
        return httpx.Response(
            answer.status, headers=dict(answer.headers), stream=httpx.ByteStream(answer.body), request=request
        )
