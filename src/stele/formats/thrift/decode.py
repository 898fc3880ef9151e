"""The binary protocol into Python values.

Everything is checked against what is left of the data before it is believed, so hostile bytes cost no more time and
memory than their length allows; a value of another type than the schema's is an error, not something to skip over.
"""

from __future__ import annotations

import uuid
from struct import Struct as Packed
from typing import Any, Final

from stele.errors import DecodeError
from stele.formats.thrift.layout import MAX_DEPTH, NAMES, WIRE, Layout, Layouts
from stele.formats.thrift.schema import Resolved
from stele.formats.thrift.values import SCALARS, pairing

_I16: Final = Packed("!h")
_I32: Final = Packed("!i")
_NUMBERS: Final = {"i8": Packed("!b"), "i16": _I16, "i32": _I32, "i64": Packed("!q"), "double": Packed("!d")}
_SMALLEST: Final = {2: 1, 3: 1, 4: 8, 6: 2, 8: 4, 10: 8, 11: 4, 12: 1, 13: 6, 14: 5, 15: 5, 16: 16}
"""Bytes that the smallest value of each type takes."""
_FIXED: Final = frozenset({2, 3, 4, 6, 8, 10, 16})
"""Types whose values all have the size of the smallest."""

MAX_DEFAULTS: Final = 200_000
"""Values of defaults in one datum: an absent field costs no byte, but its default takes memory."""


class _Broken(Exception):
    """The data contradict the schema; path leads from the value out to the root."""

    def __init__(self, why: str, at: int) -> None:
        super().__init__(why)
        self.why = why
        self.at = at
        self.path: list[str] = []

    def public(self) -> DecodeError:
        place = "".join(reversed(self.path)).removeprefix(".")
        return DecodeError(f"{place}: {self.why}" if place else self.why, offset=self.at)


def decode(data: bytes, kind: Resolved, layouts: Layouts) -> Any:
    """One struct that is all of the data. Raises `DecodeError` with the path and the offset."""
    reader = _Reader(data, layouts)
    try:
        found = reader.struct(layouts.of(kind), MAX_DEPTH)
    except _Broken as broken:
        raise broken.public() from None
    if reader.at != len(data):
        raise DecodeError(f"{len(data) - reader.at} bytes are left over after the datum", offset=reader.at)
    return found


