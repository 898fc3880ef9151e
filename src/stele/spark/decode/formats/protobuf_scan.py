"""Protobuf messages into columns without a Python object for each: a compiled scan of a batch, driven by tables.

A message type becomes tables: nodes for messages, slots for fields, scopes for what they are counted by. The scan reads
what writers normally write. It leaves everything unusual (damaged bytes, a message in two parts, two members of a
oneof, groups) to Protobuf's own parser, record by record, so that parser decides what is right.

The kernel is one loop over the fields of every message of a batch. It is compiled, so it uses only numbers and arrays.
It runs twice. The first time it counts the items of repeated fields, the second time it fills memory of that size. A
record it cannot read gets status 1 and is not scanned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from google.protobuf.descriptor import FieldDescriptor as F

from stele.formats.protobuf.model import DURATION, TIMESTAMP, WRAPPERS, enum_of, is_map, map_parts, message_of
from stele.spark.decode.formats.plans import ColumnPlan, ListPlan, MapPlan, ScalarPlan, Struct
from stele.spark.engines.arrow import Column, as_buffer
from stele.spark.engines.vm import Frames, split_frames
from stele.spark.engines.vm.jit import compile_kernel
from stele.spark.engines.vm.kernel import is_utf8, read_bits, to_signed

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

VARINT, ZIGZAG, FIXED32, FIXED64, BYTES, TEXT, MESSAGE = range(7)
"""Encodings of a slot's values."""
MAX_DEPTH = 64
"""Maximum nesting depth of messages; deeper ones are left to the parser."""
_BAD = -1


@compile_kernel
def read_varint(source: Any, at: int, end: int) -> tuple[int, int]:
    """Return (bits, next position) of an integer; the position is -1 if it does not end or has more than 64 bits."""
    bits, at, reason = read_bits(source, at, end)
    return to_signed(bits), at if reason == 0 else _BAD


@compile_kernel
def read_fixed(source: Any, at: int, size: int) -> int:
    """Return little-endian bytes as bits."""
    bits = np.uint64(0)
    for k in range(size):
        bits |= np.uint64(source[at + k]) << np.uint64(8 * k)
    return np.int64(bits)  # type: ignore[return-value]  # an int to numba


@compile_kernel
def skip_field(source: Any, at: int, end: int, wire: int) -> int:
    """Return the end of a field of this wire type, or -1 if it does not end."""
    if wire == 0:
        return read_varint(source, at, end)[1]
    if wire == 1:
        return at + 8 if at + 8 <= end else _BAD
    if wire == 5:
        return at + 4 if at + 4 <= end else _BAD
    if wire == 2:
        size, after = read_varint(source, at, end)
        return after + size if after >= 0 and 0 <= size <= end - after else _BAD
    return _BAD


@compile_kernel
def read_number(source: Any, at: int, end: int, kind: int) -> tuple[int, int]:
    """Return (bits, next position) of a number of this kind; the position is -1 if there is none."""
    if kind <= ZIGZAG:
        return read_varint(source, at, end)
    size = 4 if kind == FIXED32 else 8
    if at + size > end:
        return np.int64(0), _BAD  # type: ignore[return-value]  # an int to numba
    return read_fixed(source, at, size), at + size


@compile_kernel
def put_value(fill: bool, slot: int, place: int, bits: int, size: int, tables: Any, memory: Any) -> bool:
    """Store a value; return False for a second member of a oneof."""
    _, _, _, _, _, repeated, _, scope, oneof, _ = tables
    base, counted, group, n, values, sizes, seen, counts, members = memory
    if oneof[slot] >= 0 and fill:
        before = members[group[oneof[slot]] + place]
        if before != 0 and before != slot + 1:
            return False
        members[group[oneof[slot]] + place] = slot + 1
    at = place
    if repeated[slot]:
        at = n[scope[slot]]
        n[scope[slot]] += 1
        if fill:
            counts[counted[slot] + place] += 1
    if fill:
        values[base[slot] + at] = bits
        sizes[base[slot] + at] = size
        seen[base[slot] + at] = 1
    return True


