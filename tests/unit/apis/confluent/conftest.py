"""A registry in memory with a few schemas, built from commands."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from stele.core.commands import CompatibilityCheck, RegisterSchema, Registration
from stele.core.decide.register import make_document
from stele.core.metadata import DataRuleSet, Metadata
from stele.core.model import Reference, SubjectKey
from stele.service.registry import Registry
from stele.storage import open_log

Put = Callable[..., Awaitable[Registration]]


@pytest.fixture
async def registry() -> AsyncIterator[Registry]:
    """An empty registry."""
    node = await Registry.open(await open_log("memory:"))
    yield node
    await node.close()


@pytest.fixture
def put(registry: Registry) -> Put:
    """A function that registers a text under `namespace:name` without a compatibility check."""

    async def register(
        name: str,
        text: str,
        *,
        references: tuple[Reference, ...] = (),
        metadata: Metadata | None = None,
        rule_set: DataRuleSet | None = None,
    ) -> Registration:
        space, _, subject = name.rpartition(":")
        command = RegisterSchema(
            key=SubjectKey(space, subject),
            document=make_document(text.encode(), "avro"),
            references=references,
            metadata=metadata,
            rule_set=rule_set,
            check=CompatibilityCheck.SKIP,
        )
        outcome = await registry.execute(command)
        assert isinstance(outcome, Registration)
        return outcome

    return register
