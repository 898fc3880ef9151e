"""The encoding kernel: one loop that interprets a program over every row, first for sizes, then for bytes.

Rows are read in place: arrays of one scope share an index, a list opens a scope for its items (see `inputs`), so
nothing is counted along. Compiled by numba, so it keeps to numbers, arrays and tuples of them.

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

from stele.spark.engines.vm import machine as op
from stele.spark.engines.vm.jit import compile_kernel
from stele.spark.engines.vm.machine import Bytes, Ints

LITERAL = 19
FINE, IS_NULL, WRONG_SIZE, WRONG_SYMBOL, WRONG_RANGE = 0, 1, 2, 3, 4
LONG_MAX = 2**63 - 1


class Sources(NamedTuple):
    """The rows: per column its scope, and where its words, validity and data begin."""

    scopes: Ints
    word_base: Ints
    entry_base: Ints
    data_base: Ints
    words: Ints
    valid: Bytes
    data: Bytes


@compile_kernel
def put_varint(fill: bool, out: Bytes, to: int, value: int) -> int:
    """Write a zig-zag integer; the position behind it."""
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
    """Write the fewest bytes that hold the number, or exactly `size` bytes.

    `size` also says whether the count of the bytes stands in front. Returns (position, fault).
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
    """Return one pass; (row, column, fault) of the first row that cannot be written, else fault 0.

    `tombstones` says that null rows stay null. `index` and `stop` are working memory per scope; `ends` takes sizes in
    the first pass and gives positions in the second.
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
