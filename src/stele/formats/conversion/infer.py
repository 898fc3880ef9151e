"""Infers a schema from samples of its data.

    whole numbers                      int64; beyond 64 bits integer
    whole and other numbers            float64; number where a float would change a whole number
    Decimal                            decimal of the digits seen
    strings                            string; uuid, date or timestamp where every string at the position is one, in
                                       ISO 8601 or RFC 3339 (an option turns this off); enumeration only on request
    object                             record: a member that some objects lack is not required; map where the names
                                       look like keys (see `MIN_KEYS`)
    several of these at one position   union
    null                               nullable

The result depends on the samples alone, not on their order. Members are in the order of their mean position.

Samples are summed up one by one in a `ValueShape` of bounded size. The shapes of two sets can be merged to the shape of
their union, in any order and grouping, with the same result: a shape keeps sums, extremes and intersections, never "the
first" of anything.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal as Number
from fractions import Fraction
from functools import partial
from typing import Any, Final
from uuid import UUID

import msgspec

from stele.errors import Invalid, InvalidRequest, TooLarge
from stele.formats.conversion import scalar_text
from stele.formats.conversion.model import (
    Array,
    Decimal,
    Duration,
    Enumeration,
    EnumSymbol,
    Map,
    Model,
    NamedType,
    RecordField,
    RecordType,
    Scalar,
    ScalarKind,
    Time,
    Timestamp,
    TimeUnit,
    Type,
    TypeReference,
    Union,
    UnionOption,
    UniqueNames,
)

MIN_KEYS: Final = 20
"""Minimum number of member names, and of objects, for objects to become a map.

In addition, no name may be in more than one of `SHARE` objects, and the values of all names must be of one kind.
"""

SHARE: Final = 5
"""Number of objects of which at most one may have a given name, for objects to become a map; see `MIN_KEYS`."""

_LONG: Final = 2**63
_MAX_DIGITS: Final = 1_000
_PLAIN: Final[dict[str, Type]] = {
    "boolean": Scalar(ScalarKind.BOOLEAN),
    "bytes": Scalar(ScalarKind.BYTES),
    "uuid": Scalar(ScalarKind.UUID),
    "date": Scalar(ScalarKind.DATE),
    "time": Time(TimeUnit.MICRO),
    "timestamp": Timestamp(TimeUnit.MICRO),
    "local": Timestamp(TimeUnit.MICRO, utc=False),
    "duration": Duration(TimeUnit.MICRO),
}


class InferOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the inference.

    notations     whether strings become times or ids when all of them have that notation
    enumerations  maximum number of distinct strings of an enumeration, where strings repeat; 0 for no enumerations
    """

    notations: bool = True
    enumerations: int = 0


class Samples:
    """Collects samples: `add_sample` adds one, `merge` those of another collector. Memory is bounded."""

    def __init__(self, options: InferOptions | None = None) -> None:
        self.options = options or InferOptions()
        self.count = 0
        self._shape = ValueShape()
        self._budget = ShapeBudget()

    def add_sample(self, value: Any) -> None:
        """Add a sample. Raises `Invalid` for types that no schema has, `TooLarge` past the limits of this module."""
        self._shape.add(value, self.options.enumerations, self._budget)
        self.count += 1

    def merge(self, other: Samples) -> None:
        """Add the samples of another collector, as if they had been added here. Raises `TooLarge`."""
        self._shape.merge(other._shape, self.options.enumerations, self._budget)
        self.count += other.count

    def build_model(self, name: str = "Record") -> Model:
        """Return the model of the samples.

        name is the name of the top record; other types are named after their path below it. Raises `InvalidRequest`
        when there are no samples.
        """
        if not self.count:
            raise InvalidRequest("there are no samples to infer a schema from")
        return model_from_shape(self._shape, name=name, options=self.options)