class _Reader:
    def __init__(self, data: bytes, layouts: Layouts) -> None:
        self.data = data
        self.at = 0
        self.layouts = layouts
        self.defaults = 0

    # --- pieces -----------------------------------------------------------------------------------------------------

    def take(self, count: int) -> int:
        """Where the next count bytes start; they are passed over."""
        start = self.at
        if count > len(self.data) - start:
            raise _Broken("the data end in the middle of a value", len(self.data))
        self.at = start + count
        return start

    def number(self, packed: Packed) -> Any:
        return packed.unpack_from(self.data, self.take(packed.size))[0]

    def type_number(self) -> int:
        return self.data[self.take(1)]

    def size(self, smallest: int) -> int:
        """A count of values that take at least `smallest` bytes each; refused when they cannot all be there."""
        start = self.at
        count: int = self.number(_I32)
        if count < 0 or count * smallest > len(self.data) - self.at:
            raise _Broken(f"a size of {count} does not fit into the data", start)
        return count

    def deeper(self, left: int) -> int:
        """The levels left inside a struct or container."""
        if left <= 0:
            raise _Broken(f"the data are nested deeper than {MAX_DEPTH} levels", self.at)
        return left - 1

    # --- values -----------------------------------------------------------------------------------------------------

    def struct(self, layout: Layout, left: int) -> dict[str, Any]:
        """The fields that are there, as they come, then defaults for those that are not."""
        left = self.deeper(left)
        start = self.at
        found: dict[str, Any] = {}
        unknown = 0
        while wire := self.type_number():
            slot = layout.by_id.get(self.number(_I16))
            if slot is None:
                unknown += 1
                self.skip(wire, left)
                continue
            try:
                if wire != slot.wire:
                    raise _Broken(f"there is a {_word(wire)} where the schema has {slot.kind.kind}", self.at - 3)
                if slot.name in found:
                    raise _Broken("the field is there twice", self.at - 3)
                found[slot.name] = self.value(slot.kind, left)
            except _Broken as broken:
                broken.path.append(f".{slot.name}")
                raise
        if layout.kind == "union":
            if len(found) > 1 or not (found or unknown):
                raise _Broken(f"the union {layout.name} has {len(found)} members set instead of one", start)
        else:
            self.complete(layout, found, start)
        return found

    def complete(self, layout: Layout, datum: dict[str, Any], start: int) -> None:
        """Add defaults of fields that are not there; a required field must be there or have one."""
        for slot in layout.demanding:
            if slot.name in datum:
                continue
            if not slot.has_default:
                raise _Broken(f"the required field {slot.name!r} of {layout.name} is missing", start)
            self.defaults += slot.default_parts
            if self.defaults > MAX_DEFAULTS:
                raise _Broken(f"the defaults of missing fields have more than {MAX_DEFAULTS} values", start)
            datum[slot.name] = slot.default()

    def value(self, kind: Resolved, left: int) -> Any:
        word = kind.kind
        if word in _NUMBERS:
            return self.number(_NUMBERS[word])
        match word:
            case "string" | "binary":
                return self.text(word)
            case "bool":
                return self.bool()
            case "enum":
                return self.enum(kind)
            case "struct":
                return self.struct(self.layouts.of(kind), left)
            case "map":
                return self.map(kind, left)
            case "uuid":
                start = self.take(16)
                return str(uuid.UUID(bytes=self.data[start : start + 16]))
        return self.items(kind, left)

    def bool(self) -> bool:
        start = self.take(1)
        if self.data[start] > 1:
            raise _Broken(f"a bool is 0 or 1, not {self.data[start]}", start)
        return self.data[start] == 1

    def text(self, word: str) -> str | bytes:
        count = self.size(1)
        start = self.take(count)
        found = self.data[start : self.at]
        if word == "binary":
            return found
        try:
            return found.decode("utf-8")
        except UnicodeDecodeError as error:
            raise _Broken("the string is not UTF-8", start + error.start) from None

    def enum(self, kind: Resolved) -> str | int:
        """The name of the value; the number where the schema has no name for it."""
        number: int = self.number(_I32)
        return self.layouts.enum(kind).names.get(number, number)

    def items(self, kind: Resolved, left: int) -> list[Any]:
        """A list or set, as a list."""
        left = self.deeper(left)
        inner = kind.inner(0)
        wire = self.type_number()
        count = self.size(_SMALLEST.get(wire, 1))
        self.expect(count, wire, inner)
        try:
            return [self.value(inner, left) for _ in range(count)]
        except _Broken as broken:
            broken.path.append("[]")
            raise

    def map(self, kind: Resolved, left: int) -> Any:
        left = self.deeper(left)
        start = self.at
        key, value = kind.inner(0), kind.inner(1)
        wires = self.type_number(), self.type_number()
        count = self.size(sum(_SMALLEST.get(wire, 1) for wire in wires))
        self.expect(count, wires[0], key)
        self.expect(count, wires[1], value)
        try:
            pairs = [(self.value(key, left), self.value(value, left)) for _ in range(count)]
        except _Broken as broken:
            broken.path.append("{}")
            raise
        made = pairing(kind, pairs)
        if len(made) < count and key.kind in SCALARS:
            raise _Broken("a key of the map is there twice", start)
        return made

    def expect(self, count: int, wire: int, kind: Resolved) -> None:
        """Values of a container must be of the schema's type; an empty one may say anything."""
        if count and wire != WIRE[kind.kind]:
            raise _Broken(f"there are values of type {_word(wire)} where the schema has {kind.kind}", self.at)

    def skip(self, wire: int, left: int) -> None:
        """Pass over a value of a field the schema does not know."""
        if wire in _FIXED:
            self.take(_SMALLEST[wire])
        elif wire == WIRE["string"]:
            self.take(self.size(1))
        elif wire == WIRE["struct"]:
            left = self.deeper(left)
            while inner := self.type_number():
                self.take(2)
                self.skip(inner, left)
        elif wire in {WIRE["map"], WIRE["set"], WIRE["list"]}:
            left = self.deeper(left)
            wires = [self.type_number() for _ in range(2 if wire == WIRE["map"] else 1)]
            count = self.size(sum(_SMALLEST.get(each, 1) for each in wires))
            if all(each in _FIXED for each in wires):
                self.take(count * sum(_SMALLEST[each] for each in wires))
                return
            for _ in range(count):
                for each in wires:
                    self.skip(each, left)
        else:
            raise _Broken(f"there is no type {wire}", self.at)


def _word(wire: int) -> str:
    return NAMES.get(wire, f"type {wire}")
