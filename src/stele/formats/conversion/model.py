"""The neutral data model: what schema languages have in common, used by all conversions and by inference.

A `Model` is a root type and a table of named types (records, enumerations, fixed-size byte strings). A named type is
always referred to by `TypeReference`, so recursive schemas need no special handling and nesting is finite. What a
language can express and the model (or the other language) cannot is reported as a `Loss`, never dropped silently.

Values inside a model (defaults, `enum` and `const` constraints) are JSON values in the mapping of
`stele.formats.conversion.json_values`: bytes as base64 text, decimals and times as text, records as objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final

import msgspec


class ScalarKind(Enum):
    """Scalar types, by what a program holds in memory; widths are exact."""

    ANY = "any"
    """Any JSON value: the type is not restricted."""
    NULL = "null"
    """Only null. A value of this type is also nullable."""
    BOOLEAN = "boolean"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    INTEGER = "integer"
    """A whole number of any size (JSON Schema `integer`)."""
    NUMBER = "number"
    """A number of any size and precision (JSON Schema `number`)."""
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    STRING = "string"
    BYTES = "bytes"
    UUID = "uuid"
    DATE = "date"
    """A calendar day."""


class TimeUnit(Enum):
    """Resolution of times."""

    SECOND = "s"
    MILLI = "ms"
    MICRO = "us"
    NANO = "ns"


class Scalar(msgspec.Struct, frozen=True):
    """A type without parts."""

    kind: ScalarKind


class Decimal(msgspec.Struct, frozen=True):
    """A decimal number. precision is the number of all digits (None: not bounded), scale of those behind the point."""

    precision: int | None
    scale: int = 0


class Time(msgspec.Struct, frozen=True):
    """A time of day."""

    unit: TimeUnit = TimeUnit.MICRO


class Timestamp(msgspec.Struct, frozen=True):
    """A point in time (utc), or a date and time without a time zone (not utc)."""

    unit: TimeUnit = TimeUnit.MICRO
    utc: bool = True


class Duration(msgspec.Struct, frozen=True):
    """A span of time: of an exact length in unit, or (calendar) with separate months, days and milliseconds."""

    unit: TimeUnit = TimeUnit.NANO
    calendar: bool = False


class Array(msgspec.Struct, frozen=True):
    """A list; nullable is whether an item may be null."""

    items: Type
    nullable: bool = False


class Map(msgspec.Struct, frozen=True):
    """A map with keys of one scalar type, nearly always string. nullable is whether a value may be null."""

    values: Type
    keys: Scalar = Scalar(ScalarKind.STRING)
    nullable: bool = False


class UnionOption(msgspec.Struct, frozen=True):
    """One branch of a union. name is what the language calls it ('' where branches have no names)."""

    type: Type
    name: str = ""


class Union(msgspec.Struct, frozen=True):
    """One of two or more types, none of which is null or a union. Whether null is allowed is set where it is used."""

    options: tuple[UnionOption, ...]


class TypeReference(msgspec.Struct, frozen=True):
    """A reference to a record, enumeration or fixed type of the model by its full name."""

    name: str


Type = Scalar | Decimal | Time | Timestamp | Duration | Array | Map | Union | TypeReference


class _Absent(Enum):
    ABSENT = "absent"


ABSENT: Final = _Absent.ABSENT
"""Marks a missing default. None cannot, because a default may be null."""

_NOTHING: Final[Mapping[str, Any]] = {}


class RecordField(msgspec.Struct, frozen=True):
    """A field of a record.

    nullable     whether null is a value of it
    required     whether every datum has the field; False where a writer may leave it out
    default      JSON value (see the module) that a reader uses when a datum lacks the field; ABSENT: none
    number       the field's number in languages that have one; None lets the target choose
    aliases      earlier names
    constraints  bounds on values, by JSON Schema keyword (`minimum`, `maxLength`, `pattern`, `uniqueItems` …)
    """

    name: str
    type: Type
    nullable: bool = False
    required: bool = True
    default: Any = ABSENT
    doc: str = ""
    number: int | None = None
    aliases: tuple[str, ...] = ()
    constraints: Mapping[str, Any] = _NOTHING


class RecordType(msgspec.Struct, frozen=True):
    """A record (struct, message, object).

    name         full name, dotted; the last part is the short name
    open         whether data may have members that the record does not declare. None: the language has no such notion.
                 Its data have none, so a target language that must choose writes a closed record
    at_most_one  groups of fields of which a datum has at most one (Protobuf oneof, Thrift union), by group name
    """

    name: str
    fields: tuple[RecordField, ...]
    doc: str = ""
    aliases: tuple[str, ...] = ()
    open: bool | None = None
    at_most_one: Mapping[str, tuple[str, ...]] = _NOTHING


class EnumSymbol(msgspec.Struct, frozen=True):
    """A value of an enumeration."""

    name: str
    number: int | None = None
    doc: str = ""


class Enumeration(msgspec.Struct, frozen=True):
    """An enumeration. default is the symbol that a reader uses for a symbol it does not know, '' for none."""

    name: str
    symbols: tuple[EnumSymbol, ...]
    default: str = ""
    doc: str = ""
    aliases: tuple[str, ...] = ()


class Fixed(msgspec.Struct, frozen=True):
    """A byte string of exactly size bytes."""

    name: str
    size: int
    doc: str = ""
    aliases: tuple[str, ...] = ()


NamedType = RecordType | Enumeration | Fixed


class Model(msgspec.Struct, frozen=True):
    """A schema in the neutral model: the type of one datum, and all named types that it reaches, by full name.

    nullable is whether the datum itself may be null. constraints apply to the root, as in `RecordField`.
    """

    root: Type
    types: Mapping[str, NamedType] = _NOTHING
    nullable: bool = False
    doc: str = ""
    constraints: Mapping[str, Any] = _NOTHING


class Loss(msgspec.Struct, frozen=True):
    """Something that the source expresses and the target cannot.

    path   dotted from the root, as in `core.ports.Field` (`address.city`, `[]` enters an array, `{}` a map)
    what   what is lost, a stable upper-case word (`DEFAULT`, `DOC`, `UNSIGNED`, `UNION`, `CONSTRAINT`, `ALIAS` …)
    why    one sentence with the consequence, with its period
    data   True when some data the source allows cannot be written under the target (or not without change), not just
           documentation or checks
    """

    path: str
    what: str
    why: str
    data: bool = False


# --- unique names -----------------------------------------------------------------------------------------------------
# Assigns names, each only once.


class UniqueNames:
    """Assigns unique names: the wanted name if it is free, else that name with a number behind it.

    The time is linear in the number of names.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)
        self._last: dict[str, int] = {}

    def claim_name(self, wanted: str, separator: str = "") -> str:
        """Return a name that is not used yet, and mark it as used."""
        name, count = wanted, self._last.get(wanted, 1)
        while name in self.taken:
            count += 1
            name = f"{wanted}{separator}{count}"
        self._last[wanted] = count
        self.taken.add(name)
        return name
