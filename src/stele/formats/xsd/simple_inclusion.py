"""Inclusion of simple types: whether every text of one type is a text of another.

The result is a proof or nothing. Facets are compared as values if both types compare values in the same way, and as
languages if they restrict texts. For unproved cases `stele.formats.xsd.compat` searches a counterexample.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, Final, NamedTuple

from stele.formats.regex import literal_text, make_algebra, split_sets
from stele.formats.terms import Algebra, BudgetExceeded, Term, find_missing_word
from stele.formats.xsd.regex import parse_pattern
from stele.formats.xsd.simple_type import (
    EXACT,
    INTEGERS,
    TEXTUAL,
    IntervalEnd,
    SimpleTypeShape,
    any_text,
    lexical_space,
    normalize_space,
    pattern_alternatives,
    shape_of,
    text_language,
    value_interval,
)
from stele.formats.xsd.xmlschema_adapter import accepts_text

MAX_STEPS: Final = 250_000
"""Budget of one comparison of languages."""

MAX_UNITS: Final = 20_000
"""Budget for all simple types of one check, in units. A common machine does about 20 units per millisecond."""

_STEPS_IN_UNIT: Final = 20
_TEXT_UNITS: Final = 4


class InclusionProof(NamedTuple):
    """Result of a comparison. `holds`: inclusion is proved. `hints`: texts to try as counterexamples."""

    holds: bool
    hints: tuple[str, ...] = ()


class SimpleTypeBudget:
    """The budget of one check for simple types, with a cache of the verdicts on pairs."""

    def __init__(self) -> None:
        self.left = MAX_UNITS
        self.known: dict[tuple[int, int, frozenset[tuple[str, ...]]], InclusionProof] = {}

    def try_spend(self, units: int) -> bool:
        """Spend units. Return False when none is left; the caller then gives up the proof."""
        self.left -= units
        return self.left > 0

    def accepts_text(self, kind: Any, text: str) -> bool:
        """Return whether a type accepts a text; also False when the budget is spent."""
        return self.try_spend(_TEXT_UNITS) and accepts_text(kind, text)

    @contextmanager
    def paid_algebra(self) -> Iterator[Algebra]:
        """Yield an algebra over characters whose steps are paid from the budget."""
        steps = max(0, min(MAX_STEPS, self.left * _STEPS_IN_UNIT))
        algebra = make_algebra(steps)
        try:
            yield algebra
        finally:
            self.try_spend(1 + (steps - algebra.budget.left) // _STEPS_IN_UNIT)


_MAX_VALUES: Final = 1_000
_MAX_DEPTH: Final = 12
_MAX_DIGITS: Final = 25
_ORDER: Final = {"preserve": 0, "replace": 1, "collapse": 2}
_BELOW: Final[dict[str, frozenset[str]]] = {
    "string": frozenset(TEXTUAL | {"ID", "IDREF", "ENTITY"}),
    "normalizedString": frozenset(TEXTUAL - {"string"} | {"ID", "IDREF", "ENTITY"}),
    "token": frozenset({"token", "language", "NMTOKEN", "Name", "NCName", "ID", "IDREF", "ENTITY"}),
    "Name": frozenset({"Name", "NCName", "ID", "IDREF", "ENTITY"}),
    "NCName": frozenset({"NCName", "ID", "IDREF", "ENTITY"}),
    "NMTOKEN": frozenset({"NMTOKEN", "Name", "NCName", "ID", "IDREF", "ENTITY"}),
    "dateTime": frozenset({"dateTime", "dateTimeStamp"}),
    "duration": frozenset({"duration", "dayTimeDuration", "yearMonthDuration"}),
}
_OFFSET: Final = re.compile(r"[+\-][0-9]{2}:[0-9]{2}$")
_FREE: Final = frozenset({"string", "normalizedString", "token"})
_FLOATS: Final = frozenset({"float", "double"})


_YES: Final = InclusionProof(True)
_NO: Final = InclusionProof(False)


def compare_simple_types(
    writer: Any,
    reader: Any,
    budget: SimpleTypeBudget,
    *,
    steps: frozenset[tuple[str, ...]] = frozenset(),
    depth: int = 0,
) -> InclusionProof:
    """Return whether the writer's simple type is proved to be included in the reader's.

    steps are pattern facets of enclosing unions that hold for the writer's texts too.
    """
    if depth > _MAX_DEPTH or not budget.try_spend(1):
        return _NO
    key = (id(writer), id(reader), steps)
    if key not in budget.known:
        budget.known[key] = _compare_shapes(writer, reader, budget, steps, depth)
    return budget.known[key]


def _compare_shapes(
    writer: Any, reader: Any, budget: SimpleTypeBudget, steps: frozenset[tuple[str, ...]], depth: int
) -> InclusionProof:
    mine, theirs = shape_of(writer), shape_of(reader)
    if theirs.variety == "any":
        return _YES
    steps |= frozenset(mine.patterns)
    if mine.enumeration is not None and not any(accepts_text(writer, text) for text in mine.enumeration[:_MAX_VALUES]):
        return _NO if len(mine.enumeration) > _MAX_VALUES else _YES  # the writer allows no text
    texts = listed_texts(writer)
    if texts is not None:
        listed = _enumerated_texts(theirs)
        if listed is None:
            wrong = tuple(text for text in texts if not budget.accepts_text(reader, text))
        else:
            wrong = tuple(text for text in texts if normalize_space(text, theirs.white) not in listed)
        if budget.left <= 0:
            return _NO
        if wrong or not _is_padding_significant(mine, theirs):
            return InclusionProof(not wrong, wrong)
        if theirs.variety != "union":
            return InclusionProof(False, tuple(f" {text} " for text in texts[:3]))
    if mine.variety == "union":
        return _combine_proofs(
            compare_simple_types(part, reader, budget, steps=steps, depth=depth + 1) for part in mine.parts
        )
    if theirs.variety == "union":
        if not _has_known_facets(mine, theirs, steps):
            return _NO
        proofs = [compare_simple_types(writer, part, budget, steps=steps, depth=depth + 1) for part in theirs.parts]
        return _YES if any(proof.holds for proof in proofs) else _combine_proofs(iter(proofs))
    if theirs.variety == "list":
        return _compare_with_list(writer, mine, theirs, budget, steps, depth)
    if mine.variety == "list":
        return InclusionProof(theirs.base in _FREE and theirs.is_plain)
    return _compare_atomic(mine, theirs, budget, steps)


def _combine_proofs(proofs: Any) -> InclusionProof:
    hints: dict[str, None] = {}
    holds = True
    for proof in proofs:
        holds = holds and proof.holds
        hints.update(dict.fromkeys(proof.hints[:_MAX_VALUES]))
    return InclusionProof(holds, () if holds else tuple(hints))


def listed_texts(kind: Any) -> tuple[str, ...] | None:
    """Return all texts of a type that has few, None for other types (a decimal can be written in many ways)."""
    shape = shape_of(kind)
    if shape.enumeration is not None and shape.is_textual:
        only = _has_only_enumeration(shape)
        return tuple(
            normalize_space(text, shape.white) for text in shape.enumeration if only or accepts_text(kind, text)
        )
    return ("true", "false", "0", "1") if shape.base == "boolean" and shape.is_plain else None


def _enumerated_texts(shape: SimpleTypeShape) -> frozenset[str] | None:
    """Return all (normalized) texts of a type restricted by an enumeration alone; None for other types."""
    if shape.enumeration is None or not shape.is_textual or not _has_only_enumeration(shape):
        return None
    return frozenset(normalize_space(text, shape.white) for text in shape.enumeration)


def _has_only_enumeration(shape: SimpleTypeShape) -> bool:
    return not shape.patterns and shape.lengths == (None, None) and not shape.tests


def _is_padding_significant(writer: SimpleTypeShape, reader: SimpleTypeShape) -> bool:
    """Return whether facets of the reader's type see white space that the writer's type ignores."""
    if reader.variety == "union":
        return any(_is_padding_significant(writer, shape_of(part)) for part in reader.parts)
    return _ORDER[writer.white] > _ORDER[reader.white] and not (reader.is_plain and reader.variety == "atomic")


def _has_known_facets(writer: SimpleTypeShape, reader: SimpleTypeShape, steps: frozenset[tuple[str, ...]]) -> bool:
    """Return whether the writer already has all facets that restrict the reader's list or union itself."""
    return reader.enumeration is None and set(reader.patterns) <= steps and reader.tests <= writer.tests


