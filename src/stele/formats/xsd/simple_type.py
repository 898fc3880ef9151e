"""The constraints of a simple type: its chain of restrictions as one value, and its texts.

The texts are a term over characters, exact for textual types, else possibly too wide. In addition there are sample
texts: plain ones first, then those at the limits of the facets.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from itertools import islice
from typing import Any, Final, NamedTuple

from xmlschema.validators import (
    XsdAtomicBuiltin,
    XsdAtomicRestriction,
    XsdList,
    XsdSimpleType,
    XsdUnion,
)

from stele.formats.regex import PatternError, literal_text, make_algebra
from stele.formats.terms import Algebra, BudgetExceeded, StepBudget, Term
from stele.formats.xsd.regex import XML_CHARS, parse_pattern
from stele.formats.xsd.xmlschema_adapter import XS, accepts_text

TEXTUAL: Final = frozenset({"string", "normalizedString", "token", "language", "NMTOKEN", "Name", "NCName"})
"""Built-in types whose values are their (normalized) texts."""

INTEGERS: Final[dict[str, tuple[int | None, int | None]]] = {
    "integer": (None, None),
    "long": (-(2**63), 2**63 - 1),
    "int": (-(2**31), 2**31 - 1),
    "short": (-(2**15), 2**15 - 1),
    "byte": (-128, 127),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "unsignedLong": (0, 2**64 - 1),
    "unsignedInt": (0, 2**32 - 1),
    "unsignedShort": (0, 2**16 - 1),
    "unsignedByte": (0, 255),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
}
"""Built-in integer types with their least and greatest values."""

_WHITE: Final = {"string": "preserve", "normalizedString": "replace"}
_COLLECTED: Final = frozenset({"minInclusive", "minExclusive", "maxInclusive", "maxExclusive"})


class IntervalEnd(NamedTuple):
    """One end of an interval. `exclusive` is 1 when the value itself is not included."""

    value: Decimal
    exclusive: int


class SimpleTypeShape(NamedTuple):
    """Constraints of a simple type.

    variety     any · atomic · list · union
    base        of an atomic type: local name of the built-in type it restricts
    parts       of a list its item type, of a union its members, of an atomic type the built-in type
    patterns    one entry per step of restriction: alternatives, all steps must match
    enumeration texts of the last enumeration, None without one
    bounds      (facet, text) of all ends of intervals, nearest first
    lengths     least and greatest length (characters, bytes or items), None when not limited
    digits      most digits in all and after the point, None when not limited
    tests       assertions of XSD 1.1 and explicitTimezone, as texts
    white       preserve · replace · collapse
    version     version of XSD the patterns are written in
    """

    variety: str
    base: str
    parts: tuple[Any, ...]
    patterns: tuple[tuple[str, ...], ...]
    enumeration: tuple[str, ...] | None
    bounds: tuple[tuple[str, str], ...]
    lengths: tuple[int | None, int | None]
    digits: tuple[int | None, int | None]
    tests: frozenset[str]
    white: str
    version: str

    @property
    def is_textual(self) -> bool:
        """Whether values are texts, so that different (normalized) texts are different values."""
        return self.variety == "atomic" and self.base in TEXTUAL

    @property
    def is_integral(self) -> bool:
        """Whether values are integers."""
        return self.base in INTEGERS

    @property
    def is_plain(self) -> bool:
        """Whether no facet restricts the text itself."""
        return not self.patterns and self.enumeration is None and self.lengths == (None, None) and not self.tests


def shape_of(kind: XsdSimpleType) -> SimpleTypeShape:
    """Return the shape of a simple type."""
    gathered = _FacetCollector()
    current: Any = kind
    while isinstance(current, XsdAtomicRestriction):
        gathered.add_facets(current)
        current = current.base_type
        if not isinstance(current, XsdSimpleType):
            current = getattr(current, "content", None)
    variety, base, parts = _kind_of(current)
    white = gathered.white or (_WHITE.get(base, "collapse") if variety == "atomic" else "collapse")
    return SimpleTypeShape(
        variety,
        base,
        parts,
        tuple(gathered.patterns),
        gathered.enumeration,
        tuple(gathered.bounds),
        (gathered.shortest, gathered.longest),
        (gathered.total, gathered.fraction),
        frozenset(gathered.tests),
        white,
        str(kind.xsd_version),
    )


def _kind_of(current: Any) -> tuple[str, str, tuple[Any, ...]]:
    if isinstance(current, XsdUnion):
        return "union", "", tuple(current.member_types)
    if isinstance(current, XsdList):
        return "list", "", (current.item_type,)
    if isinstance(current, XsdAtomicBuiltin) and current.local_name not in ("anySimpleType", "anyAtomicType"):
        return "atomic", str(current.local_name), (current,)
    return "any", "", ()


def _smaller_of(one: int | None, other: int) -> int:
    return other if one is None else min(one, other)


def _greater_of(one: int | None, other: int) -> int:
    return other if one is None else max(one, other)


class _FacetCollector:
    """Facets of a chain of restrictions, the most derived type first."""

    def __init__(self) -> None:
        self.patterns: list[tuple[str, ...]] = []
        self.enumeration: tuple[str, ...] | None = None
        self.bounds: list[tuple[str, str]] = []
        self.shortest: int | None = None
        self.longest: int | None = None
        self.total: int | None = None
        self.fraction: int | None = None
        self.tests: list[str] = []
        self.white: str | None = None

    def add_facets(self, kind: XsdAtomicRestriction) -> None:
        """Add the facets of one step."""
        for tag, facet in kind.facets.items():
            if not isinstance(tag, str) or not tag.startswith(XS):
                continue
            name = tag.removeprefix(XS)
            if name == "pattern":
                self.patterns.append(tuple(facet.regexps))  # type: ignore[union-attr]  # the facet of that tag
            elif name == "enumeration" and self.enumeration is None:
                self.enumeration = tuple(element.get("value", "") for element in facet)  # type: ignore[union-attr]  # a list of elements
            elif name == "assertion":
                facets = facet if isinstance(facet, list) else [facet]
                self.tests += [one.elem.get("test", "") for one in facets]  # type: ignore[attr-defined]  # facets have elements
            else:
                self._add_value(name, facet)

    def _add_value(self, name: str, facet: Any) -> None:
        elem = getattr(facet, "elem", None)
        value = "" if elem is None else elem.get("value", "").strip()
        if name in _COLLECTED:
            self.bounds.append((name, value))
        elif name == "explicitTimezone" and value != "optional":
            self.tests.append(f"timezone {value}")
        elif name == "whiteSpace":
            self.white = self.white or value
        elif value.lstrip("+").isdecimal():
            self._add_count(name, int(value))

    def _add_count(self, name: str, count: int) -> None:
        if name in ("length", "minLength"):
            self.shortest = _greater_of(self.shortest, count)
        if name in ("length", "maxLength"):
            self.longest = _smaller_of(self.longest, count)
        if name == "totalDigits":
            self.total = _smaller_of(self.total, count)
        if name == "fractionDigits":
            self.fraction = _smaller_of(self.fraction, count)


def value_interval(shape: SimpleTypeShape) -> tuple[IntervalEnd | None, IntervalEnd | None]:
    """Return least and greatest value of a numeric shape, built-in ranges and digits included."""
    low, high = (
        None if bound is None else IntervalEnd(Decimal(bound), 0) for bound in INTEGERS.get(shape.base, (None, None))
    )
    for facet, text in shape.bounds:
        try:
            value = Decimal(text)
        except InvalidOperation:
            continue
        if not value.is_finite():
            continue
        limit = _round_to_whole(
            IntervalEnd(value, int(facet.endswith("Exclusive"))), up=facet.startswith("min"), shape=shape
        )
        if facet.startswith("min"):
            low = limit if low is None else max(low, limit)
        else:
            high = limit if high is None else min(high, limit, key=lambda end: (end.value, -end.exclusive))
    total = shape.digits[0]
    if total is not None and total < 400:
        edge = _round_to_whole(IntervalEnd(Decimal(10) ** total, 1), up=False, shape=shape)
        low = max(low or IntervalEnd(-edge.value, edge.exclusive), IntervalEnd(-edge.value, edge.exclusive))
        high = min(high or edge, edge, key=lambda end: (end.value, -end.exclusive))
    return low, high


def _round_to_whole(limit: IntervalEnd, *, up: bool, shape: SimpleTypeShape) -> IntervalEnd:
    """Round the end of an interval of integers to an integer inside it."""
    if not shape.is_integral:
        return limit
    whole = int(limit.value.to_integral_value(rounding="ROUND_CEILING" if up else "ROUND_FLOOR"))
    if limit.exclusive and whole == limit.value:
        whole += 1 if up else -1  # as int: Decimal would round numbers beyond its precision
    return IntervalEnd(Decimal(whole), 0)


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
"""Lexical spaces as patterns. Those of dates, durations and base64 are too wide."""

EXACT: Final = frozenset(
    {"string", "normalizedString", "token", "boolean", "decimal", "float", "double", "language", "NMTOKEN", "Name"}
    | {"NCName", "hexBinary", *INTEGERS}
)
"""Built-in types whose pattern is exactly their lexical space (apart from ranges of values)."""


def lexical_space(algebra: Algebra, base: str) -> Term:
    """Return the lexical space of a built-in type, after white space is normalized."""
    pattern = LEXICAL.get(base)
    return any_text(algebra) if pattern is None else parse_pattern(algebra, pattern)


def any_text(algebra: Algebra, least: int = 0, most: int | None = None) -> Term:
    """Return the term of all texts with a length in this range."""
    return algebra.make_repeat(algebra.make_leaf(XML_CHARS), least, most)


def pattern_alternatives(algebra: Algebra, patterns: tuple[str, ...], version: str) -> Term:
    """Return the term of one step of patterns. Raises `BudgetExceeded` for an invalid pattern."""
    try:
        return algebra.make_choice(parse_pattern(algebra, text, version=version) for text in patterns)
    except PatternError:
        raise BudgetExceeded from None


def normalize_space(text: str, white: str) -> str:
    """Return a text after its white space was replaced or collapsed."""
    if white == "preserve":
        return text
    if white == "replace":
        return text.translate({9: " ", 10: " ", 13: " "})
    return " ".join(text.split(" ")) if not text.strip(" \t\n\r") else " ".join(text.split())


def text_language(algebra: Algebra, shape: SimpleTypeShape) -> Term:
    """Return the term of all (normalized) texts of an atomic type, possibly too wide. Raises `BudgetExceeded`."""
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
    algebra = make_algebra(steps=60_000)
    try:
        yield from islice(list_words(algebra, text_language(algebra, shape)), 24)
    except BudgetExceeded:
        return


def list_words(algebra: Algebra, start: Term, *, width: int = 400) -> Iterator[str]:
    """Yield some words of a term over characters, shortest first. Raises `BudgetExceeded`."""
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
