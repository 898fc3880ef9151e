"""Types without parts: which type of Spark holds one of the neutral model, and the other way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from stele.formats.conversion.model import Decimal, Duration, Loss, Scalar, ScalarKind, Time, Timestamp, TimeUnit, Type

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

MAX_PRECISION: Final = 38
"""Most digits of a decimal of Spark."""

_NAMES: Final = {
    ScalarKind.ANY: "VariantType",
    ScalarKind.NULL: "NullType",
    ScalarKind.BOOLEAN: "BooleanType",
    ScalarKind.INT8: "ByteType",
    ScalarKind.INT16: "ShortType",
    ScalarKind.INT32: "IntegerType",
    ScalarKind.INT64: "LongType",
    ScalarKind.UINT8: "ShortType",
    ScalarKind.UINT16: "IntegerType",
    ScalarKind.UINT32: "LongType",
    ScalarKind.FLOAT32: "FloatType",
    ScalarKind.FLOAT64: "DoubleType",
    ScalarKind.NUMBER: "DoubleType",
    ScalarKind.STRING: "StringType",
    ScalarKind.UUID: "StringType",
    ScalarKind.BYTES: "BinaryType",
    ScalarKind.DATE: "DateType",
}
_DIGITS: Final = {TimeUnit.SECOND: 0, TimeUnit.MILLI: 3, TimeUnit.MICRO: 6}
_LOST: Final = {
    ScalarKind.UINT8: ("RANGE", "Negative numbers and greater ones than 255 fit the column too.", False),
    ScalarKind.UINT16: ("RANGE", "Negative numbers and greater ones than 16 bits fit the column too.", False),
    ScalarKind.UINT32: ("RANGE", "Negative numbers and greater ones than 32 bits fit the column too.", False),
    ScalarKind.UINT64: ("RANGE", "Negative numbers and greater ones than 64 bits fit the column too.", False),
    ScalarKind.INTEGER: ("RANGE", "Integers of more than 38 digits cannot be written.", True),
    ScalarKind.NUMBER: ("PRECISION", "Numbers are doubles here: digits beyond 15 may change.", True),
    ScalarKind.UUID: ("FORMAT", "Any text fits the column where a UUID was demanded.", False),
}
_WHOLE: Final = {ScalarKind.UINT64: 20, ScalarKind.INTEGER: MAX_PRECISION}


def to_spark_scalar(kind: Type, path: str) -> tuple[DataType, list[Loss]]:
    """Return the type of a column for a type without parts, and what it does not say."""
    from pyspark.sql import types as t

    match kind:
        case Scalar():
            lost = _LOST.get(kind.kind)
            losses = [Loss(path, *lost)] if lost else []
            if kind.kind in _WHOLE:
                return t.DecimalType(_WHOLE[kind.kind], 0), losses
            made: DataType = getattr(t, _NAMES[kind.kind])()
            return made, losses
        case Decimal():
            return _decimal_type(kind, path)
        case Timestamp():
            return (t.TimestampType() if kind.utc else t.TimestampNTZType()), _below_micro(kind.unit, path)
        case Duration(calendar=True):
            return t.CalendarIntervalType(), _below_micro(kind.unit, path)
        case Duration():
            return t.DayTimeIntervalType(0, 3), _below_micro(kind.unit, path)
        case Time():
            if not hasattr(t, "TimeType"):  # Spark 4.0
                return t.StringType(), [Loss(path, "TIME", "This Spark has no times of day: the column holds text.")]
            return t.TimeType(_DIGITS.get(kind.unit, 6)), _below_micro(kind.unit, path)
    raise TypeError(type(kind).__name__)


def _decimal_type(kind: Decimal, path: str) -> tuple[DataType, list[Loss]]:
    """Return a decimal where Spark has one wide enough, else text, which holds every number."""
    from pyspark.sql import types as t

    scale = max(kind.scale, 0)
    precision = None if kind.precision is None else max(kind.precision - min(kind.scale, 0), scale, 1)
    if precision is None or precision > MAX_PRECISION:
        why = f"A decimal of Spark has {MAX_PRECISION} digits at most: the column holds text."
        return t.StringType(), [Loss(path, "DECIMAL", why)]
    return t.DecimalType(precision, scale), []


def _below_micro(unit: TimeUnit, path: str) -> list[Loss]:
    why = "Digits below a microsecond cannot be written."
    return [Loss(path, "PRECISION", why, data=True)] if unit is TimeUnit.NANO else []


def to_model_scalar(kind: DataType, path: str) -> tuple[Type, dict[str, Any], list[Loss]] | None:
    """Return the type of a column without parts, constraints for its values, and what they do not say.

    The result is None for other types.
    """
    from pyspark.sql import types as t

    match kind:
        case t.DecimalType():
            return Decimal(kind.precision, kind.scale), {}, []
        case t.VarcharType():
            return Scalar(ScalarKind.STRING), {"maxLength": kind.length}, [_char_type(path, f"varchar({kind.length})")]
        case t.CharType():
            bounds = {"minLength": kind.length, "maxLength": kind.length}
            return Scalar(ScalarKind.STRING), bounds, [_char_type(path, f"char({kind.length})")]
        case t.StringType():
            why = "How texts are compared and sorted (the collation) is left out."
            return Scalar(ScalarKind.STRING), {}, [] if kind == t.StringType() else [Loss(path, "COLLATION", why)]
        case t.TimestampType():
            return Timestamp(TimeUnit.MICRO), {}, []
        case t.TimestampNTZType():
            return Timestamp(TimeUnit.MICRO, utc=False), {}, []
        case t.CalendarIntervalType():
            return Duration(TimeUnit.MICRO, calendar=True), {}, []
        case t.YearMonthIntervalType():
            why = "That the span is of years and months alone is not said."
            return Duration(TimeUnit.MICRO, calendar=True), {}, [Loss(path, "INTERVAL", why)]
        case t.DayTimeIntervalType():
            why = "That only some fields of the span are kept is not said."
            whole = (kind.startField, kind.endField) == (0, 3)
            return Duration(TimeUnit.MICRO), {}, [] if whole else [Loss(path, "INTERVAL", why)]
    if type(kind).__name__ == "TimeType":
        return _time_type(kind, path)
    name = type(kind).__name__
    found = next((scalar for scalar, word in _NAMES.items() if word == name and scalar not in _LOST), None)
    return None if found is None else (Scalar(found), {}, [])


def _time_type(kind: Any, path: str) -> tuple[Type, dict[str, Any], list[Loss]]:
    unit = next((unit for unit, digits in _DIGITS.items() if digits == kind.precision), None)
    if unit is not None:
        return Time(unit), {}, []
    why = f"That a second has {kind.precision} digits is not said."
    return Time(TimeUnit.MICRO), {}, [Loss(path, "PRECISION", why, data=kind.precision > 6)]


def _char_type(path: str, word: str) -> Loss:
    return Loss(path, "CHAR", f"{word} is a string whose length is bounded.")
