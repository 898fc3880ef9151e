"""Versions are registered after the versions they refer to."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import scale_examples
from tests.unit.migrate.samples import row

from stele.errors import InvalidRequest
from stele.migrate.dependency_order import sort_by_dependency
from stele.migrate.model import DumpVersion


@given(st.data())
@settings(max_examples=scale_examples(60), deadline=None)
def test_targets_come_first(data: st.DataObject) -> None:
    """For any references without a circle, every target comes before the versions that refer to it."""
    names = [f"s{number}" for number in data.draw(st.permutations(range(8)))]
    rows = []
    for place, name in enumerate(names):
        targets = data.draw(st.sets(st.sampled_from(names[:place]), max_size=3)) if place else set()
        rows.append(row(name, 1, place + 1, "", *((target, 1) for target in sorted(targets)), ("elsewhere", 9)))
    order = sort_by_dependency(data.draw(st.permutations(rows)))
    assert sorted(order, key=lambda r: r.key) == sorted(rows, key=lambda r: r.key)
    seen: set[tuple[str, int]] = set()
    for version in order:
        assert all(target in seen for target in version.referenced_keys() if target[0] != "elsewhere")
        seen.add(version.key)
    assert sort_by_dependency(reversed(order)) == order


def test_long_chains() -> None:
    """A chain of references far deeper than Python's stack can be sorted."""
    rows = [row(f"s{n:05}", 1, n + 1, "", *([(f"s{n + 1:05}", 1)] if n < 20_000 else [])) for n in range(20_001)]
    assert [version.id for version in sort_by_dependency(rows)] == list(range(20_001, 0, -1))


CIRCLES = [
    [row("a", 1, 1, "", ("a", 1))],
    [
        row("z", 1, 9, "", ("b", 2), ("a", 1)),
        row("a", 1, 1, "", ("b", 2)),
        row("b", 2, 2, "", ("q", 1), ("a", 1)),
        row("q", 1, 3),
    ],
]


@pytest.mark.parametrize("rows", CIRCLES)
def test_circles(rows: list[DumpVersion]) -> None:
    """A circle of references raises an error that shows it and names the place of one of its members."""
    with pytest.raises(InvalidRequest, match=r"^line [0-9]: references go in a circle: ") as caught:
        sort_by_dependency(rows, lambda key: f"line {key[1]}")
    circle = str(caught.value).split(": ", 2)[2].split(" → ")
    assert circle[0] == circle[-1]
    assert set(circle) <= {"a version 1", "b version 2"}


def test_names_of_contexts() -> None:
    """A bare subject in a reference is in the context of the referring schema, a qualified one in its own context."""
    version = row(":.t:a", 1, 1, "", ("b", 1), (":.:c", 2), (":.u:d", 3), (":.t:e", 4))
    assert version.referenced_keys() == [(":.t:b", 1), ("c", 2), (":.u:d", 3), (":.t:e", 4)]
    assert [reference.subject for reference in version.references] == ["b", ":.:c", ":.u:d", "e"]
