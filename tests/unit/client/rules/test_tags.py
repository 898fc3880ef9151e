"""Patterns of metadata tags."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import scale_examples
from tests.support.time_limit import limit_time

from stele.client.serdes.rules.tags import matches_path, tags_at

NAMES = st.text(alphabet="ab.", max_size=12)


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("shop.Order.note", "shop.Order.note", True),
        ("shop.Order.note", "shopXOrder.note", False),
        ("*.Order.*", "shop.Order.note", True),
        ("*.note", "shop.Order.note", False),
        ("**.note", "shop.Order.note", True),
        ("shop.**", "shop.Order.note", True),
        ("shop.*", "shop.Order.note", False),
        ("shop.Order.n?te", "shop.Order.note", True),
        ("shop?Order.note", "shop.Order.note", False),
        ("$.a[0]", "$.a[0]", True),
        ("**.*", "note", True),
        ("", "", True),
        ("*", "", True),
    ],
)
def test_patterns(pattern: str, name: str, fits: bool) -> None:
    """`*` stops at dots, `**` crosses them, and other characters match themselves."""
    assert matches_path(pattern, name) is fits


@given(pattern=st.text(alphabet="ab.*?", max_size=8), name=NAMES)
@settings(max_examples=scale_examples(300))
def test_patterns_mean_the_expressions_they_abbreviate(pattern: str, name: str) -> None:
    """The matcher agrees with the equivalent regular expression."""
    words = {"**": ".*", "*": "[^.]*", "?": "[^.]"}
    parts = re.findall(r"\*\*|.", pattern.replace("**.*", "**"))
    expression = "".join(words.get(part, re.escape(part)) for part in parts)
    assert matches_path(pattern, name) == bool(re.fullmatch(expression, name))


def test_hostile_patterns_take_no_time() -> None:
    """A pattern of dozens of stars, which would make a regular expression backtrack, is matched quickly."""
    with limit_time(10):
        assert not matches_path("*a" * 60 + "**b", "a" * 3000)


def test_tags_of_all_patterns_add_up() -> None:
    """A field has the tags of each pattern that matches it."""
    assert tags_at("a.b", {"a.*": ["X"], "**": ["Y", "Z"], "c": ["N"]}) == {"X", "Y", "Z"}
