"""The decoding machine: its instruction set, the arrays its kernel works on, and the compiler from steps to programs.

All writers of a decoder share one program and one layout.

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

from stele.errors import DataError
from stele.spark.engines.steps import (
    MAX_SKIP_DEPTH,
    CallSkip,
    NumberEncoding,
    ReadBytes,
    ReadDecimal,
    ReadDefault,
    ReadEnum,
    ReadItems,
    ReadMember,
    ReadNull,
    ReadNumber,
    ReadRecord,
    ReadUnion,
    RefuseValue,
    RequireEmpty,
    SkipRoutine,
    Slot,
    Step,
)

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
"""The same value as `steps.REST`."""
NO_COLUMN = -1
"""Operand of an instruction that skips a value."""


Ints: TypeAlias = npt.NDArray[np.int64]
Bytes: TypeAlias = npt.NDArray[np.uint8]


class Program(NamedTuple):
    """The program to execute. `code` has `WIDTH` integers per row; `powers[p]` is 10**p as (low, high) words.

    `registers` and `stack` are the number of integers of each.
    """

    code: Ints
    jumps: Ints
    constants: Bytes
    powers: npt.NDArray[np.uint64]
    registers: int
    stack: int
    null_row: int


class Rows(NamedTuple):
    """The records: for each its start and end in `source`, its program's address, its error code and error offset."""

    source: Bytes
    starts: Ints
    ends: Ints
    entries: Ints
    codes: Bytes
    offsets: Ints