def infer_model(samples: Iterable[Any], *, name: str = "Record", options: InferOptions | None = None) -> Model:
    """Return the model of all samples. Raises the errors of `Samples`."""
    accumulator = Samples(options)
    for sample in samples:
        accumulator.add_sample(sample)
    return accumulator.build_model(name)


def model_from_shape(shape: ValueShape, *, name: str = "Record", options: InferOptions | None = None) -> Model:
    """Return the model of a shape."""
    return _ModelBuilder(options or InferOptions()).build_model(shape, name)


class _ModelBuilder:
    """Converts shapes to types."""

    def __init__(self, options: InferOptions) -> None:
        self.options = options
        self.types: dict[str, NamedType] = {}
        self.distinct = UniqueNames()

    def build_model(self, shape: ValueShape, name: str) -> Model:
        """Return the model of a shape."""
        root, nullable = self.build_type(shape, name)
        return Model(root, self.types, nullable)

    def build_type(self, shape: ValueShape, name: str) -> tuple[Type, bool]:
        """Return the type of a shape, and whether null was seen there. name is for the named types that it needs."""
        kinds = self._build_options(shape, name)
        if not kinds:
            return Scalar(ScalarKind.NULL if shape.null else ScalarKind.ANY), True
        if len(kinds) == 1:
            return kinds[0], shape.null
        return Union(tuple(UnionOption(kind) for kind in kinds)), shape.null

    def _build_options(self, shape: ValueShape, name: str) -> list[Type]:
        kinds = [_PLAIN[word] for word in sorted(shape.plain)]
        if shape.words is not None:
            kinds.append(self._build_string(shape.words, name))
        if shape.numbers is not None:
            # Times are stored as whole numbers: beside them, whole numbers need an integer option, not only a decimal.
            times = any(isinstance(kind, Time | Timestamp | Duration) or kind == _PLAIN["date"] for kind in kinds)
            kinds += [_build_integer(shape.numbers)] if times and shape.numbers.least is not None else []
            kinds.append(_build_number(shape.numbers))
        if shape.items is not None:
            kinds.append(Array(*self.build_type(shape.items, name)))
        if shape.members is not None:
            kinds.append(self._build_object(shape.members, name))
        return list(dict.fromkeys(kinds))

    def _build_string(self, words: StringShape, name: str) -> Type:
        if self.options.notations and words.formats:
            (word,) = words.formats
            if word in ("timestamp", "local"):
                unit = TimeUnit.MILLI if words.digits <= 3 else TimeUnit.MICRO if words.digits <= 6 else TimeUnit.NANO
                return Timestamp(unit, utc=word == "timestamp")
            return _PLAIN[word]
        if words.symbols and words.count > len(words.symbols):
            full = self.distinct.claim_name(name)
            self.types[full] = Enumeration(full, tuple(EnumSymbol(text) for text in sorted(words.symbols)))
            return TypeReference(full)
        return Scalar(ScalarKind.STRING)

    def _build_object(self, members: ObjectShape, name: str) -> Type:
        if members.by_name is None or self._has_key_names(members):
            values, nullable = self.build_type(members.merge_members(self.options.enumerations), f"{name}Value")
            return Map(values, nullable=nullable)
        full = self.distinct.claim_name(name)
        self.types[full] = RecordType(full, ())
        ordered = sorted(members.by_name.items(), key=lambda item: (Fraction(item[1].places, item[1].count), item[0]))
        fields = []
        for member, member_shape in ordered:
            kind, nullable = self.build_type(member_shape.shape, f"{full}{_to_upper_camel(member)}")
            fields.append(RecordField(member, kind, nullable, required=member_shape.count == members.count))
        self.types[full] = RecordType(full, tuple(fields))
        return TypeReference(full)

    def _has_key_names(self, members: ObjectShape) -> bool:
        """Return whether member names are keys of a map rather than names of fields; in doubt they are field names."""
        by_name = members.by_name or {}
        if len(by_name) < MIN_KEYS or members.count < MIN_KEYS:
            return False
        if any(member.count * SHARE > members.count for member in by_name.values()):
            return False
        common = members.merge_members(0)
        parts = [common.numbers, common.words, common.items, common.members, *common.plain]
        return sum(part is not None for part in parts) == 1


