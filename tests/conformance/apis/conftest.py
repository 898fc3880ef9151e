"""Fixtures of the tests of a dialect by its transcripts: one node, a client of the whole server, logs of every kind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
import structlog
from tests.conformance.apis.in_process import client_of

from stele.service.registry import Registry
from stele.storage import open_log


@pytest.fixture(scope="module")
def brief_logging() -> Iterator[None]:
    """Log lines as plain names and values: colored layout takes a quarter as long as a response."""
    processors = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.format_exc_info,
        structlog.processors.KeyValueRenderer(),
    ]
    structlog.configure(processors=processors)
    yield
    structlog.reset_defaults()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def registry(brief_logging: None) -> AsyncIterator[Registry]:
    """One node, which gets a new log for every test, because building an application takes longer than a test."""
    node = await Registry.open(await open_log("memory:"))
    yield node
    await node.close()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def client(request: pytest.FixtureRequest, registry: Registry) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the dialect over that node, behind the server's dispatcher: the module's `build_app`."""
    async with client_of(request.module.build_app(registry)) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="module", params=("memory", "sqlite"))
async def store(request: pytest.FixtureRequest, registry: Registry, tmp_path: Path) -> AsyncIterator[str]:
    """An empty log below the node, of every kind of store."""
    log = await open_log("memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'stele.db'}")
    await registry.reset(log)
    yield request.param
    await registry.reset(await open_log("memory:"))
    await log.close()
