"""Types of Iceberg and of Spark, either way."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

from stele.errors import Invalid

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.types import IcebergType, NestedField
    from pyspark.sql.types import DataType, StructType

_PAIRS: Final = {
    "boolean": ("BooleanType", "BooleanType"),
    "int": ("IntegerType", "IntegerType"),
    "bigint": ("LongType", "LongType"),
    "float": ("FloatType", "FloatType"),
    "double": ("DoubleType", "DoubleType"),
    "date": ("DateType", "DateType"),
    "time(6)": ("TimeType", "TimeType"),
    "timestamp_ntz": ("TimestampType", "TimestampNTZType"),
    "timestamp": ("TimestamptzType", "TimestampType"),
    "string": ("StringType", "StringType"),
    "binary": ("BinaryType", "BinaryType"),
}
"""Iceberg's and Spark's names of the class, by Spark's word for the type. Spark before 4.1 has no times."""
_ONE_WAY: Final = {"tinyint": "IntegerType", "smallint": "IntegerType"}
_OTHER_WAY: Final = {"UUIDType": "StringType", "FixedType": "BinaryType"}

ID: Final = "parquet.field.id"
"""Where Spark's Parquet reader looks for the number of a field."""


def iceberg_schema(struct: StructType) -> Schema:
    """Columns for a table, all of them optional, numbered from 1. Raises `Invalid` for types that Iceberg lacks."""
    import pyiceberg.types as iceberg
    from pyiceberg.schema import Schema
    from pyspark.sql.types import ArrayType, DecimalType, MapType, StructType

    numbers = count(1)

    def fields(struct: StructType, path: str) -> list[NestedField]:
        return [
            iceberg.NestedField(
                next(numbers), each.name, convert_type(each.dataType, f"{path}{each.name}."), required=False
            )
            for each in struct.fields
        ]

    def convert_type(type_: DataType, path: str) -> IcebergType:
        match type_:
            case StructType():
                return iceberg.StructType(*fields(type_, path))
            case ArrayType():
                element = convert_type(type_.elementType, f"{path}element.")
                return iceberg.ListType(next(numbers), element, element_required=False)
            case MapType():
                key, value = convert_type(type_.keyType, f"{path}key."), convert_type(type_.valueType, f"{path}value.")
                return iceberg.MapType(next(numbers), key, next(numbers), value, value_required=False)
            case DecimalType():
                return iceberg.DecimalType(type_.precision, type_.scale)
        word = type_.simpleString()
        name = _ONE_WAY.get(word) or _PAIRS.get(word, ("", ""))[0]
        if not name:
            raise Invalid(f"column {path.rstrip('.')}: Iceberg has no type for {word}")
        plain: IcebergType = getattr(iceberg, name)()
        return plain

    return Schema(*fields(struct, ""))


def spark_schema(schema: Schema, *, ids: bool = False) -> StructType:
    """Columns of a table as Spark reads them, with Iceberg's field ids in their metadata if asked for.

    Raises `Invalid` for types that Spark lacks.
    """
    import pyiceberg.types as iceberg
    import pyspark.sql.types as spark

    back = _OTHER_WAY | dict(_PAIRS.values())

    def struct(fields: tuple[NestedField, ...], path: str) -> StructType:
        return spark.StructType([field(each, f"{path}{each.name}.") for each in fields])

    def field(each: NestedField, path: str) -> spark.StructField:
        metadata = {ID: each.field_id} if ids else None
        return spark.StructField(each.name, convert_type(each.field_type, path), metadata=metadata)

    def convert_type(type_: IcebergType, path: str) -> DataType:
        match type_:
            case iceberg.StructType():
                return struct(type_.fields, path)
            case iceberg.ListType():
                return spark.ArrayType(convert_type(type_.element_type, f"{path}element."))
            case iceberg.MapType():
                key, value = (
                    convert_type(type_.key_type, f"{path}key."),
                    convert_type(type_.value_type, f"{path}value."),
                )
                return spark.MapType(key, value)
            case iceberg.DecimalType():
                return spark.DecimalType(type_.precision, type_.scale)
        plain = getattr(spark, back.get(type(type_).__name__, ""), None)
        if plain is None:
            raise Invalid(f"column {path.rstrip('.')}: Spark has no type for {type_}")
        made: DataType = plain()
        return made

    return struct(schema.fields, "")