def _build_number(numbers: NumberShape) -> Type:
    least, greatest = numbers.least, numbers.greatest
    if numbers.floats:
        return Scalar(ScalarKind.NUMBER if numbers.decimals or not numbers.exact else ScalarKind.FLOAT64)
    if numbers.decimals:
        bounds = [abs(bound) for bound in (least, greatest) if bound is not None]
        if numbers.digits + numbers.scale > _MAX_DIGITS or any(bound >= 10**_MAX_DIGITS for bound in bounds):
            return Scalar(ScalarKind.NUMBER)
        digits = max(numbers.digits, *(len(str(bound)) for bound in bounds), 1 - numbers.scale)
        return Decimal(digits + numbers.scale, numbers.scale)
    return _build_integer(numbers)


def _build_integer(numbers: NumberShape) -> Type:
    assert numbers.least is not None
    assert numbers.greatest is not None
    return Scalar(ScalarKind.INT64 if numbers.least >= -_LONG and numbers.greatest < _LONG else ScalarKind.INTEGER)


def _to_upper_camel(member: str) -> str:
    """Return a member's name as part of a type's: `ship_to` becomes `ShipTo`."""
    words = "".join(char if char.isalnum() else " " for char in member).split()
    return "".join(word[0].upper() + word[1:] for word in words)


# --- shapes of values -------------------------------------------------------------------------------------------------
# What a set of values looks like, gathered one by one in bounded memory.

MAX_MEMBERS: Final = 1_000
"""Maximum number of distinct member names at one position; if there are more, they are keys of a map."""

MAX_PLACES: Final = 100_000
"""Maximum number of different positions in all samples together."""

MAX_DEPTH: Final = 50
"""Maximum nesting of values."""

_UUID: Final = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_EXACT: Final = 2**53
_MOMENTS: Final[Mapping[str, Callable[[str], int]]] = {
    "timestamp": partial(scalar_text.parse_timestamp, unit=TimeUnit.NANO, utc=True),
    "local": partial(scalar_text.parse_timestamp, unit=TimeUnit.NANO, utc=False),
}

SpendPlaces = Callable[[int], None]
"""Counts new places; raises `TooLarge`."""


class ShapeBudget:
    """Counts the positions of one collector."""

    def __init__(self) -> None:
        self.spent = 0

    def spend(self, places: int) -> None:
        """Count new positions. Raises `TooLarge` past `MAX_PLACES`."""
        self.spent += places
        if self.spent > MAX_PLACES:
            raise TooLarge(f"the samples have more than {MAX_PLACES} different places")


class StringShape:
    """Strings at one position: their common notations, their number, and the distinct strings while they are few.

    formats  the notations that every one of them has (None: there were none)
    digits   greatest number of decimal places of a second
    symbols  the distinct strings; None when they are too many
    """

    def __init__(self) -> None:
        self.count = 0
        self.formats: frozenset[str] | None = None
        self.digits = 0
        self.symbols: frozenset[str] | None = frozenset()

    def add(self, text: str, limit: int) -> None:
        """Add a string."""
        other = StringShape()
        other.count = 1
        other.formats, other.digits = (
            detect_notations(text) if self.formats is None or self.formats else (frozenset(), 0)
        )
        other.symbols = frozenset((text,)) if limit and self.symbols is not None else None
        self.merge(other, limit)

    def merge(self, other: StringShape, limit: int) -> None:
        """Add the strings of another shape. If there are more than limit distinct strings, they are dropped."""
        self.count += other.count
        both = [formats for formats in (self.formats, other.formats) if formats is not None]
        self.formats = both[0].intersection(*both[1:]) if both else None
        self.digits = max(self.digits, other.digits) if self.formats else 0
        if self.symbols is None or other.symbols is None or len(self.symbols | other.symbols) > limit:
            self.symbols = None
        else:
            self.symbols |= other.symbols


