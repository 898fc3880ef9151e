"""Optimistic concurrency: decide on the state that was read, and decide again when another writer was faster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from stele.core.state import State
from stele.errors import PreconditionFailed
from stele.service.registry import Registry

T = TypeVar("T")


class Overtaken(Exception):
    """An attempt found that another writer was faster; the innermost `retry_when_overtaken` makes another attempt."""


async def retry_when_overtaken(
    registry: Registry,
    attempt: Callable[[State], Awaitable[T]],
    *,
    conflicts: tuple[type[Exception], ...] = (PreconditionFailed,),
    state: State | None = None,
) -> T:
    """Return the result of an attempt on the present state. After a conflict, try again on the newer state.

    An attempt reads the state it is given, and passes what it saw to its commands (`expected_latest`, `expected`, a
    revision), so that they fail when the state has changed. It must have no side effects before that.

    Args:
        registry: Registry the attempt works on.
        attempt: Called with the present state, again after each conflict.
        conflicts: Errors of the attempt that mean another writer was faster; `Overtaken` always does.
        state: State for the first attempt, if the caller already has a fresh one.

    Raises:
        Exception: What the attempt raises, other than the conflicts.
    """
    caught: tuple[type[Exception], ...] = (Overtaken, *conflicts)
    while True:
        try:
            return await attempt(await registry.fresh_state() if state is None else state)
        except caught:
            state = None
