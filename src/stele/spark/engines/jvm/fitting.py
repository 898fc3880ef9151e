"""Which columns the jar can write as they are; others are cast by the engines that have Arrow."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from stele.spark.engines.arrow import ArrowType
from stele.spark.engines.steps import Kind, Slot


def unfit(root: Slot, types: Sequence[ArrowType], fields: Sequence[str] | None) -> str:
    """What is wrong with the columns for the jar, '' for nothing; fields are as in `Encode`."""
    if fields is None:
        return _unfit(root, types[0], "the value")
    children = {child.name: child for child in root.children}
    found = (_unfit(children[name], type_, name) for name, type_ in zip(fields, types, strict=True) if name in children)
    return next(filter(None, found), "")


def _unfit(slot: Slot, type_: ArrowType, path: str) -> str:
    if pa.types.is_null(type_):
        return ""
    match slot.kind:
        case Kind.STRUCT if pa.types.is_struct(type_):
            children = {child.name: child for child in slot.children}
            known = [part for part in type_ if part.name in children]
            found = [_unfit(children[part.name], part.type, f"{path}.{part.name}") for part in known]
            return next(filter(None, found), "")
        case Kind.LIST if len(slot.children) == 1 and pa.types.is_list(type_):
            return _unfit(slot.children[0], type_.value_type, f"{path}[]")
        case Kind.LIST if len(slot.children) == 2 and pa.types.is_map(type_):
            key, value = slot.children
            return _unfit(key, type_.key_type, f"{path}{{key}}") or _unfit(value, type_.item_type, f"{path}{{}}")
    if slot.is_uuid and pa.types.is_string(type_):
        return ""
    return "" if type_ == slot.type or _widens(type_, slot.type) else f"{path} is {type_} and not {slot.type}"


def _widens(given: ArrowType, wanted: ArrowType) -> bool:
    """Whether the jar converts without loss: integers of any width, with a check, and float to double."""
    if pa.types.is_signed_integer(given) and pa.types.is_signed_integer(wanted):
        return True
    return bool(pa.types.is_float32(given) and pa.types.is_float64(wanted))