class NumberShape:
    """Numbers at one position.

    Keeps the extremes of whole numbers, whether a float holds all of these exactly, and the digits of decimals.
    """

    def __init__(self) -> None:
        self.least: int | None = None
        self.greatest: int | None = None
        self.exact = True
        self.floats = False
        self.decimals = False
        self.digits = 0
        self.scale = 0

    def add(self, value: Any) -> None:
        """Add a number: int, float or Decimal."""
        if isinstance(value, float) or (isinstance(value, Number) and not value.is_finite()):
            self.floats = True
        elif isinstance(value, Number):
            self.decimals = True
            exponent = value.as_tuple().exponent
            assert isinstance(exponent, int)
            self.digits = max(self.digits, value.adjusted() + 1 if value else 0)
            self.scale = max(self.scale, -exponent)
        else:
            self.least = value if self.least is None else min(self.least, value)
            self.greatest = value if self.greatest is None else max(self.greatest, value)
            self.exact = self.exact and (abs(value) <= _EXACT or _is_exact_float(value))

    def merge(self, other: NumberShape) -> None:
        """Add the numbers of another shape."""
        for bound in (other.least, other.greatest):
            if bound is not None:
                self.least = bound if self.least is None else min(self.least, bound)
                self.greatest = bound if self.greatest is None else max(self.greatest, bound)
        self.exact &= other.exact
        self.floats |= other.floats
        self.decimals |= other.decimals
        self.digits = max(self.digits, other.digits)
        self.scale = max(self.scale, other.scale)


class ObjectShape:
    """Objects at one position: their number, and the shape, number and positions of each member.

    by_name   members by name; None once there are too many names, and `values` has the shape of all of them
    """

    def __init__(self) -> None:
        self.count = 0
        self.by_name: dict[str, MemberShape] | None = {}
        self.values = ValueShape()

    def add(self, value: Mapping[Any, Any], limit: int, budget: ShapeBudget, depth: int) -> None:
        """Add an object."""
        self.count += 1
        for place, (name, item) in enumerate(value.items()):
            if not isinstance(name, str):
                raise Invalid(f"the member name {name!r} is not a string")
            if self.by_name is None:
                self.values.add(item, limit, budget, depth + 1)
                continue
            member = self.by_name.get(name)
            if member is None:
                budget.spend(1)
                member = self.by_name[name] = MemberShape()
            member.count += 1
            member.places += place
            member.shape.add(item, limit, budget, depth + 1)
            self._collapse_members(limit)

    def merge(self, other: ObjectShape, limit: int, budget: ShapeBudget) -> None:
        """Add the objects of another shape."""
        self.count += other.count
        self.values.merge(other.values, limit, budget)
        if self.by_name is not None and other.by_name is not None:
            for name, theirs in other.by_name.items():
                if name not in self.by_name:
                    budget.spend(1)
                mine = self.by_name.setdefault(name, MemberShape())
                mine.count += theirs.count
                mine.places += theirs.places
                mine.shape.merge(theirs.shape, limit, budget)
            self._collapse_members(limit)
            return
        for members in (self.by_name, other.by_name):
            for member in (members or {}).values():
                self.values.merge(member.shape, limit, budget)
        self.by_name = None

    def _collapse_members(self, limit: int) -> None:
        """Turn the members into values of a map if there are more than `MAX_MEMBERS`."""
        if self.by_name is not None and len(self.by_name) > MAX_MEMBERS:
            for member in self.by_name.values():
                self.values.merge(member.shape, limit, ShapeBudget())
            self.by_name = None

    def merge_members(self, limit: int) -> ValueShape:
        """Return the shape of the values of all members."""
        shape = ValueShape()
        shape.merge(self.values, limit, ShapeBudget())
        for member in (self.by_name or {}).values():
            shape.merge(member.shape, limit, ShapeBudget())
        return shape