@compile_kernel
def run(  # noqa: PLR0915 - an interpreter's loop is one thing
    fill: bool, source: Any, starts: Any, ends: Any, status: Any, tables: Any, memory: Any, stack: Any
) -> None:
    """Scan all records whose status is 0.

    tables   by node: where its fields begin in the look-up, their highest number, whether it is an entry of a map; the
             look-up itself; by slot: kind, whether repeated, node of a message, scope, oneof (-1), whether a message
             can occur only once
    memory   by slot: where values and counts begin; by oneof: where members begin; by scope: the count; then values,
             sizes, marks of those seen, counts of items, and the member that each oneof has
    stack    ends, nodes and places of the enclosing messages
    """
    # Long because an interpreter's loop is one thing, and reads best as one table.
    first, highest, entry, look, kinds, repeated, child, scope, _, once = tables
    base, _, _, n, _, _, seen, _, _ = memory
    until, nodes, places = stack
    for row in range(len(starts)):
        n[0] = row + 1
        if status[row]:
            continue
        at = starts[row]
        depth = 0
        until[0], nodes[0], places[0] = ends[row], 0, row
        good = True
        while good:
            end = until[depth]
            if at == end:
                if depth == 0:
                    break
                depth -= 1
                continue
            tag, at = read_varint(source, at, end)
            number, wire = tag >> 3, tag & 7
            if at < 0 or number <= 0 or number >= 1 << 29:
                good = False
                break
            node, place = nodes[depth], places[depth]
            slot = look[first[node] + number] if number <= highest[node] else -1
            if slot < 0:
                at = skip_field(source, at, end, wire)
                good = at >= 0 and not entry[node]  # the parser may drop entries with unknown fields
                continue
            kind = kinds[slot]
            if kind < BYTES and wire != 2:
                expected = 0 if kind <= ZIGZAG else 5 if kind == FIXED32 else 1
                bits, at = read_number(source, at, end, kind)
                good = wire == expected and at >= 0 and put_value(fill, slot, place, bits, 0, tables, memory)
                continue
            if wire != 2:
                good = False
                break
            size, at = read_varint(source, at, end)
            if at < 0 or size < 0 or size > end - at:
                good = False
                break
            if kind < BYTES:  # packed
                stop = at + size
                good = bool(repeated[slot])
                while good and at < stop:
                    bits, at = read_number(source, at, stop, kind)
                    good = at >= 0 and put_value(fill, slot, place, bits, 0, tables, memory)
                continue
            if kind < MESSAGE:
                good = kind == BYTES or not fill or is_utf8(source, at, at + size)
                good = good and put_value(fill, slot, place, at, size, tables, memory)
                at += size
                continue
            if depth + 1 >= MAX_DEPTH or (fill and once[slot] and seen[base[slot] + place]):
                good = False
                break
            inner = n[scope[slot]] if repeated[slot] else place
            good = put_value(fill, slot, place, 0, 0, tables, memory)
            depth += 1
            until[depth], nodes[depth], places[depth] = at + size, child[slot], inner
        if not good:
            status[row] = 1


@compile_kernel
def copy_pieces(source: Any, starts: Any, sizes: Any, out: Any) -> None:
    """Copy pieces of the source one after the other."""
    to = 0
    for k in range(len(starts)):
        for j in range(sizes[k]):
            out[to + j] = source[starts[k] + j]
        to += sizes[k]


HIGHEST: Final = 4096
"""Highest field number that has a place in the look-up; a message with higher ones is left to the parser."""

_KINDS: Final = {
    **dict.fromkeys((F.TYPE_INT32, F.TYPE_INT64, F.TYPE_UINT32, F.TYPE_UINT64, F.TYPE_BOOL, F.TYPE_ENUM), VARINT),
    **dict.fromkeys((F.TYPE_SINT32, F.TYPE_SINT64), ZIGZAG),
    **dict.fromkeys((F.TYPE_FIXED32, F.TYPE_SFIXED32, F.TYPE_FLOAT), FIXED32),
    **dict.fromkeys((F.TYPE_FIXED64, F.TYPE_SFIXED64, F.TYPE_DOUBLE), FIXED64),
    F.TYPE_BYTES: BYTES,
    F.TYPE_STRING: TEXT,
    F.TYPE_MESSAGE: MESSAGE,
}


class ScanUnsupported(Exception):
    """Raised for a message type that is left to the parser."""


@dataclass(slots=True)
class FieldSlot:
    """A field at one place of the message; `place` is its number in the tables.

    scope   scope that counts its values: 0 the records, others the items of a repeated field
    owner   scope that the field is in; the same as scope unless it is repeated
    plan    plan of one value
    names   names of an enum's values by number
    """

    place: int
    number: int
    type: int
    kind: int
    scope: int
    owner: int
    plan: ColumnPlan
    optional: bool
    repeated: bool = False
    oneof: int = -1
    inner: list[FieldSlot] = field(default_factory=list)
    node: int = -1
    names: dict[int, str] = field(default_factory=dict)


