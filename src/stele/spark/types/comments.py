"""Column comments: the documentation of a schema's fields, on the columns that hold their data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from stele.client import ResolvedSchema
from stele.client.serdes.schemas import parse_schema
from stele.errors import Invalid
from stele.formats.capabilities import ToModel
from stele.spark.types import to_spark
from stele.spark.types.metadata import COMMENT, comment_of

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType

_T = TypeVar("_T", bound="DataType")


def with_comments(columns: StructType, schema: ResolvedSchema, message: str = "") -> StructType:
    """Return the columns with the documentation of their fields as comments, at every depth.

    Documentation is what the schema language has for it: `doc` of Avro, `title` and `description` of JSON Schema,
    comments of Protobuf and Thrift, annotations of XSD. A field without documentation has the column without a comment.

    Args:
        columns: The columns for data of the schema.
        schema: The schema.
        message: The message or struct whose data the columns hold, where the schema has several.
    """
    source = parse_schema(schema)
    if not isinstance(source.format, ToModel):
        return columns
    to_model: Any = source.format.to_model
    try:
        model, _ = to_model(source.parsed, message) if message else to_model(source.parsed)
        documented, _ = to_spark(model)
    except Invalid:
        return columns
    return _copy_comments(columns, documented)


def _copy_comments(columns: _T, documented: DataType) -> _T:
    """Return a type with the comments that fields of the same path have in another type."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    copied: DataType = columns
    match columns, documented:
        case StructType(), StructType():
            fields = {field.name: field for field in documented.fields}
            copied = StructType([_copy_comment(field, fields.get(field.name)) for field in columns.fields])
        case ArrayType(), ArrayType():
            copied = ArrayType(_copy_comments(columns.elementType, documented.elementType), columns.containsNull)
        case MapType(), MapType():
            value = _copy_comments(columns.valueType, documented.valueType)
            copied = MapType(columns.keyType, value, columns.valueContainsNull)
    return cast("_T", copied)


def _copy_comment(column: StructField, documented: StructField | None) -> StructField:
    from pyspark.sql.types import StructField

    if documented is None:
        return column
    comment = comment_of(documented)
    metadata = column.metadata | ({COMMENT: comment} if comment else {})
    return StructField(column.name, _copy_comments(column.dataType, documented.dataType), column.nullable, metadata)
