"""Patterns of ECMA-262 as regular languages: same meaning as in the validator, and unsupported syntax."""

from __future__ import annotations

import json
import re

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import scale_examples
from tests.support.time_limit import limit_time

from stele.formats.jsonschema import JSON_SCHEMA
from stele.formats.jsonschema.containment.strings import DOTS, JSON_CHARS, StringProver, parse_search
from stele.formats.jsonschema.patterns import pattern_matches
from stele.formats.regex import PatternError, find_word, literal_text, make_algebra

ATOMS = [
    "a",
    "b",
    "[ab]",
    "[^a]",
    ".",
    "(?:a|b)",
    "(ab)",
    r"\d",
    r"\x61",
    r"[\w-]",
    "^",
    "$",
    "(^|b)",
    "(a|$)",
    "(?:^a|b$)",
]
COUNTS = ["", "?", "*", "+", "{2}", "{0,2}", "{1,}", "*?"]
PIECES = st.tuples(st.sampled_from(ATOMS), st.sampled_from(COUNTS)).map(
    lambda pair: pair[0] if pair[0] in "^$" else "".join(pair)
)
PATTERNS = st.lists(st.lists(PIECES, max_size=4).map("".join), min_size=1, max_size=2).map("|".join)
TEXTS = st.text("ab1-\n", max_size=6)


def matches(pattern: str, text: str) -> bool:
    """Whether a text is in the language of a pattern as the validator reads it."""
    algebra = make_algebra()
    return find_word(algebra, literal_text(algebra, text), parse_search(algebra, pattern, DOTS[0])) is None


def find_difference(writer: str, reader: str) -> str | None:
    """A text that one pattern is found in and the other is not."""
    algebra = make_algebra()
    return find_word(algebra, *(parse_search(algebra, pattern, DOTS[0]) for pattern in (writer, reader)))


@settings(max_examples=scale_examples(300), deadline=None)
@given(PATTERNS, st.lists(TEXTS, min_size=1, max_size=8))
def test_languages_hold_what_the_validator_finds(pattern: str, texts: list[str]) -> None:
    """A pattern is found in a text by the validator exactly when the text is in its language; Python agrees."""
    for text in texts:
        assert matches(pattern, text) == pattern_matches(pattern, text), text
        assert matches(pattern, text) == bool(re.search(pattern.replace("$", r"\Z"), text, re.ASCII)), text


@settings(max_examples=scale_examples(200), deadline=None)
@given(PATTERNS, PATTERNS, st.lists(TEXTS, max_size=20))
def test_inclusion_is_never_claimed_wrongly(writer: str, reader: str, texts: list[str]) -> None:
    """No text contradicts a claimed inclusion; otherwise a text is found that contradicts it."""
    word = find_difference(writer, reader)
    if word is None:
        assert all(pattern_matches(reader, text) for text in texts if pattern_matches(writer, text))
    else:
        assert pattern_matches(writer, word)
        assert not pattern_matches(reader, word)
    if StringProver(lambda _: True).is_covered({"pattern": reader}, {"pattern": writer}):
        assert word is None


@pytest.mark.parametrize("letter", "dDwWsS")
def test_classes_are_those_of_the_validator(letter: str) -> None:
    """A class escape matches the same of the tested characters as in the validator."""
    algebra = make_algebra()
    ((charset, _),) = algebra.first_steps(parse_search(algebra, f"^\\{letter}$", DOTS[0]))
    validator = jsonschema_rs.Draft202012Validator({"pattern": f"^\\{letter}$"})
    codes = [code for code in (*range(0x3100), *range(0xFE00, 0x10100), 0x1D7CE) if code in JSON_CHARS]
    assert [code in charset for code in codes] == [validator.is_valid(chr(code)) for code in codes]


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"(?=a)", r"(?!a)", r"(?<=a)b", r"(a)\1", r"(?<n>a)\k<n>", r"\bword", r"a\B", r"\p{L}", r"(?i)a", r"(?>a)"),
        *(
            "a++",
            "a**",
            "a{,2}",
            "a{",
            "a}",
            "a]",
            "[]",
            "[^]",
            "[[a]",
            "[a&&b]",
            "[a--b]",
            "^*",
            "(?P<n>a)",
            "(a",
            "a)",
        ),
        *(
            r"\<",
            r"\A",
            r"\z",
            r"\0",
            r"\cA",
            r"\ud83d",
            r"[a-\d]",
            "[b-a]",
            "(^a){9}",
            "(" * 100 + ")" * 100,
            "a" * 30_000,
        ),
    ],
)
def test_what_is_not_read(pattern: str) -> None:
    """Lookarounds, back references, boundaries, properties, flags, and syntax that engines disagree on are rejected."""
    with pytest.raises(PatternError):
        parse_search(make_algebra(), pattern, DOTS[0])
    assert not StringProver(lambda _: True).is_covered({"pattern": pattern}, {"pattern": "a"})
    assert not StringProver(lambda _: True).is_covered({"pattern": "q"}, {"pattern": pattern})


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        ("(a|b)*a(a|b){14}$", "(a|b)*b(a|b){14}$"),
        ("^(a?){400}b$", "^(a?){401}c$"),
        ("^" + "|".join(f"{n:b}*" for n in range(900)) + "$", "^[01]{0,900}$"),
        ("^.{0,900}a$", "^.{0,901}[ab]$"),
        ("|".join(chr(code) for code in range(0x4E00, 0x6000)), "[一-龥]{2}"),
    ],
)
def test_a_hostile_pair_ends_soon(writer: str, reader: str) -> None:
    """A comparison whose automata exceed the budget is stopped; there is a verdict within seconds."""
    with limit_time(8):
        theirs, mine = (
            JSON_SCHEMA.parse(json.dumps({"type": "string", "pattern": pattern}).encode(), {})
            for pattern in (writer, reader)
        )
        JSON_SCHEMA.check(mine, theirs, "containment")
