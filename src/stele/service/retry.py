"""Compare and retry: decide on what was seen, and decide again when somebody else was faster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from stele.core.state import State
from stele.errors import PreconditionFailed
from stele.service.registry import Registry

T = TypeVar("T")


class Overtaken(Exception):
    """An attempt found that somebody else was faster; the innermost `retry_when_overtaken` makes another one."""


async def retry_when_overtaken(
    registry: Registry,
    attempt: Callable[[State], Awaitable[T]],
    *,
    conflicts: tuple[type[Exception], ...] = (PreconditionFailed,),
    state: State | None = None,
) -> T:
    """Return what an attempt on the present state returns, trying again on the newer state after a conflict.

    An attempt reads the state it is given, and hands what it saw to its commands (`expected_latest`, `expected`, a
    revision), so that they fail when the state has moved on. It must have no effects of its own before that.

    Args:
        registry: Registry the attempt works on.
        attempt: Called with the present state, again after each conflict.
        conflicts: Errors of the attempt that mean another writer was faster; `Overtaken` always does.
        state: State for the first attempt, where the caller has one that was fresh when it was asked for.

    Raises:
        Exception: What the attempt raises, other than the conflicts.
    """
    caught: tuple[type[Exception], ...] = (Overtaken, *conflicts)
    while True:
        try:
            return await attempt(await registry.fresh_state() if state is None else state)
        except caught:
            state = None
