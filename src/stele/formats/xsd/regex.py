"""Regular expressions of XML Schema (part 2, appendix F), matched without backtracking.

Patterns are parsed into terms. User patterns never reach Python's engine: `(a+)+b` takes it exponential time.
Matching here walks a lazily built automaton. A text or pattern that exceeds the budget does not match.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

from elementpath.regex.codepoints import RegexError
from elementpath.regex.unicode_subsets import unicode_category, unicode_subset

from stele.formats.regex import (
    MAX_CODE_POINT,
    CharSet,
    PatternError,
    PatternParser,
    charset_of,
    charset_of_text,
    charset_steps,
    make_algebra,
)
from stele.formats.terms import Algebra, BudgetExceeded, SharedBudgetExceeded, StepBudget, Term

XML_CHARS: Final = charset_of([(0x9, 0xA), (0xD, 0xD), (0x20, 0xD7FF), (0xE000, 0xFFFD), (0x10000, MAX_CODE_POINT)])
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
    """Return the code points of an elementpath set, which holds single ones and half-open ranges."""
    return charset_of((point, point) if isinstance(point, int) else (point[0], point[1] - 1) for point in points)


@cache
def escape_set(letter: str) -> CharSet:
    """Return the set of a multi-character escape: s, d, w, i or c, negated when upper case."""
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
    """Return the characters of a Unicode category (`Lu`) or block (`IsGreek`). Raises KeyError for an unknown name."""
    try:
        subset = unicode_subset(name) if name.startswith("Is") else unicode_category(name)
    except (RegexError, KeyError):
        raise KeyError(name) from None
    return _from_codepoints(subset.codepoints) & XML_CHARS


_CHAR_STEPS: Final = 3
"""Cost of parsing one character of a pattern, in steps."""

_SINGLE: Final = {"n": "\n", "r": "\r", "t": "\t", **{char: char for char in "\\|.-^?*+{}()[]$/'\"#%&@!,:;=<>~_`"}}
"""Single-character escapes. Those from `$` on are not in the standard, but validators accept and schemas use them."""

_CACHED: Final = 20_000
_MATCH_STEPS: Final = 300_000
_MAX_REMEMBERED: Final = 50_000
"""Most cached steps of a compiled pattern, which lives as long as its schema: about 10 MiB."""


class _Parser(PatternParser[Term]):
    """Parses the grammar of appendix F."""

    def __init__(self, algebra: Algebra, text: str, *, version: str) -> None:
        super().__init__(algebra, text)
        self._algebra = algebra
        self._version = version

    def _parse_atom(self) -> Term:
        char = self._next_char()
        if char == "(":
            return self._parse_group_end()
        if char == "[":
            return self._set_term(self._parse_class())
        if char == ".":
            return self._set_term(DOT_CHARS)
        if char == "\\":
            return self._set_term(self._parse_escape())
        if char in "?*+{}]":
            self._at -= 1
            raise self._syntax_error(f"a misplaced {char}")
        return self._set_term(charset_of_text(char))

    def _set_term(self, chars: CharSet) -> Term:
        self._algebra.budget.spend_steps(charset_steps(chars))
        chars = chars & XML_CHARS
        return self._algebra.make_leaf(chars) if chars else self._algebra.never

    def _parse_escape(self) -> CharSet:
        char = self._next_char()
        if char in _SINGLE:
            return charset_of_text(_SINGLE[char])
        if char in "sSdDwWiIcC":
            return escape_set(char)
        if char in "pP" and self._peek() == "{":
            end = self._text.find("}", self._at)
            name = self._text[self._at + 1 : end]
            if end < 0:
                raise self._syntax_error("a missing }")
            self._at = end + 1
            try:
                charset = property_set(name)
            except KeyError:
                if self._version == "1.0" or not name.startswith("Is"):
                    raise self._syntax_error(f"an unknown category or block {name[:40]!r}") from None
                return XML_CHARS  # XSD 1.1: an unknown block matches everything
            return charset if char == "p" else XML_CHARS - charset
        raise self._syntax_error(f"an unknown escape \\{char}")

    def _parse_class(self) -> CharSet:
        """Parse a character class from after `[` up to and including `]`."""
        self._enter_nesting()
        negated = self._peek() == "^"
        self._at += negated
        charset = CharSet(())
        first = True
        while True:
            char = self._next_char()
            if char == "]" and not first:
                break
            if char == "-" and self._peek() == "[" and not first:
                self._at += 1
                taken = self._parse_class()
                if self._next_char() != "]":
                    raise self._syntax_error("something after a subtracted class")
                self._depth -= 1
                return (XML_CHARS - charset if negated else charset) - taken
            charset = charset | self._parse_class_member(char)
            self._algebra.budget.spend_steps(charset_steps(charset))
            first = False
        self._depth -= 1
        return XML_CHARS - charset if negated else charset

    def _parse_class_member(self, char: str) -> CharSet:
        if char in "[]":
            raise self._syntax_error(f"an unescaped {char} in a class")
        one = self._parse_escape() if char == "\\" else charset_of_text(char)
        following = self._text[self._at : self._at + 2]
        if following[:1] != "-" or following in ("-]", "-["):
            return one
        if one.ranges[0][0] != one.ranges[-1][1]:
            raise self._syntax_error("a range that starts with a class")
        self._at += 1
        last = self._next_char()
        end = self._parse_escape() if last == "\\" else charset_of_text(last)
        low, high = one.ranges[0][0], end.ranges[0][0]
        if end.ranges[0][0] != end.ranges[-1][1] or low > high or last == "[":
            raise self._syntax_error("a malformed range")
        return CharSet(((low, high),))


def parse_pattern(algebra: Algebra, text: str, *, version: str = "1.0") -> Term:
    """Return the term of a pattern; its labels are `CharSet`s.

    Raises `PatternError`, and `BudgetExceeded`, because each character costs steps.
    """
    algebra.budget.spend_steps(_CHAR_STEPS * len(text))
    return _Parser(algebra, text, version=version).parse_all()


class Pattern:
    """A compiled pattern with `match`, the only method that validators call."""

    def __init__(self, text: str, *, version: str = "1.0") -> None:
        """Compile a pattern. Raises `PatternError`."""
        self.text = text
        self._algebra = make_algebra()
        try:
            self._start = frozenset({parse_pattern(self._algebra, text, version=version)})
        except SharedBudgetExceeded:
            raise
        except (BudgetExceeded, RecursionError):
            raise PatternError("the pattern is too entangled") from None
        self._moves: dict[tuple[frozenset[Term], str], frozenset[Term]] = {}

    def match(self, text: str) -> bool | None:
        """Return True when the whole text matches, else None, also when the budget of one text is exceeded.

        Raises `SharedBudgetExceeded` inside work that has a budget of its own.
        """
        budget = StepBudget(_MATCH_STEPS + 4 * len(text))
        state = self._start
        try:
            for char in text:
                following = self._moves.get((state, char))
                if following is None:
                    following = self._next_state(state, char, budget)
                state = following
                if not state:
                    return None
        except SharedBudgetExceeded:
            raise
        except (BudgetExceeded, RecursionError):
            return None
        finally:
            self._limit_memory()
        return True if any(term.nullable for term in state) else None

    def _limit_memory(self) -> None:
        if len(self._moves) > _CACHED or self._algebra.remembered > _MAX_REMEMBERED:
            self._moves.clear()
            self._algebra.forget_terms()

    def _next_state(self, state: frozenset[Term], char: str, budget: StepBudget) -> frozenset[Term]:
        code = ord(char)
        self._algebra.budget = budget
        steps = [step for term in state for step in self._algebra.first_steps(term)]
        budget.spend_steps(len(steps))
        following = frozenset(rest for label, rest in steps if code in label)
        budget.spend_steps(len(following))
        self._moves[state, char] = following
        return following
