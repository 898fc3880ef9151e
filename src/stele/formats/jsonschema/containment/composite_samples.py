"""Objects and arrays made of the values of their places."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice, product
from typing import Any

from stele.formats.jsonschema.containment.scalar_samples import sample_pattern, whole_bound
from stele.formats.jsonschema.containment.view import Parts, required_with
from stele.formats.jsonschema.json_text import Json, to_hashable

MAX_SIZE = 1_200
"""Members or items of the largest value made."""

MAX_NAMES = 400
"""Members of one object that are varied."""

_PAIRED = 5
MAX_LOOKS = 50_000
"""Names times schemas: choosing a value for a member looks at every schema of its place."""

_FEWEST_NAMES = 10
_MAX_PATTERNS = 50
_LONGEST_NAME = 200
_FRESH = ("other", "x", "X-1", "", "é")


def make_objects(
    own: Parts, everything: Parts, choices: Callable[[str], list[Json]], rank: Callable[[str], int]
) -> Iterator[dict[str, Json]]:
    """Yield objects, small ones first: with what is required, with one member more or less, with all, of border sizes.

    own are the schemas to fit, everything what else is said of the object; choices gives the values of a member, a
    plain one first; rank says how soon to vary it, small ones first.
    """
    make = _ObjectMaker(own, everything, choices)
    small = make.make_smallest()
    yield small
    yield {}
    names = sorted(make.names, key=rank)[:MAX_NAMES]
    for name in names:
        yield from (make.add_needed({**small, name: value}) for value in choices(name))
        yield {each: value for each, value in small.items() if each != name}
    large = make.make_largest()
    yield large
    for name in names:
        if name in large:
            yield {each: value for each, value in large.items() if each != name}
        yield from ({**large, name: value} for value in choices(name)[:4])
    for size in _border_sizes(everything, "minProperties", "maxProperties"):
        yield make.resize(small, size)
        yield make.resize(large, size)
    yield from make.make_pairs(small, names)


class _ObjectMaker:
    """What the objects of one place have in common."""

    def __init__(self, own: Parts, everything: Parts, choices: Callable[[str], list[Json]]) -> None:
        self._own = own
        self._everything = everything
        self._choices = choices
        looks = sum(1 + len(part.get("patternProperties", ())) for part in (*own, *everything))
        self._most = max(_FEWEST_NAMES, MAX_LOOKS // (looks or 1))
        self.names = self._choose_names()[: self._most]
        self._needs: dict[str, list[str]] = {}
        for part in own:
            for name, wanted in required_with(part):
                self._needs.setdefault(name, []).extend(wanted)

    def _choose_names(self) -> list[str]:
        """Return names for members: those mentioned anywhere, samples of patterns, and some that no schema mentions."""
        found: dict[str, None] = {}
        for part in (*self._own, *self._everything):
            found.update(dict.fromkeys(part.get("required", ())))
            found.update(dict.fromkeys(part.get("properties", ())))
            found.update((name, None) for given, wanted in required_with(part) for name in (given, *wanted))
            found.update(dict.fromkeys(part.get("dependentSchemas", ())))
        for part in self._everything:
            for pattern in islice(part.get("patternProperties", ()), _MAX_PATTERNS):
                found.update(dict.fromkeys(sample_pattern(pattern)[:3]))
            found.update(dict.fromkeys(_names_by_schema(part.get("propertyNames"))))
        found.update(dict.fromkeys(_FRESH))
        return list(found)

    def make_smallest(self) -> dict[str, Json]:
        """Return an object with the members it has to have."""
        required = {name: None for part in self._own for name in part.get("required", ())}
        if len(required) > min(self._most, MAX_SIZE):
            return {}
        values = {name: self._choices(name) for name in required}
        small = self.add_needed({name: value[0] for name, value in values.items() if value})
        return self.resize(small, max((whole_bound(part.get("minProperties")) or 0 for part in self._own), default=0))

    def make_largest(self) -> dict[str, Json]:
        """Return an object with as many of the listed members as are allowed."""
        bounds = (whole_bound(part.get("maxProperties")) for part in self._own)
        most = min((bound for bound in bounds if bound is not None), default=MAX_SIZE)
        listed = [name for name in self.names if any(name in part.get("properties", ()) for part in self._everything)]
        values = {name: self._choices(name) for name in listed}
        return {name: value[0] for name, value in list(values.items())[:most] if value}

    def add_needed(self, value: dict[str, Json]) -> dict[str, Json]:
        """Return the object completed with the members that its own members require."""
        if self._needs.keys().isdisjoint(value):
            return value
        result = dict(value)
        pending = list(value)
        while pending:
            for name in self._needs.get(pending.pop(), ()):
                if name not in result and (found := self._choices(name)):
                    result[name] = found[0]
                    pending.append(name)
        return result

    def resize(self, value: dict[str, Json], size: int) -> dict[str, Json]:
        """Return the object cut to a size, or filled up to it with members that no schema mentions."""
        result = dict(list(value.items())[:size])
        names = iter([*self.names, *(f"m{index}" for index in range(size))])
        while len(result) < min(size, MAX_SIZE) and (name := next(names, None)) is not None:
            if name not in result and (found := self._choices(name)):
                result[name] = found[0]
        return result

    def make_pairs(self, small: dict[str, Json], names: list[str]) -> Iterator[dict[str, Json]]:
        """Yield objects with two chosen members, which conditions between members depend on."""
        few = list(islice((name for name in names if self._choices(name)), _PAIRED))
        for index, one in enumerate(few):
            for other in few[index + 1 :]:
                for first, second in product(self._choices(one)[:5], self._choices(other)[:5]):
                    yield self.add_needed({**small, one: first, other: second})


def make_arrays(
    own: Parts, everything: Parts, choices: Callable[[int], list[Json]], contained: Callable[[], list[Json]]
) -> Iterator[list[Json]]:
    """Yield arrays of border lengths with plain items, then with one item changed, repeated or added.

    choices gives the values of an item, a plain one first; contained those of what the array has to hold.
    """
    distinct = any(part.get("uniqueItems") is True for part in own)
    fixed = max((len(part.get("prefixItems", ())) for part in everything), default=0)
    least = max((whole_bound(part.get("minItems")) or 0 for part in own), default=0)
    sizes = dict.fromkeys([least, 0, 1, 2, *range(fixed + 2), *_border_sizes(everything, "minItems", "maxItems")])
    sizes.update(dict.fromkeys(_border_sizes(everything, "minContains", "maxContains")))
    for size in sizes:
        base = _fill_array(size, choices, distinct=distinct)
        yield base
        for index in dict.fromkeys([*range(min(len(base), fixed + 1)), len(base) - 1]):
            if 0 <= index < len(base):
                for value in choices(index):
                    yield [*base[:index], value, *base[index + 1 :]]
        if len(base) == size and size <= MAX_SIZE:
            yield from ([value] * size for value in choices(fixed)[:6])
    wanted = max((whole_bound(part.get("minContains", 1)) or 0 for part in own if "contains" in part), default=0)
    for value in contained():
        for size in dict.fromkeys([wanted, max(least, wanted), wanted + 1]):
            yield [*_fill_array(max(0, size - wanted), choices, distinct=False), *[value] * min(wanted, MAX_SIZE)]
    for value in choices(fixed):
        base = _fill_array(max(least, fixed), choices, distinct=distinct)
        yield from ([*base, value], [*base, value, value], [value, *base])


def _fill_array(size: int, choices: Callable[[int], list[Json]], *, distinct: bool) -> list[Json]:
    """Return an array of plain items; of different ones when distinct."""
    result: list[Any] = []
    seen: set[object] = set()
    for index in range(min(size, MAX_SIZE)):
        options = choices(index)
        if distinct:
            options = [option for option in options if to_hashable(option) not in seen]
        if not options:
            break
        result.append(options[0])
        if distinct:
            seen.add(to_hashable(options[0]))
    return result


def _border_sizes(parts: Parts, *keywords: str) -> list[int]:
    bounds = {bound for part in parts for word in keywords if (bound := whole_bound(part.get(word))) is not None}
    return sorted(size for size in {bound + step for bound in bounds for step in (-1, 0, 1)} if 0 <= size <= MAX_SIZE)


def _names_by_schema(schema: Json) -> Iterator[str]:
    """Yield names that a schema of `propertyNames` suggests."""
    if not isinstance(schema, dict):
        return
    for value in (schema.get("const"), *schema.get("enum", ())):
        if isinstance(value, str):
            yield value
    if isinstance(schema.get("pattern"), str):
        yield from sample_pattern(schema["pattern"])[:3]
    yield from ("n" * size for size in _border_sizes([schema], "minLength", "maxLength") if size < _LONGEST_NAME)
