"""The decoding machine: its instruction set, and the arrays its kernel works on.

The arrays are the program, the records, the columns and scratch memory. An instruction is six integers, an opcode and
five operands. Opcodes are plain module constants, because numba folds those into the compiled code.

    opcode        a            b             c           d         e
    END           -            -             -           -          the record must end here
    STOP          -            -             -           -          end of the null row: nothing is checked
    INT           column       cast          multiply    divide    limit   also LONG
    FLOAT         column       cast          -           -
    DOUBLE        column       -             -           -          also BOOLEAN
    TEXT          column       size          utf8        -         size -1: a length in front, REST: all that is left
    DECIMAL       column       size          precision   -
    SYMBOL        column       first jump    symbols     -          jumps hold the reader's index or -1
    UNION         -            first jump    branches    -          jumps hold addresses
    ENTER         column       end address   register    floor      reads the first block header
    AGAIN         column       body address  register    floor      next item, or next block header
    VALID         column       -             -           -
    NULL          column       -             -           -
    JUMP          address      -             -           -
    CONSTANT      start        end           -           -          reads go to the constants until RESUME
    RESUME        -            -             -           -
    FAIL          reason       -             -           -          a branch the reader cannot read
    DIGITS        column       size          precision   scale      a wide decimal as text
    CALL          address      -             -           -          a routine, which begins with KEEP
    KEEP          -            first         registers   -          a routine's registers, for the call around this one
    RETURN        -            first         registers   -
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

END = 0
STOP = 1
INT = 2
LONG = 3
FLOAT = 4
DOUBLE = 5
BOOLEAN = 6
TEXT = 7
DECIMAL = 8
SYMBOL = 9
UNION = 10
ENTER = 11
AGAIN = 12
VALID = 13
NULL = 14
JUMP = 15
CONSTANT = 16
RESUME = 17
FAIL = 18
DIGITS = 20
CALL = 21
KEEP = 22
RETURN = 23

WIDTH = 6
"""Integers per instruction."""
REST = -2
"""`steps.REST`."""
NO_COLUMN = -1
"""Operand of an instruction that reads past a value."""


Ints: TypeAlias = npt.NDArray[np.int64]
Bytes: TypeAlias = npt.NDArray[np.uint8]


class Program(NamedTuple):
    """What to execute. `code` has `WIDTH` integers per row; `powers[p]` is 10**p as (low, high) words.

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
