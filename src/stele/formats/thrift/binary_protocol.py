"""The binary protocol: Python values to bytes and back. The layout of each struct is computed once.

The writer refuses values that do not fit and never converts them: no integer beyond its type, no unknown field. The
reader checks every size against the remaining bytes before it uses it, so hostile bytes cost no more time and memory
than their length allows. A value of another type than the schema's is an error and is not skipped.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from struct import Struct as Packed
from typing import Any, Final
from uuid import UUID

from stele.errors import DecodeError, MalformedSchema
from stele.formats.thrift.constants import RANGES, SCALARS, count_parts, make_datum, make_map, parse_uuid, require_fit
from stele.formats.thrift.grammar import I16, I32
from stele.formats.thrift.schema import (
    Requiredness,
    ResolvedType,
    ThriftEnum,
    ThriftField,
    ThriftStruct,
    ThriftUnit,
    is_required,
)

# --- layouts ----------------------------------------------------------------------------------------------------------
# Facts of a struct for the binary protocol: its fields by id and by name, with typedefs resolved.

MAX_DEPTH: Final = 64
"""Most levels of nested structs and containers in one datum, the outermost included, as in Apache's libraries."""

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
"""Names of the type numbers."""


class FieldLayout:
    """A field: its position in the data and its name in the datum.

    Schemas that were parsed leniently may have ids that no data can hold (`fits` is False then), and invalid defaults,
    which are ignored.
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
        """Return a new datum for the default; None when there is none."""
        return None if self._default is None else make_datum(self._unit, self._default, self.kind)

    @cached_property
    def default_parts(self) -> int:
        """Number of values in the default."""
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
    """A struct with its fields in the order of ids, as they are written.

    `demanding` are the required fields and those with a default.
    """

    def __init__(self, unit: ThriftUnit, struct: ThriftStruct) -> None:
        slots = [FieldLayout(unit, struct, field) for field in struct.fields]
        self.name = struct.name
        self.kind = struct.kind
        self.slots = sorted(slots, key=lambda slot: slot.id)
        self.demanding = [slot for slot in self.slots if slot.has_default or slot.required]
        self.by_id = {slot.id: slot for slot in slots}
        self.by_name = {slot.name: slot for slot in slots}


class EnumLayout:
    """The names and numbers of an enum. If a number has several names, the first one is used for reading."""

    def __init__(self, enum: ThriftEnum) -> None:
        self.numbers = {value.name: value.number for value in enum.values}
        self.names = {value.number: value.name for value in reversed(enum.values)}


class LayoutCache:
    """Layouts of structs and enums, computed on first use and kept as long as the schema.

    Safe to share between threads: two threads may compute the same layout, and both results are valid.
    """

    def __init__(self) -> None:
        self._structs: dict[int, StructLayout] = {}
        self._enums: dict[int, EnumLayout] = {}

    def struct_layout(self, kind: ResolvedType) -> StructLayout:
        """Return the layout of a struct."""
        layout = self._structs.get(id(kind.node))
        if layout is None:
            assert isinstance(kind.node, ThriftStruct)
            layout = self._structs[id(kind.node)] = StructLayout(kind.unit, kind.node)
        return layout

    def enum_layout(self, kind: ResolvedType) -> EnumLayout:
        """Return the names and numbers of an enum."""
        layout = self._enums.get(id(kind.node))
        if layout is None:
            assert isinstance(kind.node, ThriftEnum)
            layout = self._enums[id(kind.node)] = EnumLayout(kind.node)
        return layout


# --- reading ----------------------------------------------------------------------------------------------------------
# Reads Python values from the binary protocol.

_I16: Final = Packed("!h")
_I32: Final = Packed("!i")
_NUMBERS: Final = {"i8": Packed("!b"), "i16": _I16, "i32": _I32, "i64": Packed("!q"), "double": Packed("!d")}
_SMALLEST: Final = {2: 1, 3: 1, 4: 8, 6: 2, 8: 4, 10: 8, 11: 4, 12: 1, 13: 6, 14: 5, 15: 5, 16: 16}
"""Size in bytes of the smallest value of each type."""
_FIXED: Final = frozenset({2, 3, 4, 6, 8, 10, 16})
"""Types of fixed size."""

MAX_DEFAULTS: Final = 200_000
"""Most default values in one datum: a missing field takes no bytes, but its default takes memory."""


class _MalformedData(Exception):
    """Raised for data that contradict the schema. `path` leads from the value to the root."""

    def __init__(self, why: str, at: int) -> None:
        super().__init__(why)
        self.why = why
        self.at = at
        self.path: list[str] = []

    def to_decode_error(self) -> DecodeError:
        place = "".join(reversed(self.path)).removeprefix(".")
        return DecodeError(f"{place}: {self.why}" if place else self.why, offset=self.at)


def decode_struct(data: bytes, kind: ResolvedType, layouts: LayoutCache) -> Any:
    """Decode data that are exactly one struct. Raises `DecodeError` with the path and the offset."""
    reader = _DataReader(data, layouts)
    try:
        datum = reader.read_struct(layouts.struct_layout(kind), MAX_DEPTH)
    except _MalformedData as broken:
        raise broken.to_decode_error() from None
    if reader.at != len(data):
        raise DecodeError(f"{len(data) - reader.at} bytes are left over after the datum", offset=reader.at)
    return datum


class _DataReader:
    def __init__(self, data: bytes, layouts: LayoutCache) -> None:
        self.data = data
        self.at = 0
        self.layouts = layouts
        self.defaults = 0

    # --- pieces -----------------------------------------------------------------------------------------------------

    def take_bytes(self, count: int) -> int:
        """Skip the next `count` bytes and return their offset."""
        start = self.at
        if count > len(self.data) - start:
            raise _MalformedData("the data end in the middle of a value", len(self.data))
        self.at = start + count
        return start

    def read_number(self, packed: Packed) -> Any:
        return packed.unpack_from(self.data, self.take_bytes(packed.size))[0]

    def read_type_number(self) -> int:
        return self.data[self.take_bytes(1)]

    def read_size(self, smallest: int) -> int:
        """Read a count of values of at least `smallest` bytes each. Raises when the data cannot hold them all."""
        start = self.at
        count: int = self.read_number(_I32)
        if count < 0 or count * smallest > len(self.data) - self.at:
            raise _MalformedData(f"a size of {count} does not fit into the data", start)
        return count

    def descend(self, left: int) -> int:
        """Return the number of levels that remain inside a struct or container. Raises when there is none."""
        if left <= 0:
            raise _MalformedData(f"the data are nested deeper than {MAX_DEPTH} levels", self.at)
        return left - 1

    # --- values -----------------------------------------------------------------------------------------------------

    def read_struct(self, layout: StructLayout, left: int) -> dict[str, Any]:
        """Return the present fields in data order, then the defaults of missing fields."""
        left = self.descend(left)
        start = self.at
        fields: dict[str, Any] = {}
        unknown = 0
        while wire := self.read_type_number():
            slot = layout.by_id.get(self.read_number(_I16))
            if slot is None:
                unknown += 1
                self.skip_value(wire, left)
                continue
            try:
                if wire != slot.wire:
                    raise _MalformedData(
                        f"there is a {_wire_type_name(wire)} where the schema has {slot.kind.kind}", self.at - 3
                    )
                if slot.name in fields:
                    raise _MalformedData("the field occurs twice", self.at - 3)
                fields[slot.name] = self.read_value(slot.kind, left)
            except _MalformedData as broken:
                broken.path.append(f".{slot.name}")
                raise
        if layout.kind == "union":
            if len(fields) > 1 or not (fields or unknown):
                raise _MalformedData(f"the union {layout.name} has {len(fields)} members set instead of one", start)
        else:
            self.add_defaults(layout, fields, start)
        return fields

    def add_defaults(self, layout: StructLayout, datum: dict[str, Any], start: int) -> None:
        """Add the defaults of missing fields. Raises for a missing required field without default."""
        for slot in layout.demanding:
            if slot.name in datum:
                continue
            if not slot.has_default:
                raise _MalformedData(f"the required field {slot.name!r} of {layout.name} is missing", start)
            self.defaults += slot.default_parts
            if self.defaults > MAX_DEFAULTS:
                raise _MalformedData(f"the defaults of missing fields have more than {MAX_DEFAULTS} values", start)
            datum[slot.name] = slot.make_default()

    def read_value(self, kind: ResolvedType, left: int) -> Any:
        word = kind.kind
        if word in _NUMBERS:
            return self.read_number(_NUMBERS[word])
        match word:
            case "string" | "binary":
                return self.read_text(word)
            case "bool":
                return self.read_bool()
            case "enum":
                return self.read_enum(kind)
            case "struct":
                return self.read_struct(self.layouts.struct_layout(kind), left)
            case "map":
                return self.read_map(kind, left)
            case "uuid":
                start = self.take_bytes(16)
                return str(uuid.UUID(bytes=self.data[start : start + 16]))
        return self.read_items(kind, left)

    def read_bool(self) -> bool:
        start = self.take_bytes(1)
        if self.data[start] > 1:
            raise _MalformedData(f"a bool is 0 or 1, not {self.data[start]}", start)
        return self.data[start] == 1

    def read_text(self, word: str) -> str | bytes:
        count = self.read_size(1)
        start = self.take_bytes(count)
        content = self.data[start : self.at]
        if word == "binary":
            return content
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise _MalformedData("the string is not UTF-8", start + error.start) from None

    def read_enum(self, kind: ResolvedType) -> str | int:
        """Return the name of the value; the number where the schema has no name for it."""
        number: int = self.read_number(_I32)
        return self.layouts.enum_layout(kind).names.get(number, number)

    def read_items(self, kind: ResolvedType, left: int) -> list[Any]:
        """Return a list or set, as a list."""
        left = self.descend(left)
        inner = kind.inner_type(0)
        wire = self.read_type_number()
        count = self.read_size(_SMALLEST.get(wire, 1))
        self.require_wire_type(count, wire, inner)
        try:
            return [self.read_value(inner, left) for _ in range(count)]
        except _MalformedData as broken:
            broken.path.append("[]")
            raise

    def read_map(self, kind: ResolvedType, left: int) -> Any:
        left = self.descend(left)
        start = self.at
        key, value = kind.inner_type(0), kind.inner_type(1)
        wires = self.read_type_number(), self.read_type_number()
        count = self.read_size(sum(_SMALLEST.get(wire, 1) for wire in wires))
        self.require_wire_type(count, wires[0], key)
        self.require_wire_type(count, wires[1], value)
        try:
            pairs = [(self.read_value(key, left), self.read_value(value, left)) for _ in range(count)]
        except _MalformedData as broken:
            broken.path.append("{}")
            raise
        entries = make_map(kind, pairs)
        if len(entries) < count and key.kind in SCALARS:
            raise _MalformedData("a key of the map occurs twice", start)
        return entries

    def require_wire_type(self, count: int, wire: int, kind: ResolvedType) -> None:
        """Raise unless the values of a container have the schema's type. An empty container may name any type."""
        if count and wire != WIRE[kind.kind]:
            raise _MalformedData(
                f"there are values of type {_wire_type_name(wire)} where the schema has {kind.kind}", self.at
            )

    def skip_value(self, wire: int, left: int) -> None:
        """Skip the value of a field that the schema does not know."""
        if wire in _FIXED:
            self.take_bytes(_SMALLEST[wire])
        elif wire == WIRE["string"]:
            self.take_bytes(self.read_size(1))
        elif wire == WIRE["struct"]:
            left = self.descend(left)
            while inner := self.read_type_number():
                self.take_bytes(2)
                self.skip_value(inner, left)
        elif wire in {WIRE["map"], WIRE["set"], WIRE["list"]}:
            left = self.descend(left)
            wires = [self.read_type_number() for _ in range(2 if wire == WIRE["map"] else 1)]
            count = self.read_size(sum(_SMALLEST.get(each, 1) for each in wires))
            if all(each in _FIXED for each in wires):
                self.take_bytes(count * sum(_SMALLEST[each] for each in wires))
                return
            for _ in range(count):
                for each in wires:
                    self.skip_value(each, left)
        else:
            raise _MalformedData(f"{wire} is not the number of a type", self.at)


