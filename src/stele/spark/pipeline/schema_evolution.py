"""Plan how a table follows the newest version of its schema, before anything is changed and without losing a column.

    changes = plan_changes(table, wanted, capabilities, former=former)

Planning is pure: it takes the columns of the table and of the schema, and returns changes. Sinks apply the changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, TypeVar, cast

import msgspec

from stele.spark.types.metadata import COMMENT, comment_of

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType
_T = TypeVar("_T", bound="DataType")
_Edit: TypeAlias = "Callable[[DataType], DataType]"

ColumnPath: TypeAlias = tuple[str, ...]
"""Path of a column, such as `("place", "city")`; the parts of lists and maps are `element`, `key` and `value`."""

FieldPath: TypeAlias = tuple[str, ...]
"""Path of a field: field names only, without the parts of lists and maps."""

RenamePolicy = Literal["rename", "add"]
"""What happens when a field has a new name: its column takes that name, or a new column is added beside it."""

DropPolicy = Literal["keep", "refuse"]
"""What happens when a field left the schema: its column stays and is null from then on, or the pipeline stops."""


class TableCapabilities(NamedTuple):
    """What a kind of table can do beyond adding columns at the top level.

    nested  columns inside of structs, lists and maps can be added
    rename  columns can be renamed
    widens  function that returns whether a column of the first type can become one of the second
    """

    nested: bool
    rename: bool
    widens: Callable[[DataType, DataType], bool]


class ColumnChange(msgspec.Struct, frozen=True):
    """One change of a table, or a reason why a change cannot be made.

    Attributes:
        kind: `create` (the whole table), `add`, `widen`, `rename`, `comment`; `left`: the field is gone, the column
            stays; `clash`: the table cannot take the schema, and no change is made at all.
        path: The column, () for the table; of `rename` its present name.
        type: The column's type afterwards, as Spark writes it; "" for `left`, `rename` and `comment`.
        was: Its type before, of `widen` and `clash`.
        to: Its new name, of `rename`.
        why: The reason, of `clash`.
        comment: Its new comment, of `comment`.
    """

    kind: Literal["create", "add", "widen", "rename", "comment", "left", "clash"]
    path: ColumnPath = ()
    type: str = ""
    was: str = ""
    to: str = ""
    why: str = ""
    comment: str = ""

    @property
    def column(self) -> str:
        """The column's path with dots, as SQL writes it."""
        return ".".join(self.path)

    def __str__(self) -> str:
        match self.kind:
            case "create":
                return f"create the table: {self.type}"
            case "add":
                return f"add column {self.column} {self.type}"
            case "widen":
                return f"widen column {self.column} from {self.was} to {self.type}"
            case "rename":
                return f"rename column {self.column} to {self.to}"
            case "comment":
                return f"comment column {self.column}: {self.comment}"
            case "left":
                return f"keep column {self.column}, which is no longer in the schema: null from now on"
            case _:
                return f"column {self.column}: {self.why}"

    def describe_outcome(self) -> str:
        """Return a description of the change after it was made: `column amount: int → bigint`."""
        match self.kind:
            case "create":
                return "table created"
            case "add":
                return f"column {self.column} added: {self.type}"
            case "widen":
                return f"column {self.column}: {self.was} → {self.type}"
            case "rename":
                return f"column {self.column} renamed to {self.to}"
            case "comment":
                return f"column {self.column} has a new comment: {self.comment}"
            case _:
                return str(self)


class TableChange(msgspec.Struct, frozen=True):
    """A change that was made to a table. Its text is `shop.orders: column amount: int → bigint`."""

    table: str
    change: ColumnChange

    def __str__(self) -> str:
        return f"{self.table}: {self.change.describe_outcome()}"


class TablePlan(msgspec.Struct, frozen=True):
    """The changes that one table needs for one version of its subject."""

    table: str
    subject: str
    version: int
    changes: tuple[ColumnChange, ...] = ()

    @property
    def clashes(self) -> tuple[ColumnChange, ...]:
        """The reasons why the table cannot take the schema."""
        return tuple(change for change in self.changes if change.kind == "clash")

    @property
    def steps(self) -> tuple[ColumnChange, ...]:
        """The changes that would be made."""
        return tuple(change for change in self.changes if change.kind not in {"clash", "left"})


