"""Layers of a graph: used nodes stand to the left, cycles end, and few lines cross."""

from __future__ import annotations

from stele.pictures.layered_layout import assign_layers, find_components, order_layers


def test_layers_follow_the_longest_way() -> None:
    """A node has a higher layer than all nodes that it uses."""
    edges = [("c", "b"), ("b", "a"), ("c", "a"), ("d", "a")]
    assert assign_layers("abcd", edges) == {"a": 0, "b": 1, "c": 2, "d": 1}


def test_circles_are_cut() -> None:
    """Nodes that refer to each other, or to themselves, have layers, too."""
    layers = assign_layers("abc", [("a", "b"), ("b", "c"), ("c", "a"), ("a", "a")])
    assert sorted(layers.values()) == [0, 1, 2]


def test_a_long_chain_needs_no_stack() -> None:
    """Ten thousand references in a row are walked without recursion."""
    nodes = list(range(10_000))
    layers = assign_layers(nodes, [(node + 1, node) for node in nodes[:-1]])
    assert layers[9_999] == 9_999


def test_neighbours_stand_side_by_side() -> None:
    """Lines that crossed in the order of the names do not cross after the sweeps."""
    layers = {"a": 0, "b": 0, "x": 1, "y": 1}
    assert order_layers(layers, [("x", "b"), ("y", "a")]) in ([["a", "b"], ["y", "x"]], [["b", "a"], ["x", "y"]])


def test_groups_are_found() -> None:
    """Connected nodes form one group; the largest group comes first."""
    assert find_components("abcde", [("e", "b"), ("b", "d")]) == [["b", "d", "e"], ["a"], ["c"]]
