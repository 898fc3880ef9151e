"""The scan: one loop over the fields of every message of a batch. Compiled, so it keeps to numbers and arrays.

It runs twice. The first time it counts the items of repeated fields, the second time it fills memory of that size.
A record it cannot read gets status 1 and is left as it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stele.spark.engines.vm.jit import compile_kernel
from stele.spark.engines.vm.kernel import is_utf8

VARINT, ZIGZAG, FIXED32, FIXED64, BYTES, TEXT, MESSAGE = range(7)
"""How values of a slot are written."""
MAX_DEPTH = 64
"""Messages inside each other; deeper ones are left to the parser."""
_BAD = -1


@compile_kernel
def read_varint(source: Any, at: int, end: int) -> tuple[int, int]:
    """(bits, next position) of an integer; the position is -1 for one that does not end, or has more than 64 bits."""
    bits = np.uint64(0)
    shift = np.uint64(0)
    while at < end:
        byte = source[at]
        at += 1
        if shift == np.uint64(63) and byte > 1:
            return np.int64(0), _BAD  # type: ignore[return-value]  # an int to numba
        bits |= np.uint64(byte & np.uint8(127)) << shift
        if byte < 128:
            return np.int64(bits), at  # type: ignore[return-value]  # likewise
        shift += np.uint64(7)
    return np.int64(0), _BAD  # type: ignore[return-value]  # likewise


@compile_kernel
def read_fixed(source: Any, at: int, size: int) -> int:
    """Little-endian bytes as bits."""
    bits = np.uint64(0)
    for k in range(size):
        bits |= np.uint64(source[at + k]) << np.uint64(8 * k)
    return np.int64(bits)  # type: ignore[return-value]  # an int to numba


@compile_kernel
def skip_field(source: Any, at: int, end: int, wire: int) -> int:
    """Return where a field of this wire type ends, -1 where it does not."""
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
    """(bits, next position) of a number of this kind; the position is -1 where there is none."""
    if kind <= ZIGZAG:
        return read_varint(source, at, end)
    size = 4 if kind == FIXED32 else 8
    if at + size > end:
        return np.int64(0), _BAD  # type: ignore[return-value]  # an int to numba
    return read_fixed(source, at, size), at + size


@compile_kernel
def put_value(fill: bool, slot: int, place: int, bits: int, size: int, tables: Any, memory: Any) -> bool:
    """Keep a value; False for a second member of a oneof."""
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
             may come once only
    memory   by slot: where values and counts begin; by oneof: where members begin; by scope: how many there are; then
             values, sizes, marks of those seen, counts of items, and the member each oneof has
    stack    ends, nodes and places of the messages around
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
    """Copy pieces of the source one behind the other."""
    to = 0
    for k in range(len(starts)):
        for j in range(sizes[k]):
            out[to + j] = source[starts[k] + j]
        to += sizes[k]
