"""The encoder of the `vm` engine: rows apart, one program, two kernel passes, one binary array."""

from __future__ import annotations

from typing import TypeAlias

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
from stele.spark.engines.vm import machine as op
from stele.spark.engines.vm import writer

Ints: TypeAlias = npt.NDArray[np.int64]
_FAULTS = {
    writer.IS_NULL: "null where the schema does not allow it",
    writer.WRONG_SIZE: "more or fewer bytes than the schema has",
    writer.WRONG_SYMBOL: "the enum does not have this symbol",
    writer.WRONG_RANGE: "a point in time is out of range for the schema's unit",
}
_NUMBERS = {
    NumberEncoding.INT: op.LONG,
    NumberEncoding.LONG: op.LONG,
    NumberEncoding.FLOAT: op.FLOAT,
    NumberEncoding.DOUBLE: op.DOUBLE,
    NumberEncoding.BOOLEAN: op.BOOLEAN,
}


class VmEncoder:
    """Encodes rows under one schema."""

    def __init__(self, root: Slot, step: Step, header: bytes) -> None:
        self._root = root
        self._add_step = step
        self._slots = list(root.walk_slots())
        self._header = np.frombuffer(header, np.uint8)

    def encode(self, values: Column) -> Column:
        """Framed records; see `Encoder.encode`."""
        inputs = ColumnInputs.from_column(self._root, values)
        code = EncodeAssembler(inputs).assemble(self._add_step)
        sources = _flatten_inputs(self._slots, inputs)
        n = len(values)
        sizes, nothing = np.zeros(n, np.int64), np.zeros(1, np.uint8)
        scopes = np.zeros(inputs.scope_count, np.int64), np.zeros(inputs.scope_count, np.int64)
        stay = not isinstance(self._add_step, ReadUnion | ReadNull)
        found = writer.encode_rows(False, stay, code, n, sources, *scopes, self._header, sizes, nothing)
        self._raise_fault(found, inputs)
        ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
        if ends[-1] > 2**31 - 1:
            raise DataError("a batch encodes to more than 2 GiB: use smaller batches")
        out = np.empty(int(ends[-1]) + 1, np.uint8)
        found = writer.encode_rows(True, stay, code, n, sources, *scopes, self._header, ends[:-1].copy(), out)
        self._raise_fault(found, inputs)
        validity = np.packbits(sizes > 0, bitorder="little")
        buffers: list[pa.Buffer | None] = [as_buffer(validity), as_buffer(ends.astype(np.int32)), as_buffer(out[:-1])]
        return pa.Array.from_buffers(pa.binary(), n, buffers)

    def _raise_fault(self, found: tuple[int, int, int], inputs: ColumnInputs) -> None:
        row, column, fault = found
        if fault != writer.FINE:
            raise EncodeError(f"row {row}, {inputs.paths[column]}: {_FAULTS[fault]}")


class EncodeAssembler:
    """Steps in reverse: what reads a value says how to write it."""

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
                # a wide decimal has its bytes made already, see `inputs`
                code = op.DECIMAL if step.slot.digits is None else op.TEXT
                self._add_instruction(code, column, -1 if step.size is None else step.size)
            case RequireEmpty() if step.empty is not None:
                for number in step.empty:
                    self._add_instruction(writer.LITERAL, number)
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
            self._add_instruction(writer.LITERAL, number)
            self._add_step(each)
            exits.append(self._add_instruction(op.JUMP))
            self._code[test] = (op.NULL, slot.index, len(self._code), 0)
        if null_branch is None:
            self._add_instruction(op.FAIL, column)
        else:
            self._add_instruction(writer.LITERAL, null_branch)
        for exit_ in exits:
            self._code[exit_] = (op.JUMP, len(self._code), 0, 0)


def _flatten_inputs(slots: list[Slot], inputs: ColumnInputs) -> writer.Sources:
    words, valid, data = [], [], []
    for slot in slots:
        column = inputs.arrays[slot.index]
        valid.append(_validity_bytes(column))
        column_words, column_data = _words_and_bytes(slot, column)
        words.append(column_words)
        data.append(column_data)
    scopes = np.array([inputs.scopes[slot.index] for slot in slots], np.int64)
    return writer.Sources(
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