def _compare_with_list(
    writer: Any,
    mine: SimpleTypeShape,
    theirs: SimpleTypeShape,
    budget: SimpleTypeBudget,
    steps: frozenset[tuple[str, ...]],
    depth: int,
) -> InclusionProof:
    if not _has_known_facets(mine, theirs, steps):
        return _NO
    least, most = theirs.lengths
    item = shape_of(theirs.parts[0])
    if theirs.lengths == (None, None) and item.base in _FREE and item.is_plain:
        return _YES  # every text is a list of texts
    if mine.variety == "list":
        if not _is_within(mine.lengths, theirs.lengths):
            return _NO
        return compare_simple_types(mine.parts[0], theirs.parts[0], budget, depth=depth + 1)
    single = mine.variety == "atomic" and mine.base not in _FREE | {"anyURI", "hexBinary", "base64Binary"}
    if not single or (least or 0) > 1 or (most is not None and most < 1):
        return _NO
    return compare_simple_types(writer, theirs.parts[0], budget, depth=depth + 1)


def _is_within(inner: tuple[int | None, int | None], outer: tuple[int | None, int | None]) -> bool:
    low = outer[0] is None or (inner[0] or 0) >= outer[0]
    return low and (outer[1] is None or (inner[1] is not None and inner[1] <= outer[1]))


