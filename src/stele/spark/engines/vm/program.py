"""Compiles steps to the integer program the kernel runs; all writers of a decoder share one program and one layout."""

from __future__ import annotations

import numpy as np

from stele.errors import DataError
from stele.spark.engines.steps import (
    MOST_LEVELS,
    Beyond,
    Branch,
    Default,
    Group,
    Member,
    Nothing,
    Number,
    Past,
    Repeat,
    Routine,
    Slot,
    Step,
    Symbol,
    Text,
    Unreadable,
    Unscaled,
    Wire,
)
from stele.spark.engines.vm import opcodes as op
from stele.spark.engines.vm.memory import Program

MOST_INSTRUCTIONS = 200_000
"""Limit on one decoder's program: named types used again and again inside each other grow exponentially."""

_NUMBERS = {
    Wire.INT: op.INT,
    Wire.LONG: op.LONG,
    Wire.FLOAT: op.FLOAT,
    Wire.DOUBLE: op.DOUBLE,
    Wire.BOOLEAN: op.BOOLEAN,
}


def _powers() -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    """10**p for p in 0…38 as (low, high) words."""
    table = [(10**p & (2**64 - 1), 10**p >> 64) for p in range(39)]
    return np.array(table, np.uint64)


class Assembler:
    """Grows a program writer by writer; `root` is the reader's layout, whose null row comes first."""

    def __init__(self, root: Slot) -> None:
        self._code: list[tuple[int, int, int, int, int, int]] = []
        self._jumps: list[int] = []
        self._constants = bytearray()
        self._registers = 0
        self._routines: dict[Routine, int] = {}
        self._most_kept = 0
        for slot in root.nulled():
            self._emit(op.NULL, slot.index)
        self._emit(op.STOP)

    def add(self, step: Step) -> int:
        """Compile one writer's steps; the address where its program begins."""
        begin = len(self._code)
        self._step(step)
        self._emit(op.END)
        return begin

    def program(self) -> Program:
        """All that has been compiled so far."""
        constants = np.frombuffer(bytes(self._constants) or b"\0", np.uint8)
        return Program(
            code=np.array(self._code, np.int64),
            jumps=np.array(self._jumps or [0], np.int64),
            constants=constants,
            powers=_powers(),
            registers=self._registers,
            stack=self._most_kept * MOST_LEVELS,
            null_row=0,
        )

    def _emit(self, opcode: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0, e: int = 0) -> int:
        if len(self._code) >= MOST_INSTRUCTIONS:
            raise DataError(f"the schema unfolds to more than {MOST_INSTRUCTIONS} decoding instructions")
        self._code.append((opcode, a, b, c, d, e))
        return len(self._code) - 1

    def _step(self, step: Step) -> None:
        column = op.NO_COLUMN if step.slot is None else step.slot.index
        match step:
            case Number(wire=Wire.INT | Wire.LONG):
                self._emit(_NUMBERS[step.wire], column, step.cast, step.multiply, step.divide, step.limit)
            case Number():
                self._emit(_NUMBERS[step.wire], column, step.cast)
            case Text():
                self._emit(op.TEXT, column, -1 if step.size is None else step.size, int(step.utf8))
            case Unscaled():
                code = op.DECIMAL if step.slot.digits is None else op.DIGITS
                self._emit(code, column, -1 if step.size is None else step.size, step.precision, step.scale)
            case Symbol():
                self._emit(op.SYMBOL, column, len(self._jumps), len(step.mapping))
                self._jumps.extend(step.mapping)
            case Nothing():
                for slot in step.slot.nulled() if step.slot else ():
                    self._emit(op.NULL, slot.index)
            case Member():
                self._emit(op.VALID, column)
                self._step(step.step)
                for other in step.others:
                    self._step(Nothing(other))
            case Group():
                if step.slot is not None:
                    self._emit(op.VALID, column)
                for each in step.steps:
                    self._step(each)
            case Default():
                begin = len(self._constants)
                self._constants += step.data
                self._emit(op.CONSTANT, begin, len(self._constants))
                self._step(step.step)
                self._emit(op.RESUME)
            case Repeat():
                self._repeat(step, column)
            case Unreadable():
                self._emit(op.FAIL, step.code)
            case Branch():
                self._branch(step)
            case Beyond():
                self._step(step.step)
            case Past():
                self._past(step.routine)

    def _past(self, routine: Routine) -> None:
        """A call; behind the first one is the routine."""
        if routine in self._routines:
            self._emit(op.CALL, self._routines[routine])
            return
        begin = self._routines[routine] = len(self._code) + 2
        self._emit(op.CALL, begin)
        over, keep, first = self._emit(op.JUMP), self._emit(op.KEEP), self._registers
        self._step(routine.step)
        used = self._registers - first
        self._most_kept = max(self._most_kept, used + 1)
        self._emit(op.RETURN, 0, first, used)
        self._code[keep] = (op.KEEP, 0, first, used, 0, 0)
        self._code[over] = (op.JUMP, len(self._code), 0, 0, 0, 0)

    def _repeat(self, step: Repeat, column: int) -> None:
        register = self._registers
        self._registers += 1
        enter = self._emit(op.ENTER)
        if step.key is not None:
            self._step(step.key)
        self._step(step.item)
        self._emit(op.AGAIN, column, enter + 1, register, step.floor)
        self._code[enter] = (op.ENTER, column, len(self._code), register, step.floor, 0)

    def _branch(self, step: Branch) -> None:
        first = len(self._jumps)
        self._jumps.extend(0 for _ in step.steps)
        self._emit(op.UNION, 0, first, len(step.steps))
        exits = []
        for number, each in enumerate(step.steps):
            self._jumps[first + number] = len(self._code)
            self._step(each)
            exits.append(self._emit(op.JUMP))
        for exit_ in exits:
            self._code[exit_] = (op.JUMP, len(self._code), 0, 0, 0, 0)