class MemberShape:
    """A member: its shape, the number of objects that have it, and the sum of its positions in them."""

    def __init__(self) -> None:
        self.count = 0
        self.places = 0
        self.shape = ValueShape()


class ValueShape:
    """The shape of the values at one position.

    Parts are None, and flags False, until a value of that kind is seen.

    plain  kinds without further detail: boolean, bytes, uuid, date, time, local, timestamp, duration
    """

    __slots__ = ("items", "members", "null", "numbers", "plain", "words")

    def __init__(self) -> None:
        self.null = False
        self.plain: frozenset[str] = frozenset()
        self.numbers: NumberShape | None = None
        self.words: StringShape | None = None
        self.items: ValueShape | None = None
        self.members: ObjectShape | None = None

    def add(self, value: Any, limit: int, budget: ShapeBudget, depth: int = 0) -> None:
        """Add a value; limit is how many distinct strings are kept. Raises `Invalid` and `TooLarge`."""
        if depth > MAX_DEPTH:
            raise TooLarge(f"a sample is nested deeper than {MAX_DEPTH} levels")
        match value:
            case None:
                self.null = True
            case str():
                self.words = self.words or StringShape()
                self.words.add(value, limit)
            case int() | float() | Number() if not isinstance(value, bool):
                self.numbers = self.numbers or NumberShape()
                self.numbers.add(value)
            case Mapping():
                self.members = self.members or ObjectShape()
                self.members.add(value, limit, budget, depth)
            case list() | tuple():
                if self.items is None:
                    budget.spend(1)
                    self.items = ValueShape()
                for item in value:
                    self.items.add(item, limit, budget, depth + 1)
            case _:
                self.plain |= {_plain_kind(value)}

    def merge(self, other: ValueShape, limit: int, budget: ShapeBudget) -> None:
        """Add the values of another shape. Raises `TooLarge`."""
        self.null |= other.null
        self.plain |= other.plain
        if other.numbers is not None:
            self.numbers = self.numbers or NumberShape()
            self.numbers.merge(other.numbers)
        if other.words is not None:
            self.words = self.words or StringShape()
            self.words.merge(other.words, limit)
        if other.items is not None:
            if self.items is None:
                budget.spend(1)
                self.items = ValueShape()
            self.items.merge(other.items, limit, budget)
        if other.members is not None:
            self.members = self.members or ObjectShape()
            self.members.merge(other.members, limit, budget)


def detect_notations(text: str) -> tuple[frozenset[str], int]:
    """Return (the notations a string has: uuid, date, timestamp, local; the decimal places of its second)."""
    if _UUID.fullmatch(text):
        return frozenset(("uuid",)), 0
    if len(text) == 10 and _can_parse(scalar_text.parse_date, text):
        return frozenset(("date",)), 0
    if 19 <= len(text) <= 40:
        for name, read in _MOMENTS.items():
            if text[10] == "T" and _can_parse(read, text):
                _, point, rest = text.partition(".")
                digits = len(rest) - len(rest.lstrip("0123456789")) if point else 0
                return frozenset((name,)), digits
    return frozenset(), 0


def _can_parse(read: Callable[[str], int], text: str) -> bool:
    try:
        read(text)
    except (ValueError, OverflowError):
        return False
    return True


def _is_exact_float(value: int) -> bool:
    try:
        return math.isfinite(float(value)) and int(float(value)) == value
    except OverflowError:
        return False


def _plain_kind(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case bytes() | bytearray():
            return "bytes"
        case UUID():
            return "uuid"
        case datetime():
            return "local" if value.tzinfo is None else "timestamp"
        case date():
            return "date"
        case time():
            return "time"
        case timedelta():
            return "duration"
    raise Invalid(f"no schema can be inferred from values of type {type(value).__name__}")
