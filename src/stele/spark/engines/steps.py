"""The program of an engine: a tree of steps that read the writer's bytes into slots of the reader's Arrow type.

`resolve` makes the tree from two schemas once per writer; `vm` compiles it to integers, `python` to closures. A step
without a slot skips a value that has no column. The Arrow type of each slot comes from the Avro format, so there is one
mapping.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import count
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa

from stele.formats.avro import AVRO
from stele.formats.avro.model import (
    PRIMITIVES,
    AvroArray,
    AvroEnum,
    AvroFixed,
    AvroMap,
    AvroRecord,
    AvroSchema,
    AvroType,
    AvroUnion,
)
from stele.spark.engines.arrow import ArrowType
from stele.spark.engines.error_codes import ErrorCode


class SlotKind(IntEnum):
    """How a slot stores its values while a batch is being decoded."""

    EMPTY = 0
    """Only nulls."""
    WORD = 1
    """One 64-bit word: integers, floats as bits, booleans, enum indexes."""
    BYTES = 2
    """Any number of bytes."""
    DECIMAL = 3
    """A 128-bit two's complement integer in two words, low one first."""
    LIST = 4
    """The end of each list; one child (array) or two (map: key, value)."""
    STRUCT = 5
    """Validity only; one child per field."""


class WideDecimal(NamedTuple):
    """A decimal too wide for a decimal column, given as text; `size` is as in `ReadBytes`, of the reader's type."""

    precision: int
    scale: int
    size: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """One node of the reader's Arrow type. `index` numbers all slots of a layout, parents before children.

    `symbols` are an enum's. `is_uuid` marks 16 bytes that are written as the 36 characters of a UUID. `digits`
    describes a decimal that is given as text.
    """

    index: int
    kind: SlotKind
    name: str
    type: ArrowType
    children: tuple[Slot, ...] = ()
    symbols: tuple[str, ...] = ()
    is_uuid: bool = False
    digits: WideDecimal | None = None

    def walk_slots(self) -> Iterator[Slot]:
        """Yield this slot and all below it, in index order."""
        yield self
        for child in self.children:
            yield from child.walk_slots()

    def slots_with_null(self) -> Iterator[Slot]:
        """Yield the slots that get an entry when this one is null: fields of structs do, list items do not."""
        yield self
        if self.kind is SlotKind.STRUCT:
            for child in self.children:
                yield from child.slots_with_null()


class NumberEncoding(IntEnum):
    """Avro's fixed set of number encodings."""

    INT = 0
    LONG = 1
    FLOAT = 2
    DOUBLE = 3
    BOOLEAN = 4


class NumberCast(IntEnum):
    """The type that a number is converted to in its word."""

    KEEP = 0
    FLOAT = 1
    """From int or long."""
    DOUBLE = 2
    """From int, long or float."""


@dataclass(frozen=True, slots=True)
class ReadNumber:
    """Reads a number. `multiply` and then floor-`divide` convert units of time.

    If `limit` is set, the number must be from 0 to below it.
    """

    slot: Slot | None
    wire: NumberEncoding
    cast: NumberCast = NumberCast.KEEP
    multiply: int = 1
    divide: int = 1
    limit: int = 0


REST: Final = -2
"""Size of a value that is all remaining bytes.

The vendor's clients put no length before a schema that is just `bytes`.
"""


@dataclass(frozen=True, slots=True)
class ReadBytes:
    """Reads bytes with a length prefix, or exactly `size` of them, or the `REST`.

    With `utf8` they must be valid UTF-8.
    """

    slot: Slot | None
    size: int | None = None
    utf8: bool = False


@dataclass(frozen=True, slots=True)
class ReadDecimal:
    """Reads the unscaled integer of a decimal of at most `precision` digits; `size` is as in `ReadBytes`."""

    slot: Slot
    precision: int
    size: int | None = None

    @property
    def scale(self) -> int:
        """Number of digits after the point."""
        return self.slot.digits.scale if self.slot.digits else int(self.slot.type.scale)


@dataclass(frozen=True, slots=True)
class ReadEnum:
    """Reads an enum; `mapping` maps the writer's index to the reader's, -1 where the reader has no such symbol."""

    slot: Slot | None
    mapping: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReadNull:
    """Reads no bytes; the slot becomes null."""

    slot: Slot | None


