"""Statistics of values: they are right for one batch, and do not depend on how batches are cut."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import scale_examples

from stele.spark.data_audit.data_stats import MOST_VALUES, Fields, SchemaStats, merge_fields, observe_values

TYPE = pa.struct(
    [
        ("n", pa.int64()),
        ("d", pa.float64()),
        ("s", pa.string()),
        ("r", pa.struct([("b", pa.bool_())])),
        ("l", pa.list_(pa.int32())),
        ("m", pa.map_(pa.string(), pa.string())),
    ]
)
RECORD = st.fixed_dictionaries(
    {
        "n": st.none() | st.integers(-(2**63), 2**63 - 1),
        "d": st.none() | st.floats() | st.integers(-9, 9).map(float),
        "s": st.none() | st.sampled_from(["1", "x", "2026-11-22", "true"]) | st.text(max_size=5),
        "r": st.none() | st.fixed_dictionaries({"b": st.none() | st.booleans()}),
        "l": st.none() | st.lists(st.none() | st.integers(0, 3), max_size=3),
        "m": st.none()
        | st.dictionaries(st.sampled_from("ab"), st.none() | st.just("v")).map(lambda it: list(it.items())),
    }
)


def look(records: list[Any]) -> Fields:
    """Return the statistics of records of `TYPE`."""
    return observe_values(pa.array(records, TYPE), deep=True)


@settings(max_examples=scale_examples(60), deadline=None)
@given(st.lists(st.none() | RECORD, min_size=1, max_size=12), st.integers(0, 12))
def test_parts_add_up_to_the_whole(records: list[Any], cut: int) -> None:
    """The statistics of two parts, merged in either order, equal those of all records."""
    one, other = look(records[:cut]), look(records[cut:])
    assert merge_fields(one, other) == merge_fields(other, one) == look(records)


@settings(max_examples=scale_examples(30), deadline=None)
@given(*[st.builds(SchemaStats, st.integers(0, 9), st.integers(0, 9), st.none() | st.integers(0, 9))] * 3)
def test_sightings_merge_in_any_grouping(a: SchemaStats, b: SchemaStats, c: SchemaStats) -> None:
    """The order and grouping of merges does not change the result."""
    assert a.merge_with(b).merge_with(c) == a.merge_with(b.merge_with(c)) == c.merge_with(a).merge_with(b)
    assert a.merge_with(SchemaStats()) == a


def test_presence_counts_only_where_there_is_room() -> None:
    """The members of a null record, and the items of a null list, do not count as missing."""
    stats = look([{"r": {"b": True}, "l": [1, None]}, {"r": None, "l": None}, None])
    assert (stats["r"].present, stats["r"].slots) == (1, 2)
    assert (stats["r.b"].present, stats["r.b"].slots) == (1, 1)
    assert (stats["l[]"].present, stats["l[]"].slots) == (1, 2)
    assert (stats["n"].present, stats["n"].slots) == (0, 2)


def test_slices_are_read_where_they_are() -> None:
    """A slice of a longer column counts only its own rows."""
    whole = pa.array([{"m": [("a", "x")], "l": [1]}, {"m": [("b", "y")], "l": [2, 3]}], TYPE)
    stats = observe_values(whole.slice(1), deep=True)
    assert stats["m"].values == {"b": 1}
    assert (stats["l[]"].low, stats["l[]"].high, stats["l[]"].slots) == (2, 3, 2)


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("12", {"integer", "number"}),
        ("-1.5e3", {"number"}),
        ("true", {"boolean"}),
        ("123e4567-e89b-12d3-a456-426614174000", {"uuid"}),
        ("2026-02-29", {"date"}),
        ("2026-11-22T03:04:05.123Z", {"timestamp"}),
        ("2026-11-22 03:04", {"timestamp"}),
        ("2026-13-01", set()),
        ("12345678901234567890", {"number"}),
        ("1.2.3", set()),
        ("", set()),
        ("12\n", set()),
    ],
)
def test_shapes_of_texts(text: str, shapes: set[str]) -> None:
    """A text has the shapes of all types that it can be read as."""
    assert set(look([{"s": text}])["s"].shapes) == shapes


def test_many_values_are_not_kept() -> None:
    """Above the limit no values are kept, also if merging exceeds it. Long texts are not kept as values."""
    half = MOST_VALUES // 2 + 1
    one, other = look([{"n": n} for n in range(half)]), look([{"n": -n - 1} for n in range(half)])
    assert len(one["n"].values or {}) == half
    assert merge_fields(one, other)["n"].values is None
    assert look([{"s": "x" * 500}])["s"].values is None


def test_numbers_that_are_none() -> None:
    """NaN and infinity count neither as whole numbers nor as least or greatest value."""
    stats = look([{"d": float("nan")}, {"d": float("inf")}, {"d": 2.0}, {"d": 2.5}])["d"]
    assert (stats.low, stats.high, stats.whole, stats.present) == (2.0, 2.5, 1, 4)


def test_a_datum_that_is_no_record() -> None:
    """The field of a bare value has the empty path. The two parts of a variant are not fields."""
    assert observe_values(pa.array(["a", None]), deep=True)[""].present == 1
    variant = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
    assert list(observe_values(pa.array([{"value": b"", "metadata": b""}], variant), deep=True)) == [""]
