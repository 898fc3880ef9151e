"""A dialect's application behind a client, in this process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import httpx

from stele.apis.http.requests import decode_path

App = Callable[[Any, Any, Any], Awaitable[None]]


def client_of(app: App) -> httpx.AsyncClient:
    """A client of an application, with slashes in names told apart as the server does."""

    async def front(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "path": decode_path(scope["raw_path"].split(b"?", 1)[0])}, receive, send)

    return httpx.AsyncClient(transport=httpx.ASGITransport(front), base_url="http://registry", timeout=60)