class Columns(NamedTuple):
    """The output memory of columns. `entries` and `size` (in bytes or list items) count what is written so far.

    The bases are where each column begins in the shared arrays.
    """

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
    """Working memory. Kernels allocate no memory, so that they need no reference counts (see `jit`).

    It has one register per array or map of the program, and a stack for the registers of routines. It keeps `entries`
    and `size` from before the row. It has one number of each float type that shares its memory with an integer, to
    reinterpret bits. It holds a wide decimal as 32-bit limbs, low one first, and as text.
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
        """Return memory for a program and its columns."""
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


MOST_INSTRUCTIONS = 200_000
"""Maximum number of instructions of a decoder. Named types used inside each other can grow exponentially."""

_NUMBERS = {
    NumberEncoding.INT: INT,
    NumberEncoding.LONG: LONG,
    NumberEncoding.FLOAT: FLOAT,
    NumberEncoding.DOUBLE: DOUBLE,
    NumberEncoding.BOOLEAN: BOOLEAN,
}


def _powers_of_ten() -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    """Return 10**p for p in 0…38 as (low, high) words."""
    table = [(10**p & (2**64 - 1), 10**p >> 64) for p in range(39)]
    return np.array(table, np.uint64)


class DecodeAssembler:
    """Compiles the programs of one writer after the other.

    `root` is the reader's layout, whose null row comes first.
    """

    def __init__(self, root: Slot) -> None:
        self._code: list[tuple[int, int, int, int, int, int]] = []
        self._jumps: list[int] = []
        self._constants = bytearray()
        self._registers = 0
        self._routines: dict[SkipRoutine, int] = {}
        self._most_kept = 0
        for slot in root.slots_with_null():
            self._add_instruction(NULL, slot.index)
        self._add_instruction(STOP)

    def add(self, step: Step) -> int:
        """Compile one writer's steps and return the address of its program."""
        begin = len(self._code)
        self._add_step(step)
        self._add_instruction(END)
        return begin

    def program(self) -> Program:
        """Return the program with everything compiled so far."""
        constants = np.frombuffer(bytes(self._constants) or b"\0", np.uint8)
        return Program(
            code=np.array(self._code, np.int64),
            jumps=np.array(self._jumps or [0], np.int64),
            constants=constants,
            powers=_powers_of_ten(),
            registers=self._registers,
            stack=self._most_kept * MAX_SKIP_DEPTH,
            null_row=0,
        )

    def _add_instruction(self, opcode: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0, e: int = 0) -> int:
        if len(self._code) >= MOST_INSTRUCTIONS:
            raise DataError(f"the schema unfolds to more than {MOST_INSTRUCTIONS} decoding instructions")
        self._code.append((opcode, a, b, c, d, e))
        return len(self._code) - 1

    def _add_step(self, step: Step) -> None:
        column = NO_COLUMN if step.slot is None else step.slot.index
        match step:
            case ReadNumber(wire=NumberEncoding.INT | NumberEncoding.LONG):
                self._add_instruction(_NUMBERS[step.wire], column, step.cast, step.multiply, step.divide, step.limit)
            case ReadNumber():
                self._add_instruction(_NUMBERS[step.wire], column, step.cast)
            case ReadBytes():
                self._add_instruction(TEXT, column, -1 if step.size is None else step.size, int(step.utf8))
            case ReadDecimal():
                code = DECIMAL if step.slot.digits is None else DIGITS
                self._add_instruction(code, column, -1 if step.size is None else step.size, step.precision, step.scale)
            case ReadEnum():
                self._add_instruction(SYMBOL, column, len(self._jumps), len(step.mapping))
                self._jumps.extend(step.mapping)
            case ReadNull():
                for slot in step.slot.slots_with_null() if step.slot else ():
                    self._add_instruction(NULL, slot.index)
            case ReadMember():
                self._add_instruction(VALID, column)
                self._add_step(step.step)
                for other in step.others:
                    self._add_step(ReadNull(other))
            case ReadRecord():
                if step.slot is not None:
                    self._add_instruction(VALID, column)
                for each in step.steps:
                    self._add_step(each)
            case ReadDefault():
                begin = len(self._constants)
                self._constants += step.data
                self._add_instruction(CONSTANT, begin, len(self._constants))
                self._add_step(step.step)
                self._add_instruction(RESUME)
            case ReadItems():
                self._add_items(step, column)
            case RefuseValue():
                self._add_instruction(FAIL, step.code)
            case ReadUnion():
                self._add_union(step)
            case RequireEmpty():
                self._add_step(step.step)
            case CallSkip():
                self._add_skip_call(step.routine)

    def _add_skip_call(self, routine: SkipRoutine) -> None:
        """Add a call of a routine; the routine itself follows the first call."""
        if routine in self._routines:
            self._add_instruction(CALL, self._routines[routine])
            return
        begin = self._routines[routine] = len(self._code) + 2
        self._add_instruction(CALL, begin)
        over, keep, first = self._add_instruction(JUMP), self._add_instruction(KEEP), self._registers
        self._add_step(routine.step)
        used = self._registers - first
        self._most_kept = max(self._most_kept, used + 1)
        self._add_instruction(RETURN, 0, first, used)
        self._code[keep] = (KEEP, 0, first, used, 0, 0)
        self._code[over] = (JUMP, len(self._code), 0, 0, 0, 0)

    def _add_items(self, step: ReadItems, column: int) -> None:
        register = self._registers
        self._registers += 1
        enter = self._add_instruction(ENTER)
        if step.key is not None:
            self._add_step(step.key)
        self._add_step(step.item)
        self._add_instruction(AGAIN, column, enter + 1, register, step.least_entry_size)
        self._code[enter] = (ENTER, column, len(self._code), register, step.least_entry_size, 0)

    def _add_union(self, step: ReadUnion) -> None:
        first = len(self._jumps)
        self._jumps.extend(0 for _ in step.steps)
        self._add_instruction(UNION, 0, first, len(step.steps))
        exits = []
        for number, each in enumerate(step.steps):
            self._jumps[first + number] = len(self._code)
            self._add_step(each)
            exits.append(self._add_instruction(JUMP))
        for exit_ in exits:
            self._code[exit_] = (JUMP, len(self._code), 0, 0, 0, 0)
