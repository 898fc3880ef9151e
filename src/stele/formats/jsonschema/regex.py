"""Regular expressions of ECMA-262 as regular languages: the strings that a pattern is found in.

Only what means the same to ECMA-262 and to the validator is read. A pattern with a lookaround, a back reference, a word
boundary, a Unicode property, flags or syntax that engines disagree on is none of these languages. The two differ on one
character class: the full stop leaves out four line ends in ECMA-262, and one in the validator.

Source: docs/protocols/json-schema.md#containment.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from stele.formats.regex import (
    MAX_CODE_POINT,
    CharSet,
    PatternError,
    PatternParser,
    charset_of,
    charset_of_text,
    charset_steps,
)
from stele.formats.terms import Algebra, Term

JSON_CHARS: Final = charset_of([(0, 0xD7FF), (0xE000, MAX_CODE_POINT)])
"""Every character a string of JSON can hold."""

DOTS: Final = (JSON_CHARS - charset_of_text("\n"), JSON_CHARS - charset_of_text("\n\r\u2028\u2029"))
"""What the full stop matches: in the validator, in ECMA-262."""

_DIGITS: Final = charset_of_text("0123456789")
_WORD: Final = _DIGITS | charset_of([(0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
_SPACE: Final = charset_of_text("\t\n\v\f\r \xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff") | charset_of(
    [(0x2000, 0x200A)]
)
_CLASSES: Final = {
    "d": _DIGITS,
    "D": JSON_CHARS - _DIGITS,
    "w": _WORD,
    "W": JSON_CHARS - _WORD,
    "s": _SPACE,
    "S": JSON_CHARS - _SPACE,
}
_SINGLE: Final = {
    **dict(zip("nrtfv", "\n\r\t\f\v", strict=True)),
    **{char: char for char in "\\|.-^?*+{}()[]$/"},
}
_CODE_LENGTHS: Final = {"x": 2, "u": 4}

MAX_ANCHORED_COUNT: Final = 8
"""Greatest number in a quantifier of a group that holds an anchor: such a group is written out."""


class AnchoredTerm(NamedTuple):
    """What a part of a pattern matches, by where in the string the match lies.

    inside  neither begins where the string begins nor ends where it ends
    to_end  ends where the string ends
    from_start  begins where the string begins
    whole   both

    What matches inside matches at the borders too: anchors only ask for more.
    """

    inside: Term
    to_end: Term
    from_start: Term
    whole: Term

    @property
    def is_free(self) -> bool:
        """Whether the part holds no anchor."""
        return self.inside is self.whole and self.inside is self.to_end and self.inside is self.from_start


class AnchoredBuilder:
    """Puts anchored terms together."""

    def __init__(self, algebra: Algebra) -> None:
        self.algebra = algebra
        self.empty = AnchoredTerm(*(algebra.empty,) * 4)
        self.start = AnchoredTerm(algebra.never, algebra.never, algebra.empty, algebra.empty)
        self.end = AnchoredTerm(algebra.never, algebra.empty, algebra.never, algebra.empty)

    def make_leaf(self, charset: CharSet) -> AnchoredTerm:
        """Return one character of a set."""
        self.algebra.budget.spend_steps(charset_steps(charset))
        term = self.algebra.make_leaf(charset) if charset else self.algebra.never
        return AnchoredTerm(*(term,) * 4)

    def make_choice(self, items: Iterable[AnchoredTerm], /) -> AnchoredTerm:
        """Return one of them."""
        return AnchoredTerm(*map(self.algebra.make_choice, zip(*items, strict=True)))

    def make_sequence(self, *items: AnchoredTerm) -> AnchoredTerm:
        """Return one after the other."""
        result = self.empty
        for item in reversed(items):
            result = self._sequence_of_two(item, result)
        return result

    def _sequence_of_two(self, one: AnchoredTerm, other: AnchoredTerm) -> AnchoredTerm:
        if one.is_free and other.is_free:
            return AnchoredTerm(*(self.algebra.make_sequence(one.inside, other.inside),) * 4)

        def join(head: Term, tail: Term, head_alone: Term, tail_alone: Term) -> Term:
            """Return both in a row; either may match nothing, and then the other one lies at both borders."""
            choices = [self.algebra.make_sequence(head, tail)]
            choices += [tail_alone] if head.nullable else []
            choices += [head_alone] if tail.nullable else []
            choices += [self.algebra.empty] if head_alone.nullable and tail_alone.nullable else []
            return self.algebra.make_choice(choices)

        return AnchoredTerm(
            join(one.inside, other.inside, one.inside, other.inside),
            join(one.inside, other.to_end, one.to_end, other.to_end),
            join(one.from_start, other.inside, one.from_start, other.from_start),
            join(one.from_start, other.to_end, one.whole, other.whole),
        )

    def make_repeat(self, body: AnchoredTerm, low: int, high: int | None, /) -> AnchoredTerm:
        """Return between low and high times in a row. Raises `PatternError` past `MAX_ANCHORED_COUNT`."""
        if body.is_free:
            return AnchoredTerm(*(self.algebra.make_repeat(body.inside, low, high),) * 4)
        if max(low, high or 0) > MAX_ANCHORED_COUNT:
            raise PatternError("a group with an anchor is repeated too often")
        if high is None:
            return self.make_sequence(*[body] * low, self._repeat_forever(body))
        return self.make_sequence(*[body] * low, *[self.make_choice([body, self.empty])] * (high - low))

    def _repeat_forever(self, body: AnchoredTerm) -> AnchoredTerm:
        """Return any number of times: only the first one may begin at the start, only the last one end at the end."""
        again = self.algebra.make_repeat(body.inside, 0, None)

        def repeat(first: Term, last: Term, alone: Term) -> Term:
            row = self.algebra.make_sequence(first, again, last)
            return self.algebra.make_choice([self.algebra.empty, alone, row])

        return AnchoredTerm(
            again,
            repeat(body.inside, body.to_end, body.to_end),
            repeat(body.from_start, body.inside, body.from_start),
            repeat(body.from_start, body.to_end, body.whole),
        )

    def make_search(self, found: AnchoredTerm) -> Term:
        """Return the strings that hold a match anywhere."""
        rest = self.algebra.make_repeat(self.algebra.make_leaf(JSON_CHARS), 0, None)
        ways = {found.inside: self.algebra.make_sequence(rest, found.inside, rest)}
        ways.setdefault(found.from_start, self.algebra.make_sequence(found.from_start, rest))
        ways.setdefault(found.to_end, self.algebra.make_sequence(rest, found.to_end))
        ways.setdefault(found.whole, found.whole)
        return self.algebra.make_choice(ways.values())


class _Parser(PatternParser[AnchoredTerm]):
    """The part of the grammar of ECMA-262 that every engine reads alike."""

    def __init__(self, builder: AnchoredBuilder, text: str, dot: CharSet) -> None:
        super().__init__(builder, text)
        self._terms = builder
        self._dot = dot

    def _parse_quantifier(self, atom: AnchoredTerm) -> AnchoredTerm:
        start = self._at
        result = super()._parse_quantifier(atom)
        if self._at > start:
            self._skip_text("?")  # a lazy quantifier finds other matches in the same strings
            if self._peek() in ("*", "+", "?", "{"):
                raise self._syntax_error("a quantifier after another one")
        return result

    def _parse_atom(self) -> AnchoredTerm:
        char = self._next_char()
        if char == "(":
            if self._skip_text("?") and not self._skip_text(":"):
                self._skip_group_name()
            return self._parse_group_end()
        if char in "^$":
            if self._peek() in ("*", "+", "?", "{"):
                raise self._syntax_error("a quantifier after an anchor")
            return self._terms.start if char == "^" else self._terms.end
        if char == "[":
            return self._terms.make_leaf(self._parse_class())
        if char == ".":
            return self._terms.make_leaf(self._dot)
        if char == "\\":
            return self._terms.make_leaf(self._parse_escape())
        if char in "?*+{}]":
            raise self._syntax_error(f"a misplaced {char}")
        return self._terms.make_leaf(charset_of_text(char))

    def _skip_group_name(self) -> None:
        end = self._text.find(">", self._at)
        if not self._skip_text("<") or not self._text[self._at : end].isidentifier():
            raise self._syntax_error("a group of a kind that is not read here")
        self._at = end + 1

    def _parse_escape(self) -> CharSet:
        char = self._next_char()
        if char in _CLASSES:
            return _CLASSES[char]
        if char in _SINGLE:
            return charset_of_text(_SINGLE[char])
        length = _CODE_LENGTHS.get(char)
        digits = self._text[self._at : self._at + (length or 0)]
        if len(digits) != length or not set(digits) <= set("0123456789abcdefABCDEF"):
            raise self._syntax_error(f"an escape \\{char} that is not read here")
        self._at += length
        found = charset_of([(int(digits, 16),) * 2]) & JSON_CHARS
        if not found:
            raise self._syntax_error("half a surrogate pair")
        return found

    def _parse_class(self) -> CharSet:
        """Parse after `[`, up to and including `]`."""
        negated = self._skip_text("^")
        found = CharSet(())
        if self._peek() == "]":
            raise self._syntax_error("an empty class")
        while not self._skip_text("]"):
            if self._text[self._at : self._at + 2] in ("&&", "--", "~~"):
                raise self._syntax_error("what some engines take for an operation on classes")
            found = found | self._parse_class_range()
            self._terms.algebra.budget.spend_steps(charset_steps(found))
        return JSON_CHARS - found if negated else found

    def _parse_class_range(self) -> CharSet:
        low = self._parse_class_member()
        if self._peek() != "-" or self._text[self._at : self._at + 2] == "-]":
            return low
        self._at += 1
        high = self._parse_class_member()
        ends = (*low.ranges, *high.ranges)
        if len(ends) != 2 or any(first != last for first, last in ends) or ends[0] > ends[1]:
            raise self._syntax_error("a malformed range")
        return charset_of([(ends[0][0], ends[1][0])]) & JSON_CHARS

    def _parse_class_member(self) -> CharSet:
        char = self._next_char()
        if char in "[]":
            raise self._syntax_error(f"an unescaped {char} in a class")
        return self._parse_escape() if char == "\\" else charset_of_text(char)


def parse_search(algebra: Algebra, pattern: str, dot: CharSet) -> Term:
    """Return the strings that a pattern is found in; dot is what the full stop matches, one of `DOTS`.

    Raises `PatternError` for patterns that are not read here, and `BudgetExceeded`.
    """
    algebra.budget.spend_steps(len(pattern))
    builder = AnchoredBuilder(algebra)
    return builder.make_search(_Parser(builder, pattern, dot).parse_all())
