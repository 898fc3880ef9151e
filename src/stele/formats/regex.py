"""Regular expressions over characters, of any syntax: sets of characters, and what all parsers of patterns share.

The terms that patterns are parsed into are those of `stele.formats.terms`, with sets of characters as labels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Final, Generic, Protocol, TypeVar

from stele.formats.terms import Algebra, Term

Ranges = tuple[tuple[int, int], ...]
"""Ranges of code points: inclusive, ascending, not adjacent."""


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
        ranges = []
        mine, theirs = 0, 0
        while mine < len(self.ranges) and theirs < len(other.ranges):
            low = max(self.ranges[mine][0], other.ranges[theirs][0])
            high = min(self.ranges[mine][1], other.ranges[theirs][1])
            if low <= high:
                ranges.append((low, high))
            if self.ranges[mine][1] < other.ranges[theirs][1]:
                mine += 1
            else:
                theirs += 1
        return CharSet(tuple(ranges))

    def __sub__(self, other: CharSet) -> CharSet:
        return self & other.complement()

    def complement(self) -> CharSet:
        """Return the set of all other code points."""
        ranges, start = [], 0
        for low, high in self.ranges:
            if start < low:
                ranges.append((start, low - 1))
            start = high + 1
        if start <= MAX_CODE_POINT:
            ranges.append((start, MAX_CODE_POINT))
        return CharSet(tuple(ranges))

    def sample_char(self) -> str:
        """Return a character of the set, preferably a lower-case letter or another printable ASCII character."""
        for low, high in _PLAIN:
            for mine, last in self.ranges:
                if max(low, mine) <= min(high, last):
                    return chr(max(low, mine))
        return chr(self.ranges[0][0])


MAX_CODE_POINT: Final = 0x10FFFF
_PLAIN: Final = ((0x61, 0x7A), (0x41, 0x5A), (0x30, 0x39), (0x2D, 0x2E), (0x21, 0x7E), (0x20, 0x20), (0xA1, 0xD7FF))


def charset_of(ranges: Iterable[tuple[int, int]]) -> CharSet:
    """Return the set of the characters in some ranges. The ranges can be in any order."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return CharSet(tuple(merged))


def charset_of_text(text: str) -> CharSet:
    """Return the characters of a text."""
    return charset_of((ord(char), ord(char)) for char in text)


def intersect_charsets(one: CharSet, other: CharSet) -> CharSet | None:
    """Return the set of the characters that are in both sets, None when there are none."""
    return (one & other) or None


def charset_steps(charset: CharSet) -> int:
    """Return the cost of splitting a set of characters, in steps of a `StepBudget`."""
    return 1 + len(charset.ranges) // 4


def make_algebra(steps: int = 1_000_000) -> Algebra:
    """Return an algebra over sets of characters."""
    return Algebra(intersect_charsets, steps=steps, label_steps=charset_steps)


def split_sets(label: CharSet, others: Sequence[CharSet]) -> list[tuple[CharSet, list[CharSet]]]:
    """Return the pieces of a set, cut along the borders of others, each with those of the others that contain it."""
    pieces: list[tuple[CharSet, list[CharSet]]] = [(label, [])]
    for other in others:
        cut = []
        for piece, inside in pieces:
            if common := piece & other:
                cut.append((common, [*inside, other]))
                if outside := piece - other:
                    cut.append((outside, inside))
            else:
                cut.append((piece, inside))
        pieces = cut
    return pieces


def find_word(algebra: Algebra, wanted: Term, refused: Term) -> str | None:
    """Return a shortest text that matches wanted and not refused; None when there is none.

    Unlike `find_missing_word`, it continues to the end of the word, since an intersection can match the beginning of a
    word and no complete word. Raises `BudgetExceeded`.
    """
    start = (wanted, frozenset({refused}))
    seen = {start}
    layer = [(start, "")]
    pieces: dict[tuple[CharSet, tuple[CharSet, ...]], list[tuple[CharSet, list[CharSet]]]] = {}
    while layer:
        following = []
        for (term, others), text in layer:
            if term.nullable and not any(other.nullable for other in others):
                return text
            options = [step for other in others for step in algebra.first_steps(other)]
            labels = tuple(dict.fromkeys(label for label, _ in options))
            for label, rest in algebra.first_steps(term):
                if (label, labels) not in pieces:
                    algebra.budget.spend_steps(sum(map(charset_steps, (label, *labels))))
                    pieces[label, labels] = split_sets(label, labels)
                for symbol, matching in pieces[label, labels]:
                    algebra.budget.spend_steps(1 + len(options))
                    state = (rest, frozenset(after for other, after in options if other in matching))
                    if state not in seen:
                        seen.add(state)
                        following.append((state, text + symbol.sample_char()))
        layer = following
    return None


