"""Failure injection: an ASGI application in front of another one that refuses, delays or drops some requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from threading import Lock

import msgspec

from stele.protocol.confluent import MEDIA_TYPE, ErrorMessage
from stele.protocol.http_statuses import STATUS_PHRASES
from stele.server.asgi import App, AsgiScope, Receive, Send

_ALWAYS = -1


class ConnectionDropped(ConnectionError):
    """Raised when the server ended a connection without a response, because a test requested that."""


@dataclass
class InjectedFailure:
    """A failure for the requests of a method and a path.

    Attributes:
        path: Pattern of paths with `*`, such as `/subjects/*`.
        method: GET, POST … or `*`.
        status: Status of the response, None to let the request through.
        latency: Seconds to wait first.
        drop: Whether the connection ends without a response.
        action: Function to call in a thread, and wait for, before anything else.
        times: Number of requests that are still to fail, -1 for all of them.
    """

    path: str = "*"
    method: str = "*"
    status: int | None = None
    latency: float = 0.0
    drop: bool = False
    action: Callable[[], object] | None = None
    times: int = 1

    def is_for(self, method: str, path: str) -> bool:
        """Return whether a request is to fail."""
        return self.times != 0 and self.method in {"*", method} and fnmatchcase(path, self.path)


class FailingApp:
    """An ASGI application that passes requests on to another one, except those that are to fail."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._failures: list[InjectedFailure] = []
        self._lock = Lock()
        self.requests: list[str] = []

    def add_failure(self, failure: InjectedFailure) -> None:
        """Add a failure. If several failures match a request, the one added first is used."""
        with self._lock:
            self._failures.append(failure)

    def clear(self) -> None:
        """Remove all failures, and clear the list of requests."""
        with self._lock:
            self._failures.clear()
            self.requests.clear()

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        failure = self._take_failure(scope["method"], scope["path"])
        if failure is None:
            await self._app(scope, receive, send)
            return
        if failure.action is not None:
            await asyncio.to_thread(failure.action)
        await asyncio.sleep(failure.latency)
        if failure.drop:
            _drop_connection(send)
        elif failure.status is not None:
            await _send_error(send, failure.status)
        else:
            await self._app(scope, receive, send)

    def _take_failure(self, method: str, path: str) -> InjectedFailure | None:
        with self._lock:
            self.requests.append(f"{method} {path}")
            planned_failure = next((failure for failure in self._failures if failure.is_for(method, path)), None)
            if planned_failure is not None and planned_failure.times != _ALWAYS:
                planned_failure.times -= 1
            return planned_failure


def _drop_connection(send: Send) -> None:
    """Abort the connection of uvicorn. Raises `ConnectionDropped` where there is no uvicorn."""
    transport = getattr(getattr(send, "__self__", None), "transport", None)
    if transport is None:
        raise ConnectionDropped("the connection was dropped on purpose")
    transport.abort()


async def _send_error(send: Send, status: int) -> None:
    phrase = STATUS_PHRASES.get(status, "failure")
    body = msgspec.json.encode(ErrorMessage(status, f"{phrase} (on purpose)"))
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
