"""What the binary protocol needs to know of a struct: its fields by id and by name, types behind typedefs."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

from stele.errors import MalformedSchema
from stele.formats.thrift.constants import count_parts, make_datum, require_fit
from stele.formats.thrift.lexer import I16
from stele.formats.thrift.schema import ResolvedType, ThriftUnit, is_required
from stele.formats.thrift.syntax import Requiredness, ThriftEnum, ThriftField, ThriftStruct

MAX_DEPTH: Final = 64
"""Structs and containers inside each other in one datum, the outermost included: the limit of Apache's libraries."""

WIRE: Final = {
    "bool": 2,
    "i8": 3,
    "double": 4,
    "i16": 6,
    "i32": 8,
    "enum": 8,
    "i64": 10,
    "string": 11,
    "binary": 11,
    "struct": 12,
    "map": 13,
    "set": 14,
    "list": 15,
    "uuid": 16,
}
"""Type numbers of the binary protocol."""

NAMES: Final = {**{number: word for word, number in WIRE.items() if word != "enum"}, 11: "string"}
"""The words for the type numbers."""


class FieldLayout:
    """A field: its place in the data and in the datum.

    Schemas read leniently may have ids that no data can hold (`fits` is False then), and defaults that are none.
    """

    def __init__(self, unit: ThriftUnit, struct: ThriftStruct, field: ThriftField) -> None:
        self.id = field.id
        self.name = field.name
        self.kind: ResolvedType = unit.resolve_type(field.type)
        self.wire = WIRE[self.kind.kind]
        self.required = is_required(struct, field)
        self.optional = field.requiredness is Requiredness.OPTIONAL or struct.kind == "union"
        self.fits = field.id in I16
        self._unit = unit
        self._default = field.default if self.fits and _is_default(unit, field, self.kind) else None
        self.has_default = self._default is not None

    def make_default(self) -> Any:
        """Return a new datum of the default; None when there is none."""
        return None if self._default is None else make_datum(self._unit, self._default, self.kind)

    @cached_property
    def default_parts(self) -> int:
        """How many values the default consists of."""
        return 0 if self._default is None else count_parts(self._unit, self._default)


def _is_default(unit: ThriftUnit, field: ThriftField, kind: ResolvedType) -> bool:
    if field.default is None:
        return False
    try:
        require_fit(unit, field.default, kind, 0)
    except MalformedSchema:
        return False
    return True


class StructLayout:
    """A struct with its slots in the order of ids, as they are written; `demanding` are those to look after."""

    def __init__(self, unit: ThriftUnit, struct: ThriftStruct) -> None:
        slots = [FieldLayout(unit, struct, field) for field in struct.fields]
        self.name = struct.name
        self.kind = struct.kind
        self.slots = sorted(slots, key=lambda slot: slot.id)
        self.demanding = [slot for slot in self.slots if slot.has_default or slot.required]
        self.by_id = {slot.id: slot for slot in slots}
        self.by_name = {slot.name: slot for slot in slots}


class EnumLayout:
    """The names and numbers of an enum; of several names for one number the first one is read."""

    def __init__(self, enum: ThriftEnum) -> None:
        self.numbers = {value.name: value.number for value in enum.values}
        self.names = {value.number: value.name for value in reversed(enum.values)}


class LayoutCache:
    """What is known of structs and enums, made when it is needed first, and kept as long as the schema.

    Safe to share between threads: two may make one layout, either is right.
    """

    def __init__(self) -> None:
        self._structs: dict[int, StructLayout] = {}
        self._enums: dict[int, EnumLayout] = {}

    def struct_layout(self, kind: ResolvedType) -> StructLayout:
        """Return the layout of a struct."""
        found = self._structs.get(id(kind.node))
        if found is None:
            assert isinstance(kind.node, ThriftStruct)
            found = self._structs[id(kind.node)] = StructLayout(kind.unit, kind.node)
        return found

    def enum_layout(self, kind: ResolvedType) -> EnumLayout:
        """Return the names and numbers of an enum."""
        found = self._enums.get(id(kind.node))
        if found is None:
            assert isinstance(kind.node, ThriftEnum)
            found = self._enums[id(kind.node)] = EnumLayout(kind.node)
        return found
