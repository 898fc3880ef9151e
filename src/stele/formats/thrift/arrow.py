"""Arrow schema of a struct.

| Thrift | Arrow |
|---|---|
| bool, i8, i16, i32, i64, double, string, binary | bool, int8, int16, int32, int64, float64, string, binary |
| uuid, enum | string (an enum's name, or its number as text where the schema has no name for it) |
| list, set | list |
| map | map |
| struct, union, exception | struct |

Required fields are never null. All other fields are nullable, and so is every member of a union.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from stele.errors import Invalid, NotInstalled
from stele.formats.thrift.schema import ResolvedType, ThriftSchema, ThriftStruct, is_required

if TYPE_CHECKING:
    import pyarrow as pa

MAX_COLUMNS: Final = 10_000
"""Most fields of a table, nested ones included."""

MAX_DEPTH: Final = 64
"""Most levels of nested structs. Data has the same limit."""

_SCALARS: Final = {
    "bool": "bool_",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "double": "float64",
    "string": "string",
    "binary": "binary",
    "uuid": "string",
    "enum": "string",
}


def arrow_schema(schema: ThriftSchema, name: str = "") -> pa.Schema:
    """Return the columns of a struct ('' is the one that `type_name` names).

    Raises `NotInstalled` without pyarrow, `InvalidRequest` for an unknown struct, `Invalid` when the struct contains
    itself or has too many columns.
    """
    try:
        import pyarrow  # noqa: ICN001 - the module itself is looked into by attribute names
    except ImportError:
        raise NotInstalled("pyarrow", "spark") from None
    return pyarrow.schema(_ColumnMapper().map_columns(ResolvedType(schema.unit, schema.find_struct(name)), ()))


class _ColumnMapper:
    def __init__(self) -> None:
        self._left = MAX_COLUMNS

    def map_columns(self, kind: ResolvedType, above: tuple[ThriftStruct, ...]) -> list[pa.Field[Any]]:
        """Return the fields of a struct. `above` are the enclosing structs."""
        import pyarrow as pa

        struct = kind.node
        assert isinstance(struct, ThriftStruct)
        if any(struct is each for each in above):
            way = " > ".join(each.name for each in (*above, struct))
            raise Invalid(f"{struct.kind} {struct.name} contains itself ({way}): it has no finite table shape")
        self._left -= len(struct.fields)
        if self._left < 0 or len(above) >= MAX_DEPTH:
            top = (*above, struct)[0].name
            raise Invalid(f"{top} has more than {MAX_COLUMNS} columns, or goes deeper than {MAX_DEPTH} structs")
        inside = (*above, struct)
        return [
            pa.field(
                field.name,
                self._map_type(kind.unit.resolve_type(field.type), inside),
                nullable=not is_required(struct, field),
                metadata={"doc": field.doc} if field.doc else None,
            )
            for field in struct.fields
        ]

    def _map_type(self, kind: ResolvedType, above: tuple[ThriftStruct, ...]) -> pa.DataType:
        import pyarrow as pa

        match kind.kind:
            case "list" | "set":
                return pa.list_(pa.field("element", self._map_type(kind.inner_type(0), above), nullable=False))
            case "map":
                return pa.map_(self._map_type(kind.inner_type(0), above), self._map_type(kind.inner_type(1), above))
            case "struct":
                return pa.struct(self.map_columns(kind, above))
        data_type: pa.DataType = getattr(pa, _SCALARS[kind.kind])()
        return data_type
