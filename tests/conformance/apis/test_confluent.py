"""The Confluent dialect answers as its transcripts say."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from stele.apis.confluent import application
from stele.service.registry import Registry
from stele.storage import open_log

from .in_process import client_of
from .transcripts import Rule, play, read_rules

RULES = read_rules(*sorted((Path(__file__).parent / "confluent").glob("*.txt")))


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def registry() -> AsyncIterator[Registry]:
    """One node, emptied for every rule: building an application takes longer than playing a rule."""
    node = await Registry.open(await open_log("memory:"))
    yield node
    await node.close()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def client(registry: Registry) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the dialect over that node."""
    async with client_of(application(registry)) as made:
        yield made


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("rule", RULES, ids=[rule.sentence for rule in RULES])
async def test_rule(rule: Rule, registry: Registry, client: httpx.AsyncClient) -> None:
    """Every request of a transcript gets the answer written below it."""
    await registry.reset(await open_log("memory:"))
    await play(client, rule)


def test_there_are_enough_exchanges() -> None:
    """The transcripts are read at all, and cover the API's tables."""
    assert sum(len(rule.exchanges) for rule in RULES) >= 250
