"""The texts of an atomic type as a term over characters: exact for textual types, else possibly too wide."""

from __future__ import annotations

from typing import Final

from stele.formats.xsd import charset
from stele.formats.xsd.regex import PatternError, parse_pattern
from stele.formats.xsd.shape import INTEGERS, SimpleTypeShape
from stele.formats.xsd.terms import Algebra, BudgetExceeded, Term

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
    """The lexical space of a built-in type, after white space is normalized."""
    pattern = LEXICAL.get(base)
    return any_text(algebra) if pattern is None else parse_pattern(algebra, pattern)


def any_text(algebra: Algebra, least: int = 0, most: int | None = None) -> Term:
    """Every text of some length."""
    return algebra.make_repeat(algebra.make_leaf(charset.XML_CHARS), least, most)


def pattern_alternatives(algebra: Algebra, patterns: tuple[str, ...], version: str) -> Term:
    """One step of patterns. Raises `TooMuch` for what was never a pattern."""
    try:
        return algebra.make_choice(parse_pattern(algebra, text, version=version) for text in patterns)
    except PatternError:
        raise BudgetExceeded from None


def literal_text(algebra: Algebra, text: str) -> Term:
    """One text."""
    return algebra.make_sequence(*(algebra.make_leaf(charset.charset_of_text(char)) for char in text))


def normalize_space(text: str, white: str) -> str:
    """A text after its white space was replaced or collapsed."""
    if white == "preserve":
        return text
    if white == "replace":
        return text.translate({9: " ", 10: " ", 13: " "})
    return " ".join(text.split(" ")) if not text.strip(" \t\n\r") else " ".join(text.split())


def text_language(algebra: Algebra, shape: SimpleTypeShape) -> Term:
    """All (normalized) texts of an atomic type, or more. Raises `TooMuch`."""
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
