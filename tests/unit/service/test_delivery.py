"""Delivery of the log to one follower: it stops in the middle of a page when it must."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio

from stele.core.commands import CreateNamespace
from stele.service.access import SYSTEM
from stele.service.change_events import ChangeEvent, parse_position
from stele.service.collections import edit_collection
from stele.service.delivery import lease
from stele.service.delivery import status as store
from stele.service.delivery.deliverer import Deliverer
from stele.service.delivery.status import DeliveryState, DeliveryStatus, find_lease, find_status, save_status
from stele.service.delivery.targets import Attempt, DeliveryCode
from stele.service.registry import Registry
from stele.storage.memory import MemoryLog

pytestmark = pytest.mark.asyncio(loop_scope="module")

COLLECTION = "followers"
STATUS = "followers.status"


class CountingFollower:
    """Wants events of every group, and calls a function after its first event."""

    name = "f"
    begin = "0"
    caller = SYSTEM
    protocol = "HTTP"

    def __init__(self, after_first: Callable[[], Awaitable[None]]) -> None:
        self.seen: list[str | None] = []
        self._after_first = after_first

    def is_wanted(self, event: ChangeEvent) -> bool:
        """Return True for events of groups only."""
        return event.change.namespace is not None

    async def attempt(self, event: ChangeEvent) -> Attempt:
        """Take every event."""
        self.seen.append(event.change.namespace)
        if len(self.seen) == 1:
            await self._after_first()
        return Attempt(DeliveryCode.DELIVERED)

    async def close(self) -> None:
        """Do nothing."""


class OneSource:
    """A collection with one follower."""

    collection = COLLECTION
    status_collection = STATUS

    def __init__(self, follower: CountingFollower) -> None:
        self._follower = follower

    def make_follower(self, text: bytes) -> CountingFollower:
        """Return the one follower."""
        return self._follower


@pytest_asyncio.fixture(loop_scope="module")
async def registry() -> AsyncIterator[Registry]:
    """A node with three groups, and one follower."""
    node = await Registry.open(MemoryLog())
    for name in "abc":
        await node.execute(CreateNamespace(name))
    await edit_collection(node, COLLECTION, lambda items: ({("f",): b"{}"}, None))
    yield node
    await node.close()


async def run_for_a_while(
    registry: Registry, follower: CountingFollower, is_noted: Callable[[], bool] = lambda: True
) -> None:
    """Deliver until a third of a second after the first event, and until `is_noted` returns True."""
    running = asyncio.create_task(Deliverer(registry, [OneSource(follower)]).run())
    async with asyncio.timeout(120):
        while not (follower.seen and is_noted()):  # noqa: ASYNC110 - nobody says when
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.3)
    running.cancel()
    await asyncio.wait({running})


async def test_another_node_that_took_the_lease_ends_a_burst(registry: Registry) -> None:
    """A node that loses the lease in the middle of a page sends no more events of it."""

    async def take_lease() -> None:
        assert await store.take_lease(registry, find_lease(registry.state), "another node")

    follower = CountingFollower(take_lease)
    await run_for_a_while(registry, follower)
    assert follower.seen == ["a"]


async def test_tasks_of_one_node_renew_its_lease_side_by_side(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A renewal by another task of the same node is not mistaken for another node's lease."""
    monkeypatch.setattr(lease, "RENEWAL_SECONDS", 0.0)
    holder = lease.LeaseHolder(registry, "work")
    assert await holder.hold()
    assert await asyncio.gather(*(holder.hold(takes_over=False) for _ in range(3))) == [True] * 3


async def test_a_pause_ends_a_burst(registry: Registry) -> None:
    """Events sent before a pause count as sent, and none are sent after it."""

    async def pause() -> None:
        await store.set_state(registry, STATUS, "f", DeliveryStatus("0"), DeliveryState.PAUSED)

    def is_noted() -> bool:
        status = find_status(registry.state, STATUS, "f")
        return status is not None and status.delivered > 0

    follower = CountingFollower(pause)
    await run_for_a_while(registry, follower, is_noted)
    assert follower.seen == ["a"]
    status = find_status(registry.state, STATUS, "f")
    assert status is not None
    assert (status.state, status.delivered) == (DeliveryState.PAUSED, 1)


async def test_a_position_never_goes_back(registry: Registry) -> None:
    """A node that was suspended does not overwrite a later position of another node."""
    await save_status(registry, STATUS, "f", DeliveryStatus("7"))
    status = await save_status(registry, STATUS, "f", DeliveryStatus("3"))
    assert parse_position(status.position) == parse_position("7")
    assert find_status(registry.state, STATUS, "f") == status
