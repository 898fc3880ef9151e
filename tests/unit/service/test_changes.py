"""The comparison of outlines alone, also of outlines that no built-in format produces."""

from __future__ import annotations

from stele.formats.capabilities import TRUNCATED, OutlineNode
from stele.service.changes import ChangeKind, TreeComparison


def node(path: str, parent: str | None = None, **more: object) -> OutlineNode:
    """Return a node whose name is the last part of its path."""
    values: dict[str, object] = {"kind": "thing", "attributes": {}, "name": path.rpartition(".")[2], **more}
    return OutlineNode(path, parent=parent, **values)  # type: ignore[arg-type]  # the values are those of a node


def summarize_changes(old: list[OutlineNode], new: list[OutlineNode]) -> list[tuple[str, str, str, str, str]]:
    """Return the changes in short form."""
    return [
        (each.kind.value, each.path, each.what, each.before, each.after) for each in TreeComparison(old, new).changes
    ]


def test_identity_goes_before_names() -> None:
    """Declarations with the same identity match, even if other declarations have their names."""
    old = [node("m"), node("m.a", "m", identity="1"), node("m.b", "m", identity="2")]
    new = [node("m"), node("m.b", "m", identity="1"), node("m.a", "m", identity="2")]
    assert summarize_changes(old, new) == [("renamed", "m.b", "thing", "a", "b"), ("renamed", "m.a", "thing", "b", "a")]


def test_aliases_of_either_side() -> None:
    """An alias on either side, or a common alias, makes two declarations the same."""
    old = [node("a"), node("b", aliases=("y",)), node("c", aliases=("w",))]
    new = [node("x", aliases=("a",)), node("y"), node("z", aliases=("w",))]
    assert [each.kind for each in TreeComparison(old, new).changes] == [ChangeKind.RENAMED] * 3


def test_a_tree_that_moved() -> None:
    """A subtree that is found unchanged elsewhere is moved once; nothing inside it is added or removed."""
    inside = [node("p.s.f", "p.s", attributes={"type": "int"}), node("p.s.g", "p.s")]
    old = [node("p"), node("p.s", "p"), *inside, node("q")]
    new = [
        node("p"),
        node("q"),
        node("q.s", "q"),
        node("q.s.f", "q.s", attributes={"type": "int"}),
        node("q.s.g", "q.s"),
    ]
    assert summarize_changes(old, new) == [("moved", "q.s", "thing", "p.s", "q.s")]


def test_trees_that_are_twice_there_do_not_move() -> None:
    """If two equal subtrees could have moved, none is reported as moved."""
    old = [node("p"), node("p.s", "p"), node("p.s.f", "p.s")]
    new = [node("q"), node("q.s", "q"), node("q.s.f", "q.s"), node("r"), node("r.s", "r"), node("r.s.f", "r.s")]
    assert {kind for kind, *_ in summarize_changes(old, new)} == {"added", "removed"}


def test_order() -> None:
    """Only the part of an order that differs is reported, and new members are not a change of order."""
    old = [node("m"), *(node(f"m.{name}", "m", ordered=True) for name in "abcd")]
    new = [node("m"), *(node(f"m.{name}", "m", ordered=True) for name in "axcbd")]
    assert summarize_changes(old, new) == [("moved", "m", "order", "b, c", "c, b"), ("added", "m.x", "thing", "", "")]


def test_names_of_types_that_were_renamed() -> None:
    """A field whose only change is a new name of its type is unchanged."""
    old = [node("T", identity="t"), node("f", attributes={"type": "list<T>"}, uses=("T",))]
    new = [node("U", identity="t"), node("f", attributes={"type": "list<U>"}, uses=("U",))]
    assert summarize_changes(old, new) == [("renamed", "U", "thing", "T", "U")]
    new[1] = node("f", attributes={"type": "set<U>"}, uses=("U",))
    assert ("changed", "f", "type", "list<T>", "set<U>") in summarize_changes(old, new)


def test_kinds() -> None:
    """A declaration that is of another kind now has a change of its kind."""
    assert summarize_changes([node("a")], [node("a", kind="other")]) == [("changed", "a", "kind", "thing", "other")]


def test_outlines_that_are_odd() -> None:
    """Missing parents, cycles, and the node that ends an outline cause no error."""
    odd = [node("a", "gone"), node("b", "c"), node("c", "b"), OutlineNode(TRUNCATED, TRUNCATED, {})]
    assert summarize_changes(odd, odd) == []
    assert ("added", "d", "thing", "", "") in summarize_changes(odd, [*odd, node("d", "gone")])


def test_what_was_removed_stands_where_it_stood() -> None:
    """The list follows the new version; a removed declaration comes after the one that it used to follow."""
    old = [node("a"), node("b"), node("c")]
    new = [node("a", attributes={"k": "1"}), node("c", attributes={"k": "1"}), node("d")]
    assert [(kind, path) for kind, path, *_ in summarize_changes(old, new)] == [
        ("changed", "a"),
        ("removed", "b"),
        ("changed", "c"),
        ("added", "d"),
    ]
