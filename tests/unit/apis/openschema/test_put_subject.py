"""Writing a subject while another client deletes it, in every order that the log allows."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio
from tests.support.overtaken_log import OvertakenLog

from stele.apis.openschema.app import application
from stele.core.events import SubjectCreated
from stele.service.registry import Registry
from stele.storage.memory import MemoryLog, MemoryStore

BODY = {"tenant": "t", "namespace": "n", "subject": "s", "app": "a", "description": "d", "status": "deployed"}
PATH = "/subjects/s/?tenant=t&namespace=n"


class Node:
    """A node and a client of its OpenSchema API."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.http = httpx.AsyncClient(transport=httpx.ASGITransport(application(registry)), base_url="http://node")

    async def count_creations(self) -> int:
        """Return how many events in the log create the subject."""
        events = [event for _, record in await self.registry.read_log(0, 100) for event in record.events]
        return sum(isinstance(event, SubjectCreated) and event.key.name == "s" for event in events)


@pytest_asyncio.fixture
async def nodes() -> AsyncIterator[tuple[Node, Node, OvertakenLog]]:
    """Two nodes of one log, and the handle of the first."""
    store = MemoryStore()
    log = OvertakenLog(store)
    first, second = Node(await Registry.open(log)), Node(await Registry.open(MemoryLog(store)))
    for node in (first, second):  # The first write of a node adopts the newest rulesets.
        await node.http.post("/subjects/other", json=BODY | {"subject": "other"})
    yield first, second, log
    await first.registry.close()
    await second.registry.close()


@pytest.mark.parametrize("exists", [False, True], ids=["creates", "changes"])
async def test_a_deletion_right_behind_stays(nodes: tuple[Node, Node, OvertakenLog], *, exists: bool) -> None:
    """A subject that is deleted right after it was written stays deleted, and both requests succeed."""
    first, second, log = nodes
    if exists:
        assert (await second.http.post(PATH, json=BODY)).status_code == 200
        await first.registry.fresh_state()

    async def delete() -> None:
        await second.http.delete(PATH)
        await first.registry.fresh_state()

    log.behind = delete
    answer = await first.http.post(PATH, json=BODY | {"description": "new", "compatibility": "NONE"})
    assert (answer.status_code, answer.json()["description"]) == (200, "new")
    assert log.behind is None
    assert await second.count_creations() == 1
    assert (await first.http.get(PATH)).status_code == 404


async def test_a_deletion_right_before_makes_it_a_creation(nodes: tuple[Node, Node, OvertakenLog]) -> None:
    """A subject that is deleted right before its change is created once, with the requested policy."""
    first, second, log = nodes
    assert (await first.http.post(PATH, json=BODY)).status_code == 200

    async def delete() -> None:
        await second.http.delete(PATH)

    log.before = delete
    answer = await first.http.post(PATH, json=BODY | {"compatibility": "NONE"})
    assert (answer.status_code, answer.json()["compatibility"]) == (200, "NONE")
    assert await second.count_creations() == 2
    assert (await second.http.get(PATH)).json()["compatibility"] == "NONE"


async def test_two_creations_are_one(nodes: tuple[Node, Node, OvertakenLog]) -> None:
    """A request to create a subject changes it if another client created it first."""
    first, second, log = nodes

    async def create() -> None:
        await second.http.post(PATH, json=BODY)

    log.before = create
    answer = await first.http.post(PATH, json=BODY | {"description": "mine"})
    assert (answer.status_code, answer.json()["description"]) == (200, "mine")
    assert await second.count_creations() == 1
