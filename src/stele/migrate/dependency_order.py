"""Sorts versions into an order in which they can be registered."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from stele.errors import InvalidRequest

Key = tuple[Any, ...]
"""Identifies a version: its subject, in one or two parts, and its number."""


class HasReferences(Protocol):
    """A version of a subject that may refer to others."""

    @property
    def key(self) -> Key:
        """Identifies the version."""
        ...

    def referenced_keys(self) -> list[Any]:
        """Return the keys of the versions it refers to."""
        ...


V = TypeVar("V", bound=HasReferences)


def sort_by_dependency(versions: Iterable[V], place: Callable[[Any], str] | None = None) -> tuple[V, ...]:
    """Return the versions by subject and number, but each after the versions it refers to.

    References to versions outside of the given ones are ignored. Raises `InvalidRequest` for circular references. place
    returns where a version was read, for the message.
    """
    known = {row.key: row for row in sorted(versions, key=lambda row: row.key)}
    done: dict[Key, V] = {}
    open_: set[Key] = set()
    for first in known:
        stack = [first]
        while stack:
            key = stack[-1]
            if key in done:
                stack.pop()
                continue
            waiting = [target for target in known[key].referenced_keys() if target in known and target not in done]
            if not waiting:
                done[key] = known[stack.pop()]
                open_.discard(key)
                continue
            if key in open_:  # its targets were visited once, and one of them still depends on it
                raise _find_circle(known, open_, key, place)
            open_.add(key)
            stack.extend(reversed(waiting))
    return tuple(done.values())


def _find_circle(
    known: dict[Key, V], open_: set[Key], start: Key, place: Callable[[Any], str] | None
) -> InvalidRequest:
    """Return the error for a circle of references, found among versions whose traversal has begun."""
    path: dict[Key, None] = {}
    key = start
    while key not in path:
        path[key] = None
        key = next(target for target in known[key].referenced_keys() if target in open_)
    names = [*path][[*path].index(key) :]
    circle = " → ".join(f"{':'.join(key[:-1])} version {key[-1]}" for key in [*names[:5], key])
    where = f"{place(key)}: " if place is not None else ""
    return InvalidRequest(f"{where}references go in a circle: {circle}")
