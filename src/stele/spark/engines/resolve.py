"""Writer's schema + reader's slots → steps: Avro's schema resolution (spec 1.12), done once per writer.

Default values of a reader's fields become Avro bytes, so that engines read them like any other value.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from math import gcd
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa

from stele.errors import DataError
from stele.formats.avro.model import (
    NO_DEFAULT,
    AvroArray,
    AvroEnum,
    AvroField,
    AvroFixed,
    AvroMap,
    AvroPrimitive,
    AvroRecord,
    AvroSchema,
    AvroType,
    AvroUnion,
    describe_type,
)
from stele.formats.avro.parse import find_default_fault
from stele.spark.engines.error_codes import ErrorCode
from stele.spark.engines.steps import (
    REST,
    CallSkip,
    NumberCast,
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
    SlotKind,
    Step,
    build_layout,
    least_size,
    merge_branches,
    union_members,
)
from stele.spark.engines.unroll import TruncatedRecord, TruncatedUnion, unroll_schema

_NOBODY = AvroRecord("")


def encode_varint(value: int) -> bytes:
    """Return the zig-zag bytes of a 64-bit integer."""
    bits = (value << 1) ^ (value >> 63)
    out = bytearray()
    while bits > 127:
        out.append(bits & 127 | 128)
        bits >>= 7
    out.append(bits)
    return bytes(out)


def encode_default(node: AvroType, value: Any) -> bytes:
    """Return the JSON default as Avro bytes of its type. Raises `DataError` when it does not have that type."""
    fault = find_default_fault(node, value, _NOBODY)
    if fault:
        raise DataError(f"the default {value!r} does not fit: {fault}")
    try:
        return _encode_value(node, value)
    except (UnicodeEncodeError, OverflowError) as error:
        raise DataError(f"the default {value!r} cannot be encoded: {error}") from error


def _encode_value(node: AvroType, value: Any) -> bytes:
    match node:
        case AvroPrimitive():
            return _encode_primitive(node.kind, value)
        case AvroFixed():
            return bytes(value.encode("latin-1"))
        case AvroEnum():
            return encode_varint(node.symbols.index(value))
        case AvroArray():
            return _encode_block([_encode_value(node.items, item) for item in value])
        case AvroMap():
            return _encode_block(
                [_with_length(key.encode()) + _encode_value(node.values, item) for key, item in value.items()]
            )
        case AvroUnion():
            number = next(i for i, b in enumerate(node.branches) if find_default_fault(b, value, _NOBODY) is None)
            return encode_varint(number) + _encode_value(node.branches[number], value)
        case AvroRecord():
            if isinstance(node, TruncatedRecord):
                _check_shallow(node, value)
            field_values = {f.name: value.get(f.name, f.default) for f in node.fields}
            assert NO_DEFAULT not in field_values.values()
            return b"".join(_encode_value(f.type, field_values[f.name]) for f in node.fields)


def _check_shallow(node: TruncatedRecord, value: Any) -> None:
    for field in node.deeper:
        if value.get(field.name, field.default) not in (NO_DEFAULT, None, [], {}):
            raise DataError(f"the default of {field.name!r} goes deeper than the levels of columns")


def _encode_primitive(kind: str, value: Any) -> bytes:
    match kind:
        case "null":
            return b""
        case "boolean":
            return bytes([value])
        case "int" | "long":
            return encode_varint(value)
        case "float":
            return struct.pack("<f", float(value))
        case "double":
            return struct.pack("<d", float(value))
        case "string":
            return _with_length(value.encode())
        case _:
            return _with_length(value.encode("latin-1"))


def _with_length(data: bytes) -> bytes:
    return encode_varint(len(data)) + data


def _encode_block(items: list[bytes]) -> bytes:
    return encode_varint(len(items)) + b"".join(items) + b"\0" if items else b"\0"


WIRES: Final = {
    "int": NumberEncoding.INT,
    "long": NumberEncoding.LONG,
    "float": NumberEncoding.FLOAT,
    "double": NumberEncoding.DOUBLE,
    "boolean": NumberEncoding.BOOLEAN,
}
_PROMOTIONS: Final = {
    ("int", "long"),
    ("int", "float"),
    ("int", "double"),
    ("long", "float"),
    ("long", "double"),
    ("float", "double"),
    ("string", "bytes"),
    ("bytes", "string"),
}
_DAY: Final = 24 * 60 * 60
_PER_SECOND: Final = {"millis": 10**3, "micros": 10**6, "nanos": 10**9}
_PER_SECOND_ARROW: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def is_number(node: AvroType) -> bool:
    """Return whether the node is encoded as one of Avro's numbers, including booleans."""
    return node.kind in WIRES


