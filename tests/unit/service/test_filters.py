"""Filters of events: which events pass, and which filters are invalid."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.errors import InvalidRequest
from stele.service.filters import check_filters, passes_filters

EVENT = {
    "type": "io.cloudevents.schemaregistry.updated.v1",
    "source": "https://source.example.com",
    "subject": "/schemagroups/5/schemas/1/versions/3",
}
NEVER = {"exact": {"type": "x"}}
ALWAYS = {"prefix": {"source": "https://"}}


@pytest.mark.parametrize(
    ("filters", "passed"),
    [
        ([], True),
        ([{"prefix": {"subject": "/schemagroups/5"}}], True),
        ([{"prefix": {"subject": "/schemagroups/5/"}}], True),
        ([{"prefix": {"subject": "/schemagroups/6"}}], False),
        ([{"prefix": {"subject": "schemagroups"}}], False),
        ([{"prefix": {"subject": EVENT["subject"]}}], True),
        ([{"prefix": {"subject": EVENT["subject"] + "0"}}], False),
        ([{"prefix": {"nothing": "x"}}], False),
        ([{"prefix": {"subject": "/schemagroups/5", "type": "io."}}], True),
        ([{"prefix": {"subject": "/schemagroups/5", "type": "com."}}], False),
        ([{"suffix": {"type": ".v1"}}], True),
        ([{"suffix": {"type": ".v2"}}], False),
        ([{"exact": {"source": "https://source.example.com"}}], True),
        ([{"exact": {"source": "https://source.example.co"}}], False),
        ([{"not": NEVER}], True),
        ([{"not": ALWAYS}], False),
        ([{"all": [ALWAYS, NEVER]}], False),
        ([{"any": [NEVER, ALWAYS]}], True),
        ([{"any": [NEVER, {"not": {"all": [ALWAYS]}}]}], False),
        ([ALWAYS, NEVER], False),
    ],
)
def test_18_what_passes(filters: list[dict[str, Any]], passed: bool) -> None:
    """18: a prefix of the subject selects a group's events; other dialects and combinations work as specified."""
    check_filters(filters)
    assert passes_filters(EVENT, filters) is passed


def _nest_filters(depth: int) -> dict[str, Any]:
    entry: dict[str, Any] = ALWAYS
    for _ in range(depth):
        entry = {"not": entry}
    return entry


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        {},
        "text",
        [1],
        [{}],
        [{"prefix": {"a": "b"}, "suffix": {"a": "b"}}],
        [{"prefix": "a"}],
        [{"prefix": {}}],
        [{"prefix": {"": "a"}}],
        [{"exact": {"a": 1}}],
        [{"all": []}],
        [{"any": {"exact": {"a": "b"}}}],
        [{"not": [ALWAYS]}],
        [{"sql": "tru e"}],
        [{"PREFIX": {"a": "b"}}],
        [{"all": [{"any": [{"sql": ""}]}]}],
        [_nest_filters(16)],
        [ALWAYS] * 257,
    ],
)
def test_what_is_no_filter(wrong: Any) -> None:
    """Wrong shapes, unknown dialects and too many filters are refused at any depth."""
    with pytest.raises(InvalidRequest):
        check_filters(wrong)
    check_filters([_nest_filters(15)])


_texts = st.text("ab/", min_size=1, max_size=3)
_events = st.dictionaries(st.sampled_from(["subject", "type"]), _texts)
_plain = st.builds(
    lambda dialect, wanted: {dialect: wanted},
    st.sampled_from(["exact", "prefix", "suffix"]),
    st.dictionaries(st.sampled_from(["subject", "type"]), _texts, min_size=1),
)
_filters = st.recursive(
    _plain,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda rows: {"all": rows}),
        st.lists(inner, min_size=1, max_size=3).map(lambda rows: {"any": rows}),
        inner.map(lambda row: {"not": row}),
    ),
    max_leaves=6,
)


@given(_events, st.lists(_filters, min_size=1, max_size=3))
def test_filters_are_an_algebra(event: dict[str, str], drawn: list[dict[str, Any]]) -> None:
    """A list is the same as `all` of it, `not` negates, and `any` is `not` of `all` of `not` (De Morgan)."""
    check_filters(drawn)
    together = passes_filters(event, drawn)
    assert together is passes_filters(event, [{"all": drawn}])
    assert together is not passes_filters(event, [{"not": {"all": drawn}}])
    assert passes_filters(event, [{"any": drawn}]) is not passes_filters(event, [{"not": row} for row in drawn])
