"""`recursion` through Spark: types that contain themselves, by every engine, and in the other languages."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pyspark.errors import SparkRuntimeException
from pyspark.sql import DataFrame, SparkSession
from tests.spark.local_registry import LocalRegistry
from tests.spark.orders import frame_record

from stele.errors import EncodeError, Invalid
from stele.spark import from_registry, to_registry
from stele.spark.engines.error_codes import MESSAGES, ErrorCode

NODE = {
    "type": "record",
    "name": "Node",
    "fields": [
        {"name": "v", "type": "int"},
        {"name": "next", "type": ["null", "Node"], "default": None},
        {
            "name": "d",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 0},
            "default": "\0",
        },
    ],
}
FLAT = NODE | {"fields": [NODE["fields"][0]]}  # type: ignore[index]  # the fields are a list


def chain(length: int) -> Any:
    """Return a linked list of `length` nodes."""
    return None if not length else {"v": length, "next": chain(length - 1), "d": Decimal(length)}


def frame(spark: SparkSession, *values: bytes | None) -> DataFrame:
    """Return a DataFrame of raw records in one partition, with a row number."""
    return spark.createDataFrame(list(enumerate(values)), "row int, value binary").coalesce(1)


@pytest.mark.parametrize("engine", ["jvm", "vm", "python"])
def test_levels(spark: SparkSession, registry: LocalRegistry, engine: str) -> None:
    """Records within the levels are decoded, and deeper ones have a reason.

    An id registered later is read with the same levels, and decoded values are encoded to the same bytes.
    """
    number = registry.add("nodes", NODE)
    frames = [frame_record(NODE, chain(length), number) for length in (1, 2, 3)]
    late = registry.add("other", NODE | {"doc": "the same again"})
    flat = registry.add("flat", FLAT)
    more = [
        frame_record(NODE, chain(2), late),
        frame_record(FLAT, {"v": 7}, flat),
        frame_record(NODE, chain(3), late),
        None,
    ]
    options: dict[str, Any] = {"subject": "nodes", "registry": registry.url, "engine": engine, "recursion": 1}
    df = from_registry(frame(spark, *frames, *more), mode="PERMISSIVE", **options)
    assert df.schema["value"].dataType.simpleString() == "struct<v:int,next:struct<v:int,d:string>,d:string>"
    rows = df.collect()
    assert [row.value and (row.value.v, row.value.next and row.value.next.v, row.value.d) for row in rows] == [
        (1, None, "1"),
        (2, 1, "2"),
        None,
        (2, 1, "2"),
        (7, None, "0"),
        None,
        None,
    ]
    deep = MESSAGES[ErrorCode.TOO_DEEP]
    assert [row.value_error and row.value_error.reason for row in rows] == [None, None, deep, None, None, deep, None]
    good = df.where("row < 2").select("row", "value")
    again = to_registry(good, columns="value", keep=["row"], into="bytes", **options)
    assert [bytes(row.bytes) for row in again.orderBy("row").collect()] == frames[:2]
    with pytest.raises(Invalid, match="recursion=1 or more"):
        from_registry(frame(spark, None), subject="nodes", registry=registry.url, engine=engine)


def test_columns_and_rows_that_do_not_fit(spark: SparkSession, registry: LocalRegistry) -> None:
    """A column below the last level is an error at once; a text that is not a number is an error of its row."""
    registry.add("nodes", NODE)
    options: dict[str, Any] = {"subject": "nodes", "registry": registry.url, "engine": "jvm", "recursion": 1}
    deep = "named_struct('v', 1, 'd', '1', 'next', named_struct('v', 2))"
    with pytest.raises(EncodeError, match=r"next\.next is not in the schema"):
        to_registry(spark.range(1).selectExpr("1 AS v", f"{deep} AS next", "'1' AS d"), **options)
    for text, message in (("x", "is not a number"), ("1.5", "behind the point"), ("9" * 41, "more than 40 digits")):
        df = to_registry(spark.range(1).selectExpr("1 AS v", f"'{text}' AS d"), **options)
        with pytest.raises(SparkRuntimeException, match=f"d: .*{message}"):
            df.collect()