def plan_changes(
    table: StructType | None,
    wanted: StructType,
    capabilities: TableCapabilities,
    *,
    former: Mapping[FieldPath, FieldPath] | None = None,
    renames: RenamePolicy = "rename",
    drops: DropPolicy = "keep",
) -> tuple[ColumnChange, ...]:
    """Return the changes that make a table fit the wanted columns; None stands for a table that does not exist yet.

    former  earlier names of fields, by field path (see `former_names`)
    """
    if table is None:
        return tuple(_find_case_clashes(wanted, ())) or (ColumnChange("create", type=wanted.simpleString()),)
    plan = _ChangePlanner(capabilities, former or {}, renames, drops)
    return tuple(plan.plan_struct(table, wanted, (), ()))


class _ChangePlanner:
    """Compares the columns of the table and of the schema at every depth."""

    def __init__(
        self,
        abilities: TableCapabilities,
        former: Mapping[FieldPath, FieldPath],
        renames: RenamePolicy,
        drops: DropPolicy,
    ) -> None:
        self._can, self._former, self._renames, self._drops = abilities, former, renames, drops

    def plan_struct(
        self, has: StructType, wanted: StructType, path: ColumnPath, names: FieldPath
    ) -> Iterator[ColumnChange]:
        there = {field.name: field for field in has.fields}
        renamed: dict[str, str] = {}
        for field in wanted.fields:
            old = self._old_name(field, there, wanted, (*names, field.name))
            if old and old not in renamed and field.name.lower() not in map(str.lower, renamed.values()):
                renamed[old] = field.name
        alike = {name.lower(): name for name in there if name not in renamed}
        by_name = {new: there[old] for old, new in renamed.items()}
        for old, new in renamed.items():
            yield ColumnChange("rename", (*path, old), to=new)
        first: dict[str, str] = {}
        for field in wanted.fields:
            at, called = (*path, field.name), (*names, field.name)
            twin = first.setdefault(field.name.lower(), field.name)
            mine = there.get(field.name) or by_name.get(field.name)
            if mine is not None:
                yield from self.plan_type(mine.dataType, field.dataType, at, called)
                # the comment of a field without documentation stays, as a user may have written it by hand
                if comment_of(field) not in {"", comment_of(mine)}:
                    yield ColumnChange("comment", at, comment=comment_of(field))
            elif (other := alike.get(field.name.lower(), twin)) != field.name:
                yield _case_clash(field, at, other)
            else:
                yield from self._plan_added(field, at)
        dropped_names = there.keys() - {field.name for field in wanted.fields} - renamed.keys()
        yield from (self._plan_dropped((*path, name)) for name in there if name in dropped_names)

    def plan_type(self, has: DataType, wanted: DataType, path: ColumnPath, names: FieldPath) -> Iterator[ColumnChange]:
        from pyspark.sql.types import ArrayType, MapType, StructType

        match has, wanted:
            case StructType(), StructType():
                yield from self.plan_struct(has, wanted, path, names)
            case ArrayType(), ArrayType():
                yield from self.plan_type(has.elementType, wanted.elementType, (*path, "element"), names)
            case MapType(), MapType():
                yield from self._plan_key(has.keyType, wanted.keyType, (*path, "key"), names)
                yield from self.plan_type(has.valueType, wanted.valueType, (*path, "value"), names)
            case _ if has == wanted or can_hold(has, wanted):
                return
            case _:
                was, type_ = has.simpleString(), wanted.simpleString()
                if self._can.widens(has, wanted):
                    yield ColumnChange("widen", path, type_, was)
                    return
                why = f"it is {was} and cannot become {type_}"
                yield ColumnChange("clash", path, type_, was, why=why)

    def _old_name(
        self, field: StructField, there: Mapping[str, StructField], wanted: StructType, names: FieldPath
    ) -> str:
        """Return the old column that is to be renamed to this field, "" if there is none."""
        # a column whose name differs in case only would clash, or is this very column
        taken = field.name.lower() in {name.lower() for name in there}
        if taken or self._renames != "rename" or not self._can.rename:
            return ""
        still = {other.name for other in wanted.fields}
        return next((old for old in self._former.get(names, ()) if old in there and old not in still), "")

    def _plan_key(self, has: DataType, wanted: DataType, path: ColumnPath, names: FieldPath) -> Iterator[ColumnChange]:
        """Yield a clash for each change of a map's key, since no kind of table can change keys."""
        for change in self.plan_type(has, wanted, path, names):
            if change.kind == "comment":
                continue
            if change.kind in {"clash", "left"}:
                yield change
            else:
                yield ColumnChange("clash", change.path, change.type, change.was, why="the keys of maps cannot change")

    def _plan_added(self, field: StructField, path: ColumnPath) -> Iterator[ColumnChange]:
        type_, twins = field.dataType.simpleString(), list(_find_case_clashes(field.dataType, path))
        if len(path) > 1 and not self._can.nested:
            yield ColumnChange("clash", path, type_, why="tables of this kind take new columns at the top level only")
        elif twins:
            yield from twins
        else:
            yield ColumnChange("add", path, type_)

    def _plan_dropped(self, path: ColumnPath) -> ColumnChange:
        if self._drops == "refuse" and not path[-1].startswith(RESERVED_PREFIX):
            return ColumnChange("clash", path, why="it is no longer in the schema, and drops = 'refuse'")
        return ColumnChange("left", path)


