"""Python values into the binary protocol, and why they do not fit.

What does not fit is refused, never bent: no integer beyond its type, no field the schema does not have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from struct import Struct as Packed
from typing import Any, Final
from uuid import UUID

from stele.formats.thrift.constants import RANGES, SCALARS, parse_uuid
from stele.formats.thrift.layout import MAX_DEPTH, WIRE, FieldLayout, LayoutCache, StructLayout
from stele.formats.thrift.lexer import I32
from stele.formats.thrift.schema import ResolvedType
from stele.formats.thrift.syntax import ThriftEnum

MAX_PROBLEMS: Final = 100
"""Problems listed for one datum."""

_I32: Final = Packed("!i")
_DOUBLE: Final = Packed("!d")
_FIELD: Final = Packed("!bh")
_SIZES: Final = {"i8": 1, "i16": 2, "i32": 4, "i64": 8}


class _TooManyProblems(Exception):
    """So much is wrong that nobody reads on."""


class ThriftWriter:
    """Writes one datum to `out`; `problems` says what does not fit, a sentence with its path each."""

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
            found = self._write_enum(kind, datum) if word == "enum" else _encode_scalar(word, datum)
            if isinstance(found, str):
                self._add_problem(found)
            else:
                self.out += found
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
            self._add_problem(f"{_describe_datum(datum)} is no mapping for {layout.kind} {layout.name}")
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
        """A field that is set, or whose default is written in its place."""
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
        """A list or a set; the items of a Python set are written in the order of their bytes."""
        unordered = isinstance(datum, set | frozenset) and kind.kind == "set"
        if not (unordered or isinstance(datum, list | tuple)):
            self._add_problem(f"{_describe_datum(datum)} is no {kind.kind}")
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
            self._add_problem("an item of the set is there twice")
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
        seen: set[bytes] = set()
        for name, item in pairs:
            before = len(self.out)
            self._write_at("{}.key", key, name, left)
            seen.add(bytes(self.out[before:]))
            self._write_at(f"{{{_describe_datum(name)}}}", value, item, left)
        if len(seen) < len(datum) and not self.problems:
            self._add_problem("a key of the map is there twice")

    def _write_enum(self, kind: ResolvedType, datum: Any) -> bytes | str:
        """Return an enum value by its name or its number; numbers need no name, as data of newer schemas has such."""
        number = self._layouts.enum_layout(kind).numbers.get(datum) if isinstance(datum, str) else datum
        if isinstance(number, bool) or not isinstance(number, int) or number not in I32:
            return f"{_describe_datum(datum)} is no value of {_describe_kind(kind)}"
        return _I32.pack(number)


def _describe_kind(kind: ResolvedType) -> str:
    return f"the enum {kind.node.name}" if isinstance(kind.node, ThriftEnum) else kind.kind


# --- scalars --------------------------------------------------------------------------------------------------------


def _encode_scalar(word: str, datum: Any) -> bytes | str:
    """Return the bytes of a scalar that is no enum, or why it does not fit."""
    if word in RANGES:
        if isinstance(datum, bool) or not isinstance(datum, int):
            return f"{_describe_datum(datum)} is no {word}"
        if datum not in RANGES[word]:
            return f"{_describe_datum(datum)} is out of the range of {word}"
        return datum.to_bytes(_SIZES[word], "big", signed=True)
    match word:
        case "bool":
            return bytes((datum,)) if isinstance(datum, bool) else f"{_describe_datum(datum)} is no bool"
        case "double":
            return _encode_double(datum)
        case "uuid":
            return _encode_uuid(datum)
        case "binary":
            found = bytes(datum) if isinstance(datum, bytes | bytearray | memoryview) else None
        case _:
            found = datum.encode("utf-8", "surrogatepass") if isinstance(datum, str) else None
            if found is not None and not _is_utf8(found):
                return f"{_describe_datum(datum)} has characters that UTF-8 cannot hold"
    if found is None:
        return f"{_describe_datum(datum)} is no {word}"
    return _I32.pack(len(found)) + found if len(found) in I32 else f"the {word} is longer than 2 GiB"


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _encode_double(datum: Any) -> bytes | str:
    if isinstance(datum, bool) or not isinstance(datum, int | float):
        return f"{_describe_datum(datum)} is no double"
    if isinstance(datum, int) and (abs(datum) > 2**1000 or int(float(datum)) != datum):
        return f"{_describe_datum(datum)} has more digits than a double"
    return _DOUBLE.pack(datum)


def _encode_uuid(datum: Any) -> bytes | str:
    found = parse_uuid(datum) if isinstance(datum, str) else datum
    return found.bytes if isinstance(found, UUID) else f"{_describe_datum(datum)} is no uuid"


def _describe_datum(datum: Any) -> str:
    """Return a datum in a few characters; large ones are not printed to be cut."""
    if isinstance(datum, str | bytes):
        return repr(datum[:40])
    if datum is None or isinstance(datum, bool | float) or (isinstance(datum, int) and abs(datum) < 2**128):
        return repr(datum)
    return f"a {type(datum).__name__}"
