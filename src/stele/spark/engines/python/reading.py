"""Steps become closures that take a cursor and return a Python value."""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any, TypeAlias, assert_never
from uuid import UUID

import pyarrow as pa

from stele.errors import DataError
from stele.spark.engines.arrow import Column
from stele.spark.engines.error_codes import FREE_ITEMS, MESSAGES, ErrorCode, RecordError
from stele.spark.engines.steps import (
    MAX_SKIP_DEPTH,
    REST,
    CallSkip,
    NumberCast,
    NumberEncoding,
    ReadBytes,
    ReadDecimal,
    ReadDefault,
    ReadEnum,
    ReadItems,
    ReadMember,
    ReadNull,
    ReadNumber,
    ReadRecord,
    ReadUnion,
    RefuseValue,
    RequireEmpty,
    SkipRoutine,
    Slot,
    SlotKind,
    Step,
)

INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1
EXACT = Context(prec=76)


class Cursor:
    """A place in a record, how many zero-byte items it may still hold, and in how many routines it is."""

    __slots__ = ("at", "begin", "data", "end", "free", "levels")

    def __init__(self, data: bytes, at: int) -> None:
        self.data = data
        self.begin = at
        self.at = at
        self.end = len(data)
        self.free = FREE_ITEMS + self.end - at
        self.levels = 0

    def error(self, code: ErrorCode, at: int) -> RecordError:
        """Return what is wrong with the value that begins at a byte."""
        return RecordError(code, offset=at - self.begin)

    def varint(self, begin: int) -> int:
        """Return a zig-zag integer of at most 64 bits; `begin` is what an error names."""
        bits = shift = 0
        data, at, end = self.data, self.at, self.end
        while at < end:
            byte = data[at]
            at += 1
            if shift == 63 and byte > 1:
                raise self.error(ErrorCode.BAD_VARINT, begin)
            bits |= (byte & 127) << shift
            if byte < 128:
                self.at = at
                return (bits >> 1) ^ -(bits & 1)
            shift += 7
        raise self.error(ErrorCode.TRUNCATED, begin)

    def take(self, size: int | None) -> bytes:
        """`size` bytes, as many as the length in front says, or the rest."""
        begin = self.at
        if size == REST:
            size = self.end - self.at
        if size is None:
            size = self.varint(begin)
            if size < 0 or size > self.end - self.at:
                raise self.error(ErrorCode.BAD_LENGTH, begin)
        elif size > self.end - self.at:
            raise self.error(ErrorCode.TRUNCATED, begin)
        at = self.at
        self.at = at + size
        return self.data[at : self.at]

    def block(self, begin: int, floor: int) -> int:
        """Return the number of items of the next block."""
        count = self.varint(begin)
        if count < 0:
            size = self.varint(begin)
            if size < 0 or size > self.end - self.at or count < -LONG_MAX:
                raise self.error(ErrorCode.BAD_BLOCK, begin)
            count = -count
        if floor:
            if count > (self.end - self.at) // floor:
                raise self.error(ErrorCode.BAD_BLOCK, begin)
        elif count > self.free:
            raise self.error(ErrorCode.TOO_MANY_ITEMS, begin)
        else:
            self.free -= count
        return count


Read: TypeAlias = Callable[[Cursor], Any]


def reader(step: Step) -> Read:
    """Return the closure of a step."""
    match step:
        case ReadNumber():
            return _number(step)
        case ReadBytes():
            return _text(step)
        case ReadDecimal():
            return _unscaled(step)
        case ReadEnum():
            return _symbol(step)
        case ReadNull():
            return lambda cursor: None
        case ReadMember():
            return _member(step)
        case ReadRecord():
            return _group(step)
        case ReadDefault():
            value = _default(step)
            return lambda cursor: value
        case ReadItems():
            return _repeat(step)
        case RefuseValue():
            return _unreadable(step)
        case ReadUnion():
            return _branch(step)
        case RequireEmpty():
            return reader(step.step)
        case CallSkip():
            return _past(step.routine)
    assert_never(step)


def _default(step: ReadDefault) -> Any:
    try:
        return reader(step.step)(Cursor(step.data, 0))
    except RecordError as error:
        raise DataError(f"a default cannot be used: {MESSAGES[error.code]}") from error


def _unreadable(step: RefuseValue) -> Read:
    def read(cursor: Cursor) -> Any:
        raise cursor.error(step.code, cursor.at)

    return read


def _past(routine: SkipRoutine) -> Read:
    def read(cursor: Cursor) -> None:
        if cursor.levels == MAX_SKIP_DEPTH:
            raise cursor.error(ErrorCode.ENDLESS, cursor.at)
        if routine.made is None:
            routine.made = reader(routine.step)
        cursor.levels += 1
        try:
            routine.made(cursor)
        except RecursionError:  # many types between two levels
            raise cursor.error(ErrorCode.ENDLESS, cursor.at) from None
        cursor.levels -= 1

    return read


def _number(step: ReadNumber) -> Read:
    match step.wire:
        case NumberEncoding.FLOAT:
            return _packed("<f")
        case NumberEncoding.DOUBLE:
            return _packed("<d")
        case NumberEncoding.BOOLEAN:
            return _boolean
        case _:
            return _integer(step)