def _compare_atomic(
    writer: SimpleTypeShape, reader: SimpleTypeShape, budget: SimpleTypeBudget, steps: frozenset[tuple[str, ...]]
) -> InclusionProof:
    if writer.variety == "any":
        return InclusionProof(reader.base == "string" and reader.is_plain)
    try:
        with budget.paid_algebra() as algebra:
            proof = _compare_lexically(algebra, writer, reader, steps)
    except BudgetExceeded:
        proof = _NO
    if not proof.holds:
        return proof
    return InclusionProof(_is_value_subset(writer, reader) or _has_small_integers(writer, reader, budget))


def _has_small_integers(writer: SimpleTypeShape, reader: SimpleTypeShape, budget: SimpleTypeBudget) -> bool:
    """Return whether all texts are integers with fewer digits than the ends of the reader's range."""
    if (
        not writer.is_textual
        or not reader.is_integral
        or reader.enumeration is not None
        or reader.digits[0] is not None
    ):
        return False
    low, high = value_interval(reader)
    if reader.tests or any(end is not None and len(str(abs(end.value))) > _MAX_DIGITS for end in (low, high)):
        return False
    try:
        with budget.paid_algebra() as algebra:
            small = _small_integers(algebra, low, high)
            return find_missing_word(algebra, text_language(algebra, writer), small, split_sets) is None
    except BudgetExceeded:
        return False


def _small_integers(algebra: Algebra, low: IntervalEnd | None, high: IntervalEnd | None) -> Term:
    """Return the spellings of integers with fewer digits than both ends."""
    spelled = []
    for sign, end in (("\\+?", high), ("-", None if low is None else IntervalEnd(-low.value, 0))):
        digits = "[0-9]+" if end is None else f"0*[0-9]{{1,{len(str(end.value + 1)) - 1}}}"
        other = low if sign != "-" else high
        reaches_zero = other is None or (other.value <= 0 if sign != "-" else other.value >= 0)
        if reaches_zero and (end is None or end.value >= 9):
            spelled.append(parse_pattern(algebra, sign + digits))
    return algebra.make_choice(spelled)


# --- as texts -------------------------------------------------------------------------------------------------------


