"""Putting things after what they depend on, without recursion."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Final, TypeVar

N = TypeVar("N", bound=Hashable)

_SHOWN: Final = 8
"""Steps of a circle that a message shows."""


class Circle(Exception):
    """Things depend on each other; `way` leads from the first one back to it."""

    def __init__(self, way: list[Hashable]) -> None:
        super().__init__("things depend on each other in a circle")
        self.way = way

    def shown(self, name: Callable[[Hashable], str]) -> str:
        """The way in words; a long one is cut in the middle."""
        names = [name(node) for node in self.way]
        return " > ".join(names if len(names) <= _SHOWN else [*names[: _SHOWN - 2], "…", names[-1]])


def dependencies_first(nodes: Iterable[N], edges: Callable[[N], Iterable[N]]) -> list[N]:
    """All nodes and what they depend on, each after its dependencies. Raises `Circle`."""
    done: dict[N, None] = {}
    for root in nodes:
        if root in done:
            continue
        way: dict[N, None] = {root: None}
        stack = [(root, iter(edges(root)))]
        while stack:
            node, rest = stack[-1]
            following = next((each for each in rest if each not in done), None)
            if following is None:
                stack.pop()
                done[node] = None
                del way[node]
            elif following in way:
                steps: list[Hashable] = list(way)
                raise Circle([*steps[steps.index(following) :], following])
            else:
                way[following] = None
                stack.append((following, iter(edges(following))))
    return list(done)
