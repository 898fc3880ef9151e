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


class Logical(msgspec.Struct, frozen=True):
    """A valid logical type. precision and scale have a meaning for `decimal` only."""

    name: str
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.name == "decimal" else self.name


class Primitive(msgspec.Struct, frozen=True, eq=False):
    """null, boolean, int, long, float, double, bytes or string; kind is that word."""

    kind: str
    props: Props = NO_PROPS
    logical: Logical | None = None


class Array(msgspec.Struct, frozen=True, eq=False):
    """A list of one type."""

    items: Type
    props: Props = NO_PROPS
    kind: ClassVar[str] = "array"
    logical: ClassVar[None] = None


class Map(msgspec.Struct, frozen=True, eq=False):
    """Values of one type by string key."""

    values: Type
    props: Props = NO_PROPS
    kind: ClassVar[str] = "map"
    logical: ClassVar[None] = None


class Union(msgspec.Struct, frozen=True, eq=False):
    """One of several types."""

    branches: tuple[Type, ...]
    kind: ClassVar[str] = "union"
    logical: ClassVar[None] = None


class Fixed(msgspec.Struct, frozen=True, eq=False):
    """A number of bytes under a name. aliases are full names."""

    name: str
    size: int
    doc: str | None = None
    aliases: tuple[str, ...] = ()
    props: Props = NO_PROPS
    logical: Logical | None = None
    kind: ClassVar[str] = "fixed"


class EnumType(msgspec.Struct, frozen=True, eq=False):
    """One of several symbols. default is what a reader takes for a symbol it does not know."""

    name: str
    symbols: tuple[str, ...]
    default: str | None = None
    doc: str | None = None
    aliases: tuple[str, ...] = ()
    props: Props = NO_PROPS
    kind: ClassVar[str] = "enum"
    logical: ClassVar[None] = None


class RecordField(msgspec.Struct, frozen=True, eq=False):
    """A field of a record; default is the decoded JSON value, order is ascending, descending or ignore."""

    name: str
    type: Type
    default: Any = NO_DEFAULT
    doc: str | None = None
    order: str = "ascending"
    aliases: tuple[str, ...] = ()
    props: Props = NO_PROPS


class Record(msgspec.Struct, frozen=True, eq=False):
    """Named fields in order. fields is empty while the record is being parsed; `complete` fills it, once."""

    name: str
    doc: str | None = None
    aliases: tuple[str, ...] = ()
    error: bool = False
    fields: tuple[RecordField, ...] = ()
    by_name: Mapping[str, RecordField] = {}
    props: Props = NO_PROPS
    kind: ClassVar[str] = "record"
    logical: ClassVar[None] = None

    def __repr__(self) -> str:
        return f"Record({self.name!r}, {len(self.fields)} fields)"

    def complete(self, fields: Mapping[str, RecordField]) -> None:
        """Set the fields: a record that contains itself has to exist before them."""
        msgspec.structs.force_setattr(self, "fields", tuple(fields.values()))
        msgspec.structs.force_setattr(self, "by_name", fields)


Named = Record | EnumType | Fixed
Type = Primitive | Array | Map | Union | Record | EnumType | Fixed

PRIMITIVES: Final[Mapping[str, Primitive]] = {
    word: Primitive(word) for word in ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
}


class AvroSchema(msgspec.Struct, frozen=True, eq=False):
    """What `AVRO.parse` returns: the top type, and the named types that came with its references."""

    root: Type
    referenced: Mapping[str, Named] = {}

    def __repr__(self) -> str:
        return f"AvroSchema({short(self.root)})"

    @property
    def type_name(self) -> str:
        """Full name of the top type, or '' when it has none."""
        return self.root.name if isinstance(self.root, Named) else ""


def namespace(full_name: str) -> str:
    """Everything before the last dot; '' for the null namespace."""
    return full_name.rpartition(".")[0]


def short(node: Type, limit: int = 120) -> str:
    """A type in a few words: `array<long>`, `null | string`, `bytes decimal(9,2)`, or its full name."""
    text = _short(node, 4)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _short(node: Type, depth: int) -> str:
    match node:
        case Record() | EnumType() | Fixed():
            return node.name
        case Array():
            return f"array<{_short(node.items, depth - 1) if depth else '…'}>"
        case Map():
            return f"map<{_short(node.values, depth - 1) if depth else '…'}>"
        case Union():
            shown = [_short(branch, depth - 1) if depth else "…" for branch in node.branches[:12]]
            return " | ".join(shown + ["…"] * (len(node.branches) > 12)) or "empty union"
        case Primitive():
            return f"{node.kind} {node.logical}" if node.logical else node.kind