class Layout:
    """All slots of a message, and the tables. Raises `ScanUnsupported`."""

    def __init__(self, message: Descriptor, plan: Struct) -> None:
        self.slots: list[FieldSlot] = []
        self.scopes = 1
        self.oneofs: list[int] = []
        self._nodes: list[dict[int, int]] = []
        self._entries: set[int] = set()
        self.root = self._add_message(message, plan, 0)[1]
        self.tables = self._build_tables()

    def _add_message(self, message: Descriptor, plan: Struct, scope: int) -> tuple[int, list[FieldSlot]]:
        if plan.deeper:
            raise ScanUnsupported
        groups = {}
        for each in message.oneofs:
            groups[each.name] = len(self.oneofs)
            self.oneofs.append(scope)
        node, known = self._add_node()
        slots = []
        for described, part in zip(message.fields, plan.parts, strict=True):
            slot = self._add_field(described, part.plan, scope, known)
            oneof = described.containing_oneof
            slot.oneof = -1 if oneof is None else groups[oneof.name]
            slots.append(slot)
        return node, slots

    def _add_node(self) -> tuple[int, dict[int, int]]:
        self._nodes.append({})
        return len(self._nodes) - 1, self._nodes[-1]

    def _add_field(self, described: FieldDescriptor, plan: ColumnPlan, scope: int, known: dict[int, int]) -> FieldSlot:
        repeated = described.is_repeated
        owner = scope
        if repeated:
            scope, self.scopes = self.scopes, self.scopes + 1
        one: Any = plan.item if isinstance(plan, ListPlan) else plan
        slot = self._add_slot(described, one, scope, owner, known)
        slot.repeated = repeated
        if is_map(described):
            assert isinstance(plan, MapPlan)
            slot.node, inside = self._add_node()
            self._entries.add(slot.node)
            parts = zip(map_parts(described), (plan.key, plan.item), strict=True)
            slot.inner = [self._add_field(part, each, scope, inside) for part, each in parts]
            for each in slot.inner:
                each.optional = False  # an entry without key or value has the default
        return slot

    def _add_slot(
        self, described: FieldDescriptor, plan: ColumnPlan, scope: int, owner: int, known: dict[int, int]
    ) -> FieldSlot:
        kind = _KINDS.get(described.type)
        if kind is None or described.number > HIGHEST or described.is_required:
            raise ScanUnsupported
        optional = described.has_presence and not described.is_repeated
        slot = FieldSlot(len(self.slots), described.number, described.type, kind, scope, owner, plan, optional)
        known[described.number] = len(self.slots)
        self.slots.append(slot)
        if described.type == F.TYPE_ENUM:
            enum = enum_of(described)
            if enum.is_closed:
                raise ScanUnsupported
            slot.names = {number: value.name for number, value in enum.values_by_number.items()}
        elif kind == MESSAGE and not is_map(described):
            self._is_inside(message_of(described), slot)
        return slot

    def _is_inside(self, message: Descriptor, slot: FieldSlot) -> None:
        if isinstance(slot.plan, Struct):
            slot.node, slot.inner = self._add_message(message, slot.plan, slot.scope)
        elif message.full_name in WRAPPERS or message.full_name in (TIMESTAMP, DURATION):
            assert isinstance(slot.plan, ScalarPlan)
            slot.node, inside = self._add_node()
            slot.inner = [self._add_slot(each, slot.plan, slot.scope, slot.scope, inside) for each in message.fields]
        else:
            raise ScanUnsupported

    def _build_tables(self) -> tuple[Any, ...]:
        first: list[int] = []
        highest: list[int] = []
        look: list[int] = []
        for known in self._nodes:
            first.append(len(look))
            highest.append(max(known, default=0))
            look += [known.get(number, -1) for number in range(highest[-1] + 1)]

        def column(values: list[int]) -> Any:
            return np.array(values or [0], np.int64)

        slots = self.slots
        return (
            column(first),
            column(highest),
            column([int(node in self._entries) for node in range(len(self._nodes))]),
            column(look),
            column([slot.kind for slot in slots]),
            column([int(slot.repeated) for slot in slots]),
            column([slot.node for slot in slots]),
            column([slot.scope for slot in slots]),
            column([slot.oneof for slot in slots]),
            column([int(slot.kind == MESSAGE and not slot.repeated) for slot in slots]),
        )


Ints = npt.NDArray[np.int64]
_SECONDS: Final = (-62_135_596_800, 253_402_300_799)
_SPAN: Final = 315_576_000_000


MAX_BYTES: Final = 1 << 26
"""Maximum number of values over all slots of a batch. A message of two bytes can have a thousand of them."""


class ScanRefused(Exception):
    """Raised for a batch that the parser has to read."""


