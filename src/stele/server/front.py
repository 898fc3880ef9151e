"""The ASGI front: what happens to every request before and after a dialect sees it.

Raw path (a `%2F` inside a name survives), HEAD as GET without a body, dispatch by first path segment to one application
per dialect, who is asking, request ids, metrics and logs; and the one read so hot that it is answered right here.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, NamedTuple

import msgspec
import structlog

from stele.apis.paths import routed
from stele.apis.web import PRINCIPAL
from stele.errors import Unauthenticated
from stele.server.metrics import UNMATCHED, Metrics
from stele.service.access import Authenticator, anyone

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_logger = structlog.get_logger("stele.requests")
_REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}\Z")
_DRAINED_BYTES = 64 * 1024 * 1024
"""What of a refused body is still read, so that the client gets to see the refusal instead of a broken connection."""
_HOT_PREFIX = "/schemas/ids/"
_HOT_ROUTE = "/schemas/ids/{id}"


class Mount(NamedTuple):
    """A dialect's application and its name in metrics."""

    dialect: str
    app: App


class Hot(NamedTuple):
    """Prebuilt answers: the look-up by path, and the content type of what it finds."""

    get: Callable[[str], bytes | None]
    content_type: bytes


class Front:
    """The outermost application. `mounts` maps first path segments to dialects; `fallback` takes the rest."""

    def __init__(
        self,
        mounts: Mapping[str, Mount],
        fallback: Mount,
        metrics: Metrics,
        *,
        hot: Hot | None = None,
        authenticate: Authenticator = anyone,
    ) -> None:
        self.mounts = dict(mounts)
        self._fallback = fallback
        self._metrics = metrics
        self._hot = hot
        self._authenticate = authenticate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        started = time.perf_counter()
        path: str = scope["path"]
        try:
            principal = self._authenticate(Headers(scope["headers"]))
        except Unauthenticated as error:
            await _refuse(send, error)
            return
        if self._hot is not None and scope["method"] == "GET" and path.startswith(_HOT_PREFIX):
            body = None if scope["query_string"] else self._hot.get(path)
            if body is not None:
                headers = [(b"content-type", self._hot.content_type), (b"content-length", b"%d" % len(body))]
                request_id = Headers(scope["headers"]).get(b"x-request-id")
                if request_id is not None and _REQUEST_ID.match(request_id):
                    headers.append((b"x-request-id", request_id))
                await send({"type": "http.response.start", "status": 200, "headers": headers})
                await send({"type": "http.response.body", "body": body})
                self._metrics.request("confluent", _HOT_ROUTE, "GET", 200, time.perf_counter() - started)
                return
        await self._dispatch(scope, receive, send, principal, started)

    async def _dispatch(self, scope: Scope, receive: Receive, send: Send, principal: object, started: float) -> None:
        inner = dict(scope)
        inner["path"] = inner_path = _inner_path(scope)
        inner[PRINCIPAL] = principal
        mount = self.mounts.get(_first_segment(inner_path), self._fallback)
        if mount is not self._fallback and inner_path.startswith("/_docs/"):
            mount = self.mounts.get(inner_path.split("/", 3)[2], mount)
        answer = _Answer(receive, send, _request_id(scope), head=scope["method"] == "HEAD")
        if answer.head:
            inner["method"] = "GET"
        try:
            await mount.app(inner, receive, answer)
        finally:
            seconds = time.perf_counter() - started
            route = str(inner.get("path_template") or UNMATCHED)
            self._metrics.request(mount.dialect, route, scope["method"], answer.status, seconds)
            log = _logger.error if answer.status >= 500 else _logger.info if _writes(scope) else _logger.debug
            log(
                "request",
                dialect=mount.dialect,
                method=scope["method"],
                path=scope["path"],
                status=answer.status,
                ms=round(seconds * 1000, 2),
                request_id=answer.request_id.decode("ascii"),
            )


class Headers(Mapping[bytes, bytes]):
    """Request headers by lower-case name, without copying them: the last one of a name wins."""

    def __init__(self, pairs: list[tuple[bytes, bytes]]) -> None:
        self._pairs = pairs

    def __getitem__(self, name: bytes) -> bytes:
        for key, value in reversed(self._pairs):
            if key == name:
                return value
        raise KeyError(name)

    def get(self, name: bytes, default: Any = None) -> Any:
        """The value of a header, or the default."""
        for key, value in reversed(self._pairs):
            if key == name:
                return value
        return default

    def __iter__(self) -> Any:
        return (key for key, _ in self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)


class _Answer:
    """The `send` of a dialect: adds the request id, notes the status, and leaves out the body of a HEAD."""

    def __init__(self, receive: Receive, send: Send, request_id: bytes, *, head: bool) -> None:
        self._receive = receive
        self._send = send
        self.request_id = request_id
        self.head = head
        self.status = 500

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            if self.status == 413:
                await self._drain()
            kept = [pair for pair in message.get("headers", ()) if pair[0].lower() != b"x-request-id"]
            message = {**message, "headers": [*kept, (b"x-request-id", self.request_id)]}
        elif self.head and message["type"] == "http.response.body":
            message = {"type": "http.response.body", "body": b"", "more_body": message.get("more_body", False)}
        await self._send(message)

    async def _drain(self) -> None:
        left = _DRAINED_BYTES
        while left > 0:
            message = await self._receive()
            left -= len(message.get("body", b""))
            if not message.get("more_body", False):
                return


def _inner_path(scope: Scope) -> str:
    """The decoded path, with slashes that belong to a name told apart from those between segments."""
    raw: bytes = scope.get("raw_path") or b""
    return routed(raw.split(b"?", 1)[0]) if b"%" in raw else str(scope["path"])


def _first_segment(path: str) -> str:
    return path[1:].split("/", 1)[0]


def _request_id(scope: Scope) -> bytes:
    given = Headers(scope["headers"]).get(b"x-request-id")
    return given if given is not None and _REQUEST_ID.match(given) else uuid.uuid4().hex.encode("ascii")


def _writes(scope: Scope) -> bool:
    return scope["method"] not in {"GET", "HEAD", "OPTIONS"}


async def _refuse(send: Send, error: Unauthenticated) -> None:
    body = msgspec.json.encode({"error_code": 401, "message": str(error)})
    headers = [(b"content-type", b"application/json"), (b"www-authenticate", b'Basic realm="stele"')]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": body})
