"""The texts of a simple type: as a term over characters, and as samples to try.

The term is exact for textual types, else possibly too wide. Samples are plain texts first, then those at the borders
of what facets allow.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from itertools import islice
from typing import Any, Final

from stele.formats.xsd import regex
from stele.formats.xsd.regex import PatternError, parse_pattern
from stele.formats.xsd.simple_type import INTEGERS, SimpleTypeShape, shape_of, value_interval
from stele.formats.xsd.terms import Algebra, BudgetExceeded, StepBudget, Term
from stele.formats.xsd.xmlschema_adapter import accepts_text

_ZONE: Final = r"(Z|[+\-][0-9]{2}:[0-9]{2})?"
_YEAR: Final = r"-?[0-9]{4,}"
_TIME: Final = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?"
_FLOAT: Final = r"[+\-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([Ee][+\-]?[0-9]+)?|[+\-]?INF|NaN"

LEXICAL: Final[dict[str, str]] = {
    "token": r"(\S+( \S+)*)?",
    "normalizedString": r"[^\t\n\r]*",
    "boolean": "true|false|0|1",
    "decimal": r"[+\-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)",
    **dict.fromkeys(INTEGERS, r"[+\-]?[0-9]+"),
    "float": _FLOAT,
    "double": _FLOAT,
    "language": r"[a-zA-Z]{1,8}(-[a-zA-Z0-9]{1,8})*",
    "NMTOKEN": r"\c+",
    "Name": r"\i\c*",
    **dict.fromkeys(("NCName", "ID", "IDREF", "ENTITY"), r"[\i-[:]][\c-[:]]*"),
    "QName": r"[\i-[:]][\c-[:]]*(:[\i-[:]][\c-[:]]*)?",
    "hexBinary": "([0-9a-fA-F]{2})*",
    "base64Binary": "[A-Za-z0-9+/= ]*",
    "date": rf"{_YEAR}-[0-9]{{2}}-[0-9]{{2}}{_ZONE}",
    "time": _TIME + _ZONE,
    "dateTime": rf"{_YEAR}-[0-9]{{2}}-[0-9]{{2}}T{_TIME}{_ZONE}",
    "gYear": _YEAR + _ZONE,
    "gYearMonth": rf"{_YEAR}-[0-9]{{2}}{_ZONE}",
    "gMonth": rf"--[0-9]{{2}}{_ZONE}",
    "gMonthDay": rf"--[0-9]{{2}}-[0-9]{{2}}{_ZONE}",
    "gDay": rf"---[0-9]{{2}}{_ZONE}",
    "duration": r"-?P[0-9YMDTHS.]+",
}
"""Lexical spaces as patterns. Those of dates, durations and base64 are wider than the truth."""

EXACT: Final = frozenset(
    {"string", "normalizedString", "token", "boolean", "decimal", "float", "double", "language", "NMTOKEN", "Name"}
    | {"NCName", "hexBinary", *INTEGERS}
)
"""Built-in types whose entry is their lexical space exactly (values' ranges aside)."""


def lexical_space(algebra: Algebra, base: str) -> Term:
    """Return the lexical space of a built-in type, after white space is normalized."""
    pattern = LEXICAL.get(base)
    return any_text(algebra) if pattern is None else parse_pattern(algebra, pattern)


def any_text(algebra: Algebra, least: int = 0, most: int | None = None) -> Term:
    """Return every text of some length."""
    return algebra.make_repeat(algebra.make_leaf(regex.XML_CHARS), least, most)


def pattern_alternatives(algebra: Algebra, patterns: tuple[str, ...], version: str) -> Term:
    """Return one step of patterns. Raises `TooMuch` for what was never a pattern."""
    try:
        return algebra.make_choice(parse_pattern(algebra, text, version=version) for text in patterns)
    except PatternError:
        raise BudgetExceeded from None


def literal_text(algebra: Algebra, text: str) -> Term:
    """Return one text."""
    return algebra.make_sequence(*(algebra.make_leaf(regex.charset_of_text(char)) for char in text))


def normalize_space(text: str, white: str) -> str:
    """Return a text after its white space was replaced or collapsed."""
    if white == "preserve":
        return text
    if white == "replace":
        return text.translate({9: " ", 10: " ", 13: " "})
    return " ".join(text.split(" ")) if not text.strip(" \t\n\r") else " ".join(text.split())


def text_language(algebra: Algebra, shape: SimpleTypeShape) -> Term:
    """Return all (normalized) texts of an atomic type, or more. Raises `TooMuch`."""
    if shape.enumeration is not None and shape.is_textual:
        return algebra.make_choice(
            literal_text(algebra, normalize_space(text, shape.white)) for text in shape.enumeration
        )
    term = lexical_space(algebra, shape.base)
    for step in shape.patterns:
        term = algebra.make_intersection(term, pattern_alternatives(algebra, step, shape.version))
    least, most = shape.lengths
    if shape.is_textual and (least is not None or most is not None):
        term = algebra.make_intersection(term, any_text(algebra, least or 0, most))
    return term


MAX_TRIED: Final = 150
"""Most texts tried on one type."""

_LONGEST: Final = 5_000

_PLAIN: Final[dict[str, tuple[str, ...]]] = {
    "boolean": ("true", "0", "false", "1"),
    "float": ("1.5", "0", "-1E4", "INF", "-INF", "NaN"),
    "double": ("1.5", "0", "-1E4", "1E300", "INF", "-INF", "NaN"),
    "duration": ("P1D", "PT5M", "P1Y2M", "-P1D", "PT0.5S"),
    "dateTime": ("2024-01-31T10:00:00", "2024-01-31T10:00:00Z", "2024-01-31T10:00:00.5+02:00", "1999-12-31T23:59:59"),
    "dateTimeStamp": ("2024-01-31T10:00:00Z",),
    "date": ("2024-01-31", "2024-01-31Z", "1999-12-31", "2024-01-31+02:00"),
    "time": ("10:00:00", "10:00:00Z", "23:59:59.5", "10:00:00+02:00"),
    "gYear": ("2024", "2024Z", "1999"),
    "gYearMonth": ("2024-01", "2024-01Z"),
    "gMonth": ("--01", "--12Z"),
    "gMonthDay": ("--01-31", "--12-24Z"),
    "gDay": ("---31", "---01Z"),
    "hexBinary": ("0A", "", "ff00", "0A0B0C0D"),
    "base64Binary": ("YQ==", "", "YWJj", "YWJjZGVmZ2g="),
    "anyURI": ("http://example.com/a", "a", "", "a b", "a#b#c", "http://[x", "%zz"),
    "QName": ("xml:a", "a"),
    "NOTATION": ("a",),
    "language": ("en", "en-GB", "x-abcdefgh"),
    "ID": ("a1", "b1"),
    "IDREF": ("a1",),
    "ENTITY": ("a1",),
    "NCName": ("a", "a-b.c", "_1"),
    "Name": ("a", "a:b", "_1"),
    "NMTOKEN": ("a", "1", "a:b", "-"),
    "dayTimeDuration": ("P1D", "PT5M"),
    "yearMonthDuration": ("P1Y", "P2M"),
}
_TEXT: Final = (
    "a",
    "",
    "a#b#c",
    "http://[x",
    "x y",
    "1",
    "abc def",
    "  a ",
    "A",
    "1.5",
    "true",
    "a\tb",
    "2024-01-31",
    "é",
    "-",
    "a\n",
)


def list_samples(kind: Any, *, hints: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield texts that the type might allow, hints first; they are not validated."""
    seen: set[str] = set()
    for text in islice(_make_candidates(shape_of(kind), hints), 4 * MAX_TRIED):
        if text not in seen and len(text) <= _LONGEST:
            seen.add(text)
            yield text
        if len(seen) >= MAX_TRIED:
            return


def valid_samples(kind: Any, *, hints: tuple[str, ...] = ()) -> Iterator[str]:
    """Return texts that are valid for the type."""
    return (text for text in list_samples(kind, hints=hints) if accepts_text(kind, text))


def _make_candidates(shape: SimpleTypeShape, hints: tuple[str, ...], depth: int = 0) -> Iterator[str]:
    yield from hints
    yield from shape.enumeration or ()
    if shape.variety == "list":
        yield from _list_samples(shape, depth)
    elif shape.variety == "union":
        for part in shape.parts if depth < 4 else ():
            yield from islice(_make_candidates(shape_of(part), (), depth + 1), 40)
    if shape.patterns:
        yield from _pattern_samples(shape)
    if shape.base == "decimal" or shape.is_integral:
        yield from _number_samples(shape)
    elif shape.base in ("float", "double"):
        yield from _number_samples(shape)
        yield from _PLAIN[shape.base]
    else:
        yield from (text for _, text in shape.bounds)
        yield from _PLAIN.get(shape.base, ())
    if shape.is_textual or shape.base == "anyURI" or shape.variety == "any":
        yield from _TEXT
        yield from _length_samples(shape)
    yield from (f" {text} " for text in (shape.enumeration or ())[:3])


def _list_samples(shape: SimpleTypeShape, depth: int) -> Iterator[str]:
    if depth > 4:
        return
    items = list(islice((text for text in valid_samples(shape.parts[0]) if text.split()), 12))
    least, most = shape.lengths
    counts = dict.fromkeys([least or 1, 1, 0, 2, 3, most if most is not None else 4, (least or 0) + 1])
    for count in counts:
        if count <= 300:
            yield from (" ".join([item] * count) for item in items)
    yield " ".join(items)


def _number_samples(shape: SimpleTypeShape) -> Iterator[str]:
    low, high = value_interval(shape)
    step = (
        Decimal(1)
        if shape.is_integral
        else Decimal(1).scaleb(-min(shape.digits[1], 30))
        if shape.digits[1]
        else Decimal(1)
    )
    ends = [end.value for end in (low, high) if end is not None]
    inner = [Decimal(0), Decimal(1), Decimal(-1), Decimal(7), Decimal(42)]
    near = [end + delta for end in ends for delta in (0, step, -step)]
    if not shape.is_integral:
        near += [end + delta for end in ends for delta in (Decimal("0.5"), Decimal("-0.5"))]
        inner += [Decimal("0.5"), Decimal("1.25"), Decimal("-0.125"), Decimal("1.0")]
    total, fraction = shape.digits
    if total is not None and total <= 60:
        inner.append(Decimal(10) ** (total - (fraction or 0)) - step)
    big = [Decimal(10) ** power - 1 for power in (3, 5, 10, 20, 40)]
    middle = [sum(ends, Decimal(0)) / 2] if len(ends) == 2 else []
    for number in (*inner, *middle, *near, *big, *(-value for value in big)):
        if shape.is_integral and number != number.to_integral_value():
            continue
        yield format(number.to_integral_value() if shape.is_integral else number, "f")
    yield from ("+1", "-0", "007") if shape.is_integral else ("+1", "-0", "007", "1.", ".5", "1.50")


def _length_samples(shape: SimpleTypeShape) -> Iterator[str]:
    least, most = shape.lengths
    for count in (least, most, (least or 0) + 1, 3, 5, 10, 20, 50, 100, 300, 1000):
        if count is not None and count <= _LONGEST:
            yield "a" * count
            yield "1" * count


def _pattern_samples(shape: SimpleTypeShape) -> Iterator[str]:
    """Yield short words of the language of the facets."""
    algebra = Algebra(meet=lambda one, other: (one & other) or None, steps=60_000)
    try:
        yield from islice(list_words(algebra, text_language(algebra, shape)), 24)
    except BudgetExceeded:
        return


def list_words(algebra: Algebra, start: Term, *, width: int = 400) -> Iterator[str]:
    """Yield words of a term over characters, shortest first, not all of them. Raises `TooMuch`."""
    budget = StepBudget(3_000)
    layer: dict[Term, str] = {start: ""}
    while layer:
        yield from (text for term, text in layer.items() if term.nullable)
        following: dict[Term, str] = {}
        for term, text in layer.items():
            budget.spend_steps()
            for label, rest in algebra.first_steps(term):
                if len(following) < width:
                    following.setdefault(rest, text + label.sample_char())
        layer = following
