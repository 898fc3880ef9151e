"""Values to try: numbers around the bounds of schemas, strings near a pattern, objects and arrays made of both.

All of them are guesses: a validator checks each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from functools import lru_cache
from itertools import islice, pairwise, product
from typing import Any, NamedTuple

from stele.formats.jsonschema.containment.document import Parts, required_with
from stele.formats.jsonschema.json_text import Json, to_hashable

_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_STEPS = tuple(map(Decimal, ("0", "1", "-1", "0.5", "-0.5", "0.01", "-0.01")))
_MAX_BOUNDS = 24
_MAX_EXPONENT = 400


def make_numbers(schemas: list[dict[str, Json]]) -> Iterator[int | float | Decimal]:
    """Yield integers and fractions at, beside and between all bounds, and multiples of `multipleOf` near them."""
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
    """Return a value in its simplest type: int when whole, float when it has the same digits, else Decimal."""
    if value == value.to_integral_value():
        return int(value)
    return float(value) if Decimal(repr(float(value))) == value else value


def _nearest_multiple(bound: Decimal, factor: Decimal, rounding: str) -> Decimal:
    ratio = bound / factor
    return ratio.to_integral_value(rounding=rounding) * factor if ratio.adjusted() < 40 else bound


def _keyword_values(schemas: list[dict[str, Json]], keywords: tuple[str, ...]) -> list[Decimal]:
    values: dict[Decimal, None] = {}
    for schema in schemas:
        for keyword in keywords:
            value = schema.get(keyword)
            if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
                exact = Decimal(value) if not isinstance(value, float) else Decimal(repr(value))
                if abs(exact.adjusted()) < _MAX_EXPONENT:
                    values[exact] = None
    return list(values)


def _enum_values(schemas: list[dict[str, Json]]) -> list[Decimal]:
    """Return the numbers of `enum` lists."""
    lists = [schema["enum"] for schema in schemas if isinstance(schema.get("enum"), list)]
    return [
        value for values in lists for value in _keyword_values([{"const": each} for each in values[:10]], ("const",))
    ]


MAX_LENGTH = 5_000
"""Maximum length in characters of a string that is made."""

_MAX_PATTERN = 500
_MAX_NESTING = 40
_VARIANTS = 6
_ENDLESS = 1_000_000
_CLASSES = {"d": "05", "w": "aZ_0", "s": " \t", "D": "a-", "W": "- ", "S": "a0"}
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "0": "\0"}
_POOL = "a0 -A_zé."

FORMATS = {
    "date": ("2024-02-29", "2023-02-29"),
    "time": ("12:30:00Z", "25:00:00Z"),
    "date-time": ("2024-01-31T12:30:00Z", "2024-01-31"),
    "duration": ("P1D", "1D"),
    "email": ("a@example.com", "a@"),
    "idn-email": ("a@example.com", "a@"),
    "hostname": ("example.com", "-a-"),
    "idn-hostname": ("example.com", "-a-"),
    "ipv4": ("192.0.2.1", "256.0.0.1"),
    "ipv6": ("2001:db8::1", "2001::db8::1"),
    "uri": ("https://example.com/", "a"),
    "uri-reference": ("/a", "\\"),
    "iri": ("https://example.com/é", "a"),
    "iri-reference": ("/é", "\\"),
    "uri-template": ("/{a}", "{"),
    "uuid": ("123e4567-e89b-12d3-a456-426614174000", "123e4567"),
    "json-pointer": ("/a", "a"),
    "relative-json-pointer": ("0/a", "/a"),
    "regex": ("a*", "("),
}
"""By format: a string that has it, and one that has not."""


class _UnreadablePattern(Exception):
    """Raised when this parser cannot read a pattern."""


class _Repeat(NamedTuple):
    least: int
    most: int


def make_strings(own: list[dict[str, Json]], all_schemas: list[dict[str, Json]]) -> Iterator[str]:
    """Yield strings at the limits of what all_schemas allow. Samples of the patterns in own are also varied."""
    lengths = sorted(_border_lengths(all_schemas))
    samples = [text for schema in own for text in _samples_of(schema)]
    yield from ("a", "", "0", " ", "A", "é𝄞")
    for schema in all_schemas:
        yield from _samples_of(schema)
        yield from FORMATS.get(str(schema.get("format")), ())
        yield from _content_samples(schema)
    for length in lengths:
        for filler in ("a", "0", "𝄞"):
            yield filler * length
        for text in samples[:6]:
            yield from (text + text[-1:] * (length - len(text)), text[:1] * (length - len(text)) + text, text[:length])
    for text in samples[:6]:
        yield from (text + "a", "a" + text, text + "0", text + "!", text[:-1], text[1:], text.upper(), text + text)


def _border_lengths(schemas: Iterable[dict[str, Json]]) -> set[int]:
    lengths: set[int] = set()
    for schema in schemas:
        for keyword in ("minLength", "maxLength"):
            bound = whole_bound(schema.get(keyword))
            lengths.update(n for n in (() if bound is None else (bound - 1, bound, bound + 1)) if 0 <= n <= MAX_LENGTH)
    return lengths


def _samples_of(schema: dict[str, Json]) -> tuple[str, ...]:
    pattern = schema.get("pattern")
    return sample_pattern(pattern) if isinstance(pattern, str) else ()


def _content_samples(schema: dict[str, Json]) -> Iterator[str]:
    if "contentEncoding" in schema:
        yield from ("YQ==", "%", "e30=")
    if "contentMediaType" in schema:
        yield from ("{}", "{")


def whole_bound(value: Json) -> int | None:
    """Return a bound on a size as an int; None if it is absent, or larger than any value made here."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        return int(value) if value == int(value) and value < _ENDLESS else None
    except (TypeError, ValueError, OverflowError):
        return None


