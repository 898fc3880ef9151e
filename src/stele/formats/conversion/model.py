"""The neutral data model: what schema languages have in common, the meeting point of every conversion and inference.

A `Model` is a root type and a table of named types (records, enumerations, fixed-size byte strings). A named type is
always referred to by `TypeReference`, so recursive schemas need no special care and nothing is nested without end.
What a language can say and the model (or the other language) cannot is reported as a `Loss`, never dropped in silence.

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
    """Any JSON value: no statement about the type."""
    NULL = "null"
    """Nothing but null; what has this type is nullable too."""
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
    """A decimal number: precision digits in all (None: not bounded), scale of them behind the point."""

    precision: int | None
    scale: int = 0


class Time(msgspec.Struct, frozen=True):
    """A time of day."""

    unit: TimeUnit = TimeUnit.MICRO


class Timestamp(msgspec.Struct, frozen=True):
    """A point in time (utc), or a date with a time on a wall clock somewhere (not utc)."""

    unit: TimeUnit = TimeUnit.MICRO
    utc: bool = True


class Duration(msgspec.Struct, frozen=True):
    """A span of time: of an exact length in unit, or (calendar) of months, days and milliseconds side by side."""

    unit: TimeUnit = TimeUnit.NANO
    calendar: bool = False


class Array(msgspec.Struct, frozen=True):
    """A list; nullable is whether an item may be null."""

    items: Type
    nullable: bool = False


class Map(msgspec.Struct, frozen=True):
    """A dictionary with keys of one scalar type, nearly always string."""

    values: Type
    keys: Scalar = Scalar(ScalarKind.STRING)
    nullable: bool = False


class UnionOption(msgspec.Struct, frozen=True):
    """One branch of a union. name is what the language calls it ('' where branches have no names)."""

    type: Type
    name: str = ""


class Union(msgspec.Struct, frozen=True):
    """Exactly one of two or more types, none of which is null or a union: nullability stands where it is used."""

    options: tuple[UnionOption, ...]


class TypeReference(msgspec.Struct, frozen=True):
    """A record, enumeration or fixed type of the model, by full name."""

    name: str


Type = Scalar | Decimal | Time | Timestamp | Duration | Array | Map | Union | TypeReference


class _Absent(Enum):
    ABSENT = "absent"


ABSENT: Final = _Absent.ABSENT
"""No default: a default may be null, so None cannot say it."""

_NOTHING: Final[Mapping[str, Any]] = {}


class RecordField(msgspec.Struct, frozen=True):
    """A field of a record.

    nullable     null is a value of it
    required     a datum always has the field: False where a writer may leave it out
    default      JSON value (see the module) a reader takes where a datum lacks the field; ABSENT: none
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
    open         data may have members the record does not name (None: the language has no such notion; its data have
                 none, so a language that must decide says closed)
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
    """An enumeration; default is the symbol a reader takes for one it does not know, '' for none."""

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
    """A schema in neutral words: the type of one datum, and every named type it reaches, by full name.

    nullable is whether the datum itself may be null; constraints are on the root, as in `Field`.
    """

    root: Type
    types: Mapping[str, NamedType] = _NOTHING
    nullable: bool = False
    doc: str = ""
    constraints: Mapping[str, Any] = _NOTHING


class Loss(msgspec.Struct, frozen=True):
    """Something the source says and the target does not.

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
# Names that are each given once.


class UniqueNames:
    """Gives out names: the one wanted where it is free, else with the first free number behind it; linear in all."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)
        self._last: dict[str, int] = {}

    def claim_name(self, wanted: str, separator: str = "") -> str:
        """Return a name that is not taken yet, and take it."""
        name, count = wanted, self._last.get(wanted, 1)
        while name in self.taken:
            count += 1
            name = f"{wanted}{separator}{count}"
        self._last[wanted] = count
        self.taken.add(name)
        return name