def _packed(layout: str) -> Read:
    unpack = struct.Struct(layout)

    def read(cursor: Cursor) -> float:
        (value,) = unpack.unpack(cursor.take(unpack.size))
        return float(value)

    return read


def _boolean(cursor: Cursor) -> bool:
    begin = cursor.at
    (byte,) = cursor.take(1)
    if byte > 1:
        raise cursor.error(ErrorCode.BAD_BOOLEAN, begin)
    return byte == 1


def _integer(step: ReadNumber) -> Read:
    narrow = step.wire is NumberEncoding.INT
    multiply, divide, cast, wanted = step.multiply, step.divide, step.cast, step.slot is not None
    largest, limit = LONG_MAX // multiply, step.limit

    def read(cursor: Cursor) -> int | float:
        begin = cursor.at
        value = cursor.varint(begin)
        if narrow and not -INT_MAX - 1 <= value <= INT_MAX:
            raise cursor.error(ErrorCode.INT_RANGE, begin)
        if not wanted:
            return 0
        if multiply > 1 and not -largest <= value <= largest:
            raise cursor.error(ErrorCode.OUT_OF_RANGE, begin)
        value = value * multiply // divide
        if limit and not 0 <= value < limit:
            raise cursor.error(ErrorCode.OUT_OF_RANGE, begin)
        return value if cast is NumberCast.KEEP else float(value)

    return read


def _text(step: ReadBytes) -> Read:
    size, utf8 = step.size, step.utf8
    decode = utf8 and step.slot is not None and pa.types.is_string(step.slot.type)

    if step.slot is not None and step.slot.is_uuid:
        return lambda cursor: str(UUID(bytes=cursor.take(size)))

    def read(cursor: Cursor) -> bytes | str:
        begin = cursor.at
        data = cursor.take(size)
        if not utf8:
            return data
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise cursor.error(ErrorCode.BAD_UTF8, begin) from None
        return text if decode else data

    return read


def _unscaled(step: ReadDecimal) -> Read:
    size, limit = step.size, 10**step.precision
    exponent, as_text = -step.scale, step.slot.digits is not None

    def read(cursor: Cursor) -> Decimal | str:
        begin = cursor.at
        data = cursor.take(size)
        if not data:
            raise cursor.error(ErrorCode.EMPTY_DECIMAL, begin)
        value = int.from_bytes(data, signed=True)
        if not -limit < value < limit:
            raise cursor.error(ErrorCode.DECIMAL_RANGE, begin)
        number = Decimal(value).scaleb(exponent, EXACT)
        return format(number, "f") if as_text else number

    return read


def _symbol(step: ReadEnum) -> Read:
    mapping = step.mapping
    symbols = step.slot.symbols if step.slot else None

    def read(cursor: Cursor) -> str | None:
        begin = cursor.at
        index = cursor.varint(begin)
        if not 0 <= index < len(mapping):
            raise cursor.error(ErrorCode.BAD_SYMBOL, begin)
        if symbols is None:
            return None
        if mapping[index] < 0:
            raise cursor.error(ErrorCode.UNREADABLE_SYMBOL, begin)
        return symbols[mapping[index]]

    return read


def _member(step: ReadMember) -> Read:
    read = reader(step.step)
    name = step.step.slot.name if step.step.slot else ""
    return lambda cursor: {name: read(cursor)}


def _group(step: ReadRecord) -> Read:
    wanted = step.slot is not None
    parts = [(each.slot.name if wanted and each.slot else None, reader(each)) for each in step.steps]

    def read(cursor: Cursor) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, part in parts:
            value = part(cursor)
            if name is not None:
                found[name] = value
        return found

    return read


def _repeat(step: ReadItems) -> Read:
    key = reader(step.key) if step.key else None
    item, floor, wanted = reader(step.item), step.least_entry_size, step.slot is not None

    def read(cursor: Cursor) -> list[Any]:
        found: list[Any] = []
        while count := cursor.block(cursor.at, floor):
            for _ in range(count):
                value = (key(cursor), item(cursor)) if key else item(cursor)
                if wanted:
                    found.append(value)
        return found

    return read


def _branch(step: ReadUnion) -> Read:
    branches = [reader(each) for each in step.steps]

    def read(cursor: Cursor) -> Any:
        begin = cursor.at
        index = cursor.varint(begin)
        if not 0 <= index < len(branches):
            raise cursor.error(ErrorCode.BAD_BRANCH, begin)
        return branches[index](cursor)

    return read


def to_arrow(slot: Slot, values: list[Any]) -> Column:
    """Python values of a slot as an array; structs go field by field, faster than pyarrow's walk over dicts."""
    if slot.kind is not SlotKind.STRUCT or not slot.children:
        return pa.array(values, slot.type)
    children = [
        to_arrow(child, [None if value is None else value.get(child.name) for value in values])
        for child in slot.children
    ]
    mask = pa.array([value is None for value in values], pa.bool_())
    return pa.StructArray.from_arrays(children, fields=list(slot.type), mask=mask)