def _wire_type_name(wire: int) -> str:
    return NAMES.get(wire, f"type {wire}")


# --- writing ----------------------------------------------------------------------------------------------------------
# Writes Python values in the binary protocol, and reports those that do not fit.

MAX_PROBLEMS: Final = 100
"""Most problems that are reported for one datum."""

_DOUBLE: Final = Packed("!d")
_FIELD: Final = Packed("!bh")
_SIZES: Final = {"i8": 1, "i16": 2, "i32": 4, "i64": 8}


class _TooManyProblems(Exception):
    """Raised when a value has more problems than are reported."""


class ThriftWriter:
    """Writes one datum to `out`. Values that do not fit are reported in `problems`, one sentence with a path each."""

    def __init__(self, layouts: LayoutCache) -> None:
        self.out = bytearray()
        self.problems: list[str] = []
        self._layouts = layouts
        self._path: list[str] = []

    def write_struct(self, kind: ResolvedType, datum: Any) -> None:
        """Write the outermost struct."""
        with suppress(_TooManyProblems):
            self._write_value(kind, datum, MAX_DEPTH)

    def _add_problem(self, why: str) -> None:
        place = "".join(self._path).removeprefix(".")
        self.problems.append(f"{place}: {why}" if place else why)
        if len(self.problems) >= MAX_PROBLEMS:
            raise _TooManyProblems

    def _write_at(self, step: str, kind: ResolvedType, datum: Any, left: int) -> None:
        self._path.append(step)
        self._write_value(kind, datum, left)
        self._path.pop()

    def _write_value(self, kind: ResolvedType, datum: Any, left: int) -> None:
        word = kind.kind
        if word in SCALARS:
            result = self._write_enum(kind, datum) if word == "enum" else _encode_scalar(word, datum)
            if isinstance(result, str):
                self._add_problem(result)
            else:
                self.out += result
        elif left <= 0:
            self._add_problem(f"nested deeper than {MAX_DEPTH} levels")
        elif word == "struct":
            self._write_struct(self._layouts.struct_layout(kind), datum, left - 1)
        elif word == "map":
            self._write_map(kind, datum, left - 1)
        else:
            self._write_items(kind, datum, left - 1)

    # --- structs ----------------------------------------------------------------------------------------------------

    def _write_struct(self, layout: StructLayout, datum: Any, left: int) -> None:
        if not isinstance(datum, Mapping):
            self._add_problem(f"{_describe_datum(datum)} is not a dict for the {layout.kind} {layout.name}")
            return
        for name in datum:
            if name not in layout.by_name:
                self._add_problem(f"{layout.name} has no field {_describe_datum(name)}")
        if layout.kind == "union":
            members = sum(datum.get(slot.name) is not None for slot in layout.slots)
            if members != 1:
                self._add_problem(f"the union {layout.name} has {members} members set instead of one")
        for slot in layout.slots:
            self._write_field(layout, slot, datum.get(slot.name), left)
        self.out.append(0)

    def _write_field(self, layout: StructLayout, slot: FieldLayout, value: Any, left: int) -> None:
        """Write a field that is set. For an unset field that is not optional, write its default."""
        if value is None and slot.has_default and not slot.optional:
            value = slot.make_default()
        if value is not None and not slot.fits:
            self._add_problem(f"the id {slot.id} of the field {slot.name!r} of {layout.name} does not fit into 16 bits")
        elif value is not None:
            self.out += _FIELD.pack(slot.wire, slot.id)
            self._write_at(f".{slot.name}", slot.kind, value, left)
        elif slot.required:
            self._add_problem(f"the required field {slot.name!r} of {layout.name} is not set")

    # --- containers -------------------------------------------------------------------------------------------------

    def _write_items(self, kind: ResolvedType, datum: Any, left: int) -> None:
        """Write a list or set. The items of a Python set are written in the order of their bytes."""
        unordered = isinstance(datum, set | frozenset) and kind.kind == "set"
        if not (unordered or isinstance(datum, list | tuple)):
            self._add_problem(f"{_describe_datum(datum)} is not of type {kind.kind}")
            return
        inner = kind.inner_type(0)
        self.out.append(WIRE[inner.kind])
        self.out += _I32.pack(len(datum))
        start, pieces = len(self.out), []
        for at, item in enumerate(datum):
            before = len(self.out)
            self._write_at(f"[{at}]", inner, item, left)
            if kind.kind == "set":
                pieces.append(bytes(self.out[before:]))
        if len(set(pieces)) < len(pieces) and not self.problems:
            self._add_problem("an item of the set occurs twice")
        if unordered:
            self.out[start:] = b"".join(sorted(pieces))

    def _write_map(self, kind: ResolvedType, datum: Any, left: int) -> None:
        pairs: Iterable[Any]
        if isinstance(datum, Mapping):
            pairs = datum.items()
        elif isinstance(datum, list | tuple) and all(
            isinstance(each, list | tuple) and len(each) == 2 for each in datum
        ):
            pairs = datum
        else:
            self._add_problem(f"{_describe_datum(datum)} is neither a mapping nor a list of pairs")
            return
        key, value = kind.inner_type(0), kind.inner_type(1)
        self.out += bytes((WIRE[key.kind], WIRE[value.kind]))
        self.out += _I32.pack(len(datum))
        encoded_keys: set[bytes] = set()
        for name, item in pairs:
            before = len(self.out)
            self._write_at("{}.key", key, name, left)
            encoded_keys.add(bytes(self.out[before:]))
            self._write_at(f"{{{_describe_datum(name)}}}", value, item, left)
        if len(encoded_keys) < len(datum) and not self.problems:
            self._add_problem("a key of the map occurs twice")

    def _write_enum(self, kind: ResolvedType, datum: Any) -> bytes | str:
        """Return the bytes of an enum value given by name or number, or why it does not fit.

        Numbers without a name are allowed, because data of newer schemas may have them.
        """
        number = self._layouts.enum_layout(kind).numbers.get(datum) if isinstance(datum, str) else datum
        if isinstance(number, bool) or not isinstance(number, int) or number not in I32:
            return f"{_describe_datum(datum)} is not a value of {_describe_kind(kind)}"
        return _I32.pack(number)


