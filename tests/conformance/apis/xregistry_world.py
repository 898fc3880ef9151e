"""Fixtures of the tests of the xRegistry dialect: the whole server in this process, with a new log for each."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest_asyncio
from tests.conformance.apis.xregistry_client import XregistryClient

from stele.server.asgi import App
from stele.server.dialects import build_dispatcher
from stele.server.metrics import Metrics
from stele.server.settings import ServerSettings
from stele.service.registry import Registry
from stele.storage import open_log


def build_app(registry: Registry) -> App:
    """Return the whole server over a node."""
    return build_dispatcher(registry, ServerSettings(), Metrics())


@pytest_asyncio.fixture(loop_scope="module")
async def xr(registry: Registry, client: httpx.AsyncClient) -> AsyncIterator[XregistryClient]:
    """A client of an empty registry."""
    await registry.reset(await open_log("memory:"))
    yield XregistryClient(client)
