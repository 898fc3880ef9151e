"""From the memory of a scan to Arrow columns."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from google.protobuf.descriptor import FieldDescriptor as F

from stele.spark.decode.formats.plans import Struct
from stele.spark.decode.formats.scan.kernel import BYTES, MAX_DEPTH, MESSAGE, TEXT, copy_pieces, run
from stele.spark.decode.formats.scan.tables import Layout, Slot
from stele.spark.engines.arrow import Column, as_buffer

Ints = npt.NDArray[np.int64]
_SECONDS: Final = (-62_135_596_800, 253_402_300_799)
_SPAN: Final = 315_576_000_000


MAX_BYTES: Final = 1 << 26
"""Values of all slots of a batch: a message of two bytes may have a thousand of them."""


class ScanRefused(Exception):
    """A batch with something in it that the parser has to read."""


class Scan:
    """One batch scanned. Raises `ScanRefused`."""

    def __init__(self, layout: Layout, source: npt.NDArray[np.uint8], starts: Ints, ends: Ints, status: Any) -> None:
        self._layout, self._source = layout, source
        stack = tuple(np.zeros(MAX_DEPTH + 1, np.int64) for _ in range(3))
        self._n = np.zeros(layout.scopes, np.int64)
        self._lay_out(np.zeros(layout.scopes, np.int64))
        run(False, source, starts, ends, status, layout.tables, self._allocate(), stack)
        self._n[0] = len(starts)
        self._lay_out(self._n.copy())
        self._n[:] = 0
        run(True, source, starts, ends, status, layout.tables, self._allocate(), stack)
        self._n[0] = len(starts)

    def _lay_out(self, sizes: Ints) -> None:
        """Memory for so many values of each scope."""
        slots = self._layout.slots
        self._base = _start_offsets([int(sizes[slot.scope]) for slot in slots])
        self._counted = _start_offsets([int(sizes[slot.owner]) if slot.repeated else 0 for slot in slots])
        self._group = _start_offsets([int(sizes[scope]) for scope in self._layout.oneofs])
        total = max(int(self._base[-1]), 1)
        if total > MAX_BYTES:
            raise ScanRefused
        self._values, self._sizes = np.zeros(total, np.int64), np.zeros(total, np.int64)
        self._seen = np.zeros(total, np.uint8)
        self._counts = np.zeros(max(int(self._counted[-1]), 1), np.int64)
        self._members = np.zeros(max(int(self._group[-1]), 1), np.int64)

    def _allocate(self) -> tuple[Any, ...]:
        places = (self._base, self._counted, self._group, self._n)
        return (*places, self._values, self._sizes, self._seen, self._counts, self._members)

    def column(self, plan: Struct) -> Column:
        """The records. Raises `ScanRefused`."""
        return self._build_struct(self._layout.root, plan, int(self._n[0]), None)

    def _build_struct(self, slots: list[Slot], plan: Struct, n: int, mask: Any) -> Column:
        children = [self._build_field(slot) for slot in slots]
        if not children:
            return (
                pa.array([{}] * n, plan.type)
                if mask is None
                else pa.array([None if no else {} for no in mask], plan.type)
            )
        return pa.StructArray.from_arrays(
            children, fields=list(plan.type), mask=None if mask is None else pa.array(mask)
        )

    def _build_field(self, slot: Slot) -> Column:
        if not slot.repeated:
            return self._build_value(slot)
        begin, owners = int(self._counted[slot.place]), int(self._n[slot.owner])
        counts = self._counts[begin : begin + owners]
        ends = np.cumsum(counts)
        offsets: Column = pa.array(np.concatenate(([0], ends)).astype(np.int32))
        if pa.types.is_map(slot.plan.type):
            keys, items = self._build_field(slot.inner[0]), self._build_field(slot.inner[1])
            _refuse_repeats(keys, counts)
            return pa.MapArray.from_arrays(offsets, keys, items, type=slot.plan.type)  # type: ignore[call-overload]  # the stubs lag behind
        items = self._build_value(slot)
        return pa.ListArray.from_arrays(offsets, items, type=pa.list_(pa.field("element", items.type)))

    def _build_value(self, slot: Slot) -> Column:
        begin, n = int(self._base[slot.place]), int(self._n[slot.scope])
        mask = self._seen[begin : begin + n] == 0 if slot.optional else None
        if slot.kind == MESSAGE:
            if isinstance(slot.plan, Struct):
                return self._build_struct(slot.inner, slot.plan, n, mask)
            if len(slot.inner) == 1:
                return self._build_leaf(slot.inner[0], n, mask)
            return self._build_instant(slot, n, mask)
        return self._build_leaf(slot, n, mask)

    def _build_leaf(self, slot: Slot, n: int, mask: Any) -> Column:
        begin = int(self._base[slot.place])
        values = self._values[begin : begin + n]
        if slot.kind in (BYTES, TEXT):
            return self._build_bytes(slot, values, self._sizes[begin : begin + n], mask)
        if slot.type == F.TYPE_ENUM:
            there, places = np.unique(values.astype(np.int32), return_inverse=True)
            words = [slot.names.get(int(number)) or str(int(number)) for number in there]
            taken: Column = pa.array(places.astype(np.int32), mask=mask)
            return pa.array(words, pa.string()).take(taken)
        made = pa.array(_numbers_from_bits(slot.type, values), mask=mask)
        return made if made.type == slot.plan.type else made.cast(slot.plan.type)

    def _build_bytes(self, slot: Slot, starts: Ints, sizes: Ints, mask: Any) -> Column:
        ends = np.cumsum(sizes)
        total = int(ends[-1]) if len(ends) else 0
        if total >= 1 << 31:
            raise ScanRefused
        out = np.empty(total, np.uint8)
        copy_pieces(self._source, starts, sizes, out)
        offsets = np.concatenate(([0], ends)).astype(np.int32)
        valid = None if mask is None else pa.array(~mask).buffers()[1]
        kind = pa.string() if slot.kind == TEXT else pa.binary()
        return pa.Array.from_buffers(kind, len(starts), [valid, as_buffer(offsets), as_buffer(out)])

    def _build_instant(self, slot: Slot, n: int, mask: Any) -> Column:
        """A Timestamp or Duration in microseconds."""
        parts = {}
        for inner in slot.inner:
            begin = int(self._base[inner.place])
            parts[inner.number] = self._values[begin : begin + n]
        seconds, nanos = parts[1], parts[2].astype(np.int32).astype(np.int64)
        low, high = _SECONDS if pa.types.is_timestamp(slot.plan.type) else (-_SPAN, _SPAN)
        if n and (seconds.min() < low or seconds.max() > high or np.abs(nanos).max() >= 1_000_000_000):
            raise ScanRefused
        return pa.array(seconds * 1_000_000 + nanos // 1000, mask=mask).cast(slot.plan.type)


def _start_offsets(sizes: list[int]) -> Ints:
    return np.concatenate(([0], np.cumsum(np.array(sizes, np.int64)))).astype(np.int64)


def _refuse_repeats(keys: Column, counts: Ints) -> None:
    """Raise `ScanRefused` where a map has a key twice: the last one counts, which the parser knows."""
    if not len(keys):
        return
    codes = np.asarray(keys.dictionary_encode().indices).astype(np.int64)
    owners = np.repeat(np.arange(len(counts)), counts)
    if len(np.unique(owners * (int(codes.max()) + 1) + codes)) < len(codes):
        raise ScanRefused


def _numbers_from_bits(kind: int, bits: Ints) -> Any:
    """Numbers of a type from their bits."""
    match kind:
        case F.TYPE_INT32 | F.TYPE_SFIXED32:
            return bits.astype(np.int32)
        case F.TYPE_UINT32 | F.TYPE_FIXED32:
            return bits.astype(np.uint32).astype(np.int64)
        case F.TYPE_UINT64 | F.TYPE_FIXED64:
            return bits.view(np.uint64)
        case F.TYPE_SINT32:
            low = bits.astype(np.uint32)
            return (low >> np.uint32(1)).astype(np.int32) ^ -(low & np.uint32(1)).astype(np.int32)
        case F.TYPE_SINT64:
            whole = bits.view(np.uint64)
            return (whole >> np.uint64(1)).astype(np.int64) ^ -(whole & np.uint64(1)).astype(np.int64)
        case F.TYPE_BOOL:
            return bits != 0
        case F.TYPE_FLOAT:
            return bits.astype(np.uint32).view(np.float32)
        case F.TYPE_DOUBLE:
            return bits.view(np.float64)
    return bits
