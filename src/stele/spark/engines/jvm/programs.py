"""Steps as the lists of instructions that the jar runs; each names its parts by their places in the list, parts first.

Reading (`Steps.java`). A width is how a value lies in Spark's rows: see `width`. A size is as in `steps.Text`, -1 for
a length in front.

    number        wire, column's type or "", multiply, divide, limit
    text          whether it is wanted, size, whether it must be UTF-8
    uuid
    decimal       precision, scale, size
    digits        the same, of a decimal shown as text
    symbol        the reader's symbol for each of the writer's, null for one it cannot read
    past symbol   how many symbols
    null          width
    past null
    default       bytes in base64, part
    group         columns, the place of each part (-1: nowhere), parts
    past group    parts
    member        widths of all members, place, part
    branch        parts
    fail          an error code
    past record   number of a routine, part: what the routine is, and a call of it
    past again    number of a routine around this
    array, map    width of items or values, least bytes of an entry, part
    past array, past map    least bytes of an entry, part

Writing (`Puts.java`).

    number        wire, multiply, divide
    text          size
    uuid
    decimal       size
    digits        precision, scale, size
    literal       integers
    symbol        symbols
    null
    group         names, parts
    array         part
    map           key, value
    branch        index (-1: there is only null), part, index of null or -1
    members       names, indexes, parts, index of null or -1
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Final, TypeAlias, assert_never

import pyarrow as pa

from stele.errors import DataError
from stele.spark.engines.arrow import ArrowType
from stele.spark.engines.steps import (
    Beyond,
    Branch,
    Default,
    Digits,
    Group,
    Kind,
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
    options,
)

Instruction: TypeAlias = list[Any]
Program: TypeAlias = list[Instruction]
"""As JSON has it; the last instruction is the whole value."""

SIZED: Final = -1
LONG_DIGITS: Final = 18
"""Digits of the longest decimal that Spark keeps in a row as a long."""


def reading(step: Step) -> Program:
    """How to read a writer's data."""
    made = _Reading()
    made.add(step)
    return made.program


def writing(step: Step) -> Program:
    """How to write data of a schema, from the steps that read it with the same schema."""
    made = _Writing()
    made.add(step)
    return made.program


def width(slot: Slot) -> str:
    """How a value lies in Spark's rows: bytes in place, `d` for a wide decimal, `a` for anything behind a pointer."""
    if slot.kind is Kind.DECIMAL:
        return "8" if slot.type.precision <= LONG_DIGITS else "d"
    if slot.kind is not Kind.WORD or slot.symbols:
        return "a"
    return {1: "1", 32: "4"}.get(slot.type.bit_width, "8")


