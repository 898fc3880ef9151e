"""Places the nodes of a directed graph in layers: a short form of Sugiyama's method.

A node stands to the left of the nodes that use it. Its layer is the length of the longest path from it to a node that
uses nothing; cycles are cut where the depth-first search meets its own path. Nodes of a layer are ordered by the mean
position of their neighbours, in alternating sweeps, so that few lines cross. The layout of a graph is deterministic.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

N = TypeVar("N")
_SWEEPS: Final = 4


def assign_layers(nodes: Sequence[N], edges: Iterable[tuple[N, N]]) -> dict[N, int]:
    """Return the layer of each node, from 0; edges lead from a user to what it uses."""
    used: defaultdict[N, list[N]] = defaultdict(list)
    for user, target in edges:
        if user != target:
            used[user].append(target)
    layers: dict[N, int] = {}
    for start in nodes:
        pending: list[tuple[N, bool]] = [(start, False)]
        above: set[N] = set()
        while pending:
            node, is_expanded = pending.pop()
            if is_expanded:
                above.discard(node)
                layers[node] = 1 + max((layers.get(target, -1) for target in used[node]), default=-1)
            elif node not in layers and node not in above:
                above.add(node)
                pending.append((node, True))
                pending.extend((target, False) for target in reversed(used[node]) if target not in above)
    return layers


def order_layers(layers: Mapping[N, int], edges: Iterable[tuple[N, N]]) -> list[list[N]]:
    """Return the nodes of each layer from top to bottom, the lowest layer first.

    Args:
        layers: Layer of each node. The nodes of a layer start in the order of this mapping.
        edges: Pairs of connected nodes, in either direction.
    """
    lowest = min(layers.values(), default=0)
    rows: list[list[N]] = [[] for _ in range(max(layers.values(), default=-1) - lowest + 1)]
    for node, layer in layers.items():
        rows[layer - lowest].append(node)
    joined: defaultdict[N, list[N]] = defaultdict(list)
    for one, other in edges:
        joined[one].append(other)
        joined[other].append(one)
    for sweep in range(_SWEEPS):
        order = range(len(rows)) if sweep % 2 == 0 else range(len(rows) - 1, -1, -1)
        for index in order:
            _sort_row(rows, index, joined, layers, from_left=sweep % 2 == 0)
    return rows


def _sort_row(
    rows: list[list[N]],
    index: int,
    joined: Mapping[N, list[N]],
    layers: Mapping[N, int],
    *,
    from_left: bool,
) -> None:
    """Sort a layer by the mean place of the neighbours on the side that the sweep comes from."""
    places = {node: (place + 0.5) / len(row) for row in rows for place, node in enumerate(row)}

    def weigh(node: N) -> float:
        layer = layers[node]
        others = [other for other in joined.get(node, ()) if layers[other] != layer]
        near = [other for other in others if (layers[other] < layer) is from_left]
        return sum(places[other] for other in near) / len(near) if near else places[node]

    rows[index].sort(key=weigh)


def find_components(nodes: Sequence[N], edges: Iterable[tuple[N, N]]) -> list[list[N]]:
    """Return the connected groups of nodes, the largest first; the nodes of a group keep their order."""
    joined: defaultdict[N, list[N]] = defaultdict(list)
    for one, other in edges:
        joined[one].append(other)
        joined[other].append(one)
    seen: set[N] = set()
    groups: list[list[N]] = []
    rank = {node: number for number, node in enumerate(nodes)}
    for start in nodes:
        if start in seen:
            continue
        seen.add(start)
        group, pending = [], [start]
        while pending:
            node = pending.pop()
            group.append(node)
            for other in joined[node]:
                if other not in seen:
                    seen.add(other)
                    pending.append(other)
        groups.append(sorted(group, key=rank.__getitem__))
    return sorted(groups, key=len, reverse=True)