def _find_case_clashes(type_: DataType, path: ColumnPath) -> Iterator[ColumnChange]:
    """Yield a clash for each pair of new columns whose names differ in case only."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    match type_:
        case StructType():
            spellings: dict[str, str] = {}
            for field in type_.fields:
                at = (*path, field.name)
                other = spellings.setdefault(field.name.lower(), field.name)
                if other != field.name:
                    yield _case_clash(field, at, other)
                yield from _find_case_clashes(field.dataType, at)
        case ArrayType():
            yield from _find_case_clashes(type_.elementType, (*path, "element"))
        case MapType():
            yield from _find_case_clashes(type_.keyType, (*path, "key"))
            yield from _find_case_clashes(type_.valueType, (*path, "value"))


def _case_clash(field: StructField, path: ColumnPath, other: str) -> ColumnChange:
    why = f"there is also a column {other}, and Spark ignores the case of names"
    return ColumnChange("clash", path, field.dataType.simpleString(), why=why)


RESERVED_PREFIX: Final = "_stele_"
"""Prefix of the names of columns that pipelines add."""

_WHOLE: Final = ("tinyint", "smallint", "int", "bigint")
_REAL: Final = ("float", "double")


def can_hold(has: DataType, incoming: DataType) -> bool:
    """Return whether a column takes all values of another type without a change of its own type."""
    from pyspark.sql.types import DecimalType, NullType

    if isinstance(incoming, NullType):
        return True
    if isinstance(has, DecimalType) and isinstance(incoming, DecimalType):
        return has.scale >= incoming.scale and has.precision - has.scale >= incoming.precision - incoming.scale
    one, other = has.simpleString(), incoming.simpleString()
    return any(one in kinds and other in kinds and kinds.index(one) >= kinds.index(other) for kinds in (_WHOLE, _REAL))


def can_widen(has: DataType, wanted: DataType) -> bool:
    """Return whether Iceberg can widen one type to the other.

    It widens integers, floating-point numbers, and decimals to more digits before the point.
    """
    from pyspark.sql.types import DecimalType

    if isinstance(has, DecimalType) and isinstance(wanted, DecimalType) and has.scale != wanted.scale:
        return False
    return has != wanted and can_hold(wanted, has)


def find_type(schema: StructType, path: ColumnPath) -> DataType | None:
    """Return the type of a column, None when there is no such column. Names are case-sensitive."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    kind: DataType = schema
    for part in path:
        match kind:
            case StructType() if part in kind.names:
                kind = kind[part].dataType
            case ArrayType() if part == "element":
                kind = kind.elementType
            case MapType() if part in {"key", "value"}:
                kind = kind.keyType if part == "key" else kind.valueType
            case _:
                return None
    return kind


