"""Finds the types of a schema that contain themselves."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

N = TypeVar("N", bound=Hashable)


def strongly_connected(nodes: Iterable[N], edges: Callable[[N], Iterable[N]]) -> list[list[N]]:
    """Return the groups of nodes that reach each other, or themselves, each group in the order its nodes are visited.

    Uses Tarjan's algorithm without recursion; the time is linear in nodes and edges. Nodes that occur only as the
    target of an edge are visited too.
    """
    number: dict[N, int] = {}
    low: dict[N, int] = {}
    open_: dict[N, None] = {}
    components: list[list[N]] = []
    for start in nodes:
        if start in number:
            continue
        trail: list[tuple[N, Iterator[N]]] = [(start, iter(edges(start)))]
        number[start] = low[start] = len(number)
        open_[start] = None
        while trail:
            node, rest = trail[-1]
            for following in rest:
                if following not in number:
                    number[following] = low[following] = len(number)
                    open_[following] = None
                    trail.append((following, iter(edges(following))))
                    break
                if following in open_:
                    low[node] = min(low[node], number[following])
            else:
                trail.pop()
                if trail:
                    low[trail[-1][0]] = min(low[trail[-1][0]], low[node])
                if low[node] == number[node]:
                    components += _pop_component(node, open_, edges)
    return sorted(components, key=lambda group: number[group[0]])


def _pop_component(root: N, open_: dict[N, None], edges: Callable[[N], Iterable[N]]) -> list[list[N]]:
    """Remove the group of a root from the open nodes and return it; [] for a node that does not reach itself."""
    group: list[N] = []
    while root in open_:
        group.append(open_.popitem()[0])
    group.reverse()
    return [group] if len(group) > 1 or root in edges(root) else []