class Scan:
    """The scan of one batch. Raises `ScanRefused`."""

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
        """Allocate memory for the given number of values of each scope."""
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
        """Return the records as a column. Raises `ScanRefused`."""
        return self._build_struct(self._layout.root, plan, int(self._n[0]), None)

    def _build_struct(self, slots: list[FieldSlot], plan: Struct, n: int, mask: Any) -> Column:
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

    def _build_field(self, slot: FieldSlot) -> Column:
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

    def _build_value(self, slot: FieldSlot) -> Column:
        begin, n = int(self._base[slot.place]), int(self._n[slot.scope])
        mask = self._seen[begin : begin + n] == 0 if slot.optional else None
        if slot.kind == MESSAGE:
            if isinstance(slot.plan, Struct):
                return self._build_struct(slot.inner, slot.plan, n, mask)
            if len(slot.inner) == 1:
                return self._build_leaf(slot.inner[0], n, mask)
            return self._build_instant(slot, n, mask)
        return self._build_leaf(slot, n, mask)

    def _build_leaf(self, slot: FieldSlot, n: int, mask: Any) -> Column:
        begin = int(self._base[slot.place])
        values = self._values[begin : begin + n]
        if slot.kind in (BYTES, TEXT):
            return self._build_bytes(slot, values, self._sizes[begin : begin + n], mask)
        if slot.type == F.TYPE_ENUM:
            there, places = np.unique(values.astype(np.int32), return_inverse=True)
            words = [slot.names.get(int(number)) or str(int(number)) for number in there]
            taken: Column = pa.array(places.astype(np.int32), mask=mask)
            return pa.array(words, pa.string()).take(taken)
        column = pa.array(_numbers_from_bits(slot.type, values), mask=mask)
        return column if column.type == slot.plan.type else column.cast(slot.plan.type)

    def _build_bytes(self, slot: FieldSlot, starts: Ints, sizes: Ints, mask: Any) -> Column:
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

    def _build_instant(self, slot: FieldSlot, n: int, mask: Any) -> Column:
        """Return a Timestamp or Duration in microseconds."""
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
    """Raise `ScanRefused` for a map that has a key twice: the last one is valid, which the parser handles."""
    if not len(keys):
        return
    codes = np.asarray(keys.dictionary_encode().indices).astype(np.int64)
    owners = np.repeat(np.arange(len(counts)), counts)
    if len(np.unique(owners * (int(codes.max()) + 1) + codes)) < len(codes):
        raise ScanRefused


def _numbers_from_bits(kind: int, bits: Ints) -> Any:
    """Return numbers of a type from their bits."""
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


_TOP = 64
"""Number of message indexes that take one byte."""


class Scanned(NamedTuple):
    """The scanned records, the schema ids of all frames, and the rows that are left to the parser."""

    values: Column
    numbers: Column
    left: list[int]


class Scanner:
    """Scans batches of one message type.

    accepts   whether records with a schema id and message indexes have that type
    Raises `ScanUnsupported` for a message type that is left to the parser.
    """

    def __init__(self, message: Descriptor, plan: Struct, accepts: Callable[[int, tuple[int, ...]], bool]) -> None:
        self._layout = Layout(message, plan)
        self._plan = plan
        self._accepts = accepts

    def scan(self, frames: Column) -> Scanned | None:
        """Return the scanned batch, or None when the parser has to read all of it."""
        parts = split_frames(frames)
        starts, status = self._find_starts(parts)
        try:
            scan = Scan(self._layout, parts.source, starts, parts.ends, status)
            values = scan.column(self._plan)
        except ScanRefused:
            return None
        left = np.flatnonzero(status & parts.present).tolist()
        if status.any():
            numbers = pa.array(np.arange(len(status)), pa.int64(), mask=status != 0)
            values = values.take(numbers)
        return Scanned(values, pa.array(parts.ids, mask=~parts.framed), left)

    def _find_starts(self, parts: Frames) -> tuple[Any, Any]:
        """Return where messages begin, after their indexes, and status 1 for records that do not have the type."""
        source, last = parts.source, len(parts.source) - 1
        sizes = parts.ends - parts.starts
        head = source[np.minimum(parts.starts, last)]
        following = source[np.minimum(parts.starts + 1, last)].astype(np.int64)
        bare = parts.framed & (sizes >= 1) & (head == 0)
        single = parts.framed & (sizes >= 2) & (head == 2) & (following < 2 * _TOP) & (following % 2 == 0)
        index = np.where(bare, 0, np.where(single, following // 2, -1))
        status = np.ones(len(index), np.uint8)
        for number, place in {*zip(parts.ids[index >= 0].tolist(), index[index >= 0].tolist(), strict=True)}:
            if self._accepts(number, (place,)):
                status[(index == place) & (parts.ids == number)] = 0
        return np.where(bare, parts.starts + 1, parts.starts + 2), status
