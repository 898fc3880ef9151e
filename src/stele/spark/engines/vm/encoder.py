"""The encoder of the `vm` engine: it splits rows, runs the encoding kernel twice, and makes one binary array.

The kernel is one loop that interprets a program over every row, first for sizes, then for bytes. Rows are read in
place: arrays of one scope share an index, and a list opens a scope for its items (see `inputs`), so values need no
counters of their own. It is compiled by numba, so it uses only numbers, arrays and tuples of them.

    opcode    a          b                c             d
    END       -          -                -             -
    LONG      column     multiply         divide        -          also INT: the slot's unit back to the writer's
    FLOAT     column     -                -             -          also DOUBLE, BOOLEAN
    TEXT      column     size             -             -          -1: with a length in front, REST: bare
    DECIMAL   column     size             -             -
    SYMBOL    column     -                -             -
    NULL      column     target           -             -          to target when the column is null here
    LITERAL   value      -                -             -          a branch index
    VALID     column     -                -             -          a record: must not be null
    ENTER     column     end address      scope         -
    AGAIN     scope      body address     -             -
    JUMP      address    -                -             -
    FAIL      column     -                -             -          no branch fits
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from stele.errors import DataError, EncodeError
from stele.spark.engines.arrow import Column, as_buffer, as_numbers
from stele.spark.engines.inputs import ColumnInputs
from stele.spark.engines.steps import (
    NumberEncoding,
    ReadBytes,
    ReadDecimal,
    ReadEnum,
    ReadItems,
    ReadMember,
    ReadNull,
    ReadNumber,
    ReadRecord,
    ReadUnion,
    RequireEmpty,
    Slot,
    SlotKind,
    Step,
    writing_options,
)
from stele.spark.engines.vm import program as op
from stele.spark.engines.vm.jit import compile_kernel
from stele.spark.engines.vm.program import Bytes, Ints

LITERAL = 19
FINE, IS_NULL, WRONG_SIZE, WRONG_SYMBOL, WRONG_RANGE = 0, 1, 2, 3, 4
LONG_MAX = 2**63 - 1


class Sources(NamedTuple):
    """The rows: for each column its scope, and the start of its words, validity and data."""

    scopes: Ints
    word_base: Ints
    entry_base: Ints
    data_base: Ints
    words: Ints
    valid: Bytes
    data: Bytes


@compile_kernel
def put_varint(fill: bool, out: Bytes, to: int, value: int) -> int:
    """Write a zig-zag integer and return the position after it."""
    bits = np.uint64((value << 1) ^ (value >> 63))
    while bits >= np.uint64(128):
        if fill:
            out[to] = np.uint8(bits & np.uint64(127)) | np.uint8(128)
        to += 1
        bits >>= np.uint64(7)
    if fill:
        out[to] = np.uint8(bits)
    return to + 1


@compile_kernel
def put_decimal(fill: bool, out: Bytes, to: int, low: int, high: int, size: int) -> tuple[int, int]:
    """Write the number in as few bytes as possible, or in exactly `size` bytes.

    With a negative `size`, the number of bytes is written in front, except for `REST`. Returns (position, fault).
    """
    least = 16
    while least > 1:
        first = (high >> (8 * (least - 9))) & 255 if least > 8 else (low >> (8 * (least - 1))) & 255
        second = (high >> (8 * (least - 10))) & 255 if least > 9 else (low >> (8 * (least - 2))) & 255
        if (first == 0 and second < 128) or (first == 255 and second >= 128):
            least -= 1
        else:
            break
    if size < 0:
        if size != op.REST:
            to = put_varint(fill, out, to, least)
        size = least
    elif least > size:
        return to, WRONG_SIZE
    if fill:
        for k in range(size):
            place = size - 1 - k
            if place >= 16:
                out[to + k] = np.uint8((high >> 63) & 255)
            elif place >= 8:
                out[to + k] = np.uint8((high >> (8 * (place - 8))) & 255)
            else:
                out[to + k] = np.uint8((low >> (8 * place)) & 255)
    return to + size, FINE


@compile_kernel
def encode_rows(  # noqa: PLR0915 - see below
    fill: bool,
    tombstones: bool,
    code: Ints,
    rows: int,
    sources: Sources,
    index: Ints,
    stop: Ints,
    header: Bytes,
    ends: Ints,
    out: Bytes,
) -> tuple[int, int, int]:
    """Run one pass and return (row, column, fault) of the first row that cannot be written, else fault 0.

    With `tombstones`, null rows stay null. `index` and `stop` are working memory per scope; `ends` takes sizes in the
    first pass and gives positions in the second.
    """
    # Long because an interpreter's loop is one thing, and reads best as one table.
    words, valid = sources.words, sources.valid
    for row in range(rows):
        to = ends[row] if fill else 0
        if tombstones and valid[sources.entry_base[0] + row] == 0:
            continue
        index[0] = row
        if fill:
            for k in range(len(header)):
                out[to + k] = header[k]
        to += len(header)
        pc = 0
        while True:
            opcode, a = code[pc, 0], code[pc, 1]
            if opcode == op.END:
                break
            if opcode == op.JUMP:
                pc = a
                continue
            if opcode == LITERAL:
                to = put_varint(fill, out, to, a)
                pc += 1
                continue
            if opcode == op.AGAIN:
                index[a] += 1
                if index[a] < stop[a]:
                    pc = code[pc, 2]
                else:
                    to = put_varint(fill, out, to, 0)
                    pc += 1
                continue
            if opcode == op.FAIL:
                return row, a, IS_NULL
            here = index[sources.scopes[a]]
            at = sources.word_base[a] + here
            if valid[sources.entry_base[a] + here] == 0:
                if opcode != op.NULL:
                    return row, a, IS_NULL
                pc = code[pc, 2]
                continue
            if opcode == op.LONG:
                value = words[at] // code[pc, 2]
                if code[pc, 3] > 1:
                    if value > LONG_MAX // code[pc, 3] or value < -(LONG_MAX // code[pc, 3]):
                        return row, a, WRONG_RANGE
                    value *= code[pc, 3]
                to = put_varint(fill, out, to, value)
            elif opcode == op.TEXT:
                length = words[at + 1] - words[at]
                if code[pc, 2] == -1:
                    to = put_varint(fill, out, to, length)
                elif code[pc, 2] >= 0 and code[pc, 2] != length:
                    return row, a, WRONG_SIZE
                if fill:
                    begin = sources.data_base[a] + words[at]
                    for k in range(length):
                        out[to + k] = sources.data[begin + k]
                to += length
            elif opcode == op.DOUBLE or opcode == op.FLOAT:  # noqa: PLR1714 - numba makes a loop of a tuple test
                size = 8 if opcode == op.DOUBLE else 4
                if fill:
                    bits = np.uint64(words[at])
                    for k in range(size):
                        out[to + k] = np.uint8((bits >> np.uint64(8 * k)) & np.uint64(255))
                to += size
            elif opcode == op.BOOLEAN:
                if fill:
                    out[to] = np.uint8(words[at])
                to += 1
            elif opcode == op.SYMBOL:
                if words[at] < 0:
                    return row, a, WRONG_SYMBOL
                to = put_varint(fill, out, to, words[at])
            elif opcode == op.DECIMAL:
                at = sources.word_base[a] + 2 * here
                to, fault = put_decimal(fill, out, to, words[at], words[at + 1], code[pc, 2])
                if fault != FINE:
                    return row, a, fault
            elif opcode == op.ENTER:
                scope = code[pc, 3]
                index[scope], stop[scope] = words[at], words[at + 1]
                length = stop[scope] - index[scope]
                to = put_varint(fill, out, to, length)
                if length == 0:
                    pc = code[pc, 2]
                    continue
            pc += 1
        if not fill:
            ends[row] = to
    return 0, 0, FINE


_FAULTS = {
    IS_NULL: "null where the schema does not allow it",
    WRONG_SIZE: "more or fewer bytes than the schema has",
    WRONG_SYMBOL: "the enum does not have this symbol",
    WRONG_RANGE: "a point in time is out of range for the schema's unit",
}
_NUMBERS = {
    NumberEncoding.INT: op.LONG,
    NumberEncoding.LONG: op.LONG,
    NumberEncoding.FLOAT: op.FLOAT,
    NumberEncoding.DOUBLE: op.DOUBLE,
    NumberEncoding.BOOLEAN: op.BOOLEAN,
}


class VmEncoder:
    """Encodes rows with one schema."""

    def __init__(self, root: Slot, step: Step, header: bytes) -> None:
        self._root = root
        self._add_step = step
        self._slots = list(root.walk_slots())
        self._header = np.frombuffer(header, np.uint8)

    def encode(self, values: Column) -> Column:
        """Return framed records; see `Encoder.encode`."""
        inputs = ColumnInputs.from_column(self._root, values)
        code = EncodeAssembler(inputs).assemble(self._add_step)
        sources = _flatten_inputs(self._slots, inputs)
        n = len(values)
        sizes, nothing = np.zeros(n, np.int64), np.zeros(1, np.uint8)
        scopes = np.zeros(inputs.scope_count, np.int64), np.zeros(inputs.scope_count, np.int64)
        stay = not isinstance(self._add_step, ReadUnion | ReadNull)
        located_fault = encode_rows(False, stay, code, n, sources, *scopes, self._header, sizes, nothing)
        self._raise_fault(located_fault, inputs)
        ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
        if ends[-1] > 2**31 - 1:
            raise DataError("a batch encodes to more than 2 GiB: use smaller batches")
        out = np.empty(int(ends[-1]) + 1, np.uint8)
        located_fault = encode_rows(True, stay, code, n, sources, *scopes, self._header, ends[:-1].copy(), out)
        self._raise_fault(located_fault, inputs)
        validity = np.packbits(sizes > 0, bitorder="little")
        buffers: list[pa.Buffer | None] = [as_buffer(validity), as_buffer(ends.astype(np.int32)), as_buffer(out[:-1])]
        return pa.Array.from_buffers(pa.binary(), n, buffers)

    def _raise_fault(self, located_fault: tuple[int, int, int], inputs: ColumnInputs) -> None:
        row, column, fault = located_fault
        if fault != FINE:
            raise EncodeError(f"row {row}, {inputs.paths[column]}: {_FAULTS[fault]}")


class EncodeAssembler:
    """Makes instructions that write values from the steps that read them."""

    def __init__(self, inputs: ColumnInputs) -> None:
        self._inputs = inputs
        self._code: list[tuple[int, int, int, int]] = []

    def assemble(self, step: Step) -> Ints:
        """Return the instructions that write values of a step, one row of four integers each."""
        self._add_step(step)
        self._add_instruction(op.END)
        return np.array(self._code, np.int64)

    def _add_instruction(self, opcode: int, a: int = 0, b: int = 0, c: int = 0) -> int:
        self._code.append((opcode, a, b, c))
        return len(self._code) - 1

    def _add_step(self, step: Step) -> None:
        column = step.slot.index if step.slot else 0
        match step:
            case ReadNumber():
                self._add_instruction(_NUMBERS[step.wire], column, step.multiply, step.divide)
            case ReadBytes():
                self._add_instruction(op.TEXT, column, -1 if step.size is None else step.size)
            case ReadDecimal():
                # `inputs` has made the bytes of a wide decimal already
                code = op.DECIMAL if step.slot.digits is None else op.TEXT
                self._add_instruction(code, column, -1 if step.size is None else step.size)
            case RequireEmpty() if step.empty is not None:
                for number in step.empty:
                    self._add_instruction(LITERAL, number)
            case ReadEnum():
                self._add_instruction(op.SYMBOL, column)
            case ReadNull():
                pass
            case ReadMember():
                self._add_step(step.step)
            case ReadRecord():
                self._add_instruction(op.VALID, column)
                for each in step.steps:
                    self._add_step(each)
            case ReadItems():
                self._add_items(step, column)
            case ReadUnion():
                self._add_union(step, column)
            case _:
                raise DataError("a schema does not need resolving against itself")

    def _add_items(self, step: ReadItems, column: int) -> None:
        scope = self._inputs.list_scopes[column]
        enter = self._add_instruction(op.ENTER)
        if step.key is not None:
            self._add_step(step.key)
        self._add_step(step.item)
        self._add_instruction(op.AGAIN, scope, enter + 1)
        self._code[enter] = (op.ENTER, column, len(self._code), scope)

    def _add_union(self, step: ReadUnion, column: int) -> None:
        exits: list[int] = []
        null_branch = None
        for number, each, slot in writing_options(step):
            if slot is None:
                null_branch = number
                continue
            test = self._add_instruction(op.NULL)
            self._add_instruction(LITERAL, number)
            self._add_step(each)
            exits.append(self._add_instruction(op.JUMP))
            self._code[test] = (op.NULL, slot.index, len(self._code), 0)
        if null_branch is None:
            self._add_instruction(op.FAIL, column)
        else:
            self._add_instruction(LITERAL, null_branch)
        for exit_ in exits:
            self._code[exit_] = (op.JUMP, len(self._code), 0, 0)


def _flatten_inputs(slots: list[Slot], inputs: ColumnInputs) -> Sources:
    words, valid, data = [], [], []
    for slot in slots:
        column = inputs.arrays[slot.index]
        valid.append(_validity_bytes(column))
        column_words, column_data = _words_and_bytes(slot, column)
        words.append(column_words)
        data.append(column_data)
    scopes = np.array([inputs.scopes[slot.index] for slot in slots], np.int64)
    return Sources(
        scopes=scopes,
        word_base=_start_offsets(words),
        entry_base=_start_offsets(valid),
        data_base=_start_offsets(data),
        words=np.concatenate([*words, np.zeros(2, np.int64)]),
        valid=np.concatenate([*valid, np.zeros(1, np.uint8)]),
        data=np.concatenate([*data, np.zeros(1, np.uint8)]),
    )


def _start_offsets(parts: list[npt.NDArray[np.int64]] | list[npt.NDArray[np.uint8]]) -> Ints:
    sizes = [len(part) for part in parts]
    return np.array([0, *np.cumsum(sizes)[:-1]], np.int64)


def _validity_bytes(column: Column) -> npt.NDArray[np.uint8]:
    if not column.null_count:
        return np.ones(len(column), np.uint8)
    present: npt.NDArray[np.uint8] = column.is_valid().to_numpy(zero_copy_only=False).astype(np.uint8)
    return present


def _words_and_bytes(slot: Slot, column: Column) -> tuple[Ints, npt.NDArray[np.uint8]]:
    """Return a column's words (offsets for lists and bytes) and its bytes."""
    nothing = np.zeros(0, np.uint8)
    match slot.kind:
        case SlotKind.STRUCT | SlotKind.EMPTY:
            return np.zeros(0, np.int64), nothing
        case SlotKind.LIST:
            return column.offsets.to_numpy().astype(np.int64), nothing
        case SlotKind.BYTES:
            return _column_bytes(column)
        case SlotKind.DECIMAL:
            raw = as_numbers(column.buffers()[1], np.int64)
            return raw[2 * column.offset : 2 * (column.offset + len(column))], nothing
        case SlotKind.WORD:
            return _column_words(slot, column), nothing


def _column_bytes(column: Column) -> tuple[Ints, npt.NDArray[np.uint8]]:
    if pa.types.is_fixed_size_binary(column.type):
        column = column.cast(pa.binary())
    _, offset_buffer, data_buffer = column.buffers()
    if offset_buffer is None or not len(column):
        return np.zeros(len(column) + 1, np.int64), np.zeros(0, np.uint8)
    offsets = as_numbers(offset_buffer, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    data = as_numbers(data_buffer, np.uint8)[offsets[0] : offsets[-1]]
    return offsets - offsets[0], data


def _column_words(slot: Slot, column: Column) -> Ints:
    if slot.symbols:
        places: Column = pc.index_in(column, pa.array(slot.symbols, column.type))
        column = pc.fill_null(places, -1)
    elif pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    else:
        column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
    filled: Column = pc.fill_null(column, 0)
    words: Ints = filled.to_numpy().astype(np.int64)
    return words
