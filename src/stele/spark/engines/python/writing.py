"""Steps become closures that append the value of row i to a buffer; the encoder of the `python` engine."""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Context
from typing import Any, TypeAlias

import pyarrow as pa

from stele.errors import DataError, EncodeError
from stele.spark.engines.arrow import Column
from stele.spark.engines.inputs import ColumnInputs
from stele.spark.engines.resolve import encode_varint
from stele.spark.engines.steps import (
    REST,
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

EXACT = Context(prec=76)
Write: TypeAlias = Callable[[int, bytearray], None]


class PythonEncoder:
    """Encodes rows under one schema, one value after the other."""

    def __init__(self, root: Slot, step: Step, header: bytes) -> None:
        self._root = root
        self._step = step
        self._header = header

    def encode(self, values: Column) -> Column:
        """Framed records; see `Encoder.encode`."""
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
                return self._unscaled(step)
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
            value = _required(values[i], i, path)
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
            value = _required(values[i], i, path)
            data = value.encode() if isinstance(value, str) else value
            if size is None:
                out += encode_varint(len(data))
            elif size not in (REST, len(data)):
                raise EncodeError(f"row {i}, {path}: {len(data)} bytes where the schema wants {size}")
            out += data

        return write

    def _unscaled(self, step: ReadDecimal) -> Write:
        if step.slot.digits is not None:  # its bytes are made already, see `inputs`
            return self._text(ReadBytes(step.slot, step.size))
        values, path = self._values(step.slot)
        size, scale = step.size, step.slot.type.scale

        def write(i: int, out: bytearray) -> None:
            unscaled = int(_required(values[i], i, path).scaleb(scale, EXACT))
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
            value = _required(values[i], i, path)
            if value not in places:
                raise EncodeError(f"row {i}, {path}: the enum does not have this symbol")
            out += places[value]

        return write

    def _group(self, step: ReadRecord) -> Write:
        assert step.slot is not None
        present, path = self._present(step.slot)
        parts = [self.of(each) for each in step.steps]

        def write(i: int, out: bytearray) -> None:
            _required(present[i] or None, i, path)
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
            _required(present[i] or None, i, path)
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


def _required(value: Any, row: int, path: str) -> Any:
    if value is None:
        raise EncodeError(f"row {row}, {path}: null where the schema does not allow it")
    return value
