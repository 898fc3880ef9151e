"""Retries: an attempt that another writer overtook is repeated, any other failure is raised."""

from __future__ import annotations

import pytest

from stele.core.state import State
from stele.errors import AlreadyExists, InUse, PreconditionFailed
from stele.service.registry import Registry
from stele.service.retry import Overtaken, retry_when_overtaken
from stele.storage.memory import MemoryLog


class _Attempt:
    """Fails with each of the errors in turn, then succeeds."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    async def __call__(self, state: State) -> int:
        assert isinstance(state, State)
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return self.calls


async def test_conflicts_are_retried() -> None:
    """A failed precondition, or `Overtaken`, leads to another attempt."""
    registry = await Registry.open(MemoryLog())
    assert await retry_when_overtaken(registry, _Attempt(PreconditionFailed("changed"), Overtaken())) == 3


async def test_named_conflicts_replace_the_usual_one() -> None:
    """With other `conflicts`, a failed precondition is raised instead of being retried."""
    registry = await Registry.open(MemoryLog())
    assert await retry_when_overtaken(registry, _Attempt(AlreadyExists("x")), conflicts=(AlreadyExists,)) == 2
    with pytest.raises(PreconditionFailed):
        await retry_when_overtaken(registry, _Attempt(PreconditionFailed("x")), conflicts=(AlreadyExists,))


async def test_other_errors_are_raised() -> None:
    """An error that is no conflict ends the attempts."""
    attempt = _Attempt(InUse("s", 1))
    with pytest.raises(InUse):
        await retry_when_overtaken(await Registry.open(MemoryLog()), attempt)
    assert attempt.calls == 1
