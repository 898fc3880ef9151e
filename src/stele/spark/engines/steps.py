"""What an engine executes: a tree of steps that read the writer's bytes into slots of the reader's Arrow type.

`resolve` makes the tree from two schemas once per writer; `vm` compiles it to integers, `python` to closures. A step
without a slot reads past a value nobody asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, NamedTuple, TypeAlias

from stele.spark.engines.arrow import ArrowType
from stele.spark.engines.error_codes import ErrorCode


class SlotKind(IntEnum):
    """How a slot stores its values while a batch is being decoded."""

    EMPTY = 0
    """Nothing but nulls."""
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
    """A decimal too wide for a column of decimals, which is shown as text; size as in `Text`, of the reader's type."""

    precision: int
    scale: int
    size: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """One node of the reader's Arrow type. `index` numbers all slots of a layout, parents before children.

    symbols are an enum's; is_uuid marks 16 bytes that are shown as the 36 characters of a UUID; digits are those of a
    decimal that is shown as text.
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
        """This slot and all below it, in index order."""
        yield self
        for child in self.children:
            yield from child.walk_slots()

    def slots_with_null(self) -> Iterator[Slot]:
        """Return the slots that get an entry when this one is null: structs reach down, lists do not."""
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
    """What a number becomes in its word."""

    KEEP = 0
    FLOAT = 1
    """From int or long."""
    DOUBLE = 2
    """From int, long or float."""


@dataclass(frozen=True, slots=True)
class ReadNumber:
    """A number; `multiply` then floor-`divide` convert units of time; from 0 to below `limit`, when there is one."""

    slot: Slot | None
    wire: NumberEncoding
    cast: NumberCast = NumberCast.KEEP
    multiply: int = 1
    divide: int = 1
    limit: int = 0


REST: Final = -2
"""Size of a value that is all bytes left: the vendor's clients put no length before a schema that is just `bytes`."""


@dataclass(frozen=True, slots=True)
class ReadBytes:
    """Bytes with a length in front, exactly `size` of them, or the `REST`; `utf8` demands well-formed UTF-8."""

    slot: Slot | None
    size: int | None = None
    utf8: bool = False


@dataclass(frozen=True, slots=True)
class ReadDecimal:
    """The unscaled integer of a decimal of at most `precision` digits; `size` as in `Text`."""

    slot: Slot
    precision: int
    size: int | None = None

    @property
    def scale(self) -> int:
        """Digits behind the point."""
        return self.slot.digits.scale if self.slot.digits else int(self.slot.type.scale)


@dataclass(frozen=True, slots=True)
class ReadEnum:
    """An enum; `mapping` leads from the writer's index to the reader's, -1 where the reader has none."""

    slot: Slot | None
    mapping: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReadNull:
    """No bytes; the slot becomes null."""

    slot: Slot | None


@dataclass(frozen=True, slots=True)
class ReadMember:
    """One branch of a general union, whose slot is a struct with a field for each: all `others` become null."""

    slot: Slot
    step: Step
    others: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """A record: `steps` in the writer's order."""

    slot: Slot | None
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class ReadDefault:
    """A value the writer does not have, as Avro bytes under the reader's own type."""

    data: bytes
    step: Step

    @property
    def slot(self) -> Slot | None:
        """Where the default goes."""
        return self.step.slot


@dataclass(frozen=True, slots=True)
class ReadItems:
    """An array, or a map when there is a `key`; `floor` is the least number of bytes an entry takes."""

    slot: Slot | None
    key: ReadBytes | None
    item: Step
    least_entry_size: int


@dataclass(frozen=True, slots=True)
class RefuseValue:
    """A branch or an item the reader has no place for: an error when a record has it."""

    slot: Slot | None
    code: ErrorCode = ErrorCode.UNREADABLE_BRANCH


@dataclass(frozen=True, slots=True)
class ReadUnion:
    """The writer's union: an index, then the step it names."""

    slot: Slot | None
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class RequireEmpty:
    """Where a type inside itself would go deeper than the reader's columns.

    `step` reads an empty value and fails for any other. `empty` holds the integers that are written there; it is None
    where the writer has nothing empty.
    """

    step: Step
    empty: tuple[int, ...] | None

    @property
    def slot(self) -> None:
        """There is no column."""
        return


@dataclass(slots=True, eq=False)
class SkipRoutine:
    """How to read past a record that contains itself: its own `step` has a `CallSkip` of the same routine in it.

    made is what the engine `python` keeps of it.
    """

    step: Step
    made: Callable[[Any], Any] | None = None


@dataclass(frozen=True, slots=True)
class CallSkip:
    """Read past a record by its routine."""

    routine: SkipRoutine

    @property
    def slot(self) -> None:
        """There is no column."""
        return


MAX_SKIP_DEPTH: Final = 100
"""Routines inside each other while one record is read past: bounds the memory, and the stack, that data can take."""

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
    """For writing: (index, step, the slot that is not null when a row takes the branch), null last.

    Of several branches with one slot (int and long in one column) only the widest is of use.
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
        held = by_slot.get(slot)
        if held is None or (
            isinstance(step, ReadNumber) and isinstance(held[1], ReadNumber) and step.wire > held[1].wire
        ):
            by_slot[slot] = (number, step, slot)
    return sorted(by_slot.values(), key=lambda option: option[2] is None)
