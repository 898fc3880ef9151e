"""A registry in memory behind a dialect, in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest

from stele.apis.paths import routed

App = Callable[[Any, Any, Any], Awaitable[None]]


def client_of(app: App) -> httpx.AsyncClient:
    """A client of an application, with names in paths told apart as the server does."""

    async def front(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await app({**scope, "path": routed(scope["raw_path"].split(b"?", 1)[0])}, receive, send)

    return httpx.AsyncClient(transport=httpx.ASGITransport(front), base_url="http://registry", timeout=60)


@pytest.fixture(scope="session")
def open_client() -> Callable[[App], httpx.AsyncClient]:
    """See `client_of`."""
    return client_of


__all__ = ["AsyncIterator", "client_of"]
