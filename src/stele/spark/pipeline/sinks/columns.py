"""Columns of tables: found by their paths, written in Spark's SQL, compared with what a change wants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

from stele.spark.pipeline.schema_evolution import ColumnChange, ColumnPath, can_hold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructField, StructType


def find_type(schema: StructType, path: ColumnPath) -> DataType | None:
    """The type of a column, None when there is no such column. Names must match to the letter."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    found: DataType = schema
    for part in path:
        match found:
            case StructType() if part in found.names:
                found = found[part].dataType
            case ArrayType() if part == "element":
                found = found.elementType
            case MapType() if part in {"key", "value"}:
                found = found.keyType if part == "key" else found.valueType
            case _:
                return None
    return found


def is_applied(change: ColumnChange, has: StructType, wanted: StructType) -> bool:
    """Whether a table with these columns needs the change no more, whoever made it."""
    found = find_type(has, change.path)
    match change.kind:
        case "rename":
            return found is None or find_type(has, (*change.path[:-1], change.to)) is not None
        case "add":
            return found is not None
        case "widen":
            type_ = find_type(wanted, change.path)
            return found is not None and type_ is not None and (found == type_ or can_hold(found, type_))
        case _:
            return True


def make_nullable(type_: DataType) -> DataType:
    """The type with nulls allowed at every depth, except where keys of maps are, and without metadata."""
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    match type_:
        case StructType():
            return StructType([StructField(field.name, make_nullable(field.dataType)) for field in type_.fields])
        case ArrayType():
            return ArrayType(make_nullable(type_.elementType))
        case MapType():
            return MapType(make_nullable(type_.keyType), make_nullable(type_.valueType))
        case _:
            return type_


def quote_path(parts: Sequence[str]) -> str:
    """A path or a table's name for SQL."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def quote_string(text: str) -> str:
    """A string for SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def format_type(type_: DataType) -> str:
    """The type as SQL takes it, with any names of fields."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    match type_:
        case StructType():
            fields = (f"{quote_path([each.name])}: {format_type(each.dataType)}" for each in type_.fields)
            return f"struct<{', '.join(fields)}>"
        case ArrayType():
            return f"array<{format_type(type_.elementType)}>"
        case MapType():
            return f"map<{format_type(type_.keyType)}, {format_type(type_.valueType)}>"
        case _:
            return type_.simpleString()


def format_columns(schema: StructType) -> str:
    """What stands between the parentheses of CREATE TABLE."""
    return ", ".join(f"{quote_path([field.name])} {format_type(field.dataType)}" for field in schema.fields)


def add_missing_columns(rows: DataFrame, columns: StructType) -> DataFrame:
    """The rows with nulls for columns at the top that the table has gained since they were made, in its order."""
    from pyspark.sql import functions as f

    if rows.columns == columns.names:
        return rows
    there = set(rows.columns)
    chosen = [
        f.col(quote_path([field.name])) if field.name in there else f.lit(None).cast(field.dataType).alias(field.name)
        for field in columns.fields
    ]
    return rows.select(*chosen)


def change_schema(table: StructType, changes: Sequence[ColumnChange], wanted: StructType) -> StructType:
    """The columns of a table after its changes, in plain words: what `Sink.change` comes to."""
    for change in changes:
        type_ = find_type(wanted, change.path)
        match change.kind:
            case "rename":
                table = _edit_type(table, change.path[:-1], _rename_edit(change.path[-1], change.to))
            case "add" if type_ is not None:
                table = _edit_type(table, change.path[:-1], _add_edit(change.path[-1], make_nullable(type_)))
            case "widen" if type_ is not None:
                table = _edit_type(table, change.path, _replace_edit(type_))
    return table


_T = TypeVar("_T", bound="DataType")
_Edit: TypeAlias = "Callable[[DataType], DataType]"


def _edit_type(type_: _T, path: ColumnPath, edit: _Edit) -> _T:
    """The type with one of its parts edited."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if not path:
        return cast("_T", edit(type_))
    part, rest = path[0], path[1:]
    made: DataType = type_
    match type_:
        case StructType():
            made = StructType([_edit_field(each, rest, edit) if each.name == part else each for each in type_.fields])
        case ArrayType():
            made = ArrayType(_edit_type(type_.elementType, rest, edit), type_.containsNull)
        case MapType() if part == "key":
            made = MapType(_edit_type(type_.keyType, rest, edit), type_.valueType, type_.valueContainsNull)
        case MapType():
            made = MapType(type_.keyType, _edit_type(type_.valueType, rest, edit), type_.valueContainsNull)
    return cast("_T", made)


def _edit_field(field: StructField, path: ColumnPath, edit: _Edit) -> StructField:
    from pyspark.sql.types import StructField

    return StructField(field.name, _edit_type(field.dataType, path, edit), field.nullable, field.metadata)


def _rename_edit(old: str, new: str) -> _Edit:
    from pyspark.sql.types import StructField, StructType

    def edit(type_: DataType) -> DataType:
        assert isinstance(type_, StructType)
        return StructType(
            [
                StructField(new if each.name == old else each.name, each.dataType, each.nullable, each.metadata)
                for each in type_.fields
            ]
        )

    return edit


def _add_edit(name: str, type_: DataType) -> _Edit:
    from pyspark.sql.types import StructField, StructType

    def edit(struct: DataType) -> DataType:
        assert isinstance(struct, StructType)
        return StructType([*struct.fields, StructField(name, type_)])

    return edit


def _replace_edit(type_: DataType) -> _Edit:
    return lambda _: type_
