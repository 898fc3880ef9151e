"""What the decoding kernel works on: the program, the records, the columns, and scratch memory. Arrays, for numba."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Bytes: TypeAlias = npt.NDArray[np.uint8]


class Program(NamedTuple):
    """What to execute. `code` has `opcodes.WIDTH` integers per row; `powers[p]` is 10**p as (low, high) words.

    `registers` and `stack` say how many integers of each there are.
    """

    code: Ints
    jumps: Ints
    constants: Bytes
    powers: npt.NDArray[np.uint64]
    registers: int
    stack: int
    null_row: int


class Rows(NamedTuple):
    """The records: where each begins and ends in `source`, where its program begins, and what was wrong with it."""

    source: Bytes
    starts: Ints
    ends: Ints
    entries: Ints
    codes: Bytes
    offsets: Ints


class Columns(NamedTuple):
    """Where values go: `entries` and `size` in bytes (or list items) so far; the bases tell columns apart."""

    kinds: Ints
    entries: Ints
    size: Ints
    entry_base: Ints
    word_base: Ints
    data_base: Ints
    words: Ints
    valid: Bytes
    data: Bytes


class Scratch(NamedTuple):
    """Working memory: kernels allocate nothing, so that they need no reference counts (see `jit`).

    One register per array or map of the program, and a stack for those of routines; what `entries` and `size` were
    before the row; one number of each float type that shares its memory with an integer, to reinterpret bits; a wide
    decimal as 32-bit limbs, low one first, and as text.
    """

    registers: Ints
    stack: Ints
    kept_entries: Ints
    kept_size: Ints
    double: npt.NDArray[np.float64]
    double_bits: Ints
    float_: npt.NDArray[np.float32]
    float_bits: npt.NDArray[np.uint32]
    limbs: npt.NDArray[np.uint64]
    text: Bytes

    @classmethod
    def for_program(cls, program: Program, columns: int) -> Scratch:
        """Memory for a program and its columns."""
        double, float_ = np.zeros(1, np.float64), np.zeros(1, np.float32)
        return cls(
            registers=np.zeros(program.registers + 1, np.int64),
            stack=np.zeros(program.stack + 1, np.int64),
            kept_entries=np.zeros(columns, np.int64),
            kept_size=np.zeros(columns, np.int64),
            double=double,
            double_bits=double.view(np.int64),
            float_=float_,
            float_bits=float_.view(np.uint32),
            limbs=np.zeros(8, np.uint64),
            text=np.zeros(100, np.uint8),
        )