class _Reading:
    def __init__(self) -> None:
        self.program: Program = []
        self._routines: dict[Routine, int] = {}

    def add(self, step: Step) -> int:
        """The place of the instruction for a step."""
        self.program.append(self._wanted(step) if step.slot is not None else self._past(step))
        return len(self.program) - 1

    def _all(self, steps: Sequence[Step]) -> list[int]:
        return [self.add(step) for step in steps]

    def _wanted(self, step: Step) -> Instruction:
        assert step.slot is not None
        match step:
            case Number():
                return [
                    "number",
                    step.wire.name.lower(),
                    _number_type(step.slot.type),
                    step.multiply,
                    step.divide,
                    step.limit,
                ]
            case Text():
                return ["uuid"] if step.slot.is_uuid else ["text", True, _size(step.size), step.utf8]
            case Unscaled():
                name = "decimal" if step.slot.digits is None else "digits"
                return [name, step.precision, step.scale, _size(step.size)]
            case Symbol():
                symbols = step.slot.symbols
                return ["symbol", [symbols[place] if place >= 0 else None for place in step.mapping]]
            case Nothing():
                return ["null", width(step.slot)]
            case Default():
                return ["default", base64.b64encode(step.data).decode(), self.add(step.step)]
            case Group():
                parts = self._all(step.steps)
                places = _places(step.slot, step.steps)
                return ["group", len(step.slot.children), places, parts]
            case Member():
                members = step.slot.children
                place = members.index(step.step.slot)
                return ["member", [width(each) for each in members], place, self.add(step.step)]
            case Repeat():
                held = width(step.slot.children[-1])
                return ["array" if step.key is None else "map", held, step.floor, self.add(step.item)]
            case Unreadable() | Branch():
                return self._past(step)
        assert_never(step)

    def _past(self, step: Step) -> Instruction:
        """What does the same with a column and without one, or is only read past."""
        match step:
            case Number():
                return ["number", step.wire.name.lower(), "", 1, 1, 0]
            case Text():
                return ["text", False, _size(step.size), step.utf8]
            case Symbol():
                return ["past symbol", len(step.mapping)]
            case Nothing():
                return ["past null"]
            case Group():
                return ["past group", self._all(step.steps)]
            case Repeat():
                return ["past array" if step.key is None else "past map", step.floor, self.add(step.item)]
            case Unreadable():
                return ["fail", int(step.code)]
            case Branch():
                return ["branch", self._all(step.steps)]
            case Beyond():
                return self._past(step.step)
            case Past():
                return self._routine(step.routine)
            case _:
                raise DataError(f"a step to read past a value is none: {step}")

    def _routine(self, routine: Routine) -> Instruction:
        if routine in self._routines:
            return ["past again", self._routines[routine]]
        number = self._routines[routine] = len(self._routines)
        return ["past record", number, self.add(routine.step)]


class _Writing:
    def __init__(self) -> None:
        self.program: Program = []

    def add(self, step: Step) -> int:
        """The place of the instruction for a step."""
        self.program.append(self._instruction(step))
        return len(self.program) - 1

    def _instruction(self, step: Step) -> Instruction:
        match step:
            case Number():
                return ["number", step.wire.name.lower(), step.multiply, step.divide]
            case Text():
                return ["uuid"] if step.slot is not None and step.slot.is_uuid else ["text", _size(step.size)]
            case Unscaled(slot=Slot(digits=Digits() as digits)):
                return ["digits", digits.precision, digits.scale, _size(step.size)]
            case Unscaled():
                return ["decimal", _size(step.size)]
            case Beyond() if step.empty is not None:
                return ["literal", list(step.empty)]
            case Symbol():
                return ["symbol", list(step.slot.symbols if step.slot else ())]
            case Nothing():
                return ["null"]
            case Member():
                return self._instruction(step.step)
            case Group():
                names = [each.slot.name if each.slot else "" for each in step.steps]
                return ["group", names, [self.add(each) for each in step.steps]]
            case Repeat():
                if step.key is None:
                    return ["array", self.add(step.item)]
                return ["map", self.add(step.key), self.add(step.item)]
            case Branch():
                return self._branch(step)
            case _:
                raise DataError("a schema does not need resolving against itself")

    def _branch(self, step: Branch) -> Instruction:
        null = -1
        choices = []
        for index, each, slot in options(step):
            if slot is None:
                null = index
            else:
                choices.append((index, each, slot))
        if len(choices) == 1 and choices[0][2] is step.slot:
            return ["branch", choices[0][0], self.add(choices[0][1]), null]
        if not choices:
            return ["branch", -1, 0, null]
        names = [slot.name for _, _, slot in choices]
        return ["members", names, [index for index, _, _ in choices], [self.add(each) for _, each, _ in choices], null]


def _places(slot: Slot, steps: Sequence[Step]) -> list[int]:
    """The column of each step; -1 for a step nobody wants."""
    places = {child.index: place for place, child in enumerate(slot.children)}
    return [-1 if step.slot is None else places[step.slot.index] for step in steps]


def _size(size: int | None) -> int:
    return SIZED if size is None else size


def _number_type(type_: ArrowType) -> str:
    if pa.types.is_boolean(type_):
        return "boolean"
    if pa.types.is_floating(type_):
        return "float" if type_.bit_width == 32 else "double"
    return "int" if type_.bit_width == 32 else "long"