@lru_cache(maxsize=2_000)
def sample_pattern(pattern: str) -> tuple[str, ...]:
    """Return a few different strings the pattern probably matches, shortest choices first."""
    if len(pattern) > _MAX_PATTERN:
        return ()
    samples: dict[str, None] = {}
    for variant in range(_VARIANTS):
        try:
            samples[_Sampler(pattern, variant).sample_once()] = None
        except _UnreadablePattern:
            break
    return tuple(samples)


class _Sampler:
    """Reads a pattern and builds one string that matches it. variant selects branches, characters and repetitions."""

    def __init__(self, pattern: str, variant: int) -> None:
        self._pattern = pattern
        self._variant = variant
        self._at = 0
        self._depth = 0

    def sample_once(self) -> str:
        """Return one string. Raises `_UnreadablePattern`."""
        text = self._read_alternation()
        if self._at < len(self._pattern):
            raise _UnreadablePattern
        return text

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _next_char(self) -> str:
        char = self._peek()
        if not char:
            raise _UnreadablePattern
        self._at += 1
        return char

    def _skip_text(self, text: str) -> bool:
        if self._pattern.startswith(text, self._at):
            self._at += len(text)
            return True
        return False

    def _pick_char(self, options: str) -> str:
        return options[self._variant % len(options)] if options else ""

    def _read_alternation(self) -> str:
        self._depth += 1
        if self._depth > _MAX_NESTING:
            raise _UnreadablePattern
        branches = [self._read_sequence()]
        while self._skip_text("|"):
            branches.append(self._read_sequence())
        self._depth -= 1
        return branches[self._variant % len(branches)]

    def _read_sequence(self) -> str:
        parts: list[str] = []
        size = 0
        while self._peek() not in ("", "|", ")"):
            atom = self._read_atom()
            part = atom * self._repeat_count(self._read_quantifier())
            size += len(part)
            if size > MAX_LENGTH:
                raise _UnreadablePattern
            parts.append(part)
        return "".join(parts)

    def _repeat_count(self, repeat: _Repeat) -> int:
        more = (0, 1, 3, _ENDLESS, 1, 2)[self._variant]
        if more == _ENDLESS:
            return repeat.most if repeat.most <= MAX_LENGTH else repeat.least + 2
        return min(repeat.least + more, repeat.most)

    def _read_quantifier(self) -> _Repeat:
        repeat = _Repeat(1, 1)
        for mark, meaning in (("*", _Repeat(0, _ENDLESS)), ("+", _Repeat(1, _ENDLESS)), ("?", _Repeat(0, 1))):
            if self._skip_text(mark):
                repeat = meaning
                break
        else:
            if self._peek() != "{":
                return repeat
            repeat = self._read_braces()
        self._skip_text("?") or self._skip_text("+")
        return repeat

    def _read_braces(self) -> _Repeat:
        end = self._pattern.find("}", self._at)
        least, comma, most = self._pattern[self._at + 1 : end].partition(",")
        if end < 0 or not least.isdecimal() or len(least) > 6 or (most and not (most.isdecimal() and len(most) <= 6)):
            raise _UnreadablePattern
        self._at = end + 1
        if int(least) > MAX_LENGTH:
            raise _UnreadablePattern
        return _Repeat(int(least), int(most) if most else _ENDLESS if comma else int(least))

    def _read_atom(self) -> str:
        char = self._next_char()
        if char == "(":
            return self._read_group()
        if char == "[":
            return self._read_set()
        if char == "\\":
            return self._pick_char(self._read_escape(in_set=False))
        if char in "^$":
            return ""
        return self._pick_char(_POOL) if char == "." else char

    def _read_group(self) -> str:
        silent = False
        if self._skip_text("?"):
            if self._skip_text("<") and self._peek() not in ("=", "!"):
                while self._next_char() != ">":
                    pass
            else:
                silent = self._next_char() in "=!"
        text = self._read_alternation()
        if not self._skip_text(")"):
            raise _UnreadablePattern
        return "" if silent else text

    def _read_escape(self, *, in_set: bool) -> str:
        """Return a few of the characters an escape stands for."""
        char = self._next_char()
        if char in _CLASSES:
            return _CLASSES[char]
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char in "pP":
            name = self._read_between("{", "}")
            return "0" if name.startswith("N") else " " if name.startswith("Z") else "A" if name == "Lu" else "aé"
        if char in "xu":
            return self._read_code_point(2 if char == "x" else 4)
        if char in "bB" or char.isdecimal():
            return "" if not in_set else "\b"
        return char

    def _read_code_point(self, size: int) -> str:
        digits = (
            self._read_between("{", "}") if self._peek() == "{" else "".join(self._next_char() for _ in range(size))
        )
        try:
            char = chr(int(digits, 16))
        except (ValueError, OverflowError):
            raise _UnreadablePattern from None
        return "" if "\ud800" <= char <= "\udfff" else char

    def _read_between(self, start: str, end: str) -> str:
        if not self._skip_text(start):
            raise _UnreadablePattern
        text = ""
        while (char := self._next_char()) != end:
            text += char
        return text

    def _read_set(self) -> str:
        """Return one character of a set, or one outside it when it is negated."""
        negated = self._skip_text("^")
        options = ""
        ranges: list[tuple[str, str]] = []
        while not self._skip_text("]"):
            low = self._read_set_item()
            if self._peek() == "-" and self._pattern[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                high = self._read_set_item()
                ranges.append((low[:1], high[-1:]))
                options += low[:1] + high[-1:]
            else:
                options += low
                ranges.extend((char, char) for char in low)
        if negated:
            free = [char for char in _POOL + "~\n" if not any(low <= char <= high for low, high in ranges)]
            return self._pick_char("".join(free))
        return self._pick_char(options)

    def _read_set_item(self) -> str:
        char = self._next_char()
        return self._read_escape(in_set=True) if char == "\\" else char


MAX_SIZE = 1_200
"""Maximum number of members or items of a value that is made."""

MAX_NAMES = 400
"""Maximum number of members of one object that are varied."""

_PAIRED = 5
MAX_LOOKS = 50_000
"""Maximum of names times schemas: choosing a value for a member reads every schema of its object."""

_FEWEST_NAMES = 10
_MAX_PATTERNS = 50
_LONGEST_NAME = 200
_FRESH = ("other", "x", "X-1", "", "é")


def make_objects(
    own: Parts,
    everything: Parts,
    names: Iterable[str],
    choices: Callable[[str], list[Json]],
    rank: Callable[[str], int],
) -> Iterator[dict[str, Json]]:
    """Yield objects, small ones first: with the required members, one more or less, all, and of sizes at the limits.

    own are the schemas to fit, everything all schemas that apply to the object. names are further names to use besides
    those that the schemas mention. choices returns the values of a member, a plain one first. rank returns how late to
    vary a member: the smallest rank is varied first.
    """
    make = _ObjectMaker(own, everything, names, choices)
    small = make.make_smallest()
    yield small
    yield {}
    varied = sorted(make.names, key=rank)[:MAX_NAMES]
    for name in varied:
        yield from (make.add_needed({**small, name: value}) for value in choices(name))
        yield {each: value for each, value in small.items() if each != name}
    large = make.make_largest()
    yield large
    for name in varied:
        if name in large:
            yield {each: value for each, value in large.items() if each != name}
        yield from ({**large, name: value} for value in choices(name)[:4])
    for size in _border_sizes(everything, "minProperties", "maxProperties"):
        yield make.resize(small, size)
        yield make.resize(large, size)
    yield from make.make_pairs(small, varied)


class _ObjectMaker:
    """Makes the objects for one set of schemas."""

    def __init__(
        self, own: Parts, everything: Parts, names: Iterable[str], choices: Callable[[str], list[Json]]
    ) -> None:
        self._own = own
        self._everything = everything
        self._choices = choices
        looks = sum(1 + len(part.get("patternProperties", ())) for part in (*own, *everything))
        self._most = max(_FEWEST_NAMES, MAX_LOOKS // (looks or 1))
        self.names = self._choose_names(names)[: self._most]
        self._needs: dict[str, list[str]] = {}
        for part in own:
            for name, wanted in required_with(part):
                self._needs.setdefault(name, []).extend(wanted)

    def _choose_names(self, names: Iterable[str]) -> list[str]:
        """Return names for members: those mentioned anywhere, samples of patterns, and some that no schema mentions."""
        member_names: dict[str, None] = {}
        for part in (*self._own, *self._everything):
            member_names.update(dict.fromkeys(part.get("required", ())))
            member_names.update(dict.fromkeys(part.get("properties", ())))
            member_names.update((name, None) for trigger, wanted in required_with(part) for name in (trigger, *wanted))
            member_names.update(dict.fromkeys(part.get("dependentSchemas", ())))
        for part in self._everything:
            for pattern in islice(part.get("patternProperties", ()), _MAX_PATTERNS):
                member_names.update(dict.fromkeys(sample_pattern(pattern)[:3]))
            member_names.update(dict.fromkeys(_names_by_schema(part.get("propertyNames"))))
        member_names.update(dict.fromkeys(names))
        member_names.update(dict.fromkeys(_FRESH))
        return list(member_names)

    def make_smallest(self) -> dict[str, Json]:
        """Return an object with its required members."""
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
                if name not in result and (choices := self._choices(name)):
                    result[name] = choices[0]
                    pending.append(name)
        return result

    def resize(self, value: dict[str, Json], size: int) -> dict[str, Json]:
        """Return the object cut to a size, or filled up to it with further members."""
        result = dict(list(value.items())[:size])
        fillers = iter([*self.names, *(f"m{index}" for index in range(size))])
        while len(result) < min(size, MAX_SIZE) and (name := next(fillers, None)) is not None:
            if name not in result and (choices := self._choices(name)):
                result[name] = choices[0]
        return result

    def make_pairs(self, small: dict[str, Json], names: list[str]) -> Iterator[dict[str, Json]]:
        """Yield objects with two varied members, for conditions between members."""
        few = list(islice((name for name in names if self._choices(name)), _PAIRED))
        for index, one in enumerate(few):
            for other in few[index + 1 :]:
                for first, second in product(self._choices(one)[:5], self._choices(other)[:5]):
                    yield self.add_needed({**small, one: first, other: second})


def make_arrays(
    own: Parts, everything: Parts, choices: Callable[[int], list[Json]], contained: Callable[[], list[Json]]
) -> Iterator[list[Json]]:
    """Yield arrays of lengths at the limits with plain items, then with one item changed, repeated or added.

    choices returns the values of an item, a plain one first. contained returns those that `contains` requires.
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
