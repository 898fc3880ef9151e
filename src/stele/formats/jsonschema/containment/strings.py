"""Decides by regular languages which strings schemas allow.

A schema constrains strings by a formula of patterns, lengths and listed values. The formula is converted to cases, each
a set of conditions that hold together. A reader allows all strings of a writer if no string fits both a case of the
writer and a case of what the reader refuses. To decide that, the languages of the conditions that must hold are
intersected, and the result is compared with the union of the languages of those that must not hold. Conditions that are
not supported here (formats, patterns with lookarounds) are left out of a case. That only adds strings to the case, so
no inclusion is claimed that does not hold.

A pattern of ECMA-262 is the language of the strings that contain a match (`parse_search`). Only syntax that means the
same to ECMA-262 and to the validator is read. Not read are lookarounds, back references, word boundaries, Unicode
properties, flags, and syntax that engines disagree on. The two differ in one character class: the full stop excludes
four line ends in ECMA-262, and one in the validator.

Source: docs/protocols/json-schema.md#containment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice, product
from typing import Any, Final, NamedTuple

from stele.formats.jsonschema.containment.document import Parts, Schemas
from stele.formats.jsonschema.json_text import Json, to_hashable
from stele.formats.regex import (
    MAX_CODE_POINT,
    CharSet,
    PatternError,
    PatternParser,
    charset_of,
    charset_of_text,
    charset_steps,
    find_word,
    literal_text,
    make_algebra,
)
from stele.formats.terms import Algebra, BudgetExceeded, StepBudget, Term

MAX_CASES: Final = 64
"""Maximum number of cases of a formula; with more, nothing is concluded about its strings."""

MAX_CONDITIONS: Final = 256
"""Maximum number of conditions of a case; with more, nothing is concluded about its strings."""

CASE_STEPS: Final = 40_000
"""Maximum number of steps for one case. That many take less than a tenth of a second."""

ALL_STEPS: Final = 400_000
"""Maximum number of steps for all cases of a pair of schemas."""

MAX_NAMES: Final = 12
"""Maximum number of member names that are made for one object."""


class Condition(NamedTuple):
    """One condition on a string.

    kind   pattern · shorter · longer · listed · unknown
    value  the pattern; the greatest or the least length; the strings; a key that identifies an unknown condition
    """

    kind: str
    value: Any


Case = frozenset[tuple[Condition, bool]]
"""Conditions, each with whether it must hold or must not hold."""

Cases = list[Case]
"""A set of strings: those that fit at least one of the cases."""

ANY_STRING: Final[Cases] = [frozenset()]
_NO_STRING: Final[Cases] = []


class _TooManyCases(Exception):
    """A formula has more than `MAX_CASES`, or one of them more than `MAX_CONDITIONS`."""


class _CaseAnswer(NamedTuple):
    """What is known about a case: whether it is proved that no string fits it, or a string that may fit."""

    impossible: bool
    word: str | None


_OPEN_CASE: Final = _CaseAnswer(False, None)


class StringProver:
    """Proofs and counter-examples about strings, for the schemas of two documents."""

    def __init__(self, find_target: Callable[[dict[str, Json]], Json]) -> None:
        """Store find_target, which returns the schema that a `$ref` leads to."""
        self._find_target = find_target
        self._algebras = [make_algebra() for _ in DOTS]
        self._left = ALL_STEPS
        self._cases: dict[tuple[int, bool], Cases | None] = {}
        self._answers: dict[Case, _CaseAnswer] = {}

    # --- questions ---

    def allows_strings(self, schema: Json) -> bool:
        """Return whether a schema may allow strings; True in doubt."""
        try:
            return bool(self.list_cases(schema, True))
        except _TooManyCases:
            return True

    def is_covered(self, reader: Json, writer: Json) -> bool:
        """Return whether it is proved that every string that fits the writer's schema fits the reader's."""
        try:
            return self.is_within(self.list_cases(writer, True), reader)
        except _TooManyCases:
            return False

    def is_within(self, cases: Cases, schema: Json) -> bool:
        """Return whether it is proved that every string of the cases fits a schema."""
        try:
            return self.is_disjoint(cases, self.list_cases(schema, False))
        except _TooManyCases:
            return False

    def is_disjoint(self, one: Cases, other: Cases) -> bool:
        """Return whether it is proved that no string fits both."""
        try:
            return all(self._solve(case).impossible for case in _combine_cases(one, other))
        except _TooManyCases:
            return False

    def find_words(self, reader: Schemas, writer: Schemas) -> Iterator[str]:
        """Yield strings that may fit all of the writer's schemas: first some that a schema of the reader refuses."""
        try:
            allowed = self.list_conjunction(writer)
            refused = [case for schema in reader for case in self.list_cases(schema, False)]
            cases = [*_combine_cases(allowed, refused), *allowed]
        except _TooManyCases:
            return
        yield from self._list_words(cases)

    def find_names(self, reader: Parts, writer: Parts) -> list[str]:
        """Return names that members of the writer's objects can have, inside and outside the reader's sets."""
        try:
            allowed = self._allowed_names(writer)
            borders = [*unmentioned_names(reader)]
            for part, wanted in product(reader, (False, True)):
                borders += self.list_cases(part.get("propertyNames", True), wanted)
                for pattern in part.get("patternProperties", ()):
                    borders += pattern_cases(pattern, wanted)
            unmentioned_cases = _combine_cases(allowed, unmentioned_names(writer))
            cases = [*_combine_cases(unmentioned_cases, borders), *unmentioned_cases, *_combine_cases(allowed, borders)]
        except _TooManyCases:
            return []
        return list(dict.fromkeys(islice(self._list_words(cases), MAX_NAMES)))

    def _list_words(self, cases: Iterable[Case]) -> Iterator[str]:
        return (answer.word for answer in map(self._solve, cases) if answer.word is not None)

    # --- formulas ---

    def list_names(self, parts: Parts, cases: Cases) -> Cases:
        """Return those names of the cases that members can have where all parts apply; all of them in doubt."""
        try:
            return _combine_cases(cases, self._allowed_names(parts))
        except _TooManyCases:
            return cases

    def _allowed_names(self, parts: Parts) -> Cases:
        cases = ANY_STRING
        for part in parts:
            cases = _combine_cases(cases, self.list_cases(part.get("propertyNames", True), True))
            if part.get("additionalProperties") is False:
                cases = _combine_cases(cases, mentioned_names(part, True))
            for pattern, inner in part.get("patternProperties", {}).items():
                if inner is False:
                    cases = _combine_cases(cases, pattern_cases(pattern, False))
        return cases

    def list_conjunction(self, schemas: Schemas) -> Cases:
        """Return the strings that fit all schemas."""
        cases = ANY_STRING
        for schema in schemas:
            cases = _combine_cases(cases, self.list_cases(schema, True))
        return cases

    def list_cases(self, schema: Json, wanted: bool, above: tuple[int, ...] = ()) -> Cases:
        """Return the cases of strings that fit a schema, or of those that do not. Raises `_TooManyCases`."""
        if not isinstance(schema, dict):
            return ANY_STRING if (schema is not False) is wanted else _NO_STRING
        key = (id(schema), wanted)
        if key not in self._cases:
            if id(schema) in above:
                return _condition("unknown", id(schema), wanted)
            self._cases[key] = self._schema_cases(schema, wanted, (*above, id(schema)))
        cases = self._cases[key]
        if cases is None:
            raise _TooManyCases
        return cases

    def _schema_cases(self, schema: dict[str, Json], wanted: bool, above: tuple[int, ...]) -> Cases | None:
        """Return the cases of a schema for the cache of `list_cases`, None when there are too many."""
        try:
            return _join_cases([self._keyword_cases(keyword, schema, wanted, above) for keyword in schema], wanted)
        except _TooManyCases:
            return None

    def _keyword_cases(self, keyword: str, schema: dict[str, Json], wanted: bool, above: tuple[int, ...]) -> Cases:
        """Return the strings that meet a keyword, or those that do not."""
        value = schema[keyword]
        match keyword:
            case "type":
                return (
                    ANY_STRING if ("string" in ([value] if isinstance(value, str) else value)) is wanted else _NO_STRING
                )
            case "const" | "enum":
                values = [value] if keyword == "const" else value
                return listed_cases((each for each in values if isinstance(each, str)), wanted)
            case "pattern":
                return pattern_cases(value, wanted)
            case "minLength" | "maxLength":
                return _condition("longer" if keyword == "minLength" else "shorter", int(value), wanted)
            case "format" | "contentEncoding" | "contentMediaType":
                return _condition("unknown", (keyword, to_hashable(value)), wanted)
            case "$ref":
                return self.list_cases(self._find_target(schema), wanted, above)
            case "not":
                return self.list_cases(value, not wanted, above)
            case "allOf" | "anyOf":
                each = [self.list_cases(branch, wanted, above) for branch in value]
                return _join_cases(each, (keyword == "allOf") is wanted)
            case "oneOf":
                return self._one_of_cases(value, wanted, above)
            case "if":
                return self._if_cases(schema, wanted, above)
            case _:
                return ANY_STRING if wanted else _NO_STRING

    def _one_of_cases(self, branches: list[Json], wanted: bool, above: tuple[int, ...]) -> Cases:
        if len(branches) > MAX_CASES:  # the work below grows with the square of their number
            raise _TooManyCases
        fits = [self.list_cases(branch, True, above) for branch in branches]
        fails = [self.list_cases(branch, False, above) for branch in branches]
        if wanted:
            ways = [[*fails[:index], fit, *fails[index + 1 :]] for index, fit in enumerate(fits)]
        else:
            pairs = ([one, other] for index, one in enumerate(fits) for other in fits[index + 1 :])
            ways = [fails, *pairs]
        return _join_cases([_join_cases(way, True) for way in ways], False)

    def _if_cases(self, schema: dict[str, Json], wanted: bool, above: tuple[int, ...]) -> Cases:
        ways = [
            _combine_cases(
                self.list_cases(schema["if"], met, above), self.list_cases(schema.get(word, True), wanted, above)
            )
            for met, word in ((True, "then"), (False, "else"))
        ]
        return _join_cases(ways, False)

    # --- languages ---

    def _solve(self, case: Case) -> _CaseAnswer:
        if any((condition, not holds) in case for condition, holds in case):
            return _CaseAnswer(True, None)
        if case not in self._answers:
            self._answers[case] = self._compare_languages(case)
        return self._answers[case]

    def _compare_languages(self, case: Case) -> _CaseAnswer:
        """Return the answer for a case. It is impossible only if it is so under both meanings of the full stop."""
        has_dot = any(condition.kind == "pattern" and "." in condition.value for condition, _ in case)
        answer = _OPEN_CASE
        for algebra, dot in list(zip(self._algebras, DOTS, strict=True))[: None if has_dot else 1]:
            budget = algebra.budget = StepBudget(min(CASE_STEPS, self._left))
            try:
                answer = _compare_case(algebra, case, dot)
            except (BudgetExceeded, RecursionError):
                answer = _OPEN_CASE
            finally:
                self._left -= min(CASE_STEPS, self._left) - max(budget.left, 0)
                if algebra.remembered > CASE_STEPS:
                    algebra.forget_terms()
            if not answer.impossible:
                break
        return answer


