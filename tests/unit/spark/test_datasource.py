"""Options, scopes and rows of the source `stele`, without Spark."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.client import JournalEntry
from stele.errors import Invalid
from stele.spark.datasource.tables import COLUMNS, JOURNAL, SourceOptions, TableScope, journal_row, to_timestamp

HOME = {"registry": "http://r"}


def test_names_of_options_may_have_any_case() -> None:
    """Names of options are not case-sensitive, as Spark passes them on as they were written."""
    options = SourceOptions.of({**HOME, "TABLE": "journal", "asof": "7", "Subject": "s", "maxrecordspertrigger": "5"})
    assert options == SourceOptions("http://r", JOURNAL, TableScope(subjects=frozenset({"s"}), until=7), most=5)
    assert SourceOptions.of({**HOME, "startingSeq": "latest"}).start is None
    assert SourceOptions.of(HOME).table == "subjects"


@pytest.mark.parametrize(
    ("given_", "why"),
    [
        ({"table": "versions"}, "registry is missing"),
        ({**HOME, "tabel": "versions"}, "no option tabel"),
        ({**HOME, "table": "schemas"}, "table is one of"),
        ({**HOME, "asOf": "-1"}, "asOf is a whole number"),
        ({**HOME, "table": "usage", "asOf": "3"}, "cannot be read with asOf"),
        ({**HOME, "startingSeq": "earliest"}, "or latest"),
        ({**HOME, "patience": "9" * 19}, "patience is a whole number"),
    ],
)
def test_wrong_options_are_named(given_: dict[str, str], why: str) -> None:
    """A misspelt or meaningless option is an error that names it."""
    with pytest.raises(Invalid, match=why):
        SourceOptions.of(given_)


names = st.sampled_from(["a", "b", "c"])
choices = st.lists(st.frozensets(names), max_size=3)


@given(choices, st.lists(st.integers(0, 9), max_size=3), st.lists(st.integers(0, 9), max_size=3), names)
def test_narrowing_is_intersection(
    chosen: list[frozenset[str]], afters: list[int], untils: list[int], name: str
) -> None:
    """A scope narrowed several times is the intersection, in any order."""
    scope = TableScope()
    for values in chosen:
        scope = scope.narrow_to("subject", values)
    for after in afters:
        scope = scope.between(after=after)
    for until in untils:
        scope = scope.between(until=until)
    assert scope.has(None, name, None) == all(name in values for values in chosen)
    assert (scope.after, scope.until) == (max(afters, default=0), min(untils, default=None))


def test_a_change_has_the_columns_of_its_table() -> None:
    """A row has as many values as the table has columns.

    Details are JSON in a fixed order, and times are limited to Spark's range.
    """
    row = journal_row(JournalEntry(1, 0, 1_000, "ada", "native", "purged", "", "s", 2, details={"b": "ö", "a": 1}))
    assert len(row) == len(COLUMNS[JOURNAL].split(", "))
    assert row[2] == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert row[-1] == '{"a": 1, "b": "ö"}'
    assert to_timestamp(2**56).year == 9999
