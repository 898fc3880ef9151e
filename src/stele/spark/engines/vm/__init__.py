"""The engine `vm`: schemas become an integer program, which a numba kernel runs over all records of a batch.

The decoder splits frames, compiles a program per writer, runs the kernel twice and makes arrays. Each slot of the
kernel's memory becomes one Arrow array, without a copy where widths agree. The encoder has a module of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stele.errors import DataError
from stele.formats.avro.model import AvroSchema
from stele.spark.engines.arrow import ArrowType, Column, as_buffer, as_numbers
from stele.spark.engines.base import Decoded, Decoder, Encoder, FindWriter, error_columns, no_errors
from stele.spark.engines.error_codes import ErrorCode
from stele.spark.engines.resolve import Resolver
from stele.spark.engines.steps import Slot, SlotKind
from stele.spark.engines.vm.encoder import VmEncoder
from stele.spark.engines.vm.kernel import decode_rows
from stele.spark.engines.vm.program import Columns, DecodeAssembler, Ints, Program, Rows, Scratch
from stele.wire.confluent import id_prefix

HEADER = 5


class Frames(NamedTuple):
    """A column of frames that is taken apart: its bytes in memory, and for each record its payload, id and state."""

    source: npt.NDArray[np.uint8]
    starts: Ints
    ends: Ints
    ids: npt.NDArray[np.int32]
    framed: npt.NDArray[np.bool_]
    present: npt.NDArray[np.bool_]


def split_frames(column: Column) -> Frames:
    """Take a binary column apart. An id is valid only where `framed` is true; `present` is false for a null record."""
    if pa.types.is_null(column.type):
        column = column.cast(pa.binary())
    if not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
        if not (pa.types.is_binary_view(column.type) or pa.types.is_fixed_size_binary(column.type)):
            raise DataError(f"framed records are a binary column, not {column.type}")
        column = column.cast(pa.large_binary())
    width = np.int64 if pa.types.is_large_binary(column.type) else np.int32
    n = len(column)
    _, offset_buffer, data_buffer = column.buffers()
    offsets = as_numbers(offset_buffer, width)[column.offset : column.offset + n + 1].astype(np.int64)
    source = as_numbers(data_buffer, np.uint8)
    if not len(source):
        source = np.zeros(1, np.uint8)
    source.flags.writeable = False
    present = np.ones(n, np.bool_) if not column.null_count else np.asarray(column.is_valid())
    long_enough = present & (np.diff(offsets) >= HEADER)
    # a record too short for a header is read at offsets 0 … 4, and its id is not used
    at = np.where(long_enough, offsets[:-1], 0)
    last = len(source) - 1
    bytes_ = [source[np.minimum(at + k, last)].astype(np.int64) for k in range(HEADER)]
    ids = (bytes_[1] << 24 | bytes_[2] << 16 | bytes_[3] << 8 | bytes_[4]).astype(np.int32)
    framed = long_enough & (bytes_[0] == 0)
    starts = np.where(framed, at + HEADER, 0)
    ends = np.where(framed, offsets[1:], 0)
    return Frames(source, starts, ends, ids, framed, present)


MOST_OFFSET = 2**31 - 1


def counting_columns(slots: list[Slot]) -> Columns:
    """Return columns for the measuring pass, which have only counters."""
    n = len(slots)
    return Columns(
        kinds=np.array([slot.kind for slot in slots], np.int64),
        entries=np.zeros(n, np.int64),
        size=np.zeros(n, np.int64),
        entry_base=np.zeros(n, np.int64),
        word_base=np.zeros(n, np.int64),
        data_base=np.zeros(n, np.int64),
        words=np.zeros(1, np.int64),
        valid=np.zeros(1, np.uint8),
        data=np.zeros(1, np.uint8),
    )


def sized_columns(measured: Columns) -> Columns:
    """Return columns of the sizes that the measuring pass found. Raises `DataError` for more than 2 GiB in a column."""
    kinds, count, size = measured.kinds, measured.entries, measured.size
    if count.max(initial=0) > MOST_OFFSET or size.max(initial=0) > MOST_OFFSET:
        raise DataError("a batch decodes to more than 2 GiB in one column: use smaller batches")
    words = np.where(kinds == SlotKind.DECIMAL, 2 * count, count)
    words[(kinds == SlotKind.STRUCT) | (kinds == SlotKind.EMPTY)] = 0
    data = np.where(kinds == SlotKind.BYTES, size, 0)
    return Columns(
        kinds=kinds,
        entries=np.zeros_like(count),
        size=np.zeros_like(size),
        entry_base=_running_sums(count),
        word_base=_running_sums(words),
        data_base=_running_sums(data),
        words=np.zeros(int(words.sum()) + 1, np.int64),
        valid=np.ones(int(count.sum()) + 1, np.uint8),
        data=np.empty(int(data.sum()) + 1, np.uint8),
    )


def _running_sums(sizes: Ints) -> Ints:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)[:-1])).astype(np.int64)


def array(slot: Slot, columns: Columns) -> Column:
    """Return the Arrow array of a filled slot."""
    length = int(columns.entries[slot.index])
    validity, nulls = _validity_buffer(slot, columns, length)
    match slot.kind:
        case SlotKind.EMPTY:
            return pa.nulls(length, slot.type)
        case SlotKind.STRUCT:
            children = [array(child, columns) for child in slot.children]
            return pa.StructArray.from_buffers(slot.type, length, [validity], nulls, children=children)
        case SlotKind.LIST:
            return _build_list(slot, columns, length, validity, nulls)
        case SlotKind.BYTES:
            return _build_bytes(slot, columns, length, validity, nulls)
        case SlotKind.DECIMAL:
            words = _slot_words(slot, columns, 2 * length)
            return pa.Array.from_buffers(slot.type, length, [validity, as_buffer(words)], nulls)
        case SlotKind.WORD:
            return _build_words(slot, columns, length, validity, nulls)


def _slot_words(slot: Slot, columns: Columns, length: int) -> Ints:
    base = columns.word_base[slot.index]
    return columns.words[base : base + length]


def _validity_buffer(slot: Slot, columns: Columns, length: int) -> tuple[pa.Buffer | None, int]:
    base = columns.entry_base[slot.index]
    mask = columns.valid[base : base + length]
    nulls = length - int(np.count_nonzero(mask))
    return (as_buffer(np.packbits(mask, bitorder="little")), nulls) if nulls else (None, 0)


def _offsets_buffer(slot: Slot, columns: Columns, length: int) -> npt.NDArray[np.int32]:
    offsets = np.zeros(length + 1, np.int32)
    offsets[1:] = _slot_words(slot, columns, length)
    return offsets


def _build_list(slot: Slot, columns: Columns, length: int, validity: pa.Buffer | None, nulls: int) -> Column:
    children = [array(child, columns) for child in slot.children]
    if len(children) == 2:
        entry = pa.struct([slot.type.key_field, slot.type.item_field])
        children = [pa.StructArray.from_buffers(entry, len(children[0]), [None], 0, children=children)]
    offsets = as_buffer(_offsets_buffer(slot, columns, length))
    return pa.Array.from_buffers(slot.type, length, [validity, offsets], nulls, children=children)


def _build_bytes(slot: Slot, columns: Columns, length: int, validity: pa.Buffer | None, nulls: int) -> Column:
    begin = columns.data_base[slot.index]
    raw_data = columns.data[begin : begin + columns.size[slot.index]]
    if slot.is_uuid:
        offsets = _offsets_buffer(slot, columns, length) // 16 * 36
        buffers = [validity, as_buffer(offsets), as_buffer(_uuid_text(raw_data))]
        return pa.Array.from_buffers(slot.type, length, buffers, nulls)
    data = as_buffer(raw_data)
    fixed = pa.types.is_fixed_size_binary(slot.type)
    raw = pa.binary() if fixed else slot.type
    buffers = [validity, as_buffer(_offsets_buffer(slot, columns, length)), data]
    values = pa.Array.from_buffers(raw, length, buffers, nulls)
    return values.cast(slot.type) if fixed else values


_HEX = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), np.uint8).reshape(256, 2)
_DASHES = (8, 13, 18, 23)


def _uuid_text(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return each group of 16 bytes as the 36 characters of a UUID."""
    digits = _HEX[data].reshape(-1, 32)
    return np.insert(digits, [place - number for number, place in enumerate(_DASHES)], ord("-"), axis=1).ravel()


