"""A parsed Avro schema: immutable nodes that may point back at each other, as recursive types do.

Names are full names (`com.acme.Order`). `props` holds the attributes the specification gives no meaning here, logical
type attributes among them; `logical` is set only when they are valid (an invalid logical type is ignored, spec 1.12).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, ClassVar, Final

import msgspec


class Absent(Enum):
    """Stands where a field has no default, because `null` is one."""

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
    """null, boolean, int, long, float, double, bytes or string; kind is that word."""

    kind: str
    props: Props = NO_PROPS
    logical: LogicalType | None = None


class AvroArray(msgspec.Struct, frozen=True, eq=False):
    """A list of one type."""

    items: AvroType
    props: Props = NO_PROPS
    kind: ClassVar[str] = "array"
    logical: ClassVar[None] = None


class AvroMap(msgspec.Struct, frozen=True, eq=False):
    """Values of one type by string key."""

    values: AvroType
    props: Props = NO_PROPS
    kind: ClassVar[str] = "map"
    logical: ClassVar[None] = None


class AvroUnion(msgspec.Struct, frozen=True, eq=False):
    """One of several types."""

    branches: tuple[AvroType, ...]
    kind: ClassVar[str] = "union"
    logical: ClassVar[None] = None


class AvroFixed(msgspec.Struct, frozen=True, eq=False):
    """A number of bytes under a name. aliases are full names."""

    name: str
    size: int
    doc: str | None = None
    aliases: tuple[str, ...] = ()
    props: Props = NO_PROPS
    logical: LogicalType | None = None
    kind: ClassVar[str] = "fixed"


class AvroEnum(msgspec.Struct, frozen=True, eq=False):
    """One of several symbols. default is what a reader takes for a symbol it does not know."""

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
        """Set the fields: a record that contains itself has to exist before them."""
        msgspec.structs.force_setattr(self, "fields", tuple(fields.values()))
        msgspec.structs.force_setattr(self, "by_name", fields)


AvroNamedType = AvroRecord | AvroEnum | AvroFixed
AvroType = AvroPrimitive | AvroArray | AvroMap | AvroUnion | AvroRecord | AvroEnum | AvroFixed

PRIMITIVES: Final[Mapping[str, AvroPrimitive]] = {
    word: AvroPrimitive(word) for word in ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
}


class AvroSchema(msgspec.Struct, frozen=True, eq=False):
    """What `AVRO.parse` returns: the top type, and the named types that came with its references."""

    root: AvroType
    referenced: Mapping[str, AvroNamedType] = {}

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
            shown = [_describe_type(branch, depth - 1) if depth else "…" for branch in node.branches[:12]]
            return " | ".join(shown + ["…"] * (len(node.branches) > 12)) or "empty union"
        case AvroPrimitive():
            return f"{node.kind} {node.logical}" if node.logical else node.kind
