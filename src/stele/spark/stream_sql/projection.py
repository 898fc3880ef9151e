"""Select the columns that a statement lists from those of the registered schema, with casts that lose no value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from stele.errors import Invalid
from stele.spark.stream_sql.statements import RequestedColumn
from stele.spark.stream_sql.tokens import quote_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, DecimalType

_TEXT: Final = re.compile(r"\b(?:VAR)?CHAR\b(?:\(\d+\))?", re.IGNORECASE)
_DIGITS: Final = {"ByteType": 3, "ShortType": 5, "IntegerType": 10, "LongType": 19}
"""Integer types, narrow ones first, with their greatest number of decimal digits."""
_EXACT: Final = {"FloatType": {"ByteType", "ShortType"}, "DoubleType": {"ByteType", "ShortType", "IntegerType"}}
"""Integer types whose every value a float or a double represents exactly."""
_AS_TEXT: Final = {"BooleanType", "DateType", "TimestampType", "TimestampNTZType", "FloatType", "DoubleType", *_DIGITS}


class ColumnInvalid(Invalid):
    """A column of a column list is invalid; `column` is its name."""

    def __init__(self, why: str, column: str) -> None:
        super().__init__(why)
        self.column = column

    def __reduce__(self) -> tuple[type[ColumnInvalid], tuple[str, str]]:
        return ColumnInvalid, (str(self), self.column)


def select_columns(df: DataFrame, wanted: Sequence[RequestedColumn], free: Sequence[str], what: str) -> list[Column]:
    """Return the requested columns of a DataFrame, in the requested order.

    Args:
        df: Has the columns under the same names; case does not count.
        wanted: The requested columns.
        free: Columns without a schema, whose bytes may be read as text.
        what: The owner of the columns, for error messages.

    Raises:
        ColumnInvalid: If a column is missing, listed twice, or cannot be cast without loss.
    """
    from pyspark.sql import functions as f

    by_name = {field.name.lower(): field for field in df.schema.fields}
    taken: set[str] = set()
    made = []
    for column in wanted:
        if column.name.lower() in taken:
            raise ColumnInvalid(f"the column {column.name!r} is listed twice", column.name)
        taken.add(column.name.lower())
        field = by_name.get(column.name.lower())
        if field is None:
            raise ColumnInvalid(
                f"{what} has no column {column.name!r}: its columns are {', '.join(df.columns)}", column.name
            )
        kind = _parse_column_type(column)
        text = field.name in free and (_class_name(field.dataType), _class_name(kind)) == ("BinaryType", "StringType")
        if not text and not can_cast_losslessly(field.dataType, kind):
            raise ColumnInvalid(
                f"the column {column.name!r} of {what} is {field.dataType.simpleString()}, which cannot become "
                f"{kind.simpleString()} without loss: declare it as it is, and cast in the query",
                column.name,
            )
        metadata = {"comment": column.comment} if column.comment is not None else {}
        made.append(f.col(quote_name(field.name)).cast(kind).alias(column.name, metadata=metadata))
    return made


def _parse_column_type(column: RequestedColumn) -> DataType:
    """Return the type as Spark parses it. CHAR and VARCHAR become STRING."""
    from pyspark.errors import PySparkException
    from pyspark.sql.types import DataType

    try:
        return DataType.fromDDL(_TEXT.sub("STRING", column.type))
    except PySparkException:
        raise ColumnInvalid(f"{column.type} is not a Spark type", column.name) from None


def can_cast_losslessly(held: DataType, wanted: DataType) -> bool:
    """Return whether every value of one type can be cast to the other without loss."""
    from pyspark.sql.types import ArrayType, DecimalType, MapType, StructType

    mine, theirs = _class_name(held), _class_name(wanted)
    match held, wanted:
        case ArrayType(), ArrayType():
            return can_cast_losslessly(held.elementType, wanted.elementType)
        case MapType(), MapType():
            return can_cast_losslessly(held.keyType, wanted.keyType) and can_cast_losslessly(
                held.valueType, wanted.valueType
            )
        case StructType(), StructType():
            return [field.name.lower() for field in held] == [field.name.lower() for field in wanted] and all(
                can_cast_losslessly(one.dataType, other.dataType) for one, other in zip(held, wanted, strict=True)
            )
        case DecimalType(), DecimalType():
            return _fits_decimal(held.precision - held.scale, held.scale, wanted)
        case _, DecimalType() if mine in _DIGITS:
            return _fits_decimal(_DIGITS[mine], 0, wanted)
        case DecimalType(), _:
            return theirs == "StringType"
    if mine == theirs or mine in {"NullType", "VoidType"}:
        return True
    if theirs == "StringType":
        return mine in _AS_TEXT
    if mine in _DIGITS and theirs in _DIGITS:
        return _DIGITS[mine] <= _DIGITS[theirs]
    return mine in _EXACT.get(theirs, ()) or (mine, theirs) in {
        ("FloatType", "DoubleType"),
        ("DateType", "TimestampType"),
        ("DateType", "TimestampNTZType"),
    }


def _fits_decimal(whole: int, scale: int, wanted: DecimalType) -> bool:
    return wanted.scale >= scale and wanted.precision - wanted.scale >= whole


def _class_name(kind: Any) -> str:
    return type(kind).__name__
