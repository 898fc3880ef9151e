"""The binary protocol into Python values.

Everything is checked against what is left of the data before it is believed, so hostile bytes cost no more time and
memory than their length allows; a value of another type than the schema's is an error, not something to skip over.
"""

from __future__ import annotations

import uuid
from struct import Struct as Packed
from typing import Any, Final

from stele.errors import DecodeError
from stele.formats.thrift.constants import SCALARS, make_map
from stele.formats.thrift.layout import MAX_DEPTH, NAMES, WIRE, LayoutCache, StructLayout
from stele.formats.thrift.schema import ResolvedType

_I16: Final = Packed("!h")
_I32: Final = Packed("!i")
_NUMBERS: Final = {"i8": Packed("!b"), "i16": _I16, "i32": _I32, "i64": Packed("!q"), "double": Packed("!d")}
_SMALLEST: Final = {2: 1, 3: 1, 4: 8, 6: 2, 8: 4, 10: 8, 11: 4, 12: 1, 13: 6, 14: 5, 15: 5, 16: 16}
"""Bytes that the smallest value of each type takes."""
_FIXED: Final = frozenset({2, 3, 4, 6, 8, 10, 16})
"""Types whose values all have the size of the smallest."""

MAX_DEFAULTS: Final = 200_000
"""Values of defaults in one datum: an absent field costs no byte, but its default takes memory."""


class _MalformedData(Exception):
    """The data contradict the schema; path leads from the value out to the root."""

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
        found = reader.read_struct(layouts.struct_layout(kind), MAX_DEPTH)
    except _MalformedData as broken:
        raise broken.to_decode_error() from None
    if reader.at != len(data):
        raise DecodeError(f"{len(data) - reader.at} bytes are left over after the datum", offset=reader.at)
    return found


class _DataReader:
    def __init__(self, data: bytes, layouts: LayoutCache) -> None:
        self.data = data
        self.at = 0
        self.layouts = layouts
        self.defaults = 0

    # --- pieces -----------------------------------------------------------------------------------------------------

    def take_bytes(self, count: int) -> int:
        """Pass over the next count bytes and return where they start."""
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
        """Return the levels left inside a struct or container."""
        if left <= 0:
            raise _MalformedData(f"the data are nested deeper than {MAX_DEPTH} levels", self.at)
        return left - 1

    # --- values -----------------------------------------------------------------------------------------------------

    def read_struct(self, layout: StructLayout, left: int) -> dict[str, Any]:
        """Return the fields that are there, as they come, then defaults for those that are not."""
        left = self.descend(left)
        start = self.at
        found: dict[str, Any] = {}
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
                if slot.name in found:
                    raise _MalformedData("the field is there twice", self.at - 3)
                found[slot.name] = self.read_value(slot.kind, left)
            except _MalformedData as broken:
                broken.path.append(f".{slot.name}")
                raise
        if layout.kind == "union":
            if len(found) > 1 or not (found or unknown):
                raise _MalformedData(f"the union {layout.name} has {len(found)} members set instead of one", start)
        else:
            self.add_defaults(layout, found, start)
        return found

    def add_defaults(self, layout: StructLayout, datum: dict[str, Any], start: int) -> None:
        """Add defaults of fields that are not there; a required field must be there or have one."""
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
        found = self.data[start : self.at]
        if word == "binary":
            return found
        try:
            return found.decode("utf-8")
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
        made = make_map(kind, pairs)
        if len(made) < count and key.kind in SCALARS:
            raise _MalformedData("a key of the map is there twice", start)
        return made

    def require_wire_type(self, count: int, wire: int, kind: ResolvedType) -> None:
        """Values of a container must be of the schema's type; an empty one may say anything."""
        if count and wire != WIRE[kind.kind]:
            raise _MalformedData(
                f"there are values of type {_wire_type_name(wire)} where the schema has {kind.kind}", self.at
            )

    def skip_value(self, wire: int, left: int) -> None:
        """Pass over a value of a field the schema does not know."""
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
            raise _MalformedData(f"there is no type {wire}", self.at)


def _wire_type_name(wire: int) -> str:
    return NAMES.get(wire, f"type {wire}")
