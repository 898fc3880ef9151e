"""Endpoints that are called without Litestar if a request consists of a path and a body only.

Litestar reads every parameter by its annotation, converts and validates it, and resolves dependencies. That takes as
long as parsing and comparing a schema. If a request has no query, such an endpoint gets the texts of its path
unchanged, as Litestar would pass them. Every other request is handled by Litestar.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from litestar import Request
from litestar.types import ASGIApp, Middleware, Receive, Scope, Send

PLAIN: Final = "stele_plain"
"""Option of an endpoint with the parameters `operations`, `request`, texts of the path, and others with defaults.

It answers with a value that is written as JSON.
"""

_encode = msgspec.json.Encoder().encode


def call_plain_endpoints(make_operations: Callable[[Request[Any, Any, Any]], Any]) -> Middleware:
    """Middleware, the innermost one: calls endpoints with the option `PLAIN` where the request has no query.

    make_operations makes the argument `operations` of a request.
    """

    def middleware(app: ASGIApp) -> ASGIApp:
        async def handle(scope: Scope, receive: Receive, send: Send) -> None:
            handler: Any = scope["route_handler"]
            if scope["query_string"] or PLAIN not in handler.opt:
                await app(scope, receive, send)
                return
            request: Request[Any, Any, Any] = Request(scope, receive, send)
            answer = await handler.fn(operations=make_operations(request), request=request, **scope["path_params"])
            body = _encode(answer)
            headers = [(b"content-type", handler.media_type.encode()), (b"content-length", b"%d" % len(body))]
            await send({"type": "http.response.start", "status": handler.status_code, "headers": headers})
            await send({"type": "http.response.body", "body": body, "more_body": False})

        return handle

    return middleware
