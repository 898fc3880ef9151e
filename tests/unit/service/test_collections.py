"""Documents beside the schemas."""

from __future__ import annotations

import asyncio

from stele.service.collections import Changes, Items, edit_collection, read_collection
from stele.service.registry import Registry
from stele.storage.memory import MemoryLog, MemoryStore


def _more(items: Items) -> tuple[Changes, int]:
    number = int(items.get(("n",), b"0")) + 1
    return {("n",): str(number).encode()}, number


async def test_rivals_of_two_nodes_lose_no_change() -> None:
    """The slower of two writers decides again on the newer documents, and all nodes read the same in the end."""
    store = MemoryStore()
    nodes = [await Registry.open(MemoryLog(store)) for _ in range(2)]
    answers = await asyncio.gather(*(edit_collection(nodes[number % 2], "numbers", _more) for number in range(20)))
    assert sorted(answers) == list(range(1, 21))
    for node in nodes:
        assert await read_collection(node, "numbers") == {("n",): b"20"}
        await node.close()


async def test_a_change_of_nothing_writes_nothing() -> None:
    """An empty change returns its answer without a write."""
    registry = await Registry.open(MemoryLog())
    assert await read_collection(registry, "x") == {}
    assert await edit_collection(registry, "x", lambda items: ({}, len(items))) == 0
    assert registry.appended == 0
    await registry.close()
