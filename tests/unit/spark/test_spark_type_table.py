"""The table of types between schema languages and Spark."""

from __future__ import annotations

from tools.spark_type_table import reading, writing


def test_every_type_of_every_language_is_accounted_for() -> None:
    """Each type has a column for its data, or is known to have none, and a type in its schema."""
    rows = {(row.format, row.type): row for row in reading()}
    assert {name for name, _ in rows} == {"avro", "protobuf", "json", "thrift"}
    without = {key for key, row in rows.items() if not row.data}
    assert without <= {("avro", "decimal(50, 2)"), ("avro", "record inside itself")}
    assert all(row.schema for row in rows.values()), [key for key, row in rows.items() if not row.schema]
    assert rows["protobuf", "uint64"].data == rows["protobuf", "uint64"].schema == "decimal(20,0)"
    assert rows["json", "several types"].data == "string"
    assert rows["avro", "timestamp-nanos"].losses == ("PRECISION",)
    assert rows["thrift", "map with struct keys"].data == "map<struct<y:int>,int>"


def test_every_type_of_spark_is_accounted_for() -> None:
    """Each Spark type has a type in the languages that schemas can be made in, or a reason why not."""
    rows = list(writing())
    for row in rows:
        if not row.type:
            assert row.losses, row
    types = {(row.spark, row.format): row.type for row in rows}
    assert types["bigint", "avro"]
    assert types["bigint", "protobuf"]
    assert not types["bigint", "thrift"], "nothing can be converted into Thrift"
