"""Unified diffs of texts, in bounded time."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.service.text_diff import MAX_LINES, MAX_WIDTH, unified_diff

LINES = st.lists(st.sampled_from(["one", "two", "three", ""]), max_size=12).map(lambda lines: "\n".join(lines).encode())


@given(old=LINES, new=LINES)
def test_both_texts_are_in_it(old: bytes, new: bytes) -> None:
    """Without the added lines the diff gives the old text, without the removed ones the new text."""
    text = unified_diff(old, new)
    lines = old.decode().splitlines(), new.decode().splitlines()
    assert (text == "") == (lines[0] == lines[1])
    for sign, side in (("+", lines[1]), ("-", lines[0])):
        changed_lines = [line[1:] for line in text.splitlines()[2:] if line.startswith(sign)]
        assert all(line in side for line in changed_lines)
    plain = list(difflib.unified_diff(*lines, "old", "new", lineterm=""))
    assert text.splitlines() == plain


def test_json_is_laid_out() -> None:
    """A member changed in a line of JSON is a line of the diff; numbers keep their spelling."""
    assert unified_diff(b'{"a":1.0,"b":2}', b'{"a":1.0,"b":3}').splitlines()[3:] == [
        " {",
        '   "a": 1.0,',
        '-  "b": 2',
        '+  "b": 3',
        " }",
    ]


@pytest.mark.parametrize("name", ["long", "alike"])
def test_texts_too_different(name: str) -> None:
    """Texts that would take too long are shown one after the other, cut off."""
    if name == "long":
        old, new = ("\n".join(f"{word}{n}" for n in range(MAX_LINES + 1)) for word in ("a", "b"))
    else:  # every line about thirty times, in another order: nothing is rare enough to hold on to
        old = "\n".join(str(n % 100) for n in range(3_500))
        new = "\n".join(str(n * 7 % 100) for n in range(3_500))
    text = unified_diff(old.encode(), new.encode())
    assert "too different to be compared" in text
    assert text.count("\n") <= 2 * MAX_LINES + 3


def test_long_texts_with_a_small_difference() -> None:
    """A common beginning and end of the texts cost nothing."""
    lines = [f"line {n}" for n in range(20 * MAX_LINES)]
    changed = [*lines]
    changed[777] = "other"
    text = unified_diff("\n".join(lines).encode(), "\n".join(changed).encode())
    assert [line for line in text.splitlines()[3:] if line[0] in "+-"] == ["-line 777", "+other"]


def test_long_lines_are_cut() -> None:
    """Long lines of the diff are cut off."""
    assert max(map(len, unified_diff(b"a" * 9_999, b"b" * 9_999).splitlines())) <= MAX_WIDTH + 1