def _build_words(slot: Slot, columns: Columns, length: int, validity: pa.Buffer | None, nulls: int) -> Column:
    words = _slot_words(slot, columns, length)
    if slot.symbols:
        indexes = pa.Array.from_buffers(pa.int32(), length, [validity, as_buffer(words.astype(np.int32))], nulls)
        return pa.array(slot.symbols, pa.string()).take(indexes).cast(slot.type)
    if pa.types.is_boolean(slot.type):
        bits = np.packbits(words.astype(np.uint8), bitorder="little")
        return pa.Array.from_buffers(slot.type, length, [validity, as_buffer(bits)], nulls)
    # floats are the low 32 bits of their word, so integers and floats are narrowed in the same way
    narrow = words if slot.type.bit_width == 64 else words.astype(np.int32)
    return pa.Array.from_buffers(slot.type, length, [validity, as_buffer(narrow)], nulls)


class VmDecoder:
    """Decodes batches towards one reader's schema, with one cached program per writer id."""

    def __init__(self, resolver: Resolver, writers: FindWriter) -> None:
        self._resolver = resolver
        self._writers = writers
        self._slots = list(resolver.root.walk_slots())
        self._assembler = DecodeAssembler(resolver.root)
        self._program: Program | None = None
        self._entries: dict[int, int] = {}
        self._refused: dict[int, str] = {}

    @property
    def type(self) -> ArrowType:
        """The type of decoded values."""
        return self._resolver.root.type

    def decode(self, frames: Column) -> Decoded:
        """Decode one batch; see `Decoder.decode`."""
        parts = split_frames(frames)
        rows = self._prepare_rows(parts)
        if self._program is None:
            self._program = self._assembler.program()
        scratch = Scratch.for_program(self._program, len(self._slots))
        measured = counting_columns(self._slots)
        decode_rows(False, self._program, rows, measured, scratch)
        filled = sized_columns(measured)
        decode_rows(True, self._program, rows, filled, scratch)
        values = array(self._resolver.root, filled)
        return Decoded(values, pa.array(parts.ids, mask=~parts.framed), *self._error_columns(parts, rows))

    def _prepare_rows(self, parts: Frames) -> Rows:
        n = len(parts.ids)
        entries, codes = np.zeros(n, np.int64), np.zeros(n, np.uint8)
        codes[parts.present & ~parts.framed] = ErrorCode.NOT_FRAMED
        for number in np.unique(parts.ids[parts.framed]):
            mine = parts.framed & (parts.ids == number)
            entry = self._find_entry(int(number))
            if isinstance(entry, ErrorCode):
                codes[mine] = entry
            else:
                entries[mine] = entry
        return Rows(parts.source, parts.starts, parts.ends, entries, codes, np.zeros(n, np.int64))

    def _find_entry(self, number: int) -> int | ErrorCode:
        """Return the address of the writer's program, or the error code if there is none."""
        if number in self._entries:
            return self._entries[number]
        if number in self._refused:
            return ErrorCode.UNUSABLE_SCHEMA
        try:
            writer = self._writers(number) if number >= 0 else None
            if writer is None:
                # not cached: the id can be registered before the next batch
                return ErrorCode.UNKNOWN_SCHEMA_ID
            entry = self._assembler.add(self._resolver.resolve_writer(writer))
        except DataError as error:
            self._refused[number] = str(error)
            return ErrorCode.UNUSABLE_SCHEMA
        self._program = None
        self._entries[number] = entry
        return entry

    def _error_columns(self, parts: Frames, rows: Rows) -> tuple[Column, Column, Column]:
        """Return codes, details and offsets of all rows."""
        if not rows.codes.any():
            return no_errors(len(rows.codes))
        refused: npt.NDArray[np.intp] = np.flatnonzero(rows.codes == ErrorCode.UNUSABLE_SCHEMA)
        details = {int(row): self._refused[int(parts.ids[row])] for row in refused}
        return error_columns(rows.codes, details, np.where(rows.codes == 0, -1, rows.offsets).astype(np.int32))


class VmEngine:
    """Decodes and encodes whole columns with kernels compiled by numba."""

    name = "vm"

    def decoder(
        self, reader: AvroSchema, writers: FindWriter, *, for_spark: bool = False, recursion: int = 0
    ) -> Decoder:
        """Return a decoder towards the reader's schema; see `Engine.decoder`."""
        return VmDecoder(Resolver(reader, for_spark=for_spark, recursion=recursion), writers)

    def encoder(self, schema: AvroSchema, schema_id: int, *, for_spark: bool = False, recursion: int = 0) -> Encoder:
        """Return an encoder whose frames carry the id; see `Engine.encoder`."""
        resolver = Resolver(schema, for_spark=for_spark, recursion=recursion)
        return VmEncoder(resolver.root, resolver.resolve_writer(schema), id_prefix(schema_id))
