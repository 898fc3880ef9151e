"""A store of each kind, nodes over it, and clients of the dialects on them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

from stele.apis import confluent
from stele.apis.schema_repo import SchemaRepoOptions, application
from stele.core.ports import Log
from stele.service.registry import Registry
from stele.storage import open_log
from stele.storage.memory import MemoryLog, MemoryStore

from ..in_process import client_of

JSON = {"accept": "application/json"}
TEXT = {"content-type": "text/plain"}


class World:
    """One store, with nodes and clients that are closed together with it."""

    def __init__(self, open_store: Callable[[], Awaitable[Log]], stack: AsyncExitStack) -> None:
        self._open = open_store
        self._stack = stack

    async def node(self) -> Registry:
        """Return another node over the store."""
        node = await Registry.open(await self._open())
        self._stack.push_async_callback(node.close)
        return node

    async def repo(self, node: Registry, options: SchemaRepoOptions | None = None) -> httpx.AsyncClient:
        """Return a client of AVRO-1124 and schema-repo on a node."""
        return await self._stack.enter_async_context(client_of(application(node, options)))

    async def confluent(self, node: Registry) -> httpx.AsyncClient:
        """Return a client of the Confluent dialect on a node."""
        return await self._stack.enter_async_context(client_of(confluent.application(node)))


@pytest.fixture(params=["memory", "sqlite"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """An empty store of one kind."""
    shared = MemoryStore()

    async def memory() -> Log:
        return MemoryLog(shared)

    async def sqlite() -> Log:
        return await open_log(f"sqlite:///{tmp_path}/log.db")

    async with AsyncExitStack() as stack:
        yield World(memory if request.param == "memory" else sqlite, stack)


@pytest.fixture
async def node(world: World) -> Registry:
    """A node over the store."""
    return await world.node()


@pytest.fixture
async def client(world: World, node: Registry) -> httpx.AsyncClient:
    """A client of the dialects on that node, with the default options."""
    return await world.repo(node)
