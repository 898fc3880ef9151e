"""The pattern engine: syntax of XML Schema, agreement with Python, and inclusion."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import scale_examples

from stele.formats.regex import PatternError, intersect_charsets, split_sets
from stele.formats.terms import Algebra, find_missing_word
from stele.formats.xsd.regex import Pattern, parse_pattern

PIECES = st.sampled_from(["a", "b", "[ab]", "[^a]", ".", "(a|b)", "(ab)", "c", "[a-c-[b]]"])
COUNTS = st.sampled_from(["", "?", "*", "+", "{2}", "{1,2}", "{0,3}", "{2,}"])
PATTERNS = st.lists(st.tuples(PIECES, COUNTS).map("".join), min_size=1, max_size=4).map("".join)
ALTERNATIVES = st.lists(PATTERNS, min_size=1, max_size=2).map("|".join)
TEXTS = st.text("abcd", max_size=8)


def to_python_pattern(pattern: str) -> re.Pattern[str]:
    """The same in Python's syntax."""
    return re.compile(pattern.replace("[a-c-[b]]", "[ac]"))


@settings(max_examples=scale_examples(300), deadline=None)
@given(ALTERNATIVES, TEXTS)
def test_matches_as_python_does(pattern: str, text: str) -> None:
    """For patterns that mean the same in both syntaxes, the engine agrees with Python."""
    assert (Pattern(pattern).match(text) is not None) == (to_python_pattern(pattern).fullmatch(text) is not None)


@settings(max_examples=scale_examples(200), deadline=None)
@given(ALTERNATIVES, ALTERNATIVES, st.lists(TEXTS, max_size=12))
def test_inclusion(one: str, other: str, texts: list[str]) -> None:
    """A proved inclusion holds for every text, and a counter-example contradicts inclusion."""
    algebra = Algebra(intersect_charsets)
    miss = find_missing_word(algebra, parse_pattern(algebra, one), parse_pattern(algebra, other), split_sets)
    if miss is None:
        assert all(Pattern(other).match(text) for text in texts if Pattern(one).match(text))
    else:
        word = "".join(symbol.sample_char() for _, symbol in miss.word)
        more = find_missing_word(algebra, miss.rest, algebra.never, lambda label, _: [(label, [label])])
        assert more is not None
        word += "".join(symbol.sample_char() for _, symbol in more.word)
        assert Pattern(one).match(word)
        assert not Pattern(other).match(word)


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        (r"\d{2}", "12", "1a"),
        (r"\i\c*", "a-b", "-a"),
        (r"\p{Lu}\P{Lu}", "Éa", "aA"),
        (r"\p{IsGreek}+", "αβ", "ab"),
        (r"[\w-[\d]]+", "ab", "a1"),
        (r"[^\s]+", "a", " "),
        (r"a.c", "abc", "a\nc"),
        (r"\^\$\.\[", "^$.[", "a"),
        (r"^a$", "^a$", "a"),
        (r"[+\-]", "-", "a"),
        (r"[a-]", "-", "b"),
        ("", "", "a"),
    ],
)
def test_syntax(pattern: str, good: str, bad: str) -> None:
    """Escapes, categories, blocks and subtraction mean what the specification says; ^ and $ are characters."""
    assert Pattern(pattern).match(good)
    assert Pattern(pattern).match(bad) is None


@pytest.mark.parametrize(
    "bad", ["(", ")", "[", "[]", "a{", "a{2,1}", "*", r"\q", r"\p{Nope}", "[b-a]", "a**", "[a-[b]c]", "{1}", "\\"]
)
def test_bad_syntax(bad: str) -> None:
    """A malformed pattern is rejected with a message."""
    with pytest.raises(PatternError, match="pattern"):
        Pattern(bad)
