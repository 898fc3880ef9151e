"""Conversion between types of DataFrames and schemas, without a running Spark.

| model | Spark |
|---|---|
| boolean, int8 to int64, float32, float64, string, bytes, date | the same |
| uint8, uint16, uint32; uint64 | the next wider signed integer; decimal(20, 0) |
| integer, number of any size | decimal(38, 0), double |
| decimal | decimal, a string where it is wider than 38 digits or unbounded |
| timestamp, on a wall clock; time | timestamp, timestamp_ntz; time (a string before Spark 4.1) |
| duration, of months and days too | interval day to second, interval |
| uuid, enumeration; fixed | string; binary |
| any, null | variant, void |
| record, array, map | struct, array, map |
| union | a struct with the columns `member0`, `member1` …, of which one is not null |
| a record inside itself | a variant: Spark has no recursive types |
| left out without a default | nullable |

What a Spark type cannot express is kept in the metadata of its column (see `metadata`), so `from_spark` returns what
`to_spark` was given. Everything else is reported as a loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from stele.client import ResolvedSchema
from stele.client.serdes.schemas import parse_schema
from stele.errors import CannotConvert, Invalid
from stele.formats.capabilities import FromModel, ToModel
from stele.formats.conversion.model import Loss, Model
from stele.formats.registry import get_format
from stele.spark.session import require_spark
from stele.spark.types.metadata import COMMENT, comment_of
from stele.spark.types.model import ModelBuilder, StructBuilder

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType

ROOT_NAME = "Row"
"""Default full name of the record for a DataFrame."""


def to_spark(model: Model) -> tuple[StructType, list[Loss]]:
    """Return the columns for data of a model, and the losses. A root that is not a record becomes the column `value`.

    Raises `TooLarge` past 10 000 columns or 64 levels, `CannotConvert` for a model that is not sound, `NotInstalled`.
    """
    require_spark()
    shaper = StructBuilder(model)
    return shaper.build_root(), shaper.losses


def from_spark(struct: StructType, *, name: str = ROOT_NAME) -> tuple[Model, list[Loss]]:
    """Return the model of rows with these columns, and the losses; `name` is the record's full name.

    Raises `TooLarge` past 10 000 columns or 64 levels, `CannotConvert` for two columns of one name and for types that
    no schema language knows (geometry), `NotInstalled`.
    """
    require_spark()
    reader = ModelBuilder()
    return reader.model(struct, name), reader.losses


def spark_schema(
    format: str,  # noqa: A002 - the word of the whole package for it
    text: str | bytes,
    references: Mapping[str, str | bytes] | None = None,
) -> tuple[StructType, list[Loss]]:
    """Return the columns for data of a schema document, and the losses.

    format is the name of an installed format; references map reference names to documents. Raises `UnknownFormat`,
    `MalformedSchema`, `UnresolvedReference`, and what `to_spark` raises.
    """
    source = get_format(format)
    if not isinstance(source, ToModel):
        raise CannotConvert(f"schemas of the format {source.name!r} cannot be converted")
    documents = {label: _to_bytes(document) for label, document in (references or {}).items()}
    parsed: Any = source.parse(_to_bytes(text), documents, strict=False)
    model, losses = source.to_model(parsed)
    struct, more = to_spark(model)
    return struct, [*losses, *more]


def schema_for(
    struct: StructType,
    format: str = "avro",  # noqa: A002 - the word of the whole package for it
    *,
    name: str = ROOT_NAME,
) -> tuple[str, list[Loss]]:
    """Return the text of a schema for rows with these columns, and the losses.

    name is the record's full name.

    Raises `UnknownFormat`, and what `from_spark` and the format's `from_model` raise.
    """
    target = get_format(format)
    if not isinstance(target, FromModel):
        raise CannotConvert(f"nothing can be converted into the format {target.name!r}")
    model, losses = from_spark(struct, name=name)
    text, more = target.from_model(model)
    return text.decode(), [*losses, *more]


def _to_bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


_T = TypeVar("_T", bound="DataType")


def with_comments(columns: StructType, schema: ResolvedSchema, message: str = "") -> StructType:
    """Return the columns with the documentation of their fields as comments, at every depth.

    The documentation is `doc` of Avro, `title` and `description` of JSON Schema, comments of Protobuf and Thrift, and
    annotations of XSD. The column of a field without documentation has no comment.

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