def can_promote(writer: AvroPrimitive | AvroFixed, reader: AvroPrimitive | AvroFixed) -> bool:
    """Return whether the specification lets the reader take the writer's values."""
    if isinstance(writer, AvroFixed) and isinstance(reader, AvroFixed):
        return writer.size == reader.size
    return writer.kind == reader.kind or (writer.kind, reader.kind) in _PROMOTIONS


def read_number(writer: AvroType, reader: AvroType, slot: Slot | None) -> ReadNumber:
    """Return the step that reads a number; points in time are converted from the writer's unit to the slot's."""
    wire = WIRES[writer.kind]
    if slot is None:
        return ReadNumber(None, wire)
    cast = NumberCast.KEEP
    if reader.kind != writer.kind and reader.kind in ("float", "double"):
        cast = NumberCast.FLOAT if reader.kind == "float" else NumberCast.DOUBLE
    have, want = _time_units(writer, reader, slot)
    common = gcd(have, want)
    limit = _DAY * want if _time_unit(reader)[0] == "time" else 0
    return ReadNumber(slot, wire, cast, want // common, have // common, limit)


def _time_units(writer: AvroType, reader: AvroType, slot: Slot) -> tuple[int, int]:
    """Return the units per second of the writer and of the slot; equal if no conversion is needed."""
    family, theirs = _time_unit(reader)
    if theirs is None:
        return 1, 1
    mine_family, mine = _time_unit(writer)
    have = mine if mine is not None and mine_family == family else theirs
    temporal = pa.types.is_timestamp(slot.type) or pa.types.is_time(slot.type)
    return have, _PER_SECOND_ARROW[slot.type.unit] if temporal else theirs


def _time_unit(node: AvroType) -> tuple[str, int | None]:
    """Return the family of a logical type (`timestamp`, `local-timestamp`, `time`) and its units per second."""
    if node.logical is None:
        return "", None
    family, _, unit = node.logical.name.rpartition("-")
    return family, _PER_SECOND.get(unit)


MAX_STEPS = 100_000
"""Maximum number of steps of one writer. Named types used inside each other can grow exponentially."""
MAX_DEPTH = 100
"""Maximum nesting depth of types that are only skipped. The reader's own depth is limited by the Arrow mapping."""


class Resolver:
    """One reader's schema, ready to be matched with writers; `recursion` is as in `unroll_schema`.

    Raises `Invalid` when it has no table shape.
    """

    def __init__(self, reader: AvroSchema, *, for_spark: bool = False, recursion: int = 0) -> None:
        self.reader = reader
        self._shape = unroll_schema(reader, recursion)
        self.root = build_layout(self._shape, for_spark=for_spark)

    def resolve_writer(self, writer: AvroSchema) -> Step:
        """Return the steps that read the writer's data into the slots. Raises `DataError` if the schemas do not fit."""
        return _Match(bare=writer.root.kind == "bytes").match_types(writer.root, self._shape.root, self.root)


class _Match:
    """One match of two schemas. It counts steps, and keeps routines for skipping the writer's records.

    The reader's schema is finite, so reading with it ends. Skipping a record that contains itself needs a routine.
    bare  whether the writer's schema is just `bytes`, which has no length prefix
    """

    def __init__(self, *, bare: bool = False) -> None:
        self._bare = bare
        self._made = 0
        self._routines: dict[int, SkipRoutine] = {}
        self._again: set[int] = set()

    def match_types(self, writer: AvroType, reader: AvroType, slot: Slot) -> Step:
        """Return the step that reads a value of the writer's type as one of the reader's."""
        self._count_step()
        if isinstance(writer, AvroUnion):
            return self._match_writer_union(writer, reader, slot)
        if isinstance(reader, AvroUnion):
            return self._match_reader_union(writer, reader, slot)
        match writer, reader:
            case AvroRecord(), AvroRecord():
                return self._match_records(writer, reader, slot)
            case AvroArray(), AvroArray():
                item = self.match_types(writer.items, reader.items, slot.children[0])
                return ReadItems(slot, None, item, least_size(item))
            case AvroMap(), AvroMap():
                item = self.match_types(writer.values, reader.values, slot.children[1])
                return ReadItems(slot, ReadBytes(slot.children[0], utf8=True), item, 1 + least_size(item))
            case AvroEnum(), AvroEnum():
                return _match_enums(writer, reader, slot)
            case ((AvroPrimitive() | AvroFixed()), (AvroPrimitive() | AvroFixed())):
                return _match_scalars(writer, reader, slot, bare=self._bare)
        raise _mismatch_error(writer, reader)

    def skip_value(self, writer: AvroType, depth: int = 0) -> Step:
        """Return the step that skips a value."""
        self._count_step()
        if depth > MAX_DEPTH:
            raise DataError(f"the writer's schema nests types more than {MAX_DEPTH} deep")
        depth += 1
        match writer:
            case AvroUnion():
                return ReadUnion(None, tuple(self.skip_value(branch, depth) for branch in writer.branches))
            case AvroRecord():
                return self._skip_record(writer, depth)
            case AvroArray():
                item = self.skip_value(writer.items, depth)
                return ReadItems(None, None, item, least_size(item))
            case AvroMap():
                item = self.skip_value(writer.values, depth)
                return ReadItems(None, ReadBytes(None), item, 1 + least_size(item))
            case AvroEnum():
                return ReadEnum(None, tuple(range(len(writer.symbols))))
            case AvroFixed():
                return ReadBytes(None, size=writer.size)
            case AvroPrimitive():
                if writer.kind == "null":
                    return ReadNull(None)
                return read_number(writer, writer, None) if is_number(writer) else ReadBytes(None)

    def _skip_record(self, writer: AvroRecord, depth: int) -> Step:
        """Return the step that skips a record, part by part, or by a routine if the record contains itself."""
        key = id(writer)
        if key in self._routines:
            self._again.add(key)
            return CallSkip(self._routines[key])
        routine = self._routines[key] = SkipRoutine(ReadRecord(None, ()))
        routine.step = ReadRecord(None, tuple(self.skip_value(f.type, depth) for f in writer.fields))
        if key in self._again:
            return CallSkip(routine)
        del self._routines[key]
        return routine.step

    def _require_empty(self, writer: AvroType) -> RequireEmpty:
        """Return the step that accepts only empty values, where the reader's columns end."""
        return RequireEmpty(_read_empty(writer), _empty_value(writer))

    def _count_step(self) -> None:
        self._made += 1
        if self._made > MAX_STEPS:
            raise DataError(f"the writer's schema unfolds to more than {MAX_STEPS} steps")

    def _match_records(self, writer: AvroRecord, reader: AvroRecord, slot: Slot) -> Step:
        targets = _match_field_names(writer, reader)
        places = {child.name: child for child in slot.children}
        steps: list[Step] = []
        for mine in writer.fields:
            theirs = targets.get(mine.name)
            if theirs is None:
                steps.append(self.skip_value(mine.type))
            elif theirs.name in places:
                steps.append(self._match_fields(mine, theirs, places[theirs.name]))
            else:
                steps.append(self._require_empty(mine.type))
        matched_names = {theirs.name for theirs in targets.values()}
        steps += [self._read_default(f, places[f.name]) for f in reader.fields if f.name not in matched_names]
        if writer is not reader:
            steps += [_truncated_default(f) for f in _truncated_fields(reader) if f.name not in matched_names]
        return ReadRecord(slot, tuple(steps))

    def _match_fields(self, mine: AvroField, theirs: AvroField, slot: Slot) -> Step:
        try:
            return self.match_types(mine.type, theirs.type, slot)
        except DataError as error:
            raise DataError(f"{theirs.name}: {error}") from error

    def _read_default(self, field: AvroField, slot: Slot) -> Step:
        if field.default is NO_DEFAULT:
            raise _no_default_error(field)
        return ReadDefault(
            encode_default(field.type, field.default), _Match().match_types(field.type, field.type, slot)
        )

    def _match_writer_union(self, writer: AvroUnion, reader: AvroType, slot: Slot) -> Step:
        steps: list[Step] = []
        for branch in writer.branches:
            try:
                steps.append(self.match_types(branch, reader, slot))
            except DataError:
                # an error only for the records that take this branch
                steps.append(RefuseValue(slot))
        if steps and all(isinstance(step, RefuseValue) and step.code is ErrorCode.UNREADABLE_BRANCH for step in steps):
            raise _mismatch_error(writer, reader)
        return ReadUnion(slot, tuple(steps))

    def _match_reader_union(self, writer: AvroType, reader: AvroUnion, slot: Slot) -> Step:
        if writer.kind == "null" and any(branch.kind == "null" for branch in reader.branches):
            return ReadNull(slot)
        branches = union_members(reader)
        if isinstance(reader, TruncatedUnion) and _best_rank(writer, reader.deeper) < min(
            2, _best_rank(writer, branches)
        ):
            return RefuseValue(slot, ErrorCode.TOO_DEEP)
        single = merge_branches(branches, slot.type)
        if single is not None:
            return self.match_types(writer, single, slot)
        for candidate in _rank_branches(writer, branches):
            try:
                chosen = slot.children[branches.index(candidate)]
                others = tuple(child for child in slot.children if child is not chosen)
                return ReadMember(slot, self.match_types(writer, candidate, chosen), others)
            except DataError:
                continue
        raise _mismatch_error(writer, reader)


def _read_empty(writer: AvroType) -> Step:
    """Return the step that reads null, or an array or map without items, and fails for any other value as too deep."""
    match writer:
        case AvroPrimitive(kind="null"):
            return ReadNull(None)
        case AvroUnion():
            return ReadUnion(None, tuple(_read_empty(branch) for branch in writer.branches))
        case AvroArray():
            return ReadItems(None, None, RefuseValue(None, ErrorCode.TOO_DEEP), 1)
        case AvroMap():
            return ReadItems(None, ReadBytes(None), RefuseValue(None, ErrorCode.TOO_DEEP), 1)
    return RefuseValue(None, ErrorCode.TOO_DEEP)


def _empty_value(writer: AvroType) -> tuple[int, ...] | None:
    """Return the integers with which the writer encodes null, or else an empty array or map; None if it has neither."""
    match writer:
        case AvroPrimitive(kind="null"):
            return ()
        case AvroArray() | AvroMap():
            return (0,)
        case AvroUnion():
            candidates = [(branch.kind != "null", n, _empty_value(branch)) for n, branch in enumerate(writer.branches)]
            return next(
                ((n, *rest) for _, n, rest in sorted(candidates, key=itemgetter(0, 1)) if rest is not None), None
            )
    return None


def _truncated_fields(reader: AvroRecord) -> tuple[AvroField, ...]:
    return reader.deeper if isinstance(reader, TruncatedRecord) else ()


def _truncated_default(field: AvroField) -> Step:
    """Return the step for a field that has no column and that the writer does not have."""
    if field.default is NO_DEFAULT:
        raise _no_default_error(field)
    return ReadNull(None) if field.default in (None, [], {}) else RefuseValue(None, ErrorCode.TOO_DEEP)


def _no_default_error(field: AvroField) -> DataError:
    return DataError(f"the writer has no field {field.name!r}, and the reader no default for it")


def _match_field_names(writer: AvroRecord, reader: AvroRecord) -> dict[str, AvroField]:
    """Return the reader's field for each of the writer's fields: by name, else by the reader's aliases.

    The reader's fields include those without a column, which would be nested too deep.
    """
    fields = (*reader.fields, *_truncated_fields(reader))
    by_name = {field.name: field for field in fields}
    targets = {f.name: by_name[f.name] for f in writer.fields if f.name in by_name}
    for theirs in fields:
        if theirs.name not in targets:
            alias = next((a for a in theirs.aliases if a in writer.by_name and a not in targets), None)
            if alias is not None:
                targets[alias] = theirs
    return targets


def _rank_branches(writer: AvroType, branches: list[AvroType]) -> list[AvroType]:
    """Return the reader's branches, best match first: same name, same kind, then promotions in the declared order."""
    return sorted(branches, key=lambda branch: _branch_rank(writer, branch))


def _branch_rank(writer: AvroType, branch: AvroType) -> int:
    if branch.kind != writer.kind:
        return 3
    mine, theirs = getattr(writer, "name", ""), getattr(branch, "name", "")
    if mine == theirs or mine in getattr(branch, "aliases", ()):
        return 0
    return 1 if mine.rpartition(".")[2] == theirs.rpartition(".")[2] else 2


def _best_rank(writer: AvroType, branches: Iterable[AvroType]) -> int:
    return min((_branch_rank(writer, branch) for branch in branches), default=3)


def _match_enums(writer: AvroEnum, reader: AvroEnum, slot: Slot) -> ReadEnum:
    places = {symbol: place for place, symbol in enumerate(reader.symbols)}
    fallback = places.get(reader.default, -1) if reader.default is not None else -1
    mapping = tuple(places.get(symbol, fallback) for symbol in writer.symbols)
    if all(place < 0 for place in mapping):
        raise _mismatch_error(writer, reader)
    return ReadEnum(slot, mapping)


def _match_scalars(
    writer: AvroPrimitive | AvroFixed, reader: AvroPrimitive | AvroFixed, slot: Slot, *, bare: bool
) -> Step:
    if not can_promote(writer, reader):
        raise _mismatch_error(writer, reader)
    if reader.kind == "null":
        return ReadNull(slot)
    if is_number(writer):
        return read_number(writer, reader, slot)
    size = writer.size if isinstance(writer, AvroFixed) else REST if bare else None
    if slot.kind is SlotKind.DECIMAL or slot.digits is not None:
        assert reader.logical is not None
        if writer.logical is not None and writer.logical.scale != reader.logical.scale:
            raise _mismatch_error(writer, reader)
        return ReadDecimal(slot, reader.logical.precision, size)
    return ReadBytes(slot, size, utf8="string" in (writer.kind, reader.kind))


def _mismatch_error(writer: AvroType, reader: AvroType) -> DataError:
    return DataError(f"{describe_type(writer)} cannot be read as {describe_type(reader)}")
