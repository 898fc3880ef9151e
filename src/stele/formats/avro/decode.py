"""Decodes bytes into Python values, resolved to a reader's schema (docs/protocols/avro.md#binary-encoding).

A schema becomes a tree of small functions `(data, position) -> (value, position)`, built once per codec. They accept
only what the specification allows: no over-long integers, no index outside an enum or union, no length beyond the data.
A damaged record is therefore an error and not another value.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any, Final

from stele.errors import DecodeError
from stele.formats.avro.model import (
    AvroArray,
    AvroEnum,
    AvroField,
    AvroFixed,
    AvroMap,
    AvroPrimitive,
    AvroRecord,
    AvroType,
    AvroUnion,
    LogicalType,
    describe_type,
)
from stele.formats.avro.parse import make_default
from stele.formats.avro.resolution import PROMOTIONS, find_best_branch, is_empty, map_fields
from stele.formats.avro.scalars import make_converter

Read = Callable[[bytes, int], tuple[Any, int]]
"""Reads one value at a position; raises `MalformedData`, or IndexError at the end of the data."""

MAX_EMPTY_ITEMS: Final = 100_000
"""Maximum number of items without bytes (null, an empty record) in one datum.

The length of the data does not limit them.
"""


class MalformedData(Exception):
    """The data contradict the schema at offset."""

    def __init__(self, why: str, offset: int) -> None:
        super().__init__(why)
        self.why = why
        self.offset = offset

    def to_decode_error(self) -> DecodeError:
        """Return this error as the `DecodeError` that callers receive."""
        return DecodeError(self.why, offset=self.offset)


class CountedBytes(bytes):
    """The bytes of one datum, with the number of empty items that may still follow (see `MAX_EMPTY_ITEMS`)."""

    empties = MAX_EMPTY_ITEMS


# --- primitives -----------------------------------------------------------------------------------------------------


def read_long(data: bytes, at: int) -> tuple[int, int]:
    """Read a zig-zag variable-length integer of 64 bits and return it with the position behind it."""
    byte = data[at]
    if byte < 128:
        return (byte >> 1) ^ -(byte & 1), at + 1
    value, shift, start = byte & 127, 7, at
    at += 1
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
        if shift > 63:
            raise MalformedData("an integer is longer than 10 bytes", start)
    if value >> 64:
        raise MalformedData("an integer does not fit into 64 bits", start)
    return (value >> 1) ^ -(value & 1), at


def _read_int(data: bytes, at: int) -> tuple[int, int]:
    value, end = read_long(data, at)
    if not -(2**31) <= value < 2**31:
        raise MalformedData("an int does not fit into 32 bits", at)
    return value, end


def _read_null(data: bytes, at: int) -> tuple[None, int]:
    return None, at


def _read_boolean(data: bytes, at: int) -> tuple[bool, int]:
    byte = data[at]
    if byte > 1:
        raise MalformedData("a boolean is neither 0 nor 1", at)
    return byte == 1, at + 1


def _read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, start = read_long(data, at)
    end = start + size
    if size < 0 or end > len(data):
        raise MalformedData(f"a length of {size} is negative or beyond the end of the data", at)
    return bytes(data[start:end]), end


def _read_string(data: bytes, at: int) -> tuple[str, int]:
    size, start = read_long(data, at)
    end = start + size
    if size < 0 or end > len(data):
        raise MalformedData(f"a length of {size} is negative or beyond the end of the data", at)
    try:
        return str(data[start:end], "utf-8"), end
    except UnicodeDecodeError as error:
        raise MalformedData("a string is not UTF-8", start + error.start) from None


def _fixed_number_reader(code: str) -> Read:
    layout = Struct(code)
    unpack, size = layout.unpack_from, layout.size

    def read(data: bytes, at: int) -> tuple[float, int]:
        end = at + size
        if end > len(data):
            raise IndexError
        return unpack(data, at)[0], end

    return read


_PRIMITIVES: Final[dict[str, Read]] = {
    "null": _read_null,
    "boolean": _read_boolean,
    "int": _read_int,
    "long": read_long,
    "float": _fixed_number_reader("<f"),
    "double": _fixed_number_reader("<d"),
    "bytes": _read_bytes,
    "string": _read_string,
}


def _convert_after(read: Read, convert: Callable[[Any], Any]) -> Read:
    """Return a reader that converts what read returns. A value that cannot be converted raises `MalformedData`."""

    def convert_value(data: bytes, at: int) -> tuple[Any, int]:
        raw, end = read(data, at)
        try:
            return convert(raw), end
        except (ValueError, OverflowError) as error:
            raise MalformedData(str(error), at) from None

    return convert_value


# --- building -------------------------------------------------------------------------------------------------------


class ReaderBuilder:
    """Builds the functions for pairs of types, each pair once, so that recursive types end."""

    def __init__(self) -> None:
        self.built: dict[tuple[int, int], Read] = {}
        self.counts_empties = False
        """Whether the functions require `CountedBytes` in place of bytes."""

    def build_reader(self, writer: AvroType, reader: AvroType) -> Read:
        """Return a function that reads data of writer as values of reader.

        Data that cannot be resolved raise an error only when they are read.
        """
        if isinstance(writer, AvroPrimitive) and isinstance(reader, AvroPrimitive):
            return self._build_scalar(writer, reader)
        key = (id(writer), id(reader))
        known = self.built.get(key)
        if known is not None:
            return known

        def later(data: bytes, at: int) -> tuple[Any, int]:
            return self.built[key](data, at)

        self.built[key] = later  # for the pair met again inside itself
        read = self.built[key] = self._build_reader(writer, reader)
        return read

    def _build_reader(self, writer: AvroType, reader: AvroType) -> Read:
        if isinstance(writer, AvroUnion):
            return self._build_union([self.build_reader(branch, reader) for branch in writer.branches])
        if isinstance(reader, AvroUnion):
            branch = find_best_branch(writer, reader)
            return _mismatch_reader(writer, reader) if branch is None else self.build_reader(writer, branch)
        match writer, reader:
            case AvroRecord(), AvroRecord():
                return self._build_record(writer, reader)
            case AvroArray(), AvroArray():
                return self._build_array(writer, reader)
            case AvroMap(), AvroMap():
                return self._build_map(writer, reader)
            case AvroEnum(), AvroEnum():
                return self._build_enum(writer, reader)
            case AvroFixed(), AvroFixed() if writer.size == reader.size:
                return _with_logical_type(_fixed_reader(writer.size), writer.logical, reader.logical)
        return _mismatch_reader(writer, reader)

    def _build_scalar(self, writer: AvroPrimitive, reader: AvroPrimitive) -> Read:
        read = _PRIMITIVES[writer.kind]
        if writer.kind != reader.kind:
            if writer.kind not in PROMOTIONS.get(reader.kind, ()):
                return _mismatch_reader(writer, reader)
            if reader.kind in ("float", "double"):
                read = _convert_after(read, float)
            elif reader.kind == "string":
                read = _read_string
            elif reader.kind == "bytes":
                read = _read_bytes
        return _with_logical_type(read, writer.logical, reader.logical)

    def _build_union(self, branches: list[Read]) -> Read:
        count = len(branches)

        def read(data: bytes, at: int) -> tuple[Any, int]:
            index, start = read_long(data, at)
            if not 0 <= index < count:
                raise MalformedData(f"the union has no branch {index}", at)
            return branches[index](data, start)

        return read

    def _build_record(self, writer: AvroRecord, reader: AvroRecord) -> Read:
        sources = map_fields(writer, reader)
        if isinstance(sources, str):
            return _failing_reader(sources)
        steps = [
            (target.name, self.build_reader(field.type, target.type))
            if target
            else ("", self.build_reader(field.type, field.type))
            for field in writer.fields
            for target in [sources.get(field.name)]
        ]
        if writer is reader:

            def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
                out = {}
                for name, step in steps:
                    out[name], at = step(data, at)
                return out, at

            return read
        matched_names = {target.name for target in sources.values()}
        defaults = [(field.name, _default_factory(field)) for field in reader.fields if field.name not in matched_names]
        order = [field.name for field in reader.fields]

        def resolve(data: bytes, at: int) -> tuple[dict[str, Any], int]:
            out = dict.fromkeys(order)
            for name, step in steps:
                value, at = step(data, at)
                if name:
                    out[name] = value
            for name, make in defaults:
                out[name] = make()
            return out, at

        return resolve

    def _build_array(self, writer: AvroArray, reader: AvroArray) -> Read:
        step = self.build_reader(writer.items, reader.items)
        empty = is_empty(writer.items)
        self.counts_empties |= empty

        def read(data: bytes, at: int) -> tuple[list[Any], int]:
            out: list[Any] = []
            while True:
                count, at = _read_block_size(data, at, empty=empty)
                if not count:
                    return out, at
                for _ in range(count):
                    value, at = step(data, at)
                    out.append(value)

        return read

    def _build_map(self, writer: AvroMap, reader: AvroMap) -> Read:
        step = self.build_reader(writer.values, reader.values)

        def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
            out: dict[str, Any] = {}
            while True:
                count, at = _read_block_size(data, at, empty=False)
                if not count:
                    return out, at
                for _ in range(count):
                    key, at = _read_string(data, at)
                    out[key], at = step(data, at)

        return read

    def _build_enum(self, writer: AvroEnum, reader: AvroEnum) -> Read:
        known = set(reader.symbols)
        symbols = [symbol if symbol in known else reader.default for symbol in writer.symbols]

        def read(data: bytes, at: int) -> tuple[str, int]:
            index, end = read_long(data, at)
            if not 0 <= index < len(symbols):
                raise MalformedData(f"the enum {writer.name} has no symbol {index}", at)
            symbol = symbols[index]
            if symbol is None:
                raise MalformedData(f"the reader's enum {reader.name} has no symbol {writer.symbols[index]!r}", at)
            return symbol, end

        return read


def _read_block_size(data: bytes, at: int, *, empty: bool) -> tuple[int, int]:
    """Return the number of items in the next block, 0 at the end of an array or map, and the position behind it."""
    count, end = read_long(data, at)
    if count < 0:
        count = -count
        size, end = read_long(data, end)
        if size < 0 or end + size > len(data):
            raise MalformedData(f"a block of {size} bytes is negative or goes beyond the end of the data", at)
    if not empty:
        if count > len(data) - end:
            raise MalformedData(f"a block of {count} items goes beyond the end of the data", at)
        return count, end
    assert isinstance(data, CountedBytes)
    data.empties -= count
    if data.empties < 0:
        raise MalformedData(f"more than {MAX_EMPTY_ITEMS} items without content", at)
    return count, end


def _default_factory(field: AvroField) -> Callable[[], Any]:
    """Return a function that returns the default of a field.

    Lists and dicts are new on each call, because callers can change them.
    """
    value = make_default(field.type, field.default)
    if isinstance(value, (list, dict)):
        return lambda: make_default(field.type, field.default)
    return lambda: value


def _fixed_reader(size: int) -> Read:
    def read(data: bytes, at: int) -> tuple[bytes, int]:
        end = at + size
        if end > len(data):
            raise IndexError
        return bytes(data[at:end]), end

    return read


def _with_logical_type(read: Read, writer: LogicalType | None, reader: LogicalType | None) -> Read:
    """Return a reader that converts to the reader's logical type.

    If the writer's logical type is of the same family, its unit and scale are used.
    """
    if reader is None:
        return read
    family = reader.name.rpartition("-")[0] or reader.name
    same = writer is not None and family == (writer.name.rpartition("-")[0] or writer.name)
    convert = make_converter(writer if same else reader)
    return read if convert is None else _convert_after(read, convert)


def _mismatch_reader(writer: AvroType, reader: AvroType) -> Read:
    return _failing_reader(f"{describe_type(writer)} cannot be read as {describe_type(reader)}")


def _failing_reader(why: str) -> Read:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        raise MalformedData(why, at)

    return read
