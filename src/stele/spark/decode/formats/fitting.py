"""Columns in the types of a schema, before they are written."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from stele.errors import EncodeError
from stele.spark.decode.formats.plans import ColumnPlan, ListPlan, MapPlan, ScalarPlan, Struct
from stele.spark.engines.arrow import Column


def fit_column(plan: ColumnPlan, values: Column, path: str = "") -> Column:
    """A column as a schema wants it; missing fields are null. Raises `EncodeError` when it does not fit."""
    if values.type == plan.type:
        return values
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), plan.type)
    match plan:
        case Struct() if pa.types.is_struct(values.type):
            return _fit_struct(plan, values, path)
        case Struct() if plan.whole is not None and plan.whole(values.type):
            return values
        case ListPlan() if pa.types.is_list(values.type):
            items = fit_column(plan.item, values.values, f"{path}[]")
            return pa.ListArray.from_arrays(_list_offsets(values), items)
        case MapPlan() if pa.types.is_map(values.type):
            keys = fit_column(plan.key, values.keys, f"{path}{{key}}")
            return pa.MapArray.from_arrays(
                _list_offsets(values), keys, fit_column(plan.item, values.items, f"{path}{{}}")
            )
        case ScalarPlan() if not pa.types.is_nested(values.type):
            return _fit_leaf(plan, values, path)
    raise EncodeError(f"{path or 'the value'} is {values.type}, the schema wants {plan.type}")


def _fit_struct(plan: Struct, values: Column, path: str) -> Column:
    # flatten, not field: below a null struct Arrow may keep values, which must not be taken for present
    given = dict(zip((field.name for field in values.type), values.flatten(), strict=True))
    unknown = sorted(given.keys() - {part.name for part in plan.parts})
    if unknown:
        raise EncodeError(f"{_join_path(path, unknown[0])} is not in the schema")
    there = [part for part in plan.parts if part.name in given]
    children = [fit_column(part.plan, given[part.name], _join_path(path, part.name)) for part in there]
    names = [part.name for part in there]
    return pa.StructArray.from_arrays(children, names=names, mask=values.is_null())


def _fit_leaf(plan: ScalarPlan, values: Column, path: str) -> Column:
    taken = plan.take(values) if plan.take is not None else None
    if taken is not None:
        return taken
    try:
        return values.cast(plan.type)
    except pa.ArrowException as error:
        raise EncodeError(f"{path or 'the value'} ({values.type}) does not fit {plan.type}: {error}") from error


def _list_offsets(column: Column) -> Column:
    """Offsets of a list or map in which a null entry marks a null list."""
    if not column.null_count:
        return column.offsets
    mask = pa.concat_arrays([column.is_null(), pa.array([False])])
    return pc.if_else(mask, pa.scalar(None, column.offsets.type), column.offsets)


def _join_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