def _compare_case(algebra: Algebra, case: Case, dot: CharSet) -> _CaseAnswer:
    wanted, refused = algebra.make_repeat(algebra.make_leaf(JSON_CHARS), 0, None), algebra.never
    for condition, holds in sorted(case, key=lambda each: repr(each[0])):
        term = _condition_language(algebra, condition, dot)
        if term is None:
            continue
        if holds:
            wanted = algebra.make_intersection(wanted, term)
        else:
            refused = algebra.make_choice([refused, term])
    word = find_word(algebra, wanted, refused)
    return _CaseAnswer(word is None, word)


def _condition_language(algebra: Algebra, condition: Condition, dot: CharSet) -> Term | None:
    """Return the language of the strings that meet a condition, None when it is not known."""
    value = condition.value
    match condition.kind:
        case "pattern":
            try:
                return parse_search(algebra, value, dot)
            except PatternError:
                return None
        case "shorter" | "longer":
            bounds = (0, value) if condition.kind == "shorter" else (value, None)
            return algebra.make_repeat(algebra.make_leaf(JSON_CHARS), *bounds)
        case "listed":
            return algebra.make_choice(literal_text(algebra, text) for text in sorted(value))
        case _:
            return None


def pattern_cases(pattern: str, wanted: bool = True) -> Cases:
    """Return the cases of strings that a pattern matches, or of the others."""
    return _condition("pattern", pattern, wanted)


