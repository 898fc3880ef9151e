"""The decoding kernel: one loop that interprets a program over every record of a batch, in row order."""

from __future__ import annotations

from typing import Any

import numpy as np

from stele.spark.engines.error_codes import FREE_ITEMS, ErrorCode
from stele.spark.engines.steps import MAX_SKIP_DEPTH, NumberCast, SlotKind
from stele.spark.engines.vm import program as op
from stele.spark.engines.vm.jit import compile_kernel
from stele.spark.engines.vm.program import Bytes, Columns, Program, Rows, Scratch

EMPTY_DECIMAL, DECIMAL_RANGE = int(ErrorCode.EMPTY_DECIMAL), int(ErrorCode.DECIMAL_RANGE)
WIDTH = 32
"""Maximum size of a decimal in bytes: 76 digits need 253 bits."""


@compile_kernel
def load_limbs(source: Bytes, at: int, length: int, scratch: Scratch) -> bool:
    """Keep the magnitude of a big-endian two's complement integer in the limbs; False when it is too long."""
    limbs = scratch.limbs
    sign = np.uint8(255) if source[at] > 127 else np.uint8(0)
    for k in range(length - WIDTH):
        if source[at + k] != sign:
            return False
    if length > WIDTH and (source[at + length - WIDTH] > 127) != (sign != 0):
        return False
    carry = np.uint64(1) if sign != 0 else np.uint64(0)
    for place in range(WIDTH):
        byte = source[at + length - 1 - place] if place < length else sign
        part = np.uint64(byte ^ sign) + carry
        carry = part >> np.uint64(8)
        part &= np.uint64(255)
        shift = np.uint64(8 * (place % 4))
        if place % 4 == 0:
            limbs[place // 4] = part
        else:
            limbs[place // 4] |= part << shift
    return True


@compile_kernel
def next_digit(scratch: Scratch) -> int:
    """Divide the limbs by ten and return the remainder."""
    rest = np.uint64(0)
    for k in range(7, -1, -1):
        part = rest << np.uint64(32) | scratch.limbs[k]
        scratch.limbs[k] = part // np.uint64(10)
        rest = part % np.uint64(10)
    return np.int64(rest)  # type: ignore[return-value]  # an int to numba


@compile_kernel
def decimal_text(source: Bytes, at: int, length: int, precision: int, scale: int, scratch: Scratch) -> tuple[int, int]:
    """Write the number as text at the end of `scratch.text`, with all digits of its scale.

    Returns (first byte, reason).
    """
    text = scratch.text
    to = len(text)
    if length == 0:
        return to, EMPTY_DECIMAL
    if not load_limbs(source, at, length, scratch):
        return to, DECIMAL_RANGE
    digits = 0
    while digits <= scale or scratch.limbs.any():
        if digits == precision and scratch.limbs.any():
            return to, DECIMAL_RANGE
        if digits == scale and scale > 0:
            to -= 1
            text[to] = ord(".")
        to -= 1
        text[to] = ord("0") + next_digit(scratch)
        digits += 1
    if source[at] > 127:
        to -= 1
        text[to] = ord("-")
    return to, 0


# numba compiles plain module integers into the code, but would look up members of an Enum
TRUNCATED, BAD_VARINT = int(ErrorCode.TRUNCATED), int(ErrorCode.BAD_VARINT)
INT_RANGE, OUT_OF_RANGE = int(ErrorCode.INT_RANGE), int(ErrorCode.OUT_OF_RANGE)
BAD_LENGTH, BAD_BOOLEAN, BAD_UTF8 = int(ErrorCode.BAD_LENGTH), int(ErrorCode.BAD_BOOLEAN), int(ErrorCode.BAD_UTF8)
BAD_SYMBOL, UNREADABLE_SYMBOL = int(ErrorCode.BAD_SYMBOL), int(ErrorCode.UNREADABLE_SYMBOL)
BAD_BRANCH = int(ErrorCode.BAD_BRANCH)
BAD_BLOCK, TOO_MANY_ITEMS = int(ErrorCode.BAD_BLOCK), int(ErrorCode.TOO_MANY_ITEMS)
ENDLESS = int(ErrorCode.ENDLESS)
EMPTY_DECIMAL, DECIMAL_RANGE, TRAILING = (
    int(ErrorCode.EMPTY_DECIMAL),
    int(ErrorCode.DECIMAL_RANGE),
    int(ErrorCode.TRAILING),
)
KIND_BYTES, KIND_LIST = int(SlotKind.BYTES), int(SlotKind.LIST)
TO_FLOAT, TO_DOUBLE = int(NumberCast.FLOAT), int(NumberCast.DOUBLE)
INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1


@compile_kernel
def to_signed(bits: Any) -> int:
    """Return the same 64 bits as a signed integer, or a smaller unsigned number widened."""
    return np.int64(bits)  # type: ignore[return-value]  # an int to numba


@compile_kernel
def read_bits(source: Bytes, at: int, end: int) -> tuple[Any, int, int]:
    """Return (bits, next position, reason) of an integer of at most 64 bits, seven per byte, low ones first."""
    bits = np.uint64(0)
    shift = np.uint64(0)
    while at < end:
        byte = source[at]
        at += 1
        if shift == np.uint64(63) and byte > 1:
            return np.uint64(0), at, BAD_VARINT
        bits |= np.uint64(byte & np.uint8(127)) << shift
        if byte < 128:
            return bits, at, 0
        shift += np.uint64(7)
    return np.uint64(0), at, TRUNCATED


@compile_kernel
def read_varint(source: Bytes, at: int, end: int) -> tuple[int, int, int]:
    """Return (value, next position, reason) of a zig-zag integer of at most 64 bits."""
    bits, at, reason = read_bits(source, at, end)
    return to_signed(bits >> np.uint64(1)) ^ -to_signed(bits & np.uint64(1)), at, reason


@compile_kernel
def read_length(source: Bytes, at: int, end: int, length: int) -> tuple[int, int, int]:
    """Return (bytes, their position, reason) of a value.

    `length` is fixed, `REST`, or negative if the length is in the data.
    """
    if length == op.REST:
        return end - at, at, 0
    if length >= 0:
        return length, at, TRUNCATED if length > end - at else 0
    length, at, reason = read_varint(source, at, end)
    return length, at, BAD_LENGTH if reason == 0 and (length < 0 or length > end - at) else reason


@compile_kernel
def is_utf8(source: Bytes, at: int, end: int) -> bool:
    """Return whether the bytes are UTF-8: no over-long forms, no surrogates, nothing above U+10FFFF."""
    while at < end:
        first = source[at]
        at += 1
        if first < 0x80:
            continue
        if first < 0xC2 or first > 0xF4:
            return False
        more = 1 if first < 0xE0 else (2 if first < 0xF0 else 3)
        if end - at < more:
            return False
        second = source[at]
        low = 0xA0 if first == 0xE0 else (0x90 if first == 0xF0 else 0x80)
        high = 0x9F if first == 0xED else (0x8F if first == 0xF4 else 0xBF)
        if second < low or second > high:
            return False
        for k in range(1, more):
            if source[at + k] & 0xC0 != 0x80:
                return False
        at += more
    return True


@compile_kernel
def put_word(fill: bool, columns: Columns, column: int, word: int) -> None:
    """Append one word."""
    if column >= 0:
        if fill:
            columns.words[columns.word_base[column] + columns.entries[column]] = word
        columns.entries[column] += 1


@compile_kernel
def put_bytes(fill: bool, columns: Columns, column: int, source: Bytes, at: int, length: int) -> None:
    """Append bytes."""
    if column >= 0:
        if fill:
            to = columns.data_base[column] + columns.size[column]
            for k in range(length):
                columns.data[to + k] = source[at + k]
            columns.words[columns.word_base[column] + columns.entries[column]] = columns.size[column] + length
        columns.size[column] += length
        columns.entries[column] += 1


@compile_kernel
def put_null(fill: bool, columns: Columns, column: int) -> None:
    """Append a null. Its word is set (an unchanged end, or 0) so that buffers never expose old memory."""
    if fill:
        entry = columns.entries[column]
        columns.valid[columns.entry_base[column] + entry] = 0
        kind = columns.kinds[column]
        if kind == KIND_BYTES or kind == KIND_LIST:  # noqa: PLR1714, SIM109 - numba makes a loop of a tuple test
            columns.words[columns.word_base[column] + entry] = columns.size[column]
    columns.entries[column] += 1


@compile_kernel
def put_decimal(
    fill: bool, columns: Columns, column: int, source: Bytes, at: int, length: int, powers: Any, precision: int
) -> int:
    """Append a big-endian two's complement integer. Return the reason when it is empty or has too many digits."""
    if length == 0:
        return EMPTY_DECIMAL
    sign = np.uint64(0xFFFFFFFFFFFFFFFF) if source[at] > 127 else np.uint64(0)
    high, low = sign, sign
    for k in range(length):
        if length - k > 16 and source[at + k] != np.uint8(sign & np.uint64(255)):
            return DECIMAL_RANGE
        high = (high << np.uint64(8)) | (low >> np.uint64(56))
        low = (low << np.uint64(8)) | np.uint64(source[at + k])
    if (high >> np.uint64(63)) != (sign >> np.uint64(63)):
        return DECIMAL_RANGE
    top, bottom = high, low
    if sign != 0:
        bottom = ~low + np.uint64(1)
        top = ~high + (np.uint64(1) if bottom == 0 else np.uint64(0))
    if top > powers[precision, 1] or (top == powers[precision, 1] and bottom >= powers[precision, 0]):
        return DECIMAL_RANGE
    if fill:
        to = columns.word_base[column] + 2 * columns.entries[column]
        columns.words[to] = np.int64(low)
        columns.words[to + 1] = np.int64(high)
    columns.entries[column] += 1
    return 0


@compile_kernel
def read_little_endian(source: Bytes, at: int, length: int) -> Any:
    """Return an unsigned number of 4 or 8 bytes."""
    bits = np.uint64(0)
    for k in range(length):
        bits |= np.uint64(source[at + k]) << np.uint64(8 * k)
    return bits


@compile_kernel
def convert_number(value: int, cast: int, multiply: int, divide: int, limit: int, scratch: Scratch) -> tuple[int, int]:
    """Return (word, reason) of an integer in the reader's unit and type."""
    if multiply > 1:
        if value > LONG_MAX // multiply or value < -(LONG_MAX // multiply):
            return 0, OUT_OF_RANGE
        value *= multiply
    if divide > 1:
        value //= divide
    if limit > 0 and (value < 0 or value >= limit):
        return 0, OUT_OF_RANGE
    if cast == TO_DOUBLE:
        scratch.double[0] = value
        return scratch.double_bits[0], 0
    if cast == TO_FLOAT:
        scratch.float_[0] = np.float64(value)
        return to_signed(scratch.float_bits[0]), 0
    return value, 0


@compile_kernel
def read_block(source: Bytes, at: int, end: int, least: int, free: int) -> tuple[int, int, int]:
    """Return (items, next position, reason) of a block header. After a negative count, the block's size follows."""
    count, at, reason = read_varint(source, at, end)
    if reason != 0:
        return 0, at, reason
    if count < 0:
        size, at, reason = read_varint(source, at, end)
        if reason != 0:
            return 0, at, reason
        if size < 0 or size > end - at or count < -LONG_MAX:
            return 0, at, BAD_BLOCK
        count = -count
    if least > 0 and count > (end - at) // least:
        return 0, at, BAD_BLOCK
    if least == 0 and count > free:
        return 0, at, TOO_MANY_ITEMS
    return count, at, 0


@compile_kernel
def decode_rows(  # noqa: PLR0915 - see below
    fill: bool, program: Program, rows: Rows, columns: Columns, scratch: Scratch
) -> None:
    """Run one pass over all rows."""
    # Long because an interpreter's loop is one thing, and reads best as one table.
    code, jumps = program.code, program.jumps
    registers, stack, text = scratch.registers, scratch.stack, scratch.text
    kept_entries, kept_size = scratch.kept_entries, scratch.kept_size
    for row in range(len(rows.starts)):
        for column in range(len(kept_entries)):
            kept_entries[column] = columns.entries[column]
            kept_size[column] = columns.size[column]
        source = rows.source
        at, end = rows.starts[row], rows.ends[row]
        outer_at, outer_end = at, end
        free = FREE_ITEMS + end - at
        top = levels = 0
        pc = rows.entries[row] if rows.codes[row] == 0 else program.null_row
        reason = 0
        while True:
            opcode, a = code[pc, 0], code[pc, 1]
            begin = at
            if opcode == op.INT or opcode == op.LONG:  # noqa: PLR1714 - numba makes a loop of a tuple test
                value, at, reason = read_varint(source, at, end)
                if reason == 0 and opcode == op.INT and (value > INT_MAX or value < -INT_MAX - 1):
                    reason = INT_RANGE
                if reason == 0 and a >= 0:
                    value, reason = convert_number(value, code[pc, 2], code[pc, 3], code[pc, 4], code[pc, 5], scratch)
                if reason != 0:
                    break
                put_word(fill, columns, a, value)
                pc += 1
            elif opcode == op.TEXT:
                length, at, reason = read_length(source, at, end, code[pc, 2])
                if reason == 0 and code[pc, 3] != 0 and not is_utf8(source, at, at + length):
                    reason = BAD_UTF8
                if reason != 0:
                    break
                put_bytes(fill, columns, a, source, at, length)
                at += length
                pc += 1
            elif opcode == op.UNION:
                value, at, reason = read_varint(source, at, end)
                if reason == 0 and (value < 0 or value >= code[pc, 3]):
                    reason = BAD_BRANCH
                if reason != 0:
                    break
                pc = jumps[code[pc, 2] + value]
            elif opcode == op.JUMP:
                pc = a
            elif opcode == op.NULL:
                put_null(fill, columns, a)
                pc += 1
            elif opcode == op.VALID:
                columns.entries[a] += 1
                pc += 1
            elif opcode == op.DOUBLE:
                if end - at < 8:
                    reason = TRUNCATED
                    break
                put_word(fill, columns, a, to_signed(read_little_endian(source, at, 8)))
                at += 8
                pc += 1
            elif opcode == op.SYMBOL:
                value, at, reason = read_varint(source, at, end)
                if reason == 0 and (value < 0 or value >= code[pc, 3]):
                    reason = BAD_SYMBOL
                if reason == 0 and a >= 0 and jumps[code[pc, 2] + value] < 0:
                    reason = UNREADABLE_SYMBOL
                if reason != 0:
                    break
                if a >= 0:
                    put_word(fill, columns, a, jumps[code[pc, 2] + value])
                pc += 1
            elif opcode == op.DECIMAL or opcode == op.DIGITS:  # noqa: PLR1714 - as above
                length, at, reason = read_length(source, at, end, code[pc, 2])
                if reason == 0 and opcode == op.DECIMAL:
                    reason = put_decimal(fill, columns, a, source, at, length, program.powers, code[pc, 3])
                elif reason == 0:
                    first, reason = decimal_text(source, at, length, code[pc, 3], code[pc, 4], scratch)
                    if reason == 0:
                        put_bytes(fill, columns, a, text, first, len(text) - first)
                if reason != 0:
                    break
                at += length
                pc += 1
            elif opcode == op.ENTER or opcode == op.AGAIN:  # noqa: PLR1714 - as above
                register = code[pc, 3]
                if opcode == op.AGAIN:
                    registers[register] -= 1
                    if a >= 0:
                        columns.size[a] += 1
                    if registers[register] > 0:
                        pc = code[pc, 2]
                        continue
                items, at, reason = read_block(source, at, end, code[pc, 4], free)
                if reason != 0:
                    break
                if items > 0:
                    registers[register] = items
                    if code[pc, 4] == 0:
                        free -= items
                    pc = pc + 1 if opcode == op.ENTER else code[pc, 2]
                else:
                    if a >= 0:
                        put_word(fill, columns, a, columns.size[a])
                    pc = code[pc, 2] if opcode == op.ENTER else pc + 1
            elif opcode == op.FLOAT:
                if end - at < 4:
                    reason = TRUNCATED
                    break
                bits = read_little_endian(source, at, 4)
                if code[pc, 2] == TO_DOUBLE:
                    scratch.float_bits[0] = np.uint32(bits)
                    scratch.double[0] = scratch.float_[0]
                    bits = np.uint64(scratch.double_bits[0])
                put_word(fill, columns, a, to_signed(bits))
                at += 4
                pc += 1
            elif opcode == op.BOOLEAN:
                if at >= end:
                    reason = TRUNCATED
                    break
                if source[at] > 1:
                    reason = BAD_BOOLEAN
                    break
                put_word(fill, columns, a, to_signed(source[at]))
                at += 1
                pc += 1
            elif opcode == op.CONSTANT:
                outer_at, outer_end = at, end
                source, at, end = program.constants, a, code[pc, 2]
                pc += 1
            elif opcode == op.RESUME:
                source, at, end = rows.source, outer_at, outer_end
                pc += 1
            elif opcode == op.CALL:
                if levels == MAX_SKIP_DEPTH:
                    reason = ENDLESS
                    break
                stack[top] = pc + 1
                top += 1
                levels += 1
                pc = a
            elif opcode == op.KEEP:
                for k in range(code[pc, 3]):
                    stack[top + k] = registers[code[pc, 2] + k]
                top += code[pc, 3]
                pc += 1
            elif opcode == op.RETURN:
                top -= code[pc, 3] + 1
                for k in range(code[pc, 3]):
                    registers[code[pc, 2] + k] = stack[top + 1 + k]
                levels -= 1
                pc = stack[top]
            elif opcode == op.FAIL:
                reason = a
                break
            elif opcode == op.END:
                if at != end:
                    reason = TRAILING
                break
            else:
                break
        if reason != 0:
            rows.codes[row] = reason
            rows.offsets[row] = begin - rows.starts[row]
            for column in range(len(kept_entries)):
                columns.entries[column] = kept_entries[column]
                columns.size[column] = kept_size[column]
            pc = program.null_row
            while code[pc, 0] == op.NULL:
                put_null(fill, columns, code[pc, 1])
                pc += 1
