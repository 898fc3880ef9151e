"""The primitive types of RIP-42, and what they are on Spark and in Arrow.

| type | Spark | Arrow |
|---|---|---|
| BOOLEAN, BYTES, STRING | boolean, binary, string | the same |
| FLOAT, DOUBLE | float, double | float32, float64 |
| INT8, INT16, INT32, INT64 | tinyint, smallint, int, bigint | int8, int16, int32, int64 |
| TIMESTAMP: milliseconds since 1970 in 64 bits | timestamp | timestamp of milliseconds, UTC |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from stele.errors import CannotConvert, NotInstalled
from stele.formats.conversion.model import (
    Model,
    RecordType,
    Scalar,
    ScalarKind,
    Timestamp,
    TimeUnit,
    Type,
    TypeReference,
)
from stele.spark.types import from_spark, to_spark

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType

PRIMITIVES: Final[dict[str, Type]] = {
    "BOOLEAN": Scalar(ScalarKind.BOOLEAN),
    "INT8": Scalar(ScalarKind.INT8),
    "INT16": Scalar(ScalarKind.INT16),
    "INT32": Scalar(ScalarKind.INT32),
    "INT64": Scalar(ScalarKind.INT64),
    "FLOAT": Scalar(ScalarKind.FLOAT32),
    "DOUBLE": Scalar(ScalarKind.FLOAT64),
    "BYTES": Scalar(ScalarKind.BYTES),
    "STRING": Scalar(ScalarKind.STRING),
    "TIMESTAMP": Timestamp(TimeUnit.MILLI),
}
"""The types by name, in neutral words. RIP-42 spells FLOAT with an E at its end, which is understood, too."""

_NAMES = {kind: name for name, kind in PRIMITIVES.items()}


def parse_primitive(name: str) -> Type:
    """Return the type of a name, in any case. Raises `CannotConvert` for a name that is none of them."""
    word = name.strip().upper()
    found = PRIMITIVES.get("FLOAT" if word == "FLOATE" else word)
    if found is None:
        raise CannotConvert(f"{name!r} is no primitive type; there are {', '.join(PRIMITIVES)}")
    return found


def spark_type(name: str) -> DataType:
    """Return the Spark type. Raises `CannotConvert`, `NotInstalled`."""
    columns, _ = to_spark(Model(parse_primitive(name)))
    return columns.fields[0].dataType


def from_spark_type(kind: DataType) -> str:
    """Return the name of a Spark type: inverse of `spark_type`.

    Raises `CannotConvert` for any other type, `NotInstalled`.
    """
    from pyspark.sql.types import StructField, StructType

    model, _ = from_spark(StructType([StructField("value", kind, nullable=False)]))
    record = model.types[model.root.name] if isinstance(model.root, TypeReference) else None
    found = record.fields[0].type if isinstance(record, RecordType) else model.root
    if isinstance(found, Timestamp) and found.utc:
        return "TIMESTAMP"
    if found not in _NAMES:
        raise CannotConvert(f"{kind.simpleString()} is none of the primitive types")
    return _NAMES[found]


def arrow_type(name: str) -> pa.DataType:
    """Return the Arrow type. Raises `CannotConvert`, `NotInstalled`."""
    return _arrow_types()[_NAMES[parse_primitive(name)]]


def from_arrow_type(kind: pa.DataType) -> str:
    """Return the name of an Arrow type: inverse of `arrow_type`.

    Raises `CannotConvert` for any other type, `NotInstalled`.
    """
    for name, known in _arrow_types().items():
        if known == kind:
            return name
    raise CannotConvert(f"{kind} is none of the primitive types")


def _arrow_types() -> dict[str, pa.DataType]:
    try:
        import pyarrow as pa
    except ImportError:
        raise NotInstalled("pyarrow", "arrow") from None
    makers: dict[str, Callable[[], pa.DataType]] = {
        "BOOLEAN": pa.bool_,
        "INT8": pa.int8,
        "INT16": pa.int16,
        "INT32": pa.int32,
        "INT64": pa.int64,
        "FLOAT": pa.float32,
        "DOUBLE": pa.float64,
        "BYTES": pa.binary,
        "STRING": pa.string,
        "TIMESTAMP": lambda: pa.timestamp("ms", "UTC"),
    }
    return {name: make() for name, make in makers.items()}
