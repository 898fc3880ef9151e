"""The measurement of nesting that precedes every decoder."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.core.json_depth import MAX_JSON_DEPTH, is_nested_deeper

TEXTS = st.text(st.sampled_from('ab[]{}"\\'), max_size=6)
VALUES = st.recursive(
    st.none() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)


def measure_depth(value: Any) -> int:
    """Return the number of nested levels of objects and arrays in a value."""
    if not isinstance(value, dict | list):
        return 0
    return 1 + max(map(measure_depth, value.values() if isinstance(value, dict) else value), default=0)


@given(value=VALUES)
def test_the_depth_is_that_of_the_value(value: Any) -> None:
    """Brackets, quotes and backslashes in names and strings count for nothing."""
    depth = measure_depth(value)
    text = json.dumps(value).encode()
    assert not is_nested_deeper(text, depth)
    assert is_nested_deeper(text, depth - 1)


@pytest.mark.parametrize(
    ("text", "is_deeper"),
    [
        (b"[" * MAX_JSON_DEPTH + b"]" * MAX_JSON_DEPTH, False),
        (b'{"a":' * MAX_JSON_DEPTH + b"1" + b"}" * MAX_JSON_DEPTH, False),
        (b"[" * (MAX_JSON_DEPTH + 1), True),
        (b"[{},[]]" * MAX_JSON_DEPTH, False),
        (b'"' + b"[" * 2 * MAX_JSON_DEPTH, False),
        (b"]" * MAX_JSON_DEPTH + b"[" * 2 * MAX_JSON_DEPTH, False),
    ],
)
def test_the_limit_is_a_number(text: bytes, *, is_deeper: bool) -> None:
    """A text with as many levels as the limit passes; siblings, unterminated strings and closed levels do not count."""
    assert is_nested_deeper(text) is is_deeper
