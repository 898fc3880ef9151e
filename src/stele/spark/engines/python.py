"""The engine `python`: closures over Python values, one record after the other, without a compiler.

It is used where numba has no wheel, and tests compare `vm` and `jvm` with it: see
docs/adr/0020-the-plain-engine-stays.md.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any, TypeAlias, assert_never
from uuid import UUID

import pyarrow as pa

from stele.errors import DataError, EncodeError
from stele.formats.avro.model import AvroSchema
from stele.spark.engines.arrow import ArrowType, Column
from stele.spark.engines.base import Decoded, Decoder, Encoder, ErrorColumns, FindWriter
from stele.spark.engines.error_codes import FREE_ITEMS, MESSAGES, ErrorCode, RecordError
from stele.spark.engines.inputs import ColumnInputs
from stele.spark.engines.resolve import Resolver, encode_varint
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
    writing_options,
)
from stele.wire.confluent import id_prefix

EXACT = Context(prec=76)


class Cursor:
    """A position in a record, the number of zero-byte items it can still hold, and the depth of nested routines."""

    __slots__ = ("at", "begin", "data", "end", "free", "levels")

    def __init__(self, data: bytes, at: int) -> None:
        self.data = data
        self.begin = at
        self.at = at
        self.end = len(data)
        self.free = FREE_ITEMS + self.end - at
        self.levels = 0

    def error(self, code: ErrorCode, at: int) -> RecordError:
        """Return the error of the value that begins at a byte."""
        return RecordError(code, offset=at - self.begin)

    def varint(self, begin: int) -> int:
        """Return a zig-zag integer of at most 64 bits; `begin` is the position for errors."""
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
        """Return `size` bytes, or as many as the length prefix says (None), or all remaining ones (`REST`)."""
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
            return _read_unscaled(step)
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
        if routine.read is None:
            routine.read = reader(routine.step)
        cursor.levels += 1
        try:
            routine.read(cursor)
        except RecursionError:  # too many nested types between two levels
            raise cursor.error(ErrorCode.ENDLESS, cursor.at) from None
        cursor.levels -= 1

    return read


def _number(step: ReadNumber) -> Read:
    match step.wire:
        case NumberEncoding.FLOAT:
            return _read_packed("<f")
        case NumberEncoding.DOUBLE:
            return _read_packed("<d")
        case NumberEncoding.BOOLEAN:
            return _boolean
        case _:
            return _integer(step)


def _read_packed(layout: str) -> Read:
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


def _read_unscaled(step: ReadDecimal) -> Read:
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
        record: dict[str, Any] = {}
        for name, part in parts:
            value = part(cursor)
            if name is not None:
                record[name] = value
        return record

    return read


def _repeat(step: ReadItems) -> Read:
    key = reader(step.key) if step.key else None
    item, floor, wanted = reader(step.item), step.least_entry_size, step.slot is not None

    def read(cursor: Cursor) -> list[Any]:
        values: list[Any] = []
        while count := cursor.block(cursor.at, floor):
            for _ in range(count):
                value = (key(cursor), item(cursor)) if key else item(cursor)
                if wanted:
                    values.append(value)
        return values

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
    """Return the Python values of a slot as an array. Structs are built field by field, which is faster than dicts."""
    if slot.kind is not SlotKind.STRUCT or not slot.children:
        return pa.array(values, slot.type)
    children = [
        to_arrow(child, [None if value is None else value.get(child.name) for value in values])
        for child in slot.children
    ]
    mask = pa.array([value is None for value in values], pa.bool_())
    return pa.StructArray.from_arrays(children, fields=list(slot.type), mask=mask)


Write: TypeAlias = Callable[[int, bytearray], None]


class PythonEncoder:
    """Encodes rows under one schema, one value after the other."""

    def __init__(self, root: Slot, step: Step, header: bytes) -> None:
        self._root = root
        self._step = step
        self._header = header

    def encode(self, values: Column) -> Column:
        """Return framed records; see `Encoder.encode`."""
        inputs = ColumnInputs.from_column(self._root, values)
        write = _Writer(inputs).of(self._step)
        stay = not isinstance(self._step, ReadUnion | ReadNull)
        present = values.is_valid().to_pylist()
        frames: list[bytes | None] = []
        for row in range(len(values)):
            if stay and not present[row]:
                frames.append(None)
                continue
            out = bytearray(self._header)
            write(row, out)
            frames.append(bytes(out))
        return pa.array(frames, pa.binary())


class _Writer:
    def __init__(self, inputs: ColumnInputs) -> None:
        self._inputs = inputs

    def of(self, step: Step) -> Write:
        """Return the closure of a step."""
        match step:
            case RequireEmpty() if step.empty is not None:
                return _literal(b"".join(map(encode_varint, step.empty)))
            case ReadNumber():
                return self._number(step)
            case ReadBytes():
                return self._text(step)
            case ReadDecimal():
                return self._write_unscaled(step)
            case ReadEnum():
                return self._symbol(step)
            case ReadNull():
                return lambda i, out: None
            case ReadMember():
                return self.of(step.step)
            case ReadRecord():
                return self._group(step)
            case ReadItems():
                return self._repeat(step)
            case ReadUnion():
                return self._branch(step)
            case _:
                raise DataError("a schema does not need resolving against itself")

    def _values(self, slot: Slot | None) -> tuple[list[Any], str]:
        assert slot is not None
        column, path = self._inputs.arrays[slot.index], self._inputs.paths[slot.index]
        if slot.kind is SlotKind.WORD and not slot.symbols and pa.types.is_temporal(column.type):
            column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
        return column.to_pylist(), path

    def _number(self, step: ReadNumber) -> Write:
        values, path = self._values(step.slot)
        multiply, divide = step.multiply, step.divide
        pack = {NumberEncoding.FLOAT: struct.Struct("<f").pack, NumberEncoding.DOUBLE: struct.Struct("<d").pack}.get(
            step.wire
        )

        def write(i: int, out: bytearray) -> None:
            value = _require_value(values[i], i, path)
            if pack is not None:
                out += pack(value)
            elif step.wire is NumberEncoding.BOOLEAN:
                out.append(value)
            else:
                out += encode_varint(value // multiply * divide)

        return write

    def _text(self, step: ReadBytes) -> Write:
        values, path = self._values(step.slot)
        size = step.size

        def write(i: int, out: bytearray) -> None:
            value = _require_value(values[i], i, path)
            data = value.encode() if isinstance(value, str) else value
            if size is None:
                out += encode_varint(len(data))
            elif size not in (REST, len(data)):
                raise EncodeError(f"row {i}, {path}: {len(data)} bytes where the schema wants {size}")
            out += data

        return write

    def _write_unscaled(self, step: ReadDecimal) -> Write:
        if step.slot.digits is not None:  # `inputs` has made its bytes already
            return self._text(ReadBytes(step.slot, step.size))
        values, path = self._values(step.slot)
        size, scale = step.size, step.slot.type.scale

        def write(i: int, out: bytearray) -> None:
            unscaled = int(_require_value(values[i], i, path).scaleb(scale, EXACT))
            least = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
            if size is None:
                out += encode_varint(least)
            elif least > size != REST:
                raise EncodeError(f"row {i}, {path}: the decimal needs {least} bytes, the schema has {size}")
            out += unscaled.to_bytes(least if size in (None, REST) else size, signed=True)

        return write

    def _symbol(self, step: ReadEnum) -> Write:
        assert step.slot is not None
        values, path = self._values(step.slot)
        places = {symbol: encode_varint(place) for place, symbol in enumerate(step.slot.symbols)}

        def write(i: int, out: bytearray) -> None:
            value = _require_value(values[i], i, path)
            if value not in places:
                raise EncodeError(f"row {i}, {path}: the enum does not have this symbol")
            out += places[value]

        return write

    def _group(self, step: ReadRecord) -> Write:
        assert step.slot is not None
        present, path = self._present(step.slot)
        parts = [self.of(each) for each in step.steps]

        def write(i: int, out: bytearray) -> None:
            _require_value(present[i] or None, i, path)
            for part in parts:
                part(i, out)

        return write

    def _present(self, slot: Slot) -> tuple[list[bool], str]:
        return self._inputs.arrays[slot.index].is_valid().to_pylist(), self._inputs.paths[slot.index]

    def _repeat(self, step: ReadItems) -> Write:
        assert step.slot is not None
        present, path = self._present(step.slot)
        offsets = self._inputs.arrays[step.slot.index].offsets.to_pylist()
        key = self.of(step.key) if step.key else None
        item = self.of(step.item)

        def write(i: int, out: bytearray) -> None:
            _require_value(present[i] or None, i, path)
            if offsets[i + 1] > offsets[i]:
                out += encode_varint(offsets[i + 1] - offsets[i])
                for k in range(offsets[i], offsets[i + 1]):
                    if key:
                        key(k, out)
                    item(k, out)
            out.append(0)

        return write

    def _branch(self, step: ReadUnion) -> Write:
        choices: list[tuple[list[bool] | None, bytes, Write]] = []
        for number, each, slot in writing_options(step):
            present = None if slot is None else self._present(slot)[0]
            choices.append((present, encode_varint(number), self.of(each)))
        path = self._inputs.paths[step.slot.index] if step.slot else ""

        def write(i: int, out: bytearray) -> None:
            for present, number, part in choices:
                if present is None or present[i]:
                    out += number
                    part(i, out)
                    return
            raise EncodeError(f"row {i}, {path}: null where the schema does not allow it")

        return write


def _literal(data: bytes) -> Write:
    def write(i: int, out: bytearray) -> None:
        out += data

    return write


def _require_value(value: Any, row: int, path: str) -> Any:
    if value is None:
        raise EncodeError(f"row {row}, {path}: null where the schema does not allow it")
    return value


INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1
_HEADER = struct.Struct(">bi")


class PythonDecoder:
    """Decodes batches towards one reader's schema, with one cached closure per writer id."""

    def __init__(self, resolver: Resolver, writers: FindWriter) -> None:
        self._resolver = resolver
        self._writers = writers
        self._readers: dict[int, Read | RecordError] = {}

    @property
    def type(self) -> ArrowType:
        """The type of decoded values."""
        return self._resolver.root.type

    def decode(self, frames: Column) -> Decoded:
        """Decode one batch; see `Decoder.decode`."""
        self._forget_unknown()
        values: list[Any] = [None] * len(frames)
        numbers: list[int | None] = [None] * len(frames)
        errors = ErrorColumns(len(frames))
        for row, data in enumerate(frames.to_pylist()):
            if data is None:
                continue
            if len(data) < _HEADER.size or data[0] != 0:
                errors.add(row, ErrorCode.NOT_FRAMED, offset=0)
                continue
            _, number = _HEADER.unpack_from(data)
            numbers[row] = number
            read = self._reader(number)
            try:
                if isinstance(read, RecordError):
                    errors.add_error(row, read)
                else:
                    values[row] = _read_whole(read, Cursor(data, _HEADER.size))
            except RecordError as error:
                errors.add_error(row, error)
        column = to_arrow(self._resolver.root, values)
        return Decoded(column, pa.array(numbers, pa.int32()), *errors.columns())

    def _reader(self, number: int) -> Read | RecordError:
        if number not in self._readers:
            self._readers[number] = self._compile(number)
        return self._readers[number]

    def _compile(self, number: int) -> Read | RecordError:
        try:
            writer = self._writers(number) if number >= 0 else None
            if writer is None:
                return RecordError(ErrorCode.UNKNOWN_SCHEMA_ID, offset=0)
            return reader(self._resolver.resolve_writer(writer))
        except DataError as error:
            return RecordError(ErrorCode.UNUSABLE_SCHEMA, str(error), 0)

    def _forget_unknown(self) -> None:
        """Drop ids that were unknown in the last batch, as they can be registered by now."""
        for number, cached_reader in list(self._readers.items()):
            if isinstance(cached_reader, RecordError) and cached_reader.code is ErrorCode.UNKNOWN_SCHEMA_ID:
                del self._readers[number]


def _read_whole(read: Read, cursor: Cursor) -> Any:
    """Return a value. Raises `RecordError` if bytes are left after it."""
    value = read(cursor)
    if cursor.at != cursor.end:
        raise cursor.error(ErrorCode.TRAILING, cursor.at)
    return value


class PythonEngine:
    """Decodes and encodes value by value; it needs only pyarrow."""

    name = "python"

    def decoder(
        self, reader: AvroSchema, writers: FindWriter, *, for_spark: bool = False, recursion: int = 0
    ) -> Decoder:
        """Return a decoder towards the reader's schema; see `Engine.decoder`."""
        return PythonDecoder(Resolver(reader, for_spark=for_spark, recursion=recursion), writers)

    def encoder(self, schema: AvroSchema, schema_id: int, *, for_spark: bool = False, recursion: int = 0) -> Encoder:
        """Return an encoder whose frames carry the id; see `Engine.encoder`."""
        resolver = Resolver(schema, for_spark=for_spark, recursion=recursion)
        return PythonEncoder(resolver.root, resolver.resolve_writer(schema), id_prefix(schema_id))
