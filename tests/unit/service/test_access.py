"""Commands and comparisons under rules: who may send them, and in whose name they are written down."""

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
    """What is done inside, this user does."""
    token = CALLER.set(Caller(Principal(name)))
    try:
        yield
    finally:
        CALLER.reset(token)


async def open_registry() -> Registry:
    """A node where ann may write orders, and nobody anything else."""
    registry = await Registry.open(MemoryLog(MemoryStore()))
    rule = AccessRule("user:ann", ("writer",), resource_type=ResourceType.SUBJECT, name="orders")
    registry.access = AccessControl(AccessRules((rule,), default_allow=False))
    return registry


async def test_a_command_is_refused_without_its_rights() -> None:
    """However it came, and before anything is written."""
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
    """What the server does by itself, as before the first write, has none."""
    registry = await open_registry()
    with calling_as("ann"):
        await registry.execute(CreateSubject(ORDERS), via="native")
    actors = [record.metadata.actor for _, record in await registry.read_log(0, 10)]
    assert actors == ["", "ann"]
    await registry.close()


async def test_comparing_wants_the_right_to_read_the_subject() -> None:
    """Else findings would tell what is in it."""
    registry = await open_registry()
    document = (await registry.parser.prepare_schema(registry.state, "avro", b'"string"')).document
    with calling_as("bob"), pytest.raises(Forbidden):
        await registry.find_incompatibilities(ORDERS, document, NO_ATTACHMENTS)
    await registry.close()
