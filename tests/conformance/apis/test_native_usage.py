"""The native API stores censuses and previews deletions; the Confluent dialect warns in a header."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from tests.conformance.apis.in_process import client_of
from tests.conformance.apis.transcripts import Rule, is_coded_error, play, read_rules, says

from stele.server.dialects import build_dispatcher
from stele.server.metrics import Metrics
from stele.server.settings import ServerSettings
from stele.service.limits import Limits
from stele.service.registry import Registry
from stele.storage import open_log

pytestmark = pytest.mark.asyncio(loop_scope="module")

RULES = read_rules(Path(__file__).parent / "native" / "usage.txt")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def registry(brief_logging: None) -> AsyncIterator[Registry]:
    """A node that is limited to three locations, emptied for every test."""
    node = await Registry.open(await open_log("memory:"), Limits(places=3))
    yield node
    await node.close()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def server(registry: Registry) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the whole server."""
    async with client_of(build_dispatcher(registry, ServerSettings(), Metrics())) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="module")
async def client(registry: Registry, server: httpx.AsyncClient) -> httpx.AsyncClient:
    """The client of the whole server over an empty registry."""
    await registry.reset(await open_log("memory:"))
    return server


def is_refusal(expected: str, answer: httpx.Response) -> bool:
    """Return whether a response is the expected error: kind and message in the native API, else as in Confluent's."""
    if "error" not in answer.json():
        return is_coded_error(expected, answer)
    kind, _, sentence = expected.partition(" ")
    error = answer.json()["error"]
    return error["kind"] == kind and says(sentence, error["message"])


@pytest.mark.parametrize("rule", RULES, ids=[rule.sentence for rule in RULES])
async def test_rule(rule: Rule, client: httpx.AsyncClient) -> None:
    """Every request of the transcript gets the response in it."""
    await play(client, rule, refused=is_refusal)


async def test_places_are_bounded(client: httpx.AsyncClient) -> None:
    """A new location beyond the limit is refused; existing ones can be updated."""
    for name in ("a", "b", "c", "a"):
        assert (await client.put(f"/api/usage/{name}", json={"counted_at": 1})).status_code == 200
    answer = await client.put("/api/usage/d", json={"counted_at": 1})
    assert (answer.status_code, answer.json()["error"]["kind"]) == (413, "too_large")
    assert "max_places" in answer.json()["error"]["message"]


async def test_the_header_is_bounded_and_absent_without_need(client: httpx.AsyncClient) -> None:
    """With many versions and long names, the header stays short and counts what it leaves out."""
    name = "n" * 300
    sightings = []
    for number in range(1, 9):
        text = f'{{"type": "enum", "name": "E{number}", "symbols": ["A"]}}'
        await client.put(f"/config/{name}", json={"compatibility": "NONE"})
        registration = await client.post(f"/subjects/{name}/versions", json={"schema": text})
        sightings.append({"subject": name, "version": number, "schema_id": registration.json()["id"], "records": 5})
    await client.post("/subjects/unseen/versions", json={"schema": '"int"'})
    await client.put("/api/usage/t", json={"counted_at": 1, "seen": sightings})
    answer = await client.delete(f"/subjects/{name}")
    assert answer.json() == list(range(1, 9))
    assert len(answer.headers["stele-warning"]) <= 1020
    assert answer.headers["stele-warning"].endswith("; and 6 more")
    assert "stele-warning" not in (await client.delete("/subjects/unseen")).headers
