"""The Confluent dialect answers as its transcripts require."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from tests.conformance.apis.in_process import App, client_of
from tests.conformance.apis.transcripts import Rule, play, read_rules

from stele.apis.confluent import ConfluentOptions, application
from stele.apis.confluent.profiles import PROFILES, ProfileName
from stele.server.dispatch import Dispatcher, MountedDialect
from stele.server.metrics import Metrics
from stele.service.registry import Registry
from stele.storage import open_log

RULES = read_rules(*sorted((Path(__file__).parent / "confluent").glob("*.txt")))
RELEASES = [name for name in PROFILES if name[0].isdigit()]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def registry(brief_logging: None) -> AsyncIterator[Registry]:
    """One node, emptied for every rule, because building an application takes longer than a rule."""
    node = await Registry.open(await open_log("memory:"))
    yield node
    await node.close()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def clients(registry: Registry) -> AsyncIterator[dict[ProfileName, httpx.AsyncClient]]:
    """Clients of the dialect over that node, behind the server's dispatcher, by profile."""
    async with AsyncExitStack() as stack:
        clients = {name: client_of(_build_front(registry, name)) for name in RELEASES}
        yield {name: await stack.enter_async_context(client) for name, client in clients.items()}


def _build_front(registry: Registry, profile: ProfileName) -> App:
    return Dispatcher(
        {}, MountedDialect("confluent", application(registry, ConfluentOptions(profile=profile))), Metrics()
    )


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("rule", RULES, ids=[rule.sentence for rule in RULES])
async def test_rule(rule: Rule, registry: Registry, clients: dict[ProfileName, httpx.AsyncClient]) -> None:
    """Every request of a transcript gets the response in it, in every profile."""
    profiles = [profile for profile in RELEASES if profile >= rule.since]
    assert profiles, f"no release has reached {rule.since}"
    wrong = []
    for profile in profiles:
        await registry.reset(await open_log("memory:"))
        try:
            await play(clients[profile], rule, profile)
        except AssertionError as error:
            wrong.append(f"{profile}: {error}")
    assert not wrong, "\n".join(wrong)


def test_there_are_enough_exchanges() -> None:
    """The transcripts are read, and cover the tables of the API."""
    assert sum(len(rule.exchanges) for rule in RULES) >= 1500
