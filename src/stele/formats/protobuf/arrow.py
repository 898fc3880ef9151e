"""Arrow schema of a message.

| Protobuf | Arrow |
|---|---|
| int32 sint32 sfixed32, int64 sint64 sfixed64 | int32, int64 |
| uint32 fixed32, uint64 fixed64 | uint32, uint64 |
| float, double, bool, string, bytes | float32, float64, bool, string, binary |
| enum | string (the name; the number as text where the schema has no name for it) |
| message, group | struct |
| repeated, map | list, map |
| google.protobuf.Timestamp, Duration | timestamp[us, UTC], duration[us]: digits below a microsecond are lost |
| google.protobuf.Int32Value and the other wrappers | the nullable scalar |
| google.protobuf.Struct, Value, ListValue | string (JSON text) |
| google.protobuf.FieldMask | string (its JSON form: paths with commas) |
| google.protobuf.Any and every other message | a struct of its fields |

A column is nullable if the field can be absent: messages, members of a oneof, and fields with explicit presence. Lists,
maps, `required` fields and proto3 fields without `optional` are never null: a missing value is read as the default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf.descriptor import FieldDescriptor as F

from stele.errors import Invalid, NotInstalled
from stele.formats.protobuf.model import DURATION, FIELD_MASK, JSON_VALUES, TIMESTAMP, WRAPPERS, is_map, map_parts

if TYPE_CHECKING:
    import pyarrow as pa
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

    from stele.formats.protobuf.model import ProtobufSchema

MAX_COLUMNS = 10_000
"""Limit for the fields of a table, nested ones included."""
MAX_DEPTH = 100
"""Most levels of nested structs. Protobuf data has the same limit."""

_SCALARS = {
    **dict.fromkeys((F.TYPE_INT32, F.TYPE_SINT32, F.TYPE_SFIXED32), "int32"),
    **dict.fromkeys((F.TYPE_INT64, F.TYPE_SINT64, F.TYPE_SFIXED64), "int64"),
    **dict.fromkeys((F.TYPE_UINT32, F.TYPE_FIXED32), "uint32"),
    **dict.fromkeys((F.TYPE_UINT64, F.TYPE_FIXED64), "uint64"),
    F.TYPE_FLOAT: "float32",
    F.TYPE_DOUBLE: "float64",
    F.TYPE_BOOL: "bool_",
    F.TYPE_BYTES: "binary",
    F.TYPE_STRING: "string",
    F.TYPE_ENUM: "string",
}


def arrow_schema(schema: ProtobufSchema, full_name: str = "") -> pa.Schema:
    """Return the columns of a message ('' is the first one of the file).

    Raises `NotInstalled` without pyarrow, `InvalidRequest` for an unknown message, `Invalid` when the message contains
    itself or has too many columns.
    """
    try:
        import pyarrow  # noqa: ICN001 - the module itself is looked into by attribute names
    except ImportError:
        raise NotInstalled("pyarrow", "spark") from None
    message = schema.get_message(full_name)
    return pyarrow.schema(_ColumnBuilder().build_columns(message, ()))


class _ColumnBuilder:
    def __init__(self) -> None:
        self._left = MAX_COLUMNS

    def build_columns(self, message: Descriptor, above: tuple[str, ...]) -> list[pa.Field[Any]]:
        """Return the fields of a struct. `above` are the names of the enclosing messages."""
        if message.full_name in above:
            way = " > ".join((*above[above.index(message.full_name) :], message.full_name))
            raise Invalid(f"message {message.full_name} contains itself ({way}): it has no finite table shape")
        self._left -= len(message.fields)
        if self._left < 0 or len(above) > MAX_DEPTH:
            raise Invalid(f"message {above[0] if above else message.full_name} has more than {MAX_COLUMNS} columns")
        inside = (*above, message.full_name)
        return [self._build_column(field, inside) for field in message.fields]

    def _build_column(self, field: FieldDescriptor, above: tuple[str, ...]) -> pa.Field[Any]:
        import pyarrow as pa

        nullable = field.has_presence and not field.is_required
        if is_map(field):
            key, value = map_parts(field)
            return pa.field(
                field.name, pa.map_(self._arrow_type(key, above), self._arrow_type(value, above)), nullable=False
            )
        kind = self._arrow_type(field, above)
        if field.is_repeated:
            return pa.field(field.name, pa.list_(pa.field("element", kind, nullable=False)), nullable=False)
        return pa.field(field.name, kind, nullable=nullable)

    def _arrow_type(self, field: FieldDescriptor, above: tuple[str, ...]) -> pa.DataType:
        """Return the type of one value of the field."""
        import pyarrow as pa

        message = field.message_type
        if message is None:
            return _scalar_type(field.type)
        if message.full_name in WRAPPERS:
            return _scalar_type(WRAPPERS[message.full_name])
        if message.full_name == TIMESTAMP:
            return pa.timestamp("us", tz="UTC")
        if message.full_name == DURATION:
            return pa.duration("us")
        if message.full_name in JSON_VALUES or message.full_name == FIELD_MASK:
            return pa.string()
        return pa.struct(self.build_columns(message, above))


def _scalar_type(kind: int) -> pa.DataType:
    import pyarrow as pa

    data_type: pa.DataType = getattr(pa, _SCALARS[kind])()
    return data_type
