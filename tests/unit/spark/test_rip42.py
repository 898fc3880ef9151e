"""The parse_primitive types of RIP-42 on Spark and in Arrow."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import types

from stele.errors import CannotConvert
from stele.spark.types.rip42 import (
    PRIMITIVES,
    arrow_type,
    from_arrow_type,
    from_spark_type,
    parse_primitive,
    spark_type,
)

SPARK = {
    "BOOLEAN": "boolean",
    "INT8": "tinyint",
    "INT16": "smallint",
    "INT32": "int",
    "INT64": "bigint",
    "FLOAT": "float",
    "DOUBLE": "double",
    "BYTES": "binary",
    "STRING": "string",
    "TIMESTAMP": "timestamp",
}
ARROW = {
    "BOOLEAN": "bool",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "FLOAT": "float",
    "DOUBLE": "double",
    "BYTES": "binary",
    "STRING": "string",
    "TIMESTAMP": "timestamp[ms, tz=UTC]",
}


@pytest.mark.parametrize("name", list(PRIMITIVES))
def test_27_primitive_types_have_their_types_on_spark_and_in_arrow(name: str) -> None:
    """27: every parse_primitive type has a Spark and an Arrow type of its own, and comes back from both."""
    assert spark_type(name).simpleString() == SPARK[name]
    assert from_spark_type(spark_type(name)) == name
    assert str(arrow_type(name)) == ARROW[name]
    assert from_arrow_type(arrow_type(name)) == name


def test_spellings() -> None:
    """Case does not matter, and neither does the slip of the proposal."""
    assert parse_primitive(" int8 ") == PRIMITIVES["INT8"]
    assert parse_primitive("FLOATE") == PRIMITIVES["FLOAT"]
    for wrong in ("", "INT128", "struct"):
        with pytest.raises(CannotConvert):
            parse_primitive(wrong)


def test_other_types_have_no_name() -> None:
    """What is no parse_primitive type is not taken for one."""
    for kind in (types.DateType(), types.ArrayType(types.IntegerType()), types.TimestampNTZType()):
        with pytest.raises(CannotConvert):
            from_spark_type(kind)
    for kind in (pa.date32(), pa.uint8(), pa.timestamp("us")):
        with pytest.raises(CannotConvert):
            from_arrow_type(kind)
