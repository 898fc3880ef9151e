"""A node over a log with late notices: fresh reads ask the log, reads of immutable facts do not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from tests.unit.service.test_registry import KEY, _no_newer_rules, put, record

from stele.core import queries
from stele.core.ports import LogEntry
from stele.core.state import State
from stele.errors import ContentNotFound
from stele.service.registry import Registry
from stele.storage.memory import MemoryLog, MemoryStore

__all__ = ["_no_newer_rules"]


class LateLog(MemoryLog):
    """A log that reports foreign appends only when the test allows it, counts calls of `tail`, and can block them."""

    notices_at_once = False

    def __init__(self, shared: MemoryStore) -> None:
        super().__init__(shared)
        self.is_told = False
        self.tails = 0
        self.gate = asyncio.Event()
        self.gate.set()

    def has_changed(self) -> bool:
        is_told, self.is_told = self.is_told, False
        return is_told

    async def tail(self, after: int, limit: int) -> Sequence[LogEntry]:
        self.tails += 1
        entries = await super().tail(after, limit)
        await self.gate.wait()
        return entries

    async def wait(self, after: int, timeout: float) -> None:  # noqa: ASYNC109 - as the port has it
        await asyncio.sleep(3600)


@pytest.fixture
async def nodes() -> tuple[Registry, Registry, LateLog]:
    """Return a node that writes, one with late notices, and the log of the latter."""
    store = MemoryStore()
    late = LateLog(store)
    return await Registry.open(MemoryLog(store)), await Registry.open(late), late


def count_versions(state: State) -> int:
    """Return the number of versions of the subject of these tests."""
    subject = state.namespaces[""].subjects.get(KEY.name) if "" in state.namespaces else None
    return 0 if subject is None else len(subject.versions)


async def test_lists_are_fresh_without_a_notice(nodes: tuple[Registry, Registry, LateLog]) -> None:
    """A read of mutable state asks the log each time, and memory never counts as fresh."""
    writer, reader, _ = nodes
    for number in range(3):
        await put(writer, record(*"abc"[: number + 1]))
        assert count_versions(await reader.fresh_state()) == number + 1
        assert not reader.is_fresh()


async def test_ids_come_from_memory(nodes: tuple[Registry, Registry, LateLog]) -> None:
    """A known id costs no call of the log, an unknown one costs one, and a notice makes the node catch up."""
    writer, reader, log = nodes
    first = await put(writer, record("a"))

    def read(state: State) -> object:
        return queries.get_schema_entry(state, "", first.schema_id)

    await reader.read_or_catch_up(read)
    tails = log.tails
    for _ in range(5):
        await reader.read_or_catch_up(read)
        assert reader.has_read_all()
    assert log.tails == tails
    with pytest.raises(ContentNotFound):
        await reader.read_or_catch_up(lambda state: queries.get_schema_entry(state, "", 99))
    assert log.tails == tails + 1
    await put(writer, record("a", "b"))
    log.is_told = True
    assert not reader.has_read_all()
    await reader.read_or_catch_up(read)
    assert count_versions(reader.state) == 2


async def test_requests_at_once_share_a_question(nodes: tuple[Registry, Registry, LateLog]) -> None:
    """Requests that arrive while the log answers an earlier one share a single further call, whose answer is newer."""
    writer, reader, log = nodes
    log.gate.clear()
    early = asyncio.create_task(reader.fresh_state())
    await asyncio.sleep(0)
    tails = log.tails
    await put(writer, record("a"))  # the question that is under way does not see it
    late = [asyncio.create_task(reader.fresh_state()) for _ in range(50)]
    await asyncio.sleep(0.01)
    assert not any(task.done() for task in late)
    log.gate.set()
    await early
    states = await asyncio.gather(*late)
    assert [count_versions(state) for state in states] == [1] * 50
    assert log.tails == tails + 1


async def test_a_failure_is_not_shared(nodes: tuple[Registry, Registry, LateLog]) -> None:
    """When a catch-up fails or is cancelled, the next waiting request catches up itself."""
    writer, reader, log = nodes
    log.gate.clear()
    early = asyncio.create_task(reader.fresh_state())
    late = [asyncio.create_task(reader.fresh_state()) for _ in range(3)]
    await asyncio.sleep(0)
    await put(writer, record("a"))
    early.cancel()
    late[0].cancel()
    await asyncio.sleep(0)
    log.gate.set()
    assert [count_versions(state) for state in await asyncio.gather(*late[1:])] == [1, 1]
