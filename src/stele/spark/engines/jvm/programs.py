"""Programs for the jar, made from steps, and a check of which columns the jar can write.

Columns that the jar cannot write are cast by the engines that use Arrow. A program is a list of instructions. Each
instruction refers to its parts by their index in the list; parts come first.

Reading (`Steps.java`). A width is how a value is stored in Spark's rows: see `slot_width`. A size is as in
`steps.ReadBytes`, -1 for a length in front. The word `past` marks instructions that only skip a value.

    number        wire, column's type or "", multiply, divide, limit
    text          whether it is wanted, size, whether it must be UTF-8
    uuid
    decimal       precision, scale, size
    digits        the same, of a decimal given as text
    symbol        the reader's symbol for each of the writer's, null for one it cannot read
    past symbol   number of symbols
    null          width
    past null
    default       bytes in base64, part
    group         number of columns, the column of each part (-1: none), parts
    past group    parts
    member        widths of all members, index of the member, part
    branch        parts
    fail          an error code
    past record   number of a routine, part: defines the routine, and calls it
    past again    number of an enclosing routine
    array, map    width of items or values, minimum size of an entry in bytes, part
    past array, past map    minimum size of an entry in bytes, part

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
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, assert_never

import pyarrow as pa

from stele.errors import DataError
from stele.spark.engines.arrow import ArrowType
from stele.spark.engines.steps import (
    CallSkip,
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
    SlotKind,
    Step,
    WideDecimal,
    writing_options,
)

if TYPE_CHECKING:
    from pyspark.sql.types import DataType


def find_unfit_column(root: Slot, types: Sequence[DataType], fields: Sequence[str] | None) -> str:
    """Return why the columns do not fit the jar, '' if they fit; `fields` are as in `EncodeTask`."""
    if fields is None:
        return _find_unfit(root, types[0], "")
    return _member_columns(root, zip(fields, types, strict=True), "")


def _member_columns(slot: Slot, members: Iterable[tuple[str, DataType]], path: str) -> str:
    children = {child.name: child for child in slot.children}
    unfit_paths = (
        _find_unfit(children[name], type_, f"{path}.{name}" if path else name)
        for name, type_ in members
        if name in children
    )
    return next(filter(None, unfit_paths), "")


def _find_unfit(slot: Slot, source: DataType, path: str) -> str:
    from pyspark.sql import types as t
    from pyspark.sql.pandas.types import from_arrow_type

    match source:
        case t.NullType():
            return ""
        case t.StructType() if slot.kind is SlotKind.STRUCT:
            return _member_columns(slot, ((part.name, part.dataType) for part in source.fields), path)
        case t.ArrayType() if slot.kind is SlotKind.LIST and len(slot.children) == 1:
            return _find_unfit(slot.children[0], source.elementType, f"{path}[]")
        case t.MapType() if slot.kind is SlotKind.LIST and len(slot.children) == 2:
            key, value = slot.children
            return _find_unfit(key, source.keyType, f"{path}{{key}}") or _find_unfit(
                value, source.valueType, f"{path}{{}}"
            )
        case t.StringType() if slot.is_uuid:
            return ""
    wanted = from_arrow_type(slot.type, prefer_timestamp_ntz=True)
    if source == wanted or _can_widen(source, wanted):
        return ""
    return f"{path or 'the value'} is {source.simpleString()} and not {wanted.simpleString()}"


def _can_widen(source: DataType, wanted: DataType) -> bool:
    """Return whether the jar converts without loss: integers of any width, with a check, and float to double."""
    from pyspark.sql import types as t

    whole = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)
    if isinstance(source, whole) and isinstance(wanted, whole):
        return True
    return isinstance(source, t.FloatType) and isinstance(wanted, t.DoubleType)


Instruction: TypeAlias = list[Any]
Program: TypeAlias = list[Instruction]
"""A program in the form of its JSON; the last instruction is the whole value."""

SIZED: Final = -1
LONG_DIGITS: Final = 18
"""Maximum number of digits of a decimal that Spark stores in a row as a long."""


def decode_program(step: Step) -> Program:
    """Return the program that reads a writer's data."""
    builder = DecodeProgramBuilder()
    builder.add(step)
    return builder.program


def encode_program(step: Step) -> Program:
    """Return the program that writes data of a schema, made from the steps that read it with the same schema."""
    builder = EncodeProgramBuilder()
    builder.add(step)
    return builder.program


def slot_width(slot: Slot) -> str:
    """Return how a value is stored in Spark's rows.

    It is the number of bytes in place, `d` for a wide decimal, or `a` for any value behind a pointer.
    """
    if slot.kind is SlotKind.DECIMAL:
        return "8" if slot.type.precision <= LONG_DIGITS else "d"
    if slot.kind is not SlotKind.WORD or slot.symbols:
        return "a"
    return {1: "1", 32: "4"}.get(slot.type.bit_width, "8")


