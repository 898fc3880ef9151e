"""Commands and comparisons under access rules: which callers may send them, and which actor the log records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from stele.core.access import AccessRule, AccessRules, ResourceType
from stele.core.commands import ChangeItems, CreateSubject, DeleteSubject
from stele.core.model import NO_ATTACHMENTS, SubjectKey
from stele.errors import Forbidden, Unauthenticated
from stele.service.access import CALLER, AccessControl, Caller, Principal
from stele.service.registry import Registry
from stele.storage.memory import MemoryLog, MemoryStore

ORDERS = SubjectKey("", "orders")
PAYMENTS = SubjectKey("", "payments")


@contextmanager
def calling_as(name: str) -> Iterator[None]:
    """Run the block as this user."""
    token = CALLER.set(Caller(Principal(name)))
    try:
        yield
    finally:
        CALLER.reset(token)


async def open_registry() -> Registry:
    """Open a node in which ann may register orders, and nobody else may do anything."""
    registry = await Registry.open(MemoryLog(MemoryStore()))
    rule = AccessRule("user:ann", ("writer",), resource_type=ResourceType.SUBJECT, name="orders")
    registry.access = AccessControl(AccessRules((rule,), default_allow=False))
    return registry


async def test_a_command_is_refused_without_its_rights() -> None:
    """A command without its rights is refused before anything is written, whichever way it came."""
    registry = await open_registry()
    with calling_as("ann"):
        await registry.execute(CreateSubject(ORDERS))
        for command in (CreateSubject(PAYMENTS), DeleteSubject(ORDERS), ChangeItems("access.rules", {("1",): b"{}"})):
            with pytest.raises(Forbidden):
                await registry.execute(command)
    with calling_as(""), pytest.raises(Unauthenticated):
        await registry.execute(CreateSubject(ORDERS))
    await registry.execute(CreateSubject(PAYMENTS))  # The server itself may do everything.
    await registry.close()


async def test_the_caller_is_the_actor_of_the_record() -> None:
    """A record has its caller as actor. Commands of the server itself, as before the first write, have no actor."""
    registry = await open_registry()
    with calling_as("ann"):
        await registry.execute(CreateSubject(ORDERS), via="native")
    actors = [record.metadata.actor for _, record in await registry.read_log(0, 10)]
    assert actors == ["", "ann"]
    await registry.close()


async def test_comparing_wants_the_right_to_read_the_subject() -> None:
    """A comparison needs the right to read the subject, because findings show its content."""
    registry = await open_registry()
    document = (await registry.parser.prepare_schema(registry.state, "avro", b'"string"')).document
    with calling_as("bob"), pytest.raises(Forbidden):
        await registry.find_incompatibilities(ORDERS, document, NO_ATTACHMENTS)
    await registry.close()