def listed_cases(texts: Iterable[str], wanted: bool = True) -> Cases:
    """Return the cases of the given strings, or of all others."""
    return _condition("listed", frozenset(texts), wanted)


def mentioned_names(part: dict[str, Json], wanted: bool = True) -> Cases:
    """Return the names that `properties` and `patternProperties` of a schema mention, or the others."""
    patterns = [pattern_cases(pattern, wanted) for pattern in part.get("patternProperties", ())]
    return _join_cases([listed_cases(part.get("properties", ()), wanted), *patterns], not wanted)


def other_names(part: dict[str, Json]) -> Cases:
    """Return the names that `properties` and `patternProperties` do not mention.

    If these are too many cases, all names are returned.
    """
    try:
        return mentioned_names(part, wanted=False)
    except _TooManyCases:
        return ANY_STRING


def unmentioned_names(parts: Parts) -> Cases:
    """Return the names that none of several schemas mentions. Raises `_TooManyCases`."""
    return _join_cases([mentioned_names(part, wanted=False) for part in parts], together=True)


def _condition(kind: str, value: Any, wanted: bool) -> Cases:
    return [frozenset([(Condition(kind, value), wanted)])]


def _join_cases(each: Iterable[Cases], together: bool) -> Cases:
    """Return the cases of strings that fit all of the inputs (together), or at least one of them."""
    joined_cases = ANY_STRING if together else _NO_STRING
    for cases in each:
        joined_cases = _combine_cases(joined_cases, cases) if together else list(dict.fromkeys([*joined_cases, *cases]))
    return _limit_cases(joined_cases)


