"""Which columns the jar can write as they are; others are cast by the engines that have Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from stele.spark.engines.steps import Slot, SlotKind

if TYPE_CHECKING:
    from pyspark.sql.types import DataType


def find_unfit_column(root: Slot, types: Sequence[DataType], fields: Sequence[str] | None) -> str:
    """What is wrong with the columns for the jar, '' for nothing; fields are as in `EncodeTask`."""
    if fields is None:
        return _find_unfit(root, types[0], "")
    return _member_columns(root, zip(fields, types, strict=True), "")


def _member_columns(slot: Slot, given: Iterable[tuple[str, DataType]], path: str) -> str:
    children = {child.name: child for child in slot.children}
    found = (
        _find_unfit(children[name], type_, f"{path}.{name}" if path else name)
        for name, type_ in given
        if name in children
    )
    return next(filter(None, found), "")


def _find_unfit(slot: Slot, given: DataType, path: str) -> str:
    from pyspark.sql import types as t
    from pyspark.sql.pandas.types import from_arrow_type

    match given:
        case t.NullType():
            return ""
        case t.StructType() if slot.kind is SlotKind.STRUCT:
            return _member_columns(slot, ((part.name, part.dataType) for part in given.fields), path)
        case t.ArrayType() if slot.kind is SlotKind.LIST and len(slot.children) == 1:
            return _find_unfit(slot.children[0], given.elementType, f"{path}[]")
        case t.MapType() if slot.kind is SlotKind.LIST and len(slot.children) == 2:
            key, value = slot.children
            return _find_unfit(key, given.keyType, f"{path}{{key}}") or _find_unfit(
                value, given.valueType, f"{path}{{}}"
            )
        case t.StringType() if slot.is_uuid:
            return ""
    wanted = from_arrow_type(slot.type, prefer_timestamp_ntz=True)
    if given == wanted or _can_widen(given, wanted):
        return ""
    return f"{path or 'the value'} is {given.simpleString()} and not {wanted.simpleString()}"


def _can_widen(given: DataType, wanted: DataType) -> bool:
    """Whether the jar converts without loss: integers of any width, with a check, and float to double."""
    from pyspark.sql import types as t

    whole = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)
    if isinstance(given, whole) and isinstance(wanted, whole):
        return True
    return isinstance(given, t.FloatType) and isinstance(wanted, t.DoubleType)
