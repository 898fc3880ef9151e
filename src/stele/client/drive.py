"""Runs the generators in which clients and serializers say what to do: blocking, or awaited. Nothing here does I/O."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

from stele.errors import SteleError

T = TypeVar("T")


def drive_steps(steps: Generator[Any, Any, T], perform: Callable[[Any], Any]) -> T:
    """Run a generator to its end: do what it yields, send it what came of that, throw into it what failed."""
    result: Any = None
    failure: SteleError | None = None
    while True:
        try:
            step = steps.send(result) if failure is None else steps.throw(failure)
        except StopIteration as end:
            value: T = end.value
            return value
        try:
            result, failure = perform(step), None
        except SteleError as error:
            failure = error


async def drive_steps_async(steps: Generator[Any, Any, T], perform: Callable[[Any], Awaitable[Any]]) -> T:
    """Do as `drive_steps` does, and await what is done."""
    result: Any = None
    failure: SteleError | None = None
    while True:
        try:
            step = steps.send(result) if failure is None else steps.throw(failure)
        except StopIteration as end:
            value: T = end.value
            return value
        try:
            result, failure = await perform(step), None
        except SteleError as error:
            failure = error