def _combine_cases(one: Cases, other: Cases) -> Cases:
    return _limit_cases(list(dict.fromkeys(mine | theirs for mine in one for theirs in other)))


def _limit_cases(cases: Cases) -> Cases:
    if len(cases) > MAX_CASES or any(len(case) > MAX_CONDITIONS for case in cases):
        raise _TooManyCases
    return cases


JSON_CHARS: Final = charset_of([(0, 0xD7FF), (0xE000, MAX_CODE_POINT)])
"""All characters that a JSON string can hold."""

DOTS: Final = (JSON_CHARS - charset_of_text("\n"), JSON_CHARS - charset_of_text("\n\r\u2028\u2029"))
"""The characters that the full stop matches: in the validator, in ECMA-262."""

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
"""Greatest number in a quantifier of a group with an anchor. Such a group is repeated in the term."""


class AnchoredTerm(NamedTuple):
    """What a part of a pattern matches, by the position of the match in the string.

    inside      the match neither begins at the start nor ends at the end of the string
    to_end      the match ends at the end of the string
    from_start  the match begins at the start of the string
    whole       both

    What matches inside also matches at the start and end: anchors only add requirements.
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
    """Combines anchored terms."""

    def __init__(self, algebra: Algebra) -> None:
        self.algebra = algebra
        self.empty = AnchoredTerm(*(algebra.empty,) * 4)
        self.start = AnchoredTerm(algebra.never, algebra.never, algebra.empty, algebra.empty)
        self.end = AnchoredTerm(algebra.never, algebra.empty, algebra.never, algebra.empty)

    def make_leaf(self, charset: CharSet) -> AnchoredTerm:
        """Return a term that matches one character of a set."""
        self.algebra.budget.spend_steps(charset_steps(charset))
        term = self.algebra.make_leaf(charset) if charset else self.algebra.never
        return AnchoredTerm(*(term,) * 4)

    def make_choice(self, items: Iterable[AnchoredTerm], /) -> AnchoredTerm:
        """Return a term that matches one of the items."""
        return AnchoredTerm(*map(self.algebra.make_choice, zip(*items, strict=True)))

    def make_sequence(self, *items: AnchoredTerm) -> AnchoredTerm:
        """Return a term that matches the items one after the other."""
        result = self.empty
        for item in reversed(items):
            result = self._sequence_of_two(item, result)
        return result

    def _sequence_of_two(self, one: AnchoredTerm, other: AnchoredTerm) -> AnchoredTerm:
        if one.is_free and other.is_free:
            return AnchoredTerm(*(self.algebra.make_sequence(one.inside, other.inside),) * 4)

        def join(head: Term, tail: Term, head_alone: Term, tail_alone: Term) -> Term:
            """Return the sequence of both. If one matches nothing, the other one touches both borders."""
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
        """Return a term that matches body between low and high times in a row.

        Raises `PatternError` past `MAX_ANCHORED_COUNT`.
        """
        if body.is_free:
            return AnchoredTerm(*(self.algebra.make_repeat(body.inside, low, high),) * 4)
        if max(low, high or 0) > MAX_ANCHORED_COUNT:
            raise PatternError("a group with an anchor is repeated too often")
        if high is None:
            return self.make_sequence(*[body] * low, self._repeat_forever(body))
        return self.make_sequence(*[body] * low, *[self.make_choice([body, self.empty])] * (high - low))

    def _repeat_forever(self, body: AnchoredTerm) -> AnchoredTerm:
        """Return a term that matches body any number of times.

        Only the first match can begin at the start of the string, only the last one can end at its end.
        """
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

    def make_search(self, anchored: AnchoredTerm) -> Term:
        """Return a term that matches the strings that contain a match anywhere."""
        rest = self.algebra.make_repeat(self.algebra.make_leaf(JSON_CHARS), 0, None)
        ways = {anchored.inside: self.algebra.make_sequence(rest, anchored.inside, rest)}
        ways.setdefault(anchored.from_start, self.algebra.make_sequence(anchored.from_start, rest))
        ways.setdefault(anchored.to_end, self.algebra.make_sequence(rest, anchored.to_end))
        ways.setdefault(anchored.whole, anchored.whole)
        return self.algebra.make_choice(ways.values())


class _Parser(PatternParser[AnchoredTerm]):
    """Parser for the part of the ECMA-262 grammar that all engines interpret alike."""

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
            raise self._syntax_error("a kind of group that is not supported")
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
            raise self._syntax_error(f"an escape \\{char} that is not supported")
        self._at += length
        characters = charset_of([(int(digits, 16),) * 2]) & JSON_CHARS
        if not characters:
            raise self._syntax_error("half a surrogate pair")
        return characters

    def _parse_class(self) -> CharSet:
        """Parse a character class after `[`, up to and including `]`."""
        negated = self._skip_text("^")
        characters = CharSet(())
        if self._peek() == "]":
            raise self._syntax_error("an empty class")
        while not self._skip_text("]"):
            if self._text[self._at : self._at + 2] in ("&&", "--", "~~"):
                raise self._syntax_error("an operation on classes, which not all engines support")
            characters = characters | self._parse_class_range()
            self._terms.algebra.budget.spend_steps(charset_steps(characters))
        return JSON_CHARS - characters if negated else characters

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
    """Return a term that matches the strings in which a pattern is found.

    dot is what the full stop matches, one of `DOTS`. Raises `PatternError` for patterns with unsupported syntax, and
    `BudgetExceeded`.
    """
    algebra.budget.spend_steps(len(pattern))
    builder = AnchoredBuilder(algebra)
    return builder.make_search(_Parser(builder, pattern, dot).parse_all())
