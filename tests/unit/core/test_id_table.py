"""The table of ids behaves like a dict, whether its ids are consecutive or not."""

from __future__ import annotations

import sys

from hypothesis import given
from hypothesis import strategies as st

from stele.core.id_table import IdTable

ids = st.integers(1, 6)
steps = st.lists(st.tuples(st.sampled_from(["next", "set", "delete"]), ids), max_size=20)


@given(steps)
def test_it_holds_what_a_dict_holds(done: list[tuple[str, int]]) -> None:
    """After any changes the table has the same ids and values as a dict, and look-ups give the same."""
    table: IdTable[str] = IdTable()
    model: dict[int, str] = {}
    for position, (what, number) in enumerate(done):
        key = max(model, default=0) + 1 if what == "next" else number
        if what != "delete":
            table[key] = model[key] = str(position)
        elif key in model:
            del table[key], model[key]
        assert dict(table.items()) == model
        assert sorted(table.values()) == sorted(model.values())
        assert [table.get(each) for each in range(8)] == [model.get(each) for each in range(8)]
        assert [each in table for each in range(8)] == [each in model for each in range(8)]
        assert len(table) == len(model)


@given(st.lists(ids, unique=True))
def test_values_come_in_the_order_they_were_added(keys: list[int]) -> None:
    """Values that are added later come after those that a reader has already read."""
    table: IdTable[int] = IdTable()
    for position, key in enumerate(keys):
        table[key] = key
        assert list(table.values()) == keys[: position + 1]
        assert list(table) == keys[: position + 1]


def test_ids_in_order_take_a_list_and_no_dict() -> None:
    """A thousand ids in order take less than half the memory of a dict."""
    table: IdTable[int] = IdTable()
    for key in range(1, 1001):
        table[key] = key
    assert sys.getsizeof(table._row) < sys.getsizeof(dict.fromkeys(range(1, 1001))) / 2
    assert table._by_id is None