def find_column(schema: StructType, path: ColumnPath) -> StructField | None:
    """Return the column at a path that ends with a name, None when there is no such column."""
    from pyspark.sql.types import StructType

    parent = find_type(schema, path[:-1])
    return parent[path[-1]] if isinstance(parent, StructType) and path[-1] in parent.names else None


def is_applied(change: ColumnChange, has: StructType, wanted: StructType) -> bool:
    """Return whether a table with these columns already has the change, whichever writer made it."""
    kind = find_type(has, change.path)
    match change.kind:
        case "rename":
            return kind is None or find_type(has, (*change.path[:-1], change.to)) is not None
        case "add":
            return kind is not None
        case "widen":
            type_ = find_type(wanted, change.path)
            return kind is not None and type_ is not None and (kind == type_ or can_hold(kind, type_))
        case "comment":
            column = find_column(has, change.path)
            return column is None or comment_of(column) == change.comment
        case _:
            return True


def make_nullable(type_: DataType) -> DataType:
    """Return the type with nulls allowed at every depth, except in the keys of maps.

    Comments are kept; other metadata is dropped.
    """
    from pyspark.sql.types import ArrayType, MapType, StructType

    match type_:
        case StructType():
            return StructType([make_nullable_column(field) for field in type_.fields])
        case ArrayType():
            return ArrayType(make_nullable(type_.elementType))
        case MapType():
            return MapType(make_nullable(type_.keyType), make_nullable(type_.valueType))
        case _:
            return type_


def make_nullable_column(column: StructField) -> StructField:
    """Return the column with nulls allowed at every depth. Keeps its comment, drops other metadata."""
    from pyspark.sql.types import StructField

    comment = comment_of(column)
    return StructField(column.name, make_nullable(column.dataType), metadata={COMMENT: comment} if comment else None)


def change_schema(table: StructType, changes: Sequence[ColumnChange], wanted: StructType) -> StructType:
    """Return the columns of a table after its changes, without changing a table: the result of `Sink.apply_changes`."""
    for change in changes:
        type_ = find_type(wanted, change.path)
        match change.kind:
            case "rename":
                table = _edit_type(table, change.path[:-1], _rename_edit(change.path[-1], change.to))
            case "add" if (column := find_column(wanted, change.path)) is not None:
                table = _edit_type(table, change.path[:-1], _add_edit(make_nullable_column(column)))
            case "comment":
                table = _edit_type(table, change.path[:-1], _comment_edit(change.path[-1], change.comment))
            case "widen" if type_ is not None:
                table = _edit_type(table, change.path, _replace_edit(type_))
    return table


def _edit_type(type_: _T, path: ColumnPath, edit: _Edit) -> _T:
    """Return the type with the part at the path edited."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if not path:
        return cast("_T", edit(type_))
    part, rest = path[0], path[1:]
    edited: DataType = type_
    match type_:
        case StructType():
            edited = StructType([_edit_field(each, rest, edit) if each.name == part else each for each in type_.fields])
        case ArrayType():
            edited = ArrayType(_edit_type(type_.elementType, rest, edit), type_.containsNull)
        case MapType() if part == "key":
            edited = MapType(_edit_type(type_.keyType, rest, edit), type_.valueType, type_.valueContainsNull)
        case MapType():
            edited = MapType(type_.keyType, _edit_type(type_.valueType, rest, edit), type_.valueContainsNull)
    return cast("_T", edited)


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


def _add_edit(column: StructField) -> _Edit:
    from pyspark.sql.types import StructType

    def edit(struct: DataType) -> DataType:
        assert isinstance(struct, StructType)
        return StructType([*struct.fields, column])

    return edit


def _comment_edit(name: str, comment: str) -> _Edit:
    from pyspark.sql.types import StructField, StructType

    def edit(struct: DataType) -> DataType:
        assert isinstance(struct, StructType)
        return StructType(
            [
                StructField(each.name, each.dataType, each.nullable, each.metadata | {COMMENT: comment})
                if each.name == name
                else each
                for each in struct.fields
            ]
        )

    return edit


def _replace_edit(type_: DataType) -> _Edit:
    return lambda _: type_