class DecodeProgramBuilder:
    """Turns the steps that read a value into instructions."""

    def __init__(self) -> None:
        self.program: Program = []
        self._routines: dict[SkipRoutine, int] = {}

    def add(self, step: Step) -> int:
        """Add the instruction of a step and return its index."""
        self.program.append(self._column_instruction(step) if step.slot is not None else self._skip_instruction(step))
        return len(self.program) - 1

    def _add_steps(self, steps: Sequence[Step]) -> list[int]:
        return [self.add(step) for step in steps]

    def _column_instruction(self, step: Step) -> Instruction:
        assert step.slot is not None
        match step:
            case ReadNumber():
                return [
                    "number",
                    step.wire.name.lower(),
                    _number_type(step.slot.type),
                    step.multiply,
                    step.divide,
                    step.limit,
                ]
            case ReadBytes():
                return ["uuid"] if step.slot.is_uuid else ["text", True, _json_size(step.size), step.utf8]
            case ReadDecimal():
                name = "decimal" if step.slot.digits is None else "digits"
                return [name, step.precision, step.scale, _json_size(step.size)]
            case ReadEnum():
                symbols = step.slot.symbols
                return ["symbol", [symbols[place] if place >= 0 else None for place in step.mapping]]
            case ReadNull():
                return ["null", slot_width(step.slot)]
            case ReadDefault():
                return ["default", base64.b64encode(step.data).decode(), self.add(step.step)]
            case ReadRecord():
                parts = self._add_steps(step.steps)
                places = _column_positions(step.slot, step.steps)
                return ["group", len(step.slot.children), places, parts]
            case ReadMember():
                members = step.slot.children
                place = members.index(step.step.slot)
                return ["member", [slot_width(each) for each in members], place, self.add(step.step)]
            case ReadItems():
                item_width = slot_width(step.slot.children[-1])
                return ["array" if step.key is None else "map", item_width, step.least_entry_size, self.add(step.item)]
            case RefuseValue() | ReadUnion():
                return self._skip_instruction(step)
        assert_never(step)

    def _skip_instruction(self, step: Step) -> Instruction:
        """Return an instruction that only reads past a value, or does the same with and without a column."""
        match step:
            case ReadNumber():
                return ["number", step.wire.name.lower(), "", 1, 1, 0]
            case ReadBytes():
                return ["text", False, _json_size(step.size), step.utf8]
            case ReadEnum():
                return ["past symbol", len(step.mapping)]
            case ReadNull():
                return ["past null"]
            case ReadRecord():
                return ["past group", self._add_steps(step.steps)]
            case ReadItems():
                return ["past array" if step.key is None else "past map", step.least_entry_size, self.add(step.item)]
            case RefuseValue():
                return ["fail", int(step.code)]
            case ReadUnion():
                return ["branch", self._add_steps(step.steps)]
            case RequireEmpty():
                return self._skip_instruction(step.step)
            case CallSkip():
                return self._routine_instruction(step.routine)
            case _:
                raise DataError(f"unknown step to skip a value: {step}")

    def _routine_instruction(self, routine: SkipRoutine) -> Instruction:
        if routine in self._routines:
            return ["past again", self._routines[routine]]
        number = self._routines[routine] = len(self._routines)
        return ["past record", number, self.add(routine.step)]


class EncodeProgramBuilder:
    """Turns the steps that read a value into the instructions that write it."""

    def __init__(self) -> None:
        self.program: Program = []

    def add(self, step: Step) -> int:
        """Add the instruction of a step and return its index."""
        self.program.append(self._build_instruction(step))
        return len(self.program) - 1

    def _build_instruction(self, step: Step) -> Instruction:
        match step:
            case ReadNumber():
                return ["number", step.wire.name.lower(), step.multiply, step.divide]
            case ReadBytes():
                return ["uuid"] if step.slot is not None and step.slot.is_uuid else ["text", _json_size(step.size)]
            case ReadDecimal(slot=Slot(digits=WideDecimal() as digits)):
                return ["digits", digits.precision, digits.scale, _json_size(step.size)]
            case ReadDecimal():
                return ["decimal", _json_size(step.size)]
            case RequireEmpty() if step.empty is not None:
                return ["literal", list(step.empty)]
            case ReadEnum():
                return ["symbol", list(step.slot.symbols if step.slot else ())]
            case ReadNull():
                return ["null"]
            case ReadMember():
                return self._build_instruction(step.step)
            case ReadRecord():
                names = [each.slot.name if each.slot else "" for each in step.steps]
                return ["group", names, [self.add(each) for each in step.steps]]
            case ReadItems():
                if step.key is None:
                    return ["array", self.add(step.item)]
                return ["map", self.add(step.key), self.add(step.item)]
            case ReadUnion():
                return self._union_instruction(step)
            case _:
                raise DataError("a schema does not need resolving against itself")

    def _union_instruction(self, step: ReadUnion) -> Instruction:
        null = -1
        choices = []
        for index, each, slot in writing_options(step):
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


def _column_positions(slot: Slot, steps: Sequence[Step]) -> list[int]:
    """Return the column index of each step; -1 for a step without a column."""
    places = {child.index: place for place, child in enumerate(slot.children)}
    return [-1 if step.slot is None else places[step.slot.index] for step in steps]


def _json_size(size: int | None) -> int:
    return SIZED if size is None else size


def _number_type(type_: ArrowType) -> str:
    if pa.types.is_boolean(type_):
        return "boolean"
    if pa.types.is_floating(type_):
        return "float" if type_.bit_width == 32 else "double"
    return "int" if type_.bit_width == 32 else "long"
