"""Lets pages of other origins read responses, where the settings name those origins.

Source: docs/protocols/http.md#other-origins
"""

from __future__ import annotations

from collections.abc import Collection

from stele.server.asgi import App, AsgiScope, HeaderPairs, Message, Receive, Send

_EXPOSED = b"ETag, Location, Retry-After, Stele-Ruleset, X-Request-ID"
"""Response headers that a page may read in addition to those that every page may read."""
_PREFLIGHT = [
    (b"access-control-allow-methods", b"DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT"),
    (b"access-control-allow-headers", b"*, Authorization"),
    (b"access-control-max-age", b"600"),
]
_ASKED = (b"vary", b"origin, access-control-request-method, access-control-request-headers")


class CrossOriginApp:
    """An ASGI application that wraps another: it answers preflights and adds CORS headers for the named origins.

    Args:
        app: The application.
        origins: Origins such as `https://ui.example.org`; `*` is every one.
    """

    def __init__(self, app: App, origins: Collection[str]) -> None:
        self._app = app
        self._origins = frozenset(origin.encode("ascii") for origin in origins)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        origin = _find_header(scope["headers"], b"origin")
        if not origin:
            await self._app(scope, receive, send)
            return
        marks = self._mark_origin(origin)
        if scope["method"] == "OPTIONS" and _find_header(scope["headers"], b"access-control-request-method"):
            # A browser treats a response without CORS headers as a refusal.
            headers = [*marks, _ASKED, *(_PREFLIGHT if marks else ())]
            await send({"type": "http.response.start", "status": 204, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return

        async def mark(message: Message) -> None:
            if message["type"] == "http.response.start":
                exposed = [(b"access-control-expose-headers", _EXPOSED)] if marks else []
                headers = [*message.get("headers", ()), *marks, *exposed, (b"vary", b"origin")]
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive, mark)

    def _mark_origin(self, origin: bytes) -> list[tuple[bytes, bytes]]:
        if b"*" in self._origins:
            return [(b"access-control-allow-origin", b"*")]
        return [(b"access-control-allow-origin", origin)] if origin in self._origins else []


def _find_header(headers: HeaderPairs, name: bytes) -> bytes:
    return next((value for key, value in headers if key == name), b"")
