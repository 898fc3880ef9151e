"""The table of dialects: no dialect takes paths from another."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import httpx
import pytest
from litestar.routes import HTTPRoute

from stele.apis import confluent
from stele.server.dialects import MOUNTS, DialectEntry, build_dispatcher
from stele.server.dispatch import Dispatcher
from stele.server.metrics import Metrics
from stele.server.settings import ServerSettings
from stele.service.registry import Registry
from stele.storage.memory import MemoryLog


@pytest.fixture(scope="module")
def front() -> Dispatcher:
    """A dispatcher with every dialect."""
    dispatcher = build_dispatcher(Registry(MemoryLog()), ServerSettings(), Metrics())
    assert isinstance(dispatcher, Dispatcher)
    return dispatcher


@pytest.mark.parametrize("dialect", MOUNTS, ids=lambda dialect: dialect.name)
def test_every_path_of_a_dialect_reaches_it(dialect: DialectEntry, front: Dispatcher) -> None:
    """Paths work at the root, below the dialect's name and on its own port; OpenSchema is selected by media type."""
    app = dialect.build(Registry(MemoryLog()), dialect.options(ServerSettings()))
    mount = front._names[dialect.name]
    paths = {route.path_format for route in app.routes if isinstance(route, HTTPRoute)}
    assert paths
    for path in paths:
        if dialect.segments:
            assert front._find_target(path).mount is mount, path
        own = front._serve_at_root(mount, path)
        assert (own.mount, own.path) == (mount, path) or own.path.startswith(dialect.root + "/"), path
        below = front._find_target(f"/{dialect.name}{path}")
        assert below.mount is mount, path


async def test_registries_share_a_dialect_and_nothing_else() -> None:
    """Two registries answer side by side, each about itself, although they share one application."""
    async with AsyncExitStack() as stack:
        clients = []
        for name in ("first", "second"):
            registry = await Registry.open(MemoryLog())
            stack.push_async_callback(registry.close)
            transport = httpx.ASGITransport(confluent.application(registry))
            clients.append(await stack.enter_async_context(httpx.AsyncClient(transport=transport, base_url="http://x")))
            answer = await clients[-1].post(f"/subjects/{name}/versions", json={"schema": '"string"'})
            assert answer.json()["id"] == 1
        answers = await asyncio.gather(*(client.get("/subjects") for client in clients * 20))
        assert [answer.json() for answer in answers] == [["first"], ["second"]] * 20
