"""Sets of characters as sorted ranges, restricted to what XML allows in a document."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final

from elementpath.regex.codepoints import RegexError
from elementpath.regex.unicode_subsets import unicode_category, unicode_subset

Ranges = tuple[tuple[int, int], ...]
"""Inclusive, ascending, not touching."""


class CharSet:
    """An immutable set of characters."""

    __slots__ = ("_hash", "_starts", "ranges")

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges
        self._starts = [low for low, _ in ranges]
        self._hash = hash(ranges)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CharSet) and self.ranges == other.ranges

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __contains__(self, code: int) -> bool:
        index = bisect_right(self._starts, code) - 1
        return index >= 0 and code <= self.ranges[index][1]

    def __or__(self, other: CharSet) -> CharSet:
        return charset_of([*self.ranges, *other.ranges])

    def __and__(self, other: CharSet) -> CharSet:
        found = []
        mine, theirs = 0, 0
        while mine < len(self.ranges) and theirs < len(other.ranges):
            low = max(self.ranges[mine][0], other.ranges[theirs][0])
            high = min(self.ranges[mine][1], other.ranges[theirs][1])
            if low <= high:
                found.append((low, high))
            if self.ranges[mine][1] < other.ranges[theirs][1]:
                mine += 1
            else:
                theirs += 1
        return CharSet(tuple(found))

    def __sub__(self, other: CharSet) -> CharSet:
        return self & other.complement()

    def complement(self) -> CharSet:
        """Every other code point."""
        found, start = [], 0
        for low, high in self.ranges:
            if start < low:
                found.append((start, low - 1))
            start = high + 1
        if start <= _LAST:
            found.append((start, _LAST))
        return CharSet(tuple(found))

    def sample_char(self) -> str:
        """One character of it, the plainest there is."""
        for low, high in _PLAIN:
            for mine, last in self.ranges:
                if max(low, mine) <= min(high, last):
                    return chr(max(low, mine))
        return chr(self.ranges[0][0])


_LAST: Final = 0x10FFFF
_PLAIN: Final = ((0x61, 0x7A), (0x41, 0x5A), (0x30, 0x39), (0x2D, 0x2E), (0x21, 0x7E), (0x20, 0x20), (0xA1, 0xD7FF))


def charset_of(ranges: Iterable[tuple[int, int]]) -> CharSet:
    """The set of some ranges in any order."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return CharSet(tuple(merged))


def charset_of_text(text: str) -> CharSet:
    """The characters of a text."""
    return charset_of((ord(char), ord(char)) for char in text)


XML_CHARS: Final = charset_of([(0x9, 0xA), (0xD, 0xD), (0x20, 0xD7FF), (0xE000, 0xFFFD), (0x10000, _LAST)])
"""Every character a document can hold (XML 1.0, production Char)."""

SPACE_CHARS: Final = charset_of_text(" \t\n\r")
DOT_CHARS: Final = XML_CHARS - charset_of_text("\n\r")

_NAME_START: Final = charset_of(
    [
        *((0x3A, 0x3A), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A), (0xC0, 0xD6), (0xD8, 0xF6), (0xF8, 0x2FF)),
        *((0x370, 0x37D), (0x37F, 0x1FFF), (0x200C, 0x200D), (0x2070, 0x218F), (0x2C00, 0x2FEF), (0x3001, 0xD7FF)),
        *((0xF900, 0xFDCF), (0xFDF0, 0xFFFD)),
    ]
)
_NAME: Final = _NAME_START | charset_of([(0x2D, 0x2E), (0x30, 0x39), (0xB7, 0xB7), (0x300, 0x36F), (0x203F, 0x2040)])


def _from_codepoints(points: Sequence[int | tuple[int, int]]) -> CharSet:
    """elementpath keeps single code points and half-open ranges."""
    return charset_of((point, point) if isinstance(point, int) else (point[0], point[1] - 1) for point in points)


@cache
def escape_set(letter: str) -> CharSet:
    """The set of a multi-character escape: s, d, w, i or c, negated when upper case."""
    if letter.isupper():
        return XML_CHARS - escape_set(letter.lower())
    if letter == "s":
        return SPACE_CHARS
    if letter == "d":
        return property_set("Nd")
    if letter == "i":
        return _NAME_START
    if letter == "c":
        return _NAME
    # XSD part 2, appendix F: everything but punctuation, separators and "other" (control, unassigned …).
    return XML_CHARS - (property_set("P") | property_set("Z") | property_set("C"))


@cache
def property_set(name: str) -> CharSet:
    """The set of a Unicode category (`Lu`) or block (`IsGreek`). Raises KeyError when there is none."""
    try:
        found = unicode_subset(name) if name.startswith("Is") else unicode_category(name)
    except (RegexError, KeyError):
        raise KeyError(name) from None
    return _from_codepoints(found.codepoints) & XML_CHARS
