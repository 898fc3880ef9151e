"""Concurrent registrations of one schema in different spellings, at two nodes: the schema gets one version."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from stele.apis.confluent import application
from stele.service.registry import Registry
from stele.storage.memory import MemoryLog, MemoryStore

ONE = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}],"one":1,"two":2}'
OTHER = '{"two":2,"name":"R","type":"record","fields":[{"name":"a","type":"int"}],"one":1}'
LATER = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"int","default":1}]}'


@pytest_asyncio.fixture
async def nodes() -> AsyncIterator[list[Registry]]:
    """Two nodes of one log."""
    store = MemoryStore()
    registries = [await Registry.open(MemoryLog(store)) for _ in range(2)]
    yield registries
    for registry in registries:
        await registry.close()


async def register(registry: Registry, body: dict[str, Any]) -> httpx.Response:
    """Register a schema as a client of one node does."""
    transport = httpx.ASGITransport(application(registry))
    async with httpx.AsyncClient(transport=transport, base_url="http://stele.test") as client:
        return await client.post("/subjects/s/versions", json=body)


def call_before_first_write(registry: Registry, action: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Call `action` between a registration's look-up and its command."""
    write = registry.register
    actions = [action]

    async def register_later(*command: Any, **options: Any) -> Any:
        if actions:
            await actions.pop()()
        return await write(*command, **options)

    monkeypatch.setattr(registry, "register", register_later)


@pytest.mark.parametrize("before", [[], [LATER]], ids=["first version", "later version"])
async def test_the_same_schema_written_differently_is_one_version(
    before: list[str], nodes: list[Registry], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slower registration compares again, and returns the id that the other one registered."""
    for text in before:
        assert (await register(nodes[1], {"schema": text})).status_code == 200
    winner: list[httpx.Response] = []

    async def register_other() -> None:
        winner.append(await register(nodes[1], {"schema": OTHER}))

    call_before_first_write(nodes[0], register_other, monkeypatch)
    answer = await register(nodes[0], {"schema": ONE})
    assert answer.status_code == winner[0].status_code == 200, answer.text
    assert answer.json()["id"] == winner[0].json()["id"]
    assert len(nodes[0].state.namespaces[""].subjects["s"].versions) == len(before) + 1


@pytest.mark.parametrize("few", [0, 1000])
async def test_other_spellings_are_found_among_few_and_many(
    few: int, nodes: list[Registry], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another spelling of a schema finds the existing version, for few and for many versions of the subject."""
    monkeypatch.setattr("stele.apis.confluent.operations.schemas._FEW_VERSIONS", few)
    for text in (ONE, LATER):
        assert (await register(nodes[0], {"schema": text})).status_code == 200
    answer = await register(nodes[0], {"schema": OTHER})
    assert (answer.status_code, answer.json()["version"]) == (200, 1)


async def test_another_schema_gets_its_own_version(nodes: list[Registry], monkeypatch: pytest.MonkeyPatch) -> None:
    """A different schema that another node registers meanwhile gets a version of its own."""

    async def register_other() -> None:
        assert (await register(nodes[1], {"schema": LATER})).status_code == 200

    call_before_first_write(nodes[0], register_other, monkeypatch)
    assert (await register(nodes[0], {"schema": ONE})).status_code == 200
    assert [row.version_number for row in nodes[0].state.namespaces[""].subjects["s"].versions] == [1, 2]
