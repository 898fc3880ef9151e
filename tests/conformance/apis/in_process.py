"""Clients of a dialect's application in this process."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any, Final

import httpx
from tests.support.asgi_requests import exchange_messages

from stele.apis.http.requests import decode_path

App = Callable[[Any, Any, Any], Awaitable[None]]

_PLAIN_TARGET: Final = re.compile(r"/(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/?]|%[0-9A-Fa-f]{2})*\Z")
"""Targets that httpx sends unchanged, except those with dot segments."""
_LEADING_DOTS: Final = re.compile(r"/\.{1,2}(?:[/?]|\Z)")
_WITH_A_LENGTH: Final = frozenset({"POST", "PUT", "PATCH"})
"""Methods whose requests have a Content-Length even without a body."""


def client_of(app: App) -> httpx.AsyncClient:
    """Return a client of an application. Encoded slashes in names are decoded as in the server."""

    async def front(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "path": decode_path(scope["raw_path"].split(b"?", 1)[0])}, receive, send)

    return _DirectClient(front)


class _DirectClient(httpx.AsyncClient):
    """A client that passes plain requests directly to the application, because httpx takes as long as a response.

    The application gets the same request either way, and its response is read by httpx in both.
    """

    def __init__(self, app: App) -> None:
        super().__init__(transport=httpx.ASGITransport(app), base_url="http://registry", timeout=60)
        self._app = app

    async def request(self, method: str, url: Any, **options: Any) -> httpx.Response:
        """Send a request directly if it has only headers and a body in bytes, else through httpx."""
        headers, body = options.get("headers") or {}, options.get("content")
        is_plain = options.keys() <= {"headers", "content"} and isinstance(headers, dict) and not self.cookies
        is_plain = is_plain and (body is None or isinstance(body, bytes)) and isinstance(url, str)
        if not is_plain or not _PLAIN_TARGET.match(url) or _LEADING_DOTS.search(url):
            return await super().request(method, url, **options)
        sent = {b"host": b"registry"} | {name.lower(): value for name, value in self.headers.raw}
        if body is not None or method in _WITH_A_LENGTH:
            sent[b"content-length"] = b"%d" % len(body or b"")
        sent |= {name.lower().encode(): value.encode() for name, value in headers.items()}
        answer = await _ask(self._app, method, url, list(sent.items()), body or b"")
        assert "set-cookie" not in answer.headers, "this client keeps no cookies of plain requests"
        return answer


async def _ask(app: App, method: str, target: str, headers: list[tuple[bytes, bytes]], body: bytes) -> httpx.Response:
    """Send a request to an application, and return the whole answer."""
    sent = await exchange_messages(app, method, target, headers, body)
    assert [message["type"] for message in sent] == ["http.response.start", *["http.response.body"] * (len(sent) - 1)]
    assert len(sent) > 1
    assert [bool(message.get("more_body")) for message in sent[1:]] == [*[True] * (len(sent) - 2), False]
    read = b"" if method == "HEAD" else b"".join(message.get("body", b"") for message in sent[1:])
    stream, request = httpx.ByteStream(read), _name_request(method, target)
    answer = httpx.Response(sent[0]["status"], headers=sent[0].get("headers"), stream=stream, request=request)
    answer.read()
    return answer


@lru_cache(10_000)
def _name_request(method: str, target: str) -> httpx.Request:
    """Return the request object for a response, cached, because many tests send the same requests."""
    return httpx.Request(method, f"http://registry{target}")
