"""`from_registry` and `to_registry` in a local Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from tests.spark.local_registry import LocalRegistry
from tests.spark.orders import SUBJECT, V1, V2, V3, datum, drop, frame_record, order

from stele.client import SchemaReference, SchemaRegistryClient
from stele.errors import ContentNotFound, EncodeError, Invalid, SubjectNotFound, VersionNotFound
from stele.spark import from_registry, to_registry


@pytest.fixture
def three(registry: LocalRegistry) -> LocalRegistry:
    """A registry with all three versions; ids are 1, 2, 3."""
    for document in (V1, V2, V3):
        registry.add(SUBJECT, document)
    return registry


def frame(spark: SparkSession, *values: bytes | None) -> DataFrame:
    """Return a DataFrame of raw records in one partition, with a row number."""
    rows = [(number, value) for number, value in enumerate(values)]
    return spark.createDataFrame(rows, "row int, value binary").coalesce(1)


MIXED = (order(3, 3, 0), order(1, 1, 1), None, order(2, 2, 3), order(1, 1, 4))
BAD = (order(1, 1, 5)[:-1], b"\0\0\0\0\x63zz", b"", order(2, 2, 6) + b"x")


@pytest.mark.parametrize("engine", ["vm", "python"])
def test_mixed_ids_decode_in_row_order(spark: SparkSession, three: LocalRegistry, engine: str) -> None:
    """Records of three writers in one column are decoded to the newest schema, in row order, a tombstone as null."""
    df = from_registry(
        frame(spark, *MIXED), subject=SUBJECT, registry=three.url, engine=engine, into="order", id_column="writer"
    )
    assert df.columns == ["row", "order", "writer"]
    assert (
        df.schema["order"]
        .dataType.simpleString()
        .startswith(
            "struct<id:bigint,place:struct<city:string,country:string>,tags:array<string>,at:timestamp,note:string,places:map<"
        )
    )
    rows = df.select(
        "row", "writer", "order.id", "order.place.country", "order.note", f.unix_millis("order.at")
    ).collect()
    assert [tuple(row) for row in rows] == [
        (0, 3, 0, "NO", "note 0", 1_700_000_000_000),
        (1, 1, 1, None, None, 0),
        (2, None, None, None, None, None),
        (3, 2, 3, None, None, 1_700_000_000_003),
        (4, 1, 4, None, None, 0),
    ]


def test_the_reader_can_be_an_older_version_or_a_text(spark: SparkSession, three: LocalRegistry) -> None:
    """A version number or a schema text defines the columns; other fields of the records are skipped."""
    raw = frame(spark, *MIXED)
    assert from_registry(raw, subject=SUBJECT, registry=three.url, reader=2).select("value.*").columns == [
        "id",
        "place",
        "tags",
        "at",
    ]
    own = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "double"}]}
    df = from_registry(raw, subject=SUBJECT, registry=three.url, reader=json.dumps(own), keep=[])
    assert df.columns == ["value"]
    assert [row.id for row in df.select("value.id").collect()] == [0.0, 1.0, None, 3.0, 4.0]


def test_failfast_names_the_record(spark: SparkSession, three: LocalRegistry) -> None:
    """The default mode fails the task with reason, id and byte."""
    df = from_registry(frame(spark, *MIXED, BAD[0]), subject=SUBJECT, registry=three.url)
    with pytest.raises(PySparkException, match=r"the record ends inside a value \(schema id 1\) at byte 13"):
        df.collect()


def test_permissive_gives_null_and_the_error_beside_it(spark: SparkSession, three: LocalRegistry) -> None:
    """Every kind of damage is a null value with id, offset and reason; good records and tombstones have no error."""
    df = from_registry(frame(spark, *MIXED, *BAD), subject=SUBJECT, registry=three.url, mode="PERMISSIVE")
    rows = df.select("row", "value.id", "value_error.*").collect()
    assert [row.id for row in rows] == [0, 1, None, 3, 4, None, None, None, None]
    assert all(row.reason is None for row in rows[:5])
    assert [(row.schema_id, row.reason) for row in rows[5:]] == [
        (1, "the record ends inside a value"),
        (99, "unknown schema id 99"),
        (None, "no frame: the first byte must be 0, followed by a schema id of four bytes"),
        (2, "bytes are left over after the value"),
    ]


def test_dead_letters_keep_the_raw_record(spark: SparkSession, three: LocalRegistry) -> None:
    """There are two DataFrames: good records with their value, and bad ones with all input columns and the error."""
    split = from_registry(frame(spark, *MIXED, *BAD), subject=SUBJECT, registry=three.url, mode="DEADLETTER")
    assert split.good.columns == ["row", "value"]
    assert [row.row for row in split.good.collect()] == [0, 1, 2, 3, 4]
    assert split.dead.columns == ["row", "value", "value_error"]
    assert [bytes(row.value) for row in split.dead.collect()] == list(BAD)


def test_an_id_registered_after_planning_is_looked_up(spark: SparkSession, registry: LocalRegistry) -> None:
    """The columns stay as planned, and a newer record is read with its own schema, which is requested once."""
    registry.add(SUBJECT, V1)
    df = from_registry(
        frame(spark, order(1, 1, 1), order(2, 2, 2), order(2, 2, 3)), subject=SUBJECT, registry=registry.url
    )
    registry.add(SUBJECT, V2)
    with pytest.raises(PySparkException, match="schema id 2 cannot be read: id: long cannot be read as int"):
        df.collect()
    registry.heal()
    late = registry.add("other", V1 | {"doc": "the same again"})
    df = from_registry(
        frame(spark, *(frame_record(V1, datum(1, number), late) for number in range(4))),
        subject=SUBJECT,
        registry=registry.url,
    )
    assert df.count() == 4
    assert df.select("value.id").collect()[3].id == 3
    assert registry.requests.count(f"GET /schemas/ids/{late}") <= 2, "once per worker process"


def test_an_outage_fails_the_task_and_is_never_null(spark: SparkSession, three: LocalRegistry) -> None:
    """If the registry does not answer, an unknown id fails the task even in the mode PERMISSIVE."""
    df = from_registry(
        frame(spark, b"\0\0\0\0\x58zz"), subject=SUBJECT, registry=three.url, mode="PERMISSIVE", patience=0
    )
    three.break_down()
    with pytest.raises(PySparkException, match="on purpose"):
        df.collect()


def test_references_are_followed(spark: SparkSession, registry: LocalRegistry) -> None:
    """A schema with a reference decodes like one that contains the referenced schema."""
    place = V1["fields"][1]["type"]
    registry.add("place", place)
    outer = {"type": "record", "name": "Trip", "fields": [{"name": "to", "type": "Place"}]}
    number = registry.add("trips", outer, SchemaReference("Place", "place", 1))
    spelled = {"type": "record", "name": "Trip", "fields": [{"name": "to", "type": place}]}
    raw = frame(spark, frame_record(spelled, {"to": {"city": "Oslo"}}, number))
    assert (
        from_registry(raw, subject="trips", registry=registry.url).select("value.to.city").collect()[0].city == "Oslo"
    )


def test_a_snapshot_needs_no_registry(spark: SparkSession, three: LocalRegistry) -> None:
    """With a snapshot no registry is asked: known ids are decoded, others are unknown."""
    with SchemaRegistryClient(three.url) as client:
        snapshot = client.snapshot(subjects=[SUBJECT])
    three.heal()
    three.break_down()
    df = from_registry(frame(spark, *MIXED, BAD[1]), subject=SUBJECT, registry=snapshot, mode="PERMISSIVE")
    assert [row.id for row in df.select("value.id").collect()] == [0, 1, None, 3, 4, None]
    assert three.requests == []


def test_streams_decode_too(spark: SparkSession, three: LocalRegistry, tmp_path: Path) -> None:
    """The same call works on a streaming DataFrame."""
    drop(tmp_path / "in", "a.parquet", MIXED)
    raw = spark.readStream.schema("value binary").parquet(str(tmp_path / "in"))
    df = from_registry(raw, subject=SUBJECT, registry=three.url).select("value.id")
    query = df.writeStream.format("memory").queryName("decoded").trigger(availableNow=True).start()
    query.awaitTermination()
    assert sorted(row.id for row in spark.table("decoded").where("id is not null").collect()) == [0, 1, 3, 4]
    drop(tmp_path / "bad", "a.parquet", [BAD[0]])
    raw = spark.readStream.schema("value binary").parquet(str(tmp_path / "bad"))
    df = from_registry(raw, subject=SUBJECT, registry=three.url)
    query = df.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c")).start()
    with pytest.raises(StreamingQueryException, match="the record ends inside a value"):
        query.processAllAvailable()


@pytest.mark.parametrize("engine", ["vm", "python"])
def test_rows_are_written_and_read_back(spark: SparkSession, three: LocalRegistry, engine: str) -> None:
    """Rows that are encoded with the newest version and decoded again are equal; the key column is kept."""
    rows = from_registry(frame(spark, *MIXED), subject=SUBJECT, registry=three.url).where("value is not null")
    wide = rows.select("row", "value.*")
    encoded = to_registry(wide, subject=SUBJECT, registry=three.url, keep=["row"], into="bytes", engine=engine)
    assert encoded.columns == ["row", "bytes"]
    assert encoded.select(f.hex(f.substring("bytes", 1, 5)).alias("h")).distinct().collect()[0].h == "0000000003"
    again = from_registry(encoded, "bytes", subject=SUBJECT, registry=three.url).select("row", "value.*")
    assert again.collect() == wide.collect()


def test_a_schema_is_registered_only_when_asked(spark: SparkSession, registry: LocalRegistry) -> None:
    """A schema that the subject does not have is an error, unless auto_register is set. Then the frames have its id."""
    df = spark.createDataFrame([(1,), (2,)], "id int")
    text = json.dumps({"type": "record", "name": "N", "fields": [{"name": "id", "type": "int"}]})
    registry.add("other", "string")
    with pytest.raises(SubjectNotFound):
        to_registry(df, subject="numbers", registry=registry.url, schema=text)
    registry.add("numbers", "string")
    with pytest.raises(ContentNotFound):
        to_registry(df, subject="numbers", registry=registry.url, schema=text)
    encoded = to_registry(df, subject="numbers", registry=registry.url, schema=text, auto_register=True)
    assert sorted(bytes(row.value) for row in encoded.collect()) == [b"\0\0\0\0\2\2", b"\0\0\0\0\2\4"]
    assert to_registry(df, subject="numbers", registry=registry.url, schema=text).count() == 2


def test_a_whole_value_is_one_column(spark: SparkSession, three: LocalRegistry) -> None:
    """A decoded struct is encoded unchanged, and tombstones stay null; a schema without fields is one column."""
    decoded = from_registry(frame(spark, *MIXED), subject=SUBJECT, registry=three.url)
    again = to_registry(decoded, subject=SUBJECT, registry=three.url, columns="value", keep=["row"])
    back = from_registry(again, subject=SUBJECT, registry=three.url).collect()
    assert back == decoded.collect()
    assert back[2].value is None
    three.add("keys", "bytes")
    keys = to_registry(frame(spark, b"ab", None).drop("row"), subject="keys", registry=three.url)
    assert [row.value and bytes(row.value) for row in keys.collect()] == [b"\0\0\0\0\4ab", None]


def test_columns_may_have_any_name(spark: SparkSession, three: LocalRegistry) -> None:
    """Dots, spaces, backquotes, SQL keywords and duplicate names are allowed; the client is opened by a function."""

    def connect(url: str = three.url) -> SchemaRegistryClient:
        return SchemaRegistryClient(url)

    raw = frame(spark, *MIXED).select("*", f.col("row") + 1).toDF("select", "my.`raw` value", "select")
    df = from_registry(raw, "my.`raw` value", subject=SUBJECT, registry=connect, into="from.x", id_column="an id")
    assert df.columns == ["select", "select", "from.x", "an id"]
    assert [(row[0], row[1], row[2] and row[2].id, row[3]) for row in df.collect()] == [
        (0, 1, 0, 3),
        (1, 2, 1, 1),
        (2, 3, None, None),
        (3, 4, 3, 2),
        (4, 5, 4, 1),
    ]
    numbers = {"type": "record", "name": "N", "fields": [{"name": "id", "type": "int"}]}
    three.add("numbers", numbers)
    wide = spark.createDataFrame([(7, "k")], "id int, key string").toDF("id", "the.key")
    encoded = to_registry(wide, subject="numbers", registry=connect, keep=["the.key"], into="a.b")
    assert [tuple(row) for row in encoded.collect()] == [("k", b"\0\0\0\0\4\x0e")]


def test_columns_that_do_not_fit_fail_on_the_driver(spark: SparkSession, three: LocalRegistry) -> None:
    """A column the schema lacks, a field without column and a wrong type are errors before any task runs."""
    three.add("numbers", {"type": "record", "name": "N", "fields": [{"name": "id", "type": "int"}]})
    for columns, message in (
        ("id int, other int", "other is not in the schema"),
        ("other int", "'id' has no column, and may not be null"),
        ("id array<int>", "does not fit int32"),
    ):
        with pytest.raises(EncodeError, match=message):
            to_registry(spark.createDataFrame([], columns), subject="numbers", registry=three.url)
    three.add("words", "string")
    with pytest.raises(Invalid, match="name the column"):
        to_registry(spark.createDataFrame([], "a string, b string"), subject="words", registry=three.url)


def test_wrong_arguments_fail_on_the_driver(spark: SparkSession, three: LocalRegistry) -> None:
    """Unknown subjects, versions, modes, engines, columns and recursive schemas are errors before any task runs."""
    raw = frame(spark, *MIXED)
    with pytest.raises(SubjectNotFound):
        from_registry(raw, subject="nobody", registry=three.url)
    with pytest.raises(VersionNotFound):
        from_registry(raw, subject=SUBJECT, registry=three.url, reader=9)
    with pytest.raises(Invalid, match="no mode 'DROP'"):
        from_registry(raw, subject=SUBJECT, registry=three.url, mode="DROP")  # type: ignore[call-overload]  # on purpose
    with pytest.raises(Invalid, match="no column 'payload'"):
        from_registry(raw, "payload", subject=SUBJECT, registry=three.url)
    with pytest.raises(Invalid, match="no engine 'java'"):
        from_registry(raw, subject=SUBJECT, registry=three.url, engine="java")
    with pytest.raises(Invalid, match="a column 'row' already"):
        from_registry(raw, subject=SUBJECT, registry=three.url, into="row")
    with pytest.raises(Invalid, match="a column 'row' already"):
        from_registry(raw, subject=SUBJECT, registry=three.url, id_column="row")
    with pytest.raises(Invalid, match="a column 'value' already"):
        from_registry(raw, subject=SUBJECT, registry=three.url, id_column="value")
    for mode in ("PERMISSIVE", "DEADLETTER"):
        with pytest.raises(Invalid, match="a column 'value_error' already"):
            from_registry(raw.withColumn("value_error", f.lit(1)), subject=SUBJECT, registry=three.url, mode=mode)
    with pytest.raises(Invalid, match="2 columns 'row'"):
        from_registry(raw.select("row", "row", "value"), subject=SUBJECT, registry=three.url, keep=["row"])
    with pytest.raises(Invalid, match="'row' is int"):
        from_registry(raw, "row", subject=SUBJECT, registry=three.url)
    with (
        SchemaRegistryClient(three.url) as client,
        pytest.raises(Invalid, match="a SchemaRegistryClient cannot be sent to workers"),
    ):
        from_registry(raw, subject=SUBJECT, registry=client)  # type: ignore[call-overload]  # on purpose
    three.add("tree", {"type": "record", "name": "T", "fields": [{"name": "next", "type": ["null", "T"]}]})
    with pytest.raises(Invalid, match="contains itself"):
        from_registry(raw, subject="tree", registry=three.url)
