"""The reader's schema as slots: the Arrow type of each node comes from the Avro format, so there is one mapping."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

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
from stele.spark.engines.steps import Slot, SlotKind, WideDecimal


def build_layout(schema: AvroSchema, *, for_spark: bool) -> Slot:
    """Return the slots of a schema. Raises `Invalid` for recursive types and for what Arrow cannot hold.

    Decimals of more than 38 digits are text, which Spark, Parquet and Iceberg all hold without loss.
    for_spark chooses types that Spark, Parquet and Iceberg v2 all hold without loss: timestamps in microseconds, times
    of day as integers in their own unit, nanosecond timestamps as long, fixed as binary.
    """
    table = AVRO.arrow_schema(schema)
    type_ = pa.struct(list(table)) if isinstance(schema.root, AvroRecord) else table.field(0).type
    return _Layout(for_spark=for_spark).add_slot("value", schema.root, type_)


def tabular_type(type_: ArrowType) -> ArrowType:
    """Return the type Spark and Iceberg take instead of an Arrow leaf type."""
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

    One makes a nullable column, more make a struct with a field each.
    """
    return [branch for branch in node.branches if branch.kind != "null"]


def merge_branches(branches: Sequence[AvroType], type_: ArrowType) -> AvroType | None:
    """Return the one branch that holds all.

    That is the only one, or the wider one where the mapping made one number of int and long.

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
    # nullable whatever the schema says: a record that could not be decoded is null all the way down
    return pa.field(slot.name, slot.type, nullable=True)


def _slot_kind(type_: ArrowType) -> SlotKind:
    if pa.types.is_null(type_):
        return SlotKind.EMPTY
    if pa.types.is_decimal128(type_):
        return SlotKind.DECIMAL
    if pa.types.is_string(type_) or pa.types.is_binary(type_) or pa.types.is_fixed_size_binary(type_):
        return SlotKind.BYTES
    return SlotKind.WORD
