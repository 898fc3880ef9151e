"""Decimals of more digits than 128 bits hold, as text; compiled like the kernel that calls it."""

from __future__ import annotations

import numpy as np

from stele.spark.engines.error_codes import ErrorCode
from stele.spark.engines.vm.jit import compile_kernel
from stele.spark.engines.vm.memory import Bytes, Scratch

EMPTY_DECIMAL, DECIMAL_RANGE = int(ErrorCode.EMPTY_DECIMAL), int(ErrorCode.DECIMAL_RANGE)
WIDTH = 32
"""Bytes of the longest decimal: 76 digits need 253 bits."""


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
    """Divide the limbs by ten; the rest."""
    rest = np.uint64(0)
    for k in range(7, -1, -1):
        part = rest << np.uint64(32) | scratch.limbs[k]
        scratch.limbs[k] = part // np.uint64(10)
        rest = part % np.uint64(10)
    return np.int64(rest)  # type: ignore[return-value]  # an int to numba


@compile_kernel
def decimal_text(source: Bytes, at: int, length: int, precision: int, scale: int, scratch: Scratch) -> tuple[int, int]:
    """(first byte, reason): the number as text up to the end of `scratch.text`, with all digits of its scale."""
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