def _describe_kind(kind: ResolvedType) -> str:
    return f"the enum {kind.node.name}" if isinstance(kind.node, ThriftEnum) else kind.kind


# --- scalars --------------------------------------------------------------------------------------------------------


def _encode_scalar(word: str, datum: Any) -> bytes | str:
    """Return the bytes of a scalar that is not an enum, or why it does not fit."""
    if word in RANGES:
        if isinstance(datum, bool) or not isinstance(datum, int):
            return f"{_describe_datum(datum)} is not of type {word}"
        if datum not in RANGES[word]:
            return f"{_describe_datum(datum)} is out of the range of {word}"
        return datum.to_bytes(_SIZES[word], "big", signed=True)
    match word:
        case "bool":
            return bytes((datum,)) if isinstance(datum, bool) else f"{_describe_datum(datum)} is not of type bool"
        case "double":
            return _encode_double(datum)
        case "uuid":
            return _encode_uuid(datum)
        case "binary":
            content = bytes(datum) if isinstance(datum, bytes | bytearray | memoryview) else None
        case _:
            content = datum.encode("utf-8", "surrogatepass") if isinstance(datum, str) else None
            if content is not None and not _is_utf8(content):
                return f"{_describe_datum(datum)} has characters that UTF-8 cannot hold"
    if content is None:
        return f"{_describe_datum(datum)} is not of type {word}"
    return _I32.pack(len(content)) + content if len(content) in I32 else f"the {word} is longer than 2 GiB"


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _encode_double(datum: Any) -> bytes | str:
    if isinstance(datum, bool) or not isinstance(datum, int | float):
        return f"{_describe_datum(datum)} is not of type double"
    if isinstance(datum, int) and (abs(datum) > 2**1000 or int(float(datum)) != datum):
        return f"{_describe_datum(datum)} has more digits than a double"
    return _DOUBLE.pack(datum)


def _encode_uuid(datum: Any) -> bytes | str:
    uuid = parse_uuid(datum) if isinstance(datum, str) else datum
    return uuid.bytes if isinstance(uuid, UUID) else f"{_describe_datum(datum)} is not of type uuid"


def _describe_datum(datum: Any) -> str:
    """Return a datum as short text. Large data is not printed in full first."""
    if isinstance(datum, str | bytes):
        return repr(datum[:40])
    if datum is None or isinstance(datum, bool | float) or (isinstance(datum, int) and abs(datum) < 2**128):
        return repr(datum)
    return f"a {type(datum).__name__}"
