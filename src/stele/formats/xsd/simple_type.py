"""What a simple type allows, gathered from its chain of restrictions into one value."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any, Final, NamedTuple

from xmlschema.validators import (
    XsdAtomicBuiltin,
    XsdAtomicRestriction,
    XsdList,
    XsdSimpleType,
    XsdUnion,
)

from stele.formats.xsd.xmlschema_adapter import XS

TEXTUAL: Final = frozenset({"string", "normalizedString", "token", "language", "NMTOKEN", "Name", "NCName"})
"""Built-in types whose values are their own (normalized) texts."""

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
    """One end of an interval; exclusive is 1 when the value itself lies outside."""

    value: Decimal
    exclusive: int


class SimpleTypeShape(NamedTuple):
    """A simple type.

    variety     any · atomic · list · union
    base        of an atomic type: local name of the built-in type it restricts
    parts       of a list its item type, of a union its members, of an atomic type the built-in type
    patterns    one entry per step of restriction: alternatives, all steps must match
    enumeration texts of the last enumeration, None without one
    bounds      (facet, text) of all ends of intervals, nearest first
    lengths     least and greatest length (characters, bytes or items), None when free
    digits      most digits in all and after the point, None when free
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
        """Whether values are texts: two different (normalized) texts are two values."""
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
        """Take in the facets of one step."""
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
        whole += 1 if up else -1  # as int: Decimal would round what is longer than its precision
    return IntervalEnd(Decimal(whole), 0)
