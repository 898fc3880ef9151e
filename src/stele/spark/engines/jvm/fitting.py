"""Which columns the jar can write as they are; others are cast by the engines that have Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from stele.spark.engines.steps import SlotKind, Slot

if TYPE_CHECKING:
    from pyspark.sql.types import DataType


def unfit(root: Slot, types: Sequence[DataType], fields: Sequence[str] | None) -> str:
    """What is wrong with the columns for the jar, '' for nothing; fields are as in `EncodeTask`."""
    if fields is None:
        return _unfit(root, types[0], "")
    return _members(root, zip(fields, types, strict=True), "")


def _members(slot: Slot, given: Iterable[tuple[str, DataType]], path: str) -> str:
    children = {child.name: child for child in slot.children}
    found = (
        _unfit(children[name], type_, f"{path}.{name}" if path else name) for name, type_ in given if name in children
    )
    return next(filter(None, found), "")


def _unfit(slot: Slot, given: DataType, path: str) -> str:
    from pyspark.sql import types as t
    from pyspark.sql.pandas.types import from_arrow_type

    match given:
        case t.NullType():
            return ""
        case t.StructType() if slot.kind is SlotKind.STRUCT:
            return _members(slot, ((part.name, part.dataType) for part in given.fields), path)
        case t.ArrayType() if slot.kind is SlotKind.LIST and len(slot.children) == 1:
            return _unfit(slot.children[0], given.elementType, f"{path}[]")
        case t.MapType() if slot.kind is SlotKind.LIST and len(slot.children) == 2:
            key, value = slot.children
            return _unfit(key, given.keyType, f"{path}{{key}}") or _unfit(value, given.valueType, f"{path}{{}}")
        case t.StringType() if slot.is_uuid:
            return ""
    wanted = from_arrow_type(slot.type, prefer_timestamp_ntz=True)
    if given == wanted or _widens(given, wanted):
        return ""
    return f"{path or 'the value'} is {given.simpleString()} and not {wanted.simpleString()}"


def _widens(given: DataType, wanted: DataType) -> bool:
    """Whether the jar converts without loss: integers of any width, with a check, and float to double."""
    from pyspark.sql import types as t

    whole = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)
    if isinstance(given, whole) and isinstance(wanted, whole):
        return True
    return isinstance(given, t.FloatType) and isinstance(wanted, t.DoubleType)