def _compare_lexically(
    algebra: Algebra, writer: SimpleTypeShape, reader: SimpleTypeShape, steps: frozenset[tuple[str, ...]]
) -> InclusionProof:
    """Compare the writer's texts with the reader's lexical space, patterns, and for texts lengths and enumeration."""
    wanted: list[Term] = []
    if not _is_lexically_below(writer.base, reader.base):
        if reader.base not in EXACT:
            return _NO
        wanted.append(lexical_space(algebra, reader.base))
    unknown = [step for step in reader.patterns if step not in steps or reader.version != writer.version]
    wanted += [pattern_alternatives(algebra, step, reader.version) for step in unknown]
    if reader.is_textual or reader.base == "anyURI":
        if reader.enumeration is not None:
            texts = (normalize_space(text, reader.white) for text in reader.enumeration)
            wanted.append(algebra.make_choice(literal_text(algebra, text) for text in texts))
        known = writer.lengths if writer.is_textual or writer.base == reader.base else (None, None)
        if not _is_within(known, reader.lengths):
            wanted.append(any_text(algebra, reader.lengths[0] or 0, reader.lengths[1]))
    if not wanted and (reader.is_plain or _ORDER[writer.white] == _ORDER[reader.white]):
        return _YES
    return _compare_languages(algebra, writer, reader, wanted)


def _compare_languages(
    algebra: Algebra, writer: SimpleTypeShape, reader: SimpleTypeShape, wanted: list[Term]
) -> InclusionProof:
    if _ORDER[writer.white] > _ORDER[reader.white]:
        return InclusionProof(False, tuple(f" {text}" for text in (writer.enumeration or ("a", "1"))[:3]))
    if _ORDER[writer.white] < _ORDER[reader.white]:
        fixed = r"(\S+( \S+)*)?" if reader.white == "collapse" else r"[^\t\n\r]*"
        wanted.append(parse_pattern(algebra, fixed))
    mine = text_language(algebra, writer)
    for term in wanted:
        miss = find_missing_word(algebra, mine, term, split_sets)
        if miss is not None:
            word = "".join(symbol.sample_char() for _, symbol in miss.word)
            return InclusionProof(False, (word + _shortest_completion(algebra, miss.rest),))
    return _YES


def _shortest_completion(algebra: Algebra, term: Term) -> str:
    miss = find_missing_word(algebra, term, algebra.never, lambda label, _: [(label, [label])])
    return "" if miss is None else "".join(symbol.sample_char() for _, symbol in miss.word)


def _is_lexically_below(writer: str, reader: str) -> bool:
    """Return whether every lexical form of the writer's built-in type is one of the reader's by definition."""
    if writer == reader or reader in _FREE or writer in _BELOW.get(reader, frozenset()):
        return True
    if reader in _FLOATS:
        return writer in _FLOATS or writer == "decimal" or writer in INTEGERS
    if reader == "decimal" or reader in INTEGERS:
        return writer in INTEGERS
    return False


# --- as values ------------------------------------------------------------------------------------------------------


def _is_value_subset(writer: SimpleTypeShape, reader: SimpleTypeShape) -> bool:
    """Return whether every value of the writer satisfies the reader's ranges, digits, enumeration and assertions."""
    if not reader.tests <= writer.tests:
        return False
    if reader.base == "decimal" or reader.is_integral or reader.base in _FLOATS:
        return _is_number_subset(writer, reader)
    if reader.is_textual or reader.base == "anyURI":
        return not reader.bounds
    if not _is_enumeration_subset(writer, reader):
        return False
    if reader.base in ("hexBinary", "base64Binary") and not _is_within(writer.lengths, reader.lengths):
        return False
    if set(reader.bounds) <= set(writer.bounds):
        return True
    return writer.base == reader.base and all(_is_end_implied(writer, *bound) for bound in reader.bounds)


def _is_end_implied(writer: SimpleTypeShape, facet: str, text: str) -> bool:
    """Return whether one of the writer's bounds implies this bound of times or durations.

    The order is partial, but transitive. Bounds with and without a time zone are not compared.
    """
    decode = writer.parts[0].decode
    end = decode(text)
    for other, spelling in writer.bounds:
        if other[:3] != facet[:3] or _has_zone(text) != _has_zone(spelling):
            continue
        mine = decode(spelling)
        tighter = mine > end if facet.startswith("min") else mine < end
        if tighter or (mine == end and (facet.endswith("Inclusive") or other == facet)):
            return True
    return False


def _has_zone(text: str) -> bool:
    return text.endswith("Z") or bool(_OFFSET.search(text))


