"""Compiles steps to the integer program the kernel runs; all writers of a decoder share one program and one layout."""

from __future__ import annotations

import numpy as np

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
from stele.spark.engines.vm import machine as op
from stele.spark.engines.vm.machine import Program

MOST_INSTRUCTIONS = 200_000
"""Limit on one decoder's program: named types used again and again inside each other grow exponentially."""

_NUMBERS = {
    NumberEncoding.INT: op.INT,
    NumberEncoding.LONG: op.LONG,
    NumberEncoding.FLOAT: op.FLOAT,
    NumberEncoding.DOUBLE: op.DOUBLE,
    NumberEncoding.BOOLEAN: op.BOOLEAN,
}


def _powers_of_ten() -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    """10**p for p in 0…38 as (low, high) words."""
    table = [(10**p & (2**64 - 1), 10**p >> 64) for p in range(39)]
    return np.array(table, np.uint64)


class DecodeAssembler:
    """Grows a program writer by writer; `root` is the reader's layout, whose null row comes first."""

    def __init__(self, root: Slot) -> None:
        self._code: list[tuple[int, int, int, int, int, int]] = []
        self._jumps: list[int] = []
        self._constants = bytearray()
        self._registers = 0
        self._routines: dict[SkipRoutine, int] = {}
        self._most_kept = 0
        for slot in root.slots_with_null():
            self._add_instruction(op.NULL, slot.index)
        self._add_instruction(op.STOP)

    def add(self, step: Step) -> int:
        """Compile one writer's steps; the address where its program begins."""
        begin = len(self._code)
        self._add_step(step)
        self._add_instruction(op.END)
        return begin

    def program(self) -> Program:
        """Return all that has been compiled so far."""
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
        column = op.NO_COLUMN if step.slot is None else step.slot.index
        match step:
            case ReadNumber(wire=NumberEncoding.INT | NumberEncoding.LONG):
                self._add_instruction(_NUMBERS[step.wire], column, step.cast, step.multiply, step.divide, step.limit)
            case ReadNumber():
                self._add_instruction(_NUMBERS[step.wire], column, step.cast)
            case ReadBytes():
                self._add_instruction(op.TEXT, column, -1 if step.size is None else step.size, int(step.utf8))
            case ReadDecimal():
                code = op.DECIMAL if step.slot.digits is None else op.DIGITS
                self._add_instruction(code, column, -1 if step.size is None else step.size, step.precision, step.scale)
            case ReadEnum():
                self._add_instruction(op.SYMBOL, column, len(self._jumps), len(step.mapping))
                self._jumps.extend(step.mapping)
            case ReadNull():
                for slot in step.slot.slots_with_null() if step.slot else ():
                    self._add_instruction(op.NULL, slot.index)
            case ReadMember():
                self._add_instruction(op.VALID, column)
                self._add_step(step.step)
                for other in step.others:
                    self._add_step(ReadNull(other))
            case ReadRecord():
                if step.slot is not None:
                    self._add_instruction(op.VALID, column)
                for each in step.steps:
                    self._add_step(each)
            case ReadDefault():
                begin = len(self._constants)
                self._constants += step.data
                self._add_instruction(op.CONSTANT, begin, len(self._constants))
                self._add_step(step.step)
                self._add_instruction(op.RESUME)
            case ReadItems():
                self._add_items(step, column)
            case RefuseValue():
                self._add_instruction(op.FAIL, step.code)
            case ReadUnion():
                self._add_union(step)
            case RequireEmpty():
                self._add_step(step.step)
            case CallSkip():
                self._add_skip_call(step.routine)

    def _add_skip_call(self, routine: SkipRoutine) -> None:
        """A call; behind the first one is the routine."""
        if routine in self._routines:
            self._add_instruction(op.CALL, self._routines[routine])
            return
        begin = self._routines[routine] = len(self._code) + 2
        self._add_instruction(op.CALL, begin)
        over, keep, first = self._add_instruction(op.JUMP), self._add_instruction(op.KEEP), self._registers
        self._add_step(routine.step)
        used = self._registers - first
        self._most_kept = max(self._most_kept, used + 1)
        self._add_instruction(op.RETURN, 0, first, used)
        self._code[keep] = (op.KEEP, 0, first, used, 0, 0)
        self._code[over] = (op.JUMP, len(self._code), 0, 0, 0, 0)

    def _add_items(self, step: ReadItems, column: int) -> None:
        register = self._registers
        self._registers += 1
        enter = self._add_instruction(op.ENTER)
        if step.key is not None:
            self._add_step(step.key)
        self._add_step(step.item)
        self._add_instruction(op.AGAIN, column, enter + 1, register, step.least_entry_size)
        self._code[enter] = (op.ENTER, column, len(self._code), register, step.least_entry_size, 0)

    def _add_union(self, step: ReadUnion) -> None:
        first = len(self._jumps)
        self._jumps.extend(0 for _ in step.steps)
        self._add_instruction(op.UNION, 0, first, len(step.steps))
        exits = []
        for number, each in enumerate(step.steps):
            self._jumps[first + number] = len(self._code)
            self._add_step(each)
            exits.append(self._add_instruction(op.JUMP))
        for exit_ in exits:
            self._code[exit_] = (op.JUMP, len(self._code), 0, 0, 0, 0)
