"""Runs the generators of clients and serializers, blocking or awaited. Nothing here does I/O.

Such a generator yields the steps to perform; the caller supplies the function that performs them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

from stele.errors import SteleError

T = TypeVar("T")


def drive_steps(steps: Generator[Any, Any, T], perform: Callable[[Any], Any]) -> T:
    """Run a generator to its end. Perform each step it yields, send it the result, and throw errors into it."""
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
    """Run a generator to its end like `drive_steps`, and await each step."""
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