@dataclass(frozen=True, slots=True)
class ReadMember:
    """Reads one branch of a general union, whose slot is a struct with a field for each. All `others` become null."""

    slot: Slot
    step: Step
    others: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """Reads a record; `steps` are in the writer's order."""

    slot: Slot | None
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class ReadDefault:
    """Reads the default of a field that the writer does not have, as Avro bytes of the reader's type."""

    data: bytes
    step: Step

    @property
    def slot(self) -> Slot | None:
        """The slot that the default is written to."""
        return self.step.slot


@dataclass(frozen=True, slots=True)
class ReadItems:
    """Reads an array, or a map if there is a `key`; `least_entry_size` is the minimum size of an entry in bytes."""

    slot: Slot | None
    key: ReadBytes | None
    item: Step
    least_entry_size: int


@dataclass(frozen=True, slots=True)
class RefuseValue:
    """Fails when a record has a branch or an item that the reader cannot hold."""

    slot: Slot | None
    code: ErrorCode = ErrorCode.UNREADABLE_BRANCH


@dataclass(frozen=True, slots=True)
class ReadUnion:
    """Reads the writer's union: an index, then the step of that branch."""

    slot: Slot | None
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class RequireEmpty:
    """Reads a type inside itself at the depth where the reader's columns end.

    `step` reads an empty value and fails for any other. `empty` holds the integers that are written there; it is None
    if the writer has no empty value.
    """

    step: Step
    empty: tuple[int, ...] | None

    @property
    def slot(self) -> None:
        """None, as there is no column."""
        return


@dataclass(slots=True, eq=False)
class SkipRoutine:
    """Skips a record that contains itself: its `step` contains a `CallSkip` of the same routine.

    read is the closure that the engine `python` made of it.
    """

    step: Step
    read: Callable[[Any], Any] | None = None


@dataclass(frozen=True, slots=True)
class CallSkip:
    """Skips a record by its routine."""

    routine: SkipRoutine

    @property
    def slot(self) -> None:
        """None, as there is no column."""
        return


MAX_SKIP_DEPTH: Final = 100
"""Maximum depth of nested routines while one record is skipped. It limits memory and stack."""

Step: TypeAlias = (
    ReadNumber
    | ReadBytes
    | ReadDecimal
    | ReadEnum
    | ReadNull
    | ReadMember
    | ReadRecord
    | ReadDefault
    | ReadItems
    | RefuseValue
    | ReadUnion
    | RequireEmpty
    | CallSkip
)


def least_size(step: Step) -> int:
    """Return the least number of bytes the step can consume."""
    match step:
        case ReadNumber(wire=wire):
            return {NumberEncoding.FLOAT: 4, NumberEncoding.DOUBLE: 8}.get(wire, 1)
        case ReadBytes(size=size):
            return 1 if size is None else size
        case ReadDecimal(size=size):
            return 2 if size is None else size
        case ReadRecord(steps=steps):
            return sum(least_size(each) for each in steps)
        case ReadNull() | ReadDefault():
            return 0
        case ReadMember(step=step) | RequireEmpty(step=step):
            return least_size(step)
        case ReadUnion(steps=steps):
            return 1 + min(least_size(each) for each in steps)
        case _:
            # a record that contains itself does so in a union, array or map, which takes a byte at least
            return 1


def writing_options(branch: ReadUnion) -> list[tuple[int, Step, Slot | None]]:
    """Return (index, step, slot that is not null when a row takes the branch) for each branch to write, null last.

    Of several branches with one slot (int and long in one column) only the widest is returned.
    """
    by_slot: dict[Slot | None, tuple[int, Step, Slot | None]] = {}
    for number, step in enumerate(branch.steps):
        match step:
            case RefuseValue():
                continue
            case ReadNull():
                slot = None
            case ReadMember():
                slot = step.step.slot
            case _:
                slot = step.slot
        previous = by_slot.get(slot)
        if previous is None or (
            isinstance(step, ReadNumber) and isinstance(previous[1], ReadNumber) and step.wire > previous[1].wire
        ):
            by_slot[slot] = (number, step, slot)
    return sorted(by_slot.values(), key=lambda option: option[2] is None)


def build_layout(schema: AvroSchema, *, for_spark: bool) -> Slot:
    """Return the slots of a schema. Raises `Invalid` for recursive types and for types that Arrow cannot hold.

    Decimals of more than 38 digits are text, which Spark, Parquet and Iceberg all hold without loss. for_spark chooses
    types that Spark, Parquet and Iceberg v2 all hold without loss: timestamps in microseconds, times of day as integers
    in their own unit, nanosecond timestamps as long, fixed as binary.
    """
    table = AVRO.arrow_schema(schema)
    type_ = pa.struct(list(table)) if isinstance(schema.root, AvroRecord) else table.field(0).type
    return _Layout(for_spark=for_spark).add_slot("value", schema.root, type_)


