"""A parsed Avro schema: immutable nodes that can refer back to each other, as recursive types do.

Names are full names (`com.acme.Order`). `props` holds the attributes that have no meaning in the specification here,
including those of logical types. `logical` is set only when they are valid (an invalid logical type is ignored, spec
1.12). The second half of this file defines which logical types exist and which types they are allowed on.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from math import floor, log10
from typing import Any, ClassVar, Final

import msgspec


class Absent(Enum):
    """Marks a field without a default; None would mean the default `null`."""

    NO_DEFAULT = "no default"


NO_DEFAULT: Final = Absent.NO_DEFAULT

Props = Mapping[str, Any]

NO_PROPS: Props = {}


class LogicalType(msgspec.Struct, frozen=True):
    """A valid logical type. precision and scale have a meaning for `decimal` only."""

    name: str
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.name == "decimal" else self.name


class AvroPrimitive(msgspec.Struct, frozen=True, eq=False):
    """A primitive type. kind is null, boolean, int, long, float, double, bytes or string."""

    kind: str
    props: Props = NO_PROPS
    logical: LogicalType | None = None


class AvroArray(msgspec.Struct, frozen=True, eq=False):
    """An array of one item type."""

    items: AvroType
    props: Props = NO_PROPS
    kind: ClassVar[str] = "array"
    logical: ClassVar[None] = None


class AvroMap(msgspec.Struct, frozen=True, eq=False):
    """A map from strings to values of one type."""

    values: AvroType
    props: Props = NO_PROPS
    kind: ClassVar[str] = "map"
    logical: ClassVar[None] = None


class AvroUnion(msgspec.Struct, frozen=True, eq=False):
    """A union: a value is of one of its branches."""

    branches: tuple[AvroType, ...]
    kind: ClassVar[str] = "union"
    logical: ClassVar[None] = None


class AvroFixed(msgspec.Struct, frozen=True, eq=False):
    """A named type of a fixed number of bytes. aliases are full names."""

    name: str
    size: int
    doc: str | None = None
    aliases: tuple[str, ...] = ()
    props: Props = NO_PROPS
    logical: LogicalType | None = None
    kind: ClassVar[str] = "fixed"


class AvroEnum(msgspec.Struct, frozen=True, eq=False):
    """A named set of symbols. default is the symbol that a reader uses for a symbol it does not know."""

    name: str
    symbols: tuple[str, ...]
    default: str | None = None
    doc: str | None = None
    aliases: tuple[str, ...] = ()
    props: Props = NO_PROPS
    kind: ClassVar[str] = "enum"
    logical: ClassVar[None] = None


class AvroField(msgspec.Struct, frozen=True, eq=False):
    """A field of a record; default is the decoded JSON value, order is ascending, descending or ignore."""

    name: str
    type: AvroType
    default: Any = NO_DEFAULT
    doc: str | None = None
    order: str = "ascending"
    aliases: tuple[str, ...] = ()
    props: Props = NO_PROPS


class AvroRecord(msgspec.Struct, frozen=True, eq=False):
    """Named fields in order. fields is empty while the record is being parsed; `set_fields` fills it, once."""

    name: str
    doc: str | None = None
    aliases: tuple[str, ...] = ()
    error: bool = False
    fields: tuple[AvroField, ...] = ()
    by_name: Mapping[str, AvroField] = {}
    props: Props = NO_PROPS
    kind: ClassVar[str] = "record"
    logical: ClassVar[None] = None

    def __repr__(self) -> str:
        return f"Record({self.name!r}, {len(self.fields)} fields)"

    def set_fields(self, fields: Mapping[str, AvroField]) -> None:
        """Set the fields. They are set after creation because a record can contain itself."""
        msgspec.structs.force_setattr(self, "fields", tuple(fields.values()))
        msgspec.structs.force_setattr(self, "by_name", fields)


AvroNamedType = AvroRecord | AvroEnum | AvroFixed
AvroType = AvroPrimitive | AvroArray | AvroMap | AvroUnion | AvroRecord | AvroEnum | AvroFixed

PRIMITIVES: Final[Mapping[str, AvroPrimitive]] = {
    word: AvroPrimitive(word) for word in ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
}

TYPE_WORDS: Final = frozenset({*PRIMITIVES, "record", "enum", "array", "map", "union", "fixed"})
"""Kinds of types. A named type may have one of these names; Java then writes references to it in full."""


class AvroSchema(msgspec.Struct, frozen=True, eq=False):
    """What `AVRO.parse` returns: the top type, the named types of its references, and its greatest size in bytes.

    identity_text is what `print_identity` returns, once it is known.
    """

    root: AvroType
    referenced: Mapping[str, AvroNamedType] = {}
    memory_size: int | None = None
    identity_text: bytes | None = None

    def __repr__(self) -> str:
        return f"AvroSchema({describe_type(self.root)})"

    @property
    def type_name(self) -> str:
        """Full name of the top type, or '' when it has none."""
        return self.root.name if isinstance(self.root, AvroNamedType) else ""


def namespace_of(full_name: str) -> str:
    """Return everything before the last dot; '' for the null namespace."""
    return full_name.rpartition(".")[0]


def describe_type(node: AvroType, limit: int = 120) -> str:
    """Return a type in a few words: `array<long>`, `null | string`, `bytes decimal(9,2)`, or its full name."""
    text = _describe_type(node, 4)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _describe_type(node: AvroType, depth: int) -> str:
    match node:
        case AvroRecord() | AvroEnum() | AvroFixed():
            return node.name
        case AvroArray():
            return f"array<{_describe_type(node.items, depth - 1) if depth else '…'}>"
        case AvroMap():
            return f"map<{_describe_type(node.values, depth - 1) if depth else '…'}>"
        case AvroUnion():
            branch_names = [_describe_type(branch, depth - 1) if depth else "…" for branch in node.branches[:12]]
            return " | ".join(branch_names + ["…"] * (len(node.branches) > 12)) or "empty union"
        case AvroPrimitive():
            return f"{node.kind} {node.logical}" if node.logical else node.kind


# --- logical types ----------------------------------------------------------------------------------------------------
# Which logical types exist, on what they may sit, and whether one is valid there (Avro 1.12, "Logical Types").

PLAIN: Final[Mapping[str, str]] = {
    "date": "int",
    "time-millis": "int",
    "time-micros": "long",
    "timestamp-millis": "long",
    "timestamp-micros": "long",
    "timestamp-nanos": "long",
    "local-timestamp-millis": "long",
    "local-timestamp-micros": "long",
    "local-timestamp-nanos": "long",
    "uuid": "string",
    "big-decimal": "bytes",
}
"""Logical types without attributes, each with the primitive type it is allowed on. `uuid` can also be on fixed(16)."""

_NAMES: Final[Mapping[str, LogicalType]] = {name: LogicalType(name) for name in (*PLAIN, "duration")}
_FIXED_SIZES: Final[Mapping[str, int]] = {"uuid": 16, "duration": 12}


def read_logical(kind: str, props: Props, size: int = 0) -> LogicalType | None:
    """Return the logical type of a node of that kind, or None when there is none, or it is unknown or invalid there."""
    name = props.get("logicalType")
    if not isinstance(name, str):
        return None
    if name == "decimal":
        return (
            None
            if find_decimal_fault(kind, props, size)
            else LogicalType(name, props["precision"], props.get("scale", 0))
        )
    if PLAIN.get(name) == kind or (kind == "fixed" and _FIXED_SIZES.get(name) == size):
        return _NAMES[name]
    return None


def find_decimal_fault(kind: str, props: Props, size: int = 0) -> str | None:
    """Return what is wrong with the attributes of a decimal on a node of that kind; None when they are fine."""
    if kind not in ("bytes", "fixed"):
        return f"a decimal sits on bytes or fixed, not on {kind}"
    precision, scale = props.get("precision"), props.get("scale", 0)
    if type(precision) is not int or precision < 1:
        return "a decimal needs a precision that is a positive integer"
    if type(scale) is not int or scale < 0:
        return "the scale of a decimal is an integer, 0 or more"
    if scale > precision:
        return f"scale {scale} is greater than precision {precision}"
    if kind == "fixed" and precision > max_digits(size):
        return f"{size} bytes hold {max_digits(size)} digits at most, not {precision}"
    return None


def max_digits(size: int) -> int:
    """Return how many decimal digits every two's-complement number of that many bytes can hold."""
    return floor(log10(2) * (8 * size - 1)) if size > 0 else 0


_STEPS: Final[Mapping[str, int]] = {"millis": 0, "micros": 3, "nanos": 6}


def time_unit_of(logical: LogicalType | None) -> tuple[str, str] | None:
    """Return (kind, unit) of a logical type with a time unit (`local-timestamp`, `micros`); None for any other."""
    kind, _, unit = logical.name.rpartition("-") if logical is not None else ("", "", "")
    return (kind, unit) if unit in _STEPS else None


def describe_consequence(reader: LogicalType, writer: LogicalType) -> str:
    """Return what becomes of values whose logical type changed, as the end of a sentence."""
    if reader.name == writer.name == "decimal":
        if reader.scale != writer.scale:
            return f"every number is off by a factor of {_power_of_ten(abs(reader.scale - writer.scale))}"
        return f"numbers of more than {reader.precision} digits no longer fit"
    ours, theirs = time_unit_of(reader), time_unit_of(writer)
    if ours is None or theirs is None or ours[0] != theirs[0]:
        return "they silently change meaning"
    return f"every time is off by a factor of {_power_of_ten(abs(_STEPS[ours[1]] - _STEPS[theirs[1]]))}"


def _power_of_ten(digits: int) -> str:
    return f"{10**digits:,}" if digits <= 9 else f"10^{digits}"
