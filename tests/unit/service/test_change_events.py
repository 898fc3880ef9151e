"""Events derived from the log: one for each element that changed, in order, and none is lost between two pages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from stele.core.access import AccessRules
from stele.core.commands import (
    ChangeItems,
    ChangeSettings,
    CreateNamespace,
    DeleteMode,
    DeleteSubject,
    DeleteVersion,
    RegisterSchema,
)
from stele.core.model import SettingsLevel, SubjectKey
from stele.core.policy import POLICIES
from stele.core.ports import TextForm
from stele.errors import InvalidRequest
from stele.protocol.cncf import DELETED, UPDATED
from stele.service.access import CALLER, AccessControl, Caller
from stele.service.change_events import EventPosition, choose_events, parse_position, read_events, wait_for_events
from stele.service.registry import Registry
from stele.storage.memory import MemoryLog

pytestmark = pytest.mark.asyncio(loop_scope="module")

SOURCE = "https://registry.example.org"
ORDERS = SubjectKey("", "orders")
PATH = "/schemagroups/default/schemas/orders"


@pytest_asyncio.fixture(loop_scope="module")
async def registry() -> AsyncIterator[Registry]:
    """An empty node."""
    node = await Registry.open(MemoryLog())
    yield node
    await node.close()


async def put(registry: Registry, key: SubjectKey, *fields: str) -> None:
    """Register an Avro record with these fields."""
    text = json.dumps(
        {"type": "record", "name": "R", "fields": [{"name": name, "type": "int", "default": 0} for name in fields]}
    ).encode()
    state = await registry.fresh_state()
    prepared = await registry.parser.prepare_schema(state, "avro", text, form=TextForm.PRINTED)
    await registry.execute(RegisterSchema(key, prepared.document, prepared.references))


async def list_subjects(registry: Registry, after: EventPosition) -> list[tuple[str, str]]:
    """Return type and subject of every event after a position."""
    page = await read_events(registry, after)
    events = [event.to_cloud_event(SOURCE) for event in page.events]
    assert len({event.id for event in events}) == len(events)
    return [(event.type, event.subject) for event in events]


async def test_each_change_gives_one_event(registry: Registry) -> None:
    """Each created, changed or deleted element gives one event, with the narrowest path that reads it."""
    await put(registry, ORDERS, "a")
    begin = EventPosition(registry.state.seq + 1)
    await put(registry, ORDERS, "a", "b")
    await put(registry, SubjectKey("billing", "a/b"), "x")
    await registry.execute(CreateNamespace("empty"))
    await registry.execute(ChangeSettings(SettingsLevel("", "orders"), {"policy": POLICIES["FULL"]}))
    await registry.execute(ChangeSettings(SettingsLevel(), {"policy": POLICIES["NONE"]}))
    await registry.execute(DeleteVersion(ORDERS, 2))
    await registry.execute(DeleteVersion(ORDERS, 2, DeleteMode.HARD))
    await registry.execute(DeleteSubject(ORDERS, DeleteMode.END_INCARNATION))
    await registry.execute(ChangeItems("usage", {("x",): b"{}"}))
    assert await list_subjects(registry, begin) == [
        (UPDATED, f"{PATH}/versions/2"),
        (UPDATED, "/schemagroups/billing/schemas/a%2Fb/versions/1"),
        (UPDATED, "/schemagroups/empty"),
        (UPDATED, PATH),
        (UPDATED, "/"),
        (DELETED, f"{PATH}/versions/2"),
        (DELETED, f"{PATH}/versions/2"),
        (DELETED, PATH),
    ]


async def test_pages_of_any_size_hold_the_same_events(registry: Registry) -> None:
    """Pages of any size, from any event on, give the same events in order, each once."""
    for number in range(5):
        await put(registry, ORDERS, *(f"f{index}" for index in range(number + 1)))
    await registry.execute(DeleteSubject(ORDERS, DeleteMode.SOFT))
    whole = (await read_events(registry, EventPosition())).events
    assert len(whole) == 11  # the first is about the rulesets that a new registry takes over
    for size in (1, 2, 3, 7):
        events, position = [], EventPosition()
        while position.seq <= registry.state.seq:
            page = await read_events(registry, position, size)
            events += page.events
            assert parse_position(str(page.next)) == page.next
            position = page.next
        assert events == whole
    for index, event in enumerate(whole):
        assert (await read_events(registry, parse_position(str(event.position)))).events == whole[index + 1 :]


async def test_waiting_ends_with_the_next_event(registry: Registry) -> None:
    """A wait ends with the next wanted event. An unwanted event does not end it, and is not read again."""
    await put(registry, ORDERS, "a")
    begin = EventPosition(registry.state.seq + 1)
    wanted = choose_events(SOURCE, [DELETED], [{"prefix": {"subject": PATH}}])
    waiting = asyncio.create_task(wait_for_events(registry, begin, 120, wanted))
    await put(registry, SubjectKey("", "other"), "a")
    await registry.execute(DeleteVersion(SubjectKey("", "other"), 1))
    await asyncio.sleep(0)
    assert not waiting.done()
    await registry.execute(DeleteVersion(ORDERS, 1))
    page = await asyncio.wait_for(waiting, 60)
    assert [event.to_cloud_event(SOURCE).subject for event in page.events] == [f"{PATH}/versions/1"]
    nothing = await wait_for_events(registry, page.next, 0.01, wanted)
    assert (nothing.events, nothing.next) == ([], page.next)


async def test_events_follow_the_rights_of_the_caller(registry: Registry) -> None:
    """A caller gets no events about elements that it may not see in lists; the position advances anyway."""
    await put(registry, ORDERS, "a")
    registry.access = AccessControl(AccessRules((), default_allow=False))
    asking = CALLER.set(Caller())
    try:
        page = await read_events(registry, EventPosition())
    finally:
        CALLER.reset(asking)
    assert (page.events, page.next.seq) == ([], registry.state.seq + 1)


@pytest.mark.parametrize("text", ["", "x", "-1", "1-", "1-x", "1-1-1", "9" * 30, "\u0661"])
async def test_refuses_what_is_no_position(text: str) -> None:
    """A position that is not a number, or two with a hyphen, is refused."""
    with pytest.raises(InvalidRequest):
        parse_position(text)