def tabular_type(type_: ArrowType) -> ArrowType:
    """Return the type that Spark and Iceberg use in place of an Arrow leaf type."""
    if pa.types.is_timestamp(type_):
        return pa.int64() if type_.unit == "ns" else pa.timestamp("us", type_.tz)
    if pa.types.is_time(type_):
        return pa.int32() if type_.bit_width == 32 else pa.int64()
    if pa.types.is_fixed_size_binary(type_):
        return pa.binary()
    if pa.types.is_null(type_):
        return pa.string()
    return type_


def union_members(node: AvroUnion) -> list[AvroType]:
    """Return the branches of a union that are not null.

    A single branch makes a nullable column. Several make a struct with one field for each.
    """
    return [branch for branch in node.branches if branch.kind != "null"]


def merge_branches(branches: Sequence[AvroType], type_: ArrowType) -> AvroType | None:
    """Return the branch that can hold the values of all branches.

    It is the only branch, or the wider one if the mapping made one number of int and long.

    None for a general union, whose type is a struct with one field per branch.
    """
    if len(branches) == 1:
        return branches[0]
    if len(branches) > 1 and not pa.types.is_struct(type_):
        return max(branches, key=lambda branch: branch.kind in ("long", "double"))
    return None


class _Layout:
    def __init__(self, *, for_spark: bool) -> None:
        self._for_spark = for_spark
        self._numbers = count()

    def add_slot(self, name: str, node: AvroType, type_: ArrowType) -> Slot:
        """Return the slot of one node, numbered before those below it."""
        index = next(self._numbers)
        if isinstance(node, AvroUnion):
            branches = union_members(node) or [PRIMITIVES["null"]]
            single = merge_branches(branches, type_)
            if single is None:
                parts = zip(type_, branches, strict=True)
                return self._add_struct(index, name, [(part.name, branch, part.type) for part, branch in parts])
            node = single
        match node:
            case AvroRecord():
                return self._add_struct(index, name, [(f.name, f.type, type_.field(f.name).type) for f in node.fields])
            case AvroArray():
                item = self.add_slot("element", node.items, type_.value_type)
                return Slot(index, SlotKind.LIST, name, pa.list_(_arrow_field(item)), (item,))
            case AvroMap():
                key = self.add_slot("key", PRIMITIVES["string"], pa.string())
                value = self.add_slot("value", node.values, type_.item_type)
                entry = (pa.field("key", pa.string(), nullable=False), _arrow_field(value))
                return Slot(index, SlotKind.LIST, name, pa.map_(*entry), (key, value))
            case _:
                return self._add_leaf(index, name, node, type_)

    def _add_struct(self, index: int, name: str, fields: Sequence[tuple[str, AvroType, ArrowType]]) -> Slot:
        children = tuple(self.add_slot(*field) for field in fields)
        return Slot(index, SlotKind.STRUCT, name, pa.struct([_arrow_field(child) for child in children]), children)

    def _add_leaf(self, index: int, name: str, node: AvroType, type_: ArrowType) -> Slot:
        if isinstance(node, AvroEnum):
            return Slot(index, SlotKind.WORD, name, pa.string(), symbols=node.symbols)
        if pa.types.is_decimal256(type_):
            digits = WideDecimal(type_.precision, type_.scale, node.size if isinstance(node, AvroFixed) else None)
            return Slot(index, SlotKind.BYTES, name, pa.string(), digits=digits)
        target = tabular_type(type_) if self._for_spark else type_
        is_uuid = isinstance(node, AvroFixed) and pa.types.is_string(type_)
        return Slot(index, _slot_kind(type_), name, target, is_uuid=is_uuid)


def _arrow_field(slot: Slot) -> ArrowType:
    # nullable in any case: in a record that could not be decoded, the fields of all structs are null
    return pa.field(slot.name, slot.type, nullable=True)


def _slot_kind(type_: ArrowType) -> SlotKind:
    if pa.types.is_null(type_):
        return SlotKind.EMPTY
    if pa.types.is_decimal128(type_):
        return SlotKind.DECIMAL
    if pa.types.is_string(type_) or pa.types.is_binary(type_) or pa.types.is_fixed_size_binary(type_):
        return SlotKind.BYTES
    return SlotKind.WORD
