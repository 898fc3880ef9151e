"""A schema from samples of its data.

    whole numbers                      int64; beyond 64 bits integer
    whole and other numbers            float64; number where a float would change a whole number
    Decimal                            decimal of the digits seen
    strings                            string; uuid, date or timestamp where every string at the place is one, in ISO
                                       8601 or RFC 3339 (a switch turns this off); an enumeration only on request
    object                             record: a member some objects lack is not required; map where the names look
                                       like keys (see `MIN_KEYS`)
    several of these at one place      union
    null                               nullable

The outcome depends on the samples alone, not on their order. Members stand in the order of their mean position.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Final

import msgspec

from stele.errors import InvalidRequest
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
)
from stele.formats.conversion.sample_shape import NumberShape, ObjectShape, ShapeBudget, StringShape, ValueShape
from stele.formats.conversion.unique_names import UniqueNames

MIN_KEYS: Final = 20
"""Names that make an object a map at the least; there must be as many objects, no name in more than one of
`SHARE` of them, and one kind of value behind all names."""

SHARE: Final = 5
"""See `MIN_KEYS`."""

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
    """What a schema is inferred to.

    notations     whether strings that are all times or ids in a known notation become times or ids
    enumerations  most different strings of an enumeration, where strings repeat; 0 for no enumerations
    """

    notations: bool = True
    enumerations: int = 0


class Samples:
    """An accumulator: `add` samples, `merge` what others saw, ask for the `model`. Memory is bounded by the shape."""

    def __init__(self, options: InferOptions | None = None) -> None:
        self.options = options or InferOptions()
        self.count = 0
        self._shape = ValueShape()
        self._budget = ShapeBudget()

    def add_sample(self, value: Any) -> None:
        """Add a sample. Raises `Invalid` for types no schema has, `TooLarge` past the limits of `shape`."""
        self._shape.add(value, self.options.enumerations, self._budget)
        self.count += 1

    def merge(self, other: Samples) -> None:
        """Add what another one saw, as if its samples had been added here. Raises `TooLarge`."""
        self._shape.merge(other._shape, self.options.enumerations, self._budget)
        self.count += other.count

    def build_model(self, name: str = "Record") -> Model:
        """Return the shape as a model; name is that of the top record, others are called after their path below it.

        Raises `InvalidRequest` when there were no samples.
        """
        if not self.count:
            raise InvalidRequest("there are no samples to infer a schema from")
        return model_from_shape(self._shape, name=name, options=self.options)


def infer_model(samples: Iterable[Any], *, name: str = "Record", options: InferOptions | None = None) -> Model:
    """Return the model of all samples. Raises as `Samples`."""
    seen = Samples(options)
    for sample in samples:
        seen.add_sample(sample)
    return seen.build_model(name)


def model_from_shape(shape: ValueShape, *, name: str = "Record", options: InferOptions | None = None) -> Model:
    """Return the model of a shape, however it was gathered."""
    return _ModelBuilder(options or InferOptions()).build_model(shape, name)


class _ModelBuilder:
    """Turns shapes into types."""

    def __init__(self, options: InferOptions) -> None:
        self.options = options
        self.types: dict[str, NamedType] = {}
        self.distinct = UniqueNames()

    def build_model(self, shape: ValueShape, name: str) -> Model:
        """Return the whole model."""
        root, nullable = self.build_type(shape, name)
        return Model(root, self.types, nullable)

    def build_type(self, shape: ValueShape, name: str) -> tuple[Type, bool]:
        """Return the type of a place, and whether null was seen there; name is for the types it needs."""
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
            # Beside times, which are whole numbers underneath, a whole number must not have to pass for a decimal.
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
        for member, seen in ordered:
            kind, nullable = self.build_type(seen.shape, f"{full}{_to_upper_camel(member)}")
            fields.append(RecordField(member, kind, nullable, required=seen.count == members.count))
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