def _is_enumeration_subset(writer: SimpleTypeShape, reader: SimpleTypeShape) -> bool:
    """Return whether the writer's enumeration is included in the reader's.

    Values are compared by their spellings. This is valid because both have the same built-in type.
    """
    if reader.enumeration is None:
        return True
    if writer.enumeration is None or writer.base != reader.base or reader.base in ("QName", "NOTATION"):
        return False
    return {text.strip() for text in writer.enumeration} <= {text.strip() for text in reader.enumeration}


def _is_number_subset(writer: SimpleTypeShape, reader: SimpleTypeShape) -> bool:
    free = value_interval(reader) == (None, None) and not reader.bounds and reader.enumeration is None
    if free and reader.digits[0] is None and (reader.digits[1] is None or reader.is_integral):
        return True
    if not (writer.base == "decimal" or writer.is_integral or writer.base in _FLOATS):
        return False
    if reader.enumeration is not None and not _is_number_listed(writer, reader):
        return False
    if writer.enumeration is not None and not reader.patterns:
        return all(_is_number_allowed(Decimal(text.strip()), reader) for text in writer.enumeration if _is_finite(text))
    return _is_range_within(writer, reader) and _has_fewer_digits(writer, reader)


def _is_finite(text: str) -> bool:
    return text.strip().lstrip("+-") not in ("INF", "NaN")


def _is_number_allowed(number: Decimal, reader: SimpleTypeShape) -> bool:
    low, high = value_interval(reader)
    if low is not None and (number < low.value or (low.exclusive and number == low.value)):
        return False
    if high is not None and (number > high.value or (high.exclusive and number == high.value)):
        return False
    whole, _, tail = format(number.copy_abs(), "f").partition(".")
    fraction = len(tail.rstrip("0"))
    total = max(len(whole.lstrip("0")) + fraction, 1)
    return (reader.digits[0] is None or total <= reader.digits[0]) and (
        reader.digits[1] is None or fraction <= reader.digits[1]
    )


def _is_number_listed(writer: SimpleTypeShape, reader: SimpleTypeShape) -> bool:
    assert reader.enumeration is not None
    if writer.base in _FLOATS or reader.base in _FLOATS:
        return _is_enumeration_subset(writer, reader)
    allowed = {Decimal(text.strip()) for text in reader.enumeration}
    if writer.enumeration is not None:
        return {Decimal(text.strip()) for text in writer.enumeration} <= allowed
    low, high = value_interval(writer)
    if not writer.is_integral or low is None or high is None or high.value - low.value > _MAX_VALUES:
        return False
    return all(Decimal(number) in allowed for number in range(int(low.value), int(high.value) + 1))


def _is_range_within(writer: SimpleTypeShape, reader: SimpleTypeShape) -> bool:
    if writer.base in _FLOATS and (reader.base != writer.base or _has_odd_bounds(reader)):
        return not reader.bounds and reader.base in _FLOATS
    low, high = value_interval(reader)
    mine_low, mine_high = value_interval(writer)
    excluded = any(end is not None and end.exclusive for end in (low, high))
    if reader.base in _FLOATS and writer.base not in _FLOATS and excluded:
        return False  # rounding to a double may reach an excluded end
    if low is not None and (mine_low is None or mine_low < low):
        return False
    return high is None or (mine_high is not None and _is_not_above(mine_high, high))


def _has_odd_bounds(shape: SimpleTypeShape) -> bool:
    return any(not _is_finite(text) for _, text in shape.bounds)


def _is_not_above(one: IntervalEnd, other: IntervalEnd) -> bool:
    return (one.value, -one.exclusive) <= (other.value, -other.exclusive)


def _has_fewer_digits(writer: SimpleTypeShape, reader: SimpleTypeShape) -> bool:
    total, fraction = reader.digits
    if fraction is not None and not writer.is_integral and (writer.digits[1] is None or writer.digits[1] > fraction):
        return False
    if total is None or (writer.digits[0] is not None and writer.digits[0] <= total):
        return True
    low, high = value_interval(writer)
    if not writer.is_integral or low is None or high is None:
        return False
    return max(abs(low.value), abs(high.value)) < Decimal(10) ** total