def literal_text(algebra: Algebra, text: str) -> Term:
    """Return the term that matches exactly this text."""
    return algebra.make_sequence(*(algebra.make_leaf(charset_of_text(char)) for char in text))


# --- patterns -------------------------------------------------------------------------------------------------------


class PatternError(ValueError):
    """The text is no regular expression of its syntax, or goes beyond a limit of its parser."""


MAX_LENGTH: Final = 20_000
"""Longest pattern, in characters."""

MAX_DEPTH: Final = 60
"""Deepest nesting of parentheses or of subtracted classes."""

MAX_COUNT: Final = 1_000_000
"""Greatest number in a quantifier."""


T = TypeVar("T")


class TermBuilder(Protocol[T]):
    """Combines the parts of a pattern. `Algebra` is the builder of plain terms."""

    def make_choice(self, items: Iterable[T], /) -> T:
        """Return an expression that matches one of the items."""
        ...

    def make_sequence(self, *items: T) -> T:
        """Return an expression that matches the items one after the other."""
        ...

    def make_repeat(self, body: T, low: int, high: int | None, /) -> T:
        """Return an expression that matches body between low and high times in a row; high is None when unbounded."""
        ...


class PatternParser(ABC, Generic[T]):
    """Recursive-descent parser for alternatives, sequences and quantifiers. A subclass for a syntax adds its atoms."""

    def __init__(self, builder: TermBuilder[T], text: str) -> None:
        """Start at the beginning of a pattern. Raises `PatternError` for a pattern that is too long."""
        if len(text) > MAX_LENGTH:
            raise PatternError(f"the pattern is longer than {MAX_LENGTH} characters")
        self._builder = builder
        self._text = text
        self._at = 0
        self._depth = 0

    @abstractmethod
    def _parse_atom(self) -> T:
        """Parse an atom: the part of a pattern that a quantifier can follow."""

    def parse_all(self) -> T:
        """Return the whole pattern. Raises `PatternError`."""
        term = self._parse_expression()
        if self._at < len(self._text):
            raise self._syntax_error("an unexpected )")
        return term

    def _syntax_error(self, what: str) -> PatternError:
        return PatternError(f"{what} at character {self._at + 1} of the pattern {self._text[:80]!r}")

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _next_char(self) -> str:
        char = self._peek()
        if not char:
            raise self._syntax_error("an unexpected end")
        self._at += 1
        return char

    def _skip_text(self, text: str) -> bool:
        """Skip a text if it comes next. Return whether it did."""
        is_next = self._text.startswith(text, self._at)
        self._at += len(text) * is_next
        return is_next

    def _enter_nesting(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise PatternError(f"the pattern is nested deeper than {MAX_DEPTH} levels")

    def _parse_expression(self) -> T:
        branches = [self._parse_branch()]
        while self._peek() == "|":
            self._at += 1
            branches.append(self._parse_branch())
        return self._builder.make_choice(branches)

    def _parse_branch(self) -> T:
        pieces = []
        while self._peek() not in ("", "|", ")"):
            pieces.append(self._parse_quantifier(self._parse_atom()))
        return self._builder.make_sequence(*pieces)

    def _parse_quantifier(self, atom: T) -> T:
        match self._peek():
            case "?":
                bounds: tuple[int, int | None] = (0, 1)
            case "*":
                bounds = (0, None)
            case "+":
                bounds = (1, None)
            case "{":
                bounds = self._parse_braces()
            case _:
                return atom
        self._at += 1
        return self._builder.make_repeat(atom, *bounds)

    def _parse_braces(self) -> tuple[int, int | None]:
        """Return the bounds of a quantifier in braces. The closing brace is then the next character."""
        end = self._text.find("}", self._at)
        low, comma, high = self._text[self._at + 1 : end].partition(",")
        if end < 0 or not low.isdecimal() or not low.isascii() or (high and not (high.isdecimal() and high.isascii())):
            raise self._syntax_error("a malformed quantifier")
        if len(low) > 8 or len(high) > 8 or int(low) > MAX_COUNT or int(high or 0) > MAX_COUNT:
            raise PatternError(f"a quantifier of the pattern is greater than {MAX_COUNT}")
        first = int(low)
        last = (int(high) if high else None) if comma else first
        if last is not None and last < first:
            raise self._syntax_error("a quantifier whose bounds are the wrong way round")
        self._at = end
        return first, last

    def _parse_group_end(self) -> T:
        """Parse what follows an opening parenthesis, up to and including the closing one."""
        self._enter_nesting()
        inner = self._parse_expression()
        if self._next_char() != ")":
            raise self._syntax_error("a missing )")
        self._depth -= 1
        return inner
