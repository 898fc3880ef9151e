"""Numbers around the bounds schemas set."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from itertools import pairwise

from stele.formats.jsonschema.text import Json

_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_STEPS = tuple(map(Decimal, ("0", "1", "-1", "0.5", "-0.5", "0.01", "-0.01")))
_MAX_BOUNDS = 24
_MAX_EXPONENT = 400


def make_numbers(schemas: list[dict[str, Json]]) -> Iterator[int | float | Decimal]:
    """Integers and fractions at, beside and between all bounds, and multiples near them, of all steps asked for."""
    bounds = _keyword_values(schemas, _BOUNDS)
    factors = [factor for factor in _keyword_values(schemas, ("multipleOf",)) if factor > 0]
    known = [*bounds, *_keyword_values(schemas, ("const",)), *_enum_values(schemas)]
    with localcontext() as context:
        context.prec = 60
        for value in (Decimal(0), Decimal(1), Decimal(-1), Decimal("0.5"), Decimal("1.01")):
            yield simplest_number(value)
        for bound in known[:_MAX_BOUNDS]:
            yield from (simplest_number(bound + step) for step in _STEPS)
            yield from (simplest_number(bound * 2), simplest_number(-bound))
        for factor in factors[:8]:
            yield from (simplest_number(factor * times) for times in (1, -1, 2, 3, 5, 7, 11))
            yield from (simplest_number(factor / part) for part in (2, 3))
            for bound in known[:_MAX_BOUNDS]:
                for rounding in (ROUND_FLOOR, ROUND_CEILING):
                    nearest = _nearest_multiple(bound, factor, rounding)
                    yield from (simplest_number(nearest + factor * times) for times in (0, 1, -1))
        for one, other in pairwise(factors[:8]):
            yield simplest_number(one * other)
        for low, high in pairwise(sorted(set(bounds))[:_MAX_BOUNDS]):
            yield simplest_number((low + high) / 2)
        yield from (10**6 + 1, -(10**6) - 1, 1e20 + 1)


def simplest_number(value: Decimal) -> int | float | Decimal:
    """The plainest number of the value: an int when whole, a float when that has the same digits, else itself."""
    if value == value.to_integral_value():
        return int(value)
    return float(value) if Decimal(repr(float(value))) == value else value


def _nearest_multiple(bound: Decimal, factor: Decimal, rounding: str) -> Decimal:
    ratio = bound / factor
    return ratio.to_integral_value(rounding=rounding) * factor if ratio.adjusted() < 40 else bound


def _keyword_values(schemas: list[dict[str, Json]], keywords: tuple[str, ...]) -> list[Decimal]:
    found: dict[Decimal, None] = {}
    for schema in schemas:
        for keyword in keywords:
            value = schema.get(keyword)
            if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
                exact = Decimal(value) if not isinstance(value, float) else Decimal(repr(value))
                if abs(exact.adjusted()) < _MAX_EXPONENT:
                    found[exact] = None
    return list(found)


def _enum_values(schemas: list[dict[str, Json]]) -> list[Decimal]:
    """Numbers of `enum` lists."""
    lists = [schema["enum"] for schema in schemas if isinstance(schema.get("enum"), list)]
    return [
        value for values in lists for value in _keyword_values([{"const": each} for each in values[:10]], ("const",))
    ]
