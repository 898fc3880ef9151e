"""SQL over registered streams, on files: batch, streaming, evolution, bad records, INSERT."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t
from tests.spark.local_registry import LocalRegistry
from tests.spark.orders import SUBJECT, V1, V2, V3, drop, order
from tests.support.examples import scale_examples

from stele.client import SchemaRegistryClient
from stele.errors import AlreadyExists, EncodeError, Invalid, NotFound, SubjectNotFound
from stele.spark import create_stream, describe_stream, drop_stream, list_streams, read_stream, script, sql
from stele.spark.stream_sql import RequestedColumn, StatementInvalid, StreamNotFound
from stele.spark.stream_sql.stream_catalog import ColumnInvalid, can_cast_losslessly, select_columns
from stele.spark.stream_sql.tokens import quote_string
from stele.spark.types import from_spark, to_spark
from stele.wire.pravega import SNAPPY


@pytest.fixture
def orders(spark: SparkSession, registry: LocalRegistry, tmp_path: Path) -> Iterator[Path]:
    """A folder with three orders of version 1; the session has a setting for their registry."""
    registry.add(SUBJECT, V1)
    folder = tmp_path / "orders"
    drop(folder, "a.parquet", [order(1, 1, number) for number in range(3)])
    spark.conf.set("stele.registry", registry.url)
    yield folder
    for name in spark.conf.getAll:
        if name.startswith(("stele.", "spark.stele.")):
            spark.conf.unset(name)
    for stream in list_streams(spark):
        drop_stream(spark, stream.name)


def rows(df: DataFrame) -> list[tuple[Any, ...]]:
    """Return the rows of a batch DataFrame, in order."""
    return sorted(tuple(row) for row in df.collect())


def collect_stream(df: DataFrame) -> list[tuple[Any, ...]]:
    """Return the rows of a streaming DataFrame up to the end of the available records, in order."""
    assert df.isStreaming
    query = df.writeStream.format("memory").queryName("seen").trigger(availableNow=True).start()
    assert query.awaitTermination(240)
    return rows(df.sparkSession.table("seen"))


def test_a_stream_is_a_table_without_a_schema_written(spark: SparkSession, orders: Path) -> None:
    """After CREATE STREAM, SELECT works in batch and streaming, in any form of SQL, and also in plain spark.sql."""
    assert sql(spark, f"CREATE STREAM Orders WITH (path={quote_string(str(orders))}, topic=orders)").columns == []
    assert sql(spark, "SELECT * FROM orders").columns == ["id", "place", "tags", "_schema_id"]
    assert rows(sql(spark, "SELECT id, o.place.city, size(tags) FROM orders o WHERE id > 0")) == [
        (1, "city 1", 1),
        (2, "city 2", 2),
    ]
    assert collect_stream(sql(spark, "SELECT STREAM id, place.city FROM orders WHERE orders.id > 1")) == [(2, "city 2")]
    assert collect_stream(sql(spark, "SELECT s.id, o.id FROM STREAM(orders) s JOIN Orders o ON s.id = o.id + 1")) == [
        (1, 0),
        (2, 1),
    ]
    assert rows(spark.sql("SELECT max(id) FROM ORDERS")) == [(2,)]
    assert rows(sql(spark, "SELECT id FROM orders WHERE id = :n", {"n": 1})) == [(1,)]
    with pytest.raises(AnalysisException, match="nope"):
        sql(spark, "SELECT nope FROM orders")


def test_a_version_registered_between_two_selects_shows(
    spark: SparkSession, registry: LocalRegistry, orders: Path
) -> None:
    """The columns are those of the newest version when a query is planned.

    `reader` pins one version, and a column list selects columns.
    """
    options = {"path": str(orders), "subject": SUBJECT}
    create_stream(spark, "newest", options)
    create_stream(spark, "first", options, reader="1")
    create_stream(
        spark, "chosen", options, columns=[("id", "BIGINT"), RequestedColumn("City", "STRUCT<city: STRING>")][:1]
    )
    before = sql(spark, "SELECT * FROM newest")
    registry.add(SUBJECT, V2)
    registry.add(SUBJECT, V3)
    drop(orders, "b.parquet", [order(3, 3, 7)])
    assert rows(sql(spark, "SELECT id, note, _schema_id FROM newest"))[-1] == (7, "note 7", 3)
    assert "note" in sql(spark, "SELECT STREAM * FROM newest").columns
    assert sql(spark, "SELECT * FROM first").columns == ["id", "place", "tags", "_schema_id"]
    assert rows(sql(spark, "SELECT * FROM chosen")) == [(0,), (1,), (2,), (7,)]
    assert before.columns == ["id", "place", "tags", "_schema_id"]
    assert describe_stream(spark, "NEWEST").version == 3
    assert describe_stream(spark, "first").schema_id == 1


def test_columns_are_checked_and_cast(spark: SparkSession, registry: LocalRegistry, orders: Path) -> None:
    """Declared columns are selected in their order with lossless casts. Any other one is an error with its position."""
    stream = f"STREAM s {{}} WITH (path={quote_string(str(orders))}, subject='{SUBJECT}')"
    wanted = "(`TAGS` ARRAY<VARCHAR(9)> COMMENT 'labels', id DECIMAL(12, 1), _Schema_Id BIGINT,)"
    df = [sql(spark, "CREATE " + stream.format(wanted)), sql(spark, "SELECT * FROM s")][1]
    assert df.schema.simpleString() == "struct<TAGS:array<string>,id:decimal(12,1),_Schema_Id:bigint>"
    assert df.schema["TAGS"].metadata["comment"] == "labels"
    assert rows(df.select(f.col("id").cast("int"), "_Schema_Id")) == [(0, 1), (1, 1), (2, 1)]
    for columns, message in (
        ("(id SMALLINT)", r"line 1, column 29: the column 'id' of 'orders-value', version 1, is int, which cannot"),
        ("(id BIGINT, nope INT)", r"column 40: 'orders-value', version 1, has no column 'nope': its columns are id, "),
        ("(id BIGINT, ID BIGINT)", "column 40: the column 'ID' is listed twice"),
        ("(id WOBBLE)", "column 29: WOBBLE is not a Spark type"),
        ("(place STRUCT<town: STRING>)", "which cannot become struct<town:string>"),
    ):
        with pytest.raises(StatementInvalid, match=message):
            sql(spark, "CREATE OR REPLACE " + stream.format(columns))
    assert sql(spark, "SELECT * FROM s").columns == ["TAGS", "id", "_Schema_Id"]


def test_the_statement_of_rip_42(spark: SparkSession, registry: LocalRegistry, orders: Path) -> None:
    """The table statement of RIP-42 creates a stream.

    Its options find the schema, and its columns are checked against it.
    """
    registry.add_text(
        "topic-value", "struct xx { 1: i64 timestamp, 2: string user_id, 3: string user_operation }", "THRIFT"
    )
    drop(orders.parent / "topic", "a.parquet", [])
    text = """create table rocketmq_table (
      timestamp BIGINT,
      user_id VARCHAR,
      user_operation VARCHAR,
    ) with (
      'connector.topic'='topic',
      'update-mode'='append',
      'format.type'='thrift',
      'format.thrift-class'='com.xiaomi.xx',
      'format.thrift-package'='com.xiaomi.xx:0.0.1-SNAPSHOT',
      'path'={path},
    );"""
    sql(spark, text.format(path=quote_string(str(orders.parent / "topic"))))
    assert sql(spark, "SELECT * FROM rocketmq_table").dtypes == [
        ("timestamp", "bigint"),
        ("user_id", "string"),
        ("user_operation", "string"),
    ]
    with pytest.raises(Invalid, match="is AVRO, and version 1 of 'topic-value' is THRIFT"):
        create_stream(spark, "t", path=str(orders), topic="topic", value_format="avro")


RIP_42 = {
    "BOOLEAN": "boolean",
    "INT8": "tinyint",
    "INT16": "smallint",
    "INT32": "int",
    "INT64": "bigint",
    "FLOAT": "float",
    "FLOATE": "float",
    "DOUBLE": "double",
    "BYTES": "binary",
    "STRING": "string",
    "TIMESTAMP": "timestamp",
}
"""The primitive types of RIP-42, including the proposal's typing error, and the Spark type of each."""
ARROW = {"tinyint": "int8", "smallint": "int16", "int": "int32", "bigint": "int64", "boolean": "bool"} | {
    "timestamp": "timestamp[us, tz=UTC]"
}


def test_27_columns_may_have_the_types_of_rip_42(spark: SparkSession) -> None:
    """27: a column list accepts each primitive type of RIP-42, in any case; Spark and Arrow return the type."""
    source = spark.createDataFrame([], ", ".join(f"c{at} {word}" for at, word in enumerate(RIP_42.values())))
    for spelled in (str.upper, str.lower):
        wanted = [RequestedColumn(f"c{at}", spelled(name)) for at, name in enumerate(RIP_42)]
        df = source.select(*select_columns(source, wanted, [], "the stream"))
        assert [kind for _, kind in df.dtypes] == list(RIP_42.values())
    model, losses = from_spark(df.schema)
    assert to_spark(model)[0] == df.schema
    assert not losses
    assert [str(kind) for kind in df.toArrow().schema.types] == [ARROW.get(word, word) for word in RIP_42.values()]


def test_names_of_fields_are_no_types(spark: SparkSession) -> None:
    """A field of a struct can have the name of a type; only its type is read as a type of RIP-42."""
    source = spark.createDataFrame([], "s struct<char: tinyint, int8: string, `bytes`: array<binary>>")
    for text in (
        "STRUCT<char: INT8, int8: VARCHAR(9), `bytes`: ARRAY<BYTES>>",
        "STRUCT<char INT8, int8 CHAR(3) COMMENT 'INT8', bytes ARRAY<BYTES>>",
    ):
        df = source.select(*select_columns(source, [RequestedColumn("s", text)], [], "the stream"))
        assert df.dtypes == [("s", "struct<char:tinyint,int8:string,bytes:array<binary>>")]
    for wrong in ("INT128", "STRUCT", "STRING(3)", "ARRAY<INT8"):
        with pytest.raises(ColumnInvalid, match="is not a Spark type"):
            select_columns(source, [RequestedColumn("s", wrong)], [], "the stream")


def test_a_stream_of_pravega(spark: SparkSession, registry: LocalRegistry, orders: Path) -> None:
    """PRAVEGA-STREAM sets group and encodings. The session sets where its events are, else the error says how."""
    registry.add("scope/sensorDataStream", V1)
    registry.add_encoding("scope/sensorDataStream", 1, "")
    text = "CREATE STREAM sensorData WITH (PRAVEGA-STREAM='scope/sensorDataStream')"
    with pytest.raises(Invalid, match=r"Spark 4 has no connector for Pravega\. Give the option path"):
        sql(spark, text)
    with pytest.raises(StatementInvalid, match="is 'scope/stream', not 'sensors'"):
        sql(spark, "CREATE STREAM s WITH (PRAVEGA-STREAM=sensors)")
    drop(
        orders.parent / "scope" / "sensorDataStream",
        "a",
        [b"\1\0\0\0\0" + order(1, 1, number)[5:] for number in (3, 4)],
    )
    sql(spark, f"SET stele.pravega.path={orders.parent}/{{scope}}/{{stream}}")
    sql(spark, text)
    assert rows(sql(spark, "SELECT id, _schema_id FROM sensorData")) == [(3, 0), (4, 0)]
    assert collect_stream(sql(spark, "SELECT id FROM STREAM(sensorData)")) == [(3,), (4,)]
    assert describe_stream(spark, "sensordata").subjects == "scope/sensorDataStream"
    registry.add_encoding("scope/sensorDataStream", 1, SNAPPY)
    facts = {row.col_name: row.data_type for row in sql(spark, "DESCRIBE sensorData").collect()}
    assert (facts["Version"], facts["Encoding ids"], "Schema id" in facts) == ("1", f"0, 1 ({SNAPPY})", False)
    registry.add("scope/sensorDataStream", V2)
    facts = {row.col_name: row.data_type for row in sql(spark, "DESCRIBE sensorData").collect()}
    assert (facts["Version"], facts["Encoding ids"]) == ("2", "none so far")


def test_documentation_is_the_comment(spark: SparkSession, registry: LocalRegistry, orders: Path) -> None:
    """DESCRIBE shows the documentation of the newest version; a column list can override it."""
    for word in ("Key", "Number"):
        documented = {**V1, "fields": [{**field, "doc": f"{word} {field['name']}"} for field in V1["fields"]]}
        registry.add(SUBJECT, documented)
        create_stream(spark, "d", path=str(orders), subject=SUBJECT, replace=True)
        comments = {row.col_name: row.comment for row in sql(spark, "DESCRIBE d").collect()}
        assert (comments["id"], comments["place"], comments["_schema_id"]) == (f"{word} id", f"{word} place", "")
    assert spark.table("d").schema["id"].metadata == {"comment": "Number id"}
    create_stream(spark, "d", path=str(orders), subject=SUBJECT, columns=[("id", "bigint")], replace=True)
    assert sql(spark, "DESCRIBE d").collect()[0] == Row(col_name="id", data_type="bigint", comment="Number id")
    sql(spark, f"CREATE OR REPLACE STREAM d (id BIGINT COMMENT 'Own') WITH (path='{orders}', subject='{SUBJECT}')")
    assert sql(spark, "DESCRIBE d").collect()[0].comment == "Own"


def test_bad_records_are_as_the_mode_says(spark: SparkSession, orders: Path) -> None:
    """FAILFAST fails, PERMISSIVE has `_error`, DEADLETTER has a table of its own with the bytes, also in streaming."""
    drop(orders, "b.parquet", [b"xx", None])
    for mode in ("failfast", "permissive", "deadletter"):
        create_stream(spark, f"`{mode}`".strip("`"), path=str(orders), subject=SUBJECT, mode=mode)
    with pytest.raises(Exception, match="no frame"):
        sql(spark, "SELECT id FROM failfast").collect()
    reasons = rows(
        sql(spark, "SELECT id IS NULL, coalesce(left(_error.reason, 8), '') FROM permissive WHERE id IS NULL")
    )
    assert reasons == [(True, ""), (True, "no frame")]
    assert rows(sql(spark, "SELECT count(*) FROM deadletter")) == [(4,)]
    dead = sql(spark, "SELECT _value, left(_error.reason, 8) FROM deadletter$dead")
    assert [(bytes(row[0]), row[1]) for row in dead.collect()] == [(b"xx", "no frame")]
    assert collect_stream(sql(spark, "SELECT STREAM left(deadletter$dead._error.reason, 8) FROM deadletter$dead")) == [
        ("no frame",)
    ]
    assert rows(spark.sql("SELECT count(*) FROM `deadletter$dead`")) == [(1,)]
    assert read_stream(spark, "deadletter$DEAD", streaming=False).count() == 1


def test_what_stands_beside_the_record(
    spark: SparkSession, registry: LocalRegistry, tmp_path: Path, orders: Path
) -> None:
    """Columns of the source have the prefix `_`.

    A schema field of the same name has priority, and extras=false leaves the columns out.
    """
    records = [(bytearray(order(1, 1, 1)), "t", 5, "x"), (None, "t", 6, "y")]
    frame = spark.createDataFrame(records, "payload binary, topic string, offset long, schema_id string")
    frame.createOrReplaceTempView("raw_orders")
    create_stream(spark, "o", table="raw_orders", column="payload", subject=SUBJECT)
    assert sql(spark, "SELECT * FROM o").columns == ["id", "place", "tags", "_schema_id", "_topic", "_offset"]
    assert rows(sql(spark, "SELECT id, _topic, _offset FROM o WHERE id IS NOT NULL")) == [(1, "t", 5)]
    create_stream(spark, "o", table="raw_orders", column="payload", subject=SUBJECT, extras="false", replace=True)
    assert sql(spark, "SELECT * FROM o").columns == ["id", "place", "tags"]
    with pytest.raises(
        Invalid, match="table raw_orders have no column 'value': set the option column to one of payload, "
    ):
        create_stream(spark, "p", table="raw_orders", subject=SUBJECT)
    spark.catalog.dropTempView("raw_orders")


def test_sources_and_shapes_of_files(
    spark: SparkSession, registry: LocalRegistry, tmp_path: Path, orders: Path
) -> None:
    """JSON and CSV hold base64, binaryFile has one record per file, and `source` is any Spark source.

    Folders can be empty.
    """
    plain = spark.read.parquet(str(orders))
    coded = plain.select(f.base64("value").alias("value"))
    coded.write.json(str(tmp_path / "json"))
    coded.write.option("header", "true").csv(str(tmp_path / "csv"))
    (tmp_path / "single").mkdir()
    (tmp_path / "single" / "one").write_bytes(order(1, 1, 9))
    (tmp_path / "empty").mkdir()
    for kind, expected in (("json", [0, 1, 2]), ("csv", [0, 1, 2]), ("single", [9]), ("empty", [])):
        shape = {"single": "binaryFile", "empty": "parquet"}.get(kind, kind)
        create_stream(spark, kind, path=str(tmp_path / kind), format=shape, subject=SUBJECT)
        assert rows(sql(spark, f"SELECT id FROM {kind}")) == [(number,) for number in expected]
    assert collect_stream(sql(spark, "SELECT STREAM id FROM json")) == [(0,), (1,), (2,)]
    more = {"source": "parquet", "option.pathGlobFilter": "*.parquet", "path": str(orders)}
    create_stream(spark, "sourced", more, subject=SUBJECT)
    assert sql(spark, "SELECT * FROM sourced").count() == 3
    with pytest.raises(NotFound, match="there is nothing at"):
        create_stream(spark, "absent", path=str(tmp_path / "absent"), subject=SUBJECT)


def test_topics_of_several_types(spark: SparkSession, registry: LocalRegistry, orders: Path) -> None:
    """Several subjects make a struct each, `*` makes JSON of any record, a schema without fields makes one column."""
    number = registry.add("names", "string")
    drop(orders, "b.parquet", [b"\0" + number.to_bytes(4, "big") + b"\4ab"])
    create_stream(spark, "both", path=str(orders), subject=f"{SUBJECT}, names", extras="false")
    assert sql(spark, "SELECT * FROM both").columns == ["Order", "names"]
    assert rows(sql(spark, "SELECT names FROM both WHERE names IS NOT NULL")) == [("ab",)]
    create_stream(spark, "any", path=str(orders), subject="*")
    assert rows(sql(spark, "SELECT json FROM any WHERE _schema_id = 2")) == [('"ab"',)]
    drop(orders.parent / "names", "a.parquet", [b"\0" + number.to_bytes(4, "big") + b"\4ab"])
    create_stream(spark, "names", path=str(orders.parent / "names"), subject="names")
    assert rows(sql(spark, "SELECT value FROM names")) == [("ab",)]


def test_types_that_contain_themselves(spark: SparkSession, registry: LocalRegistry, orders: Path) -> None:
    """A tree has columns to the depth of `recursion`, in SELECT and in INSERT."""
    tree = {
        "type": "record",
        "name": "Tree",
        "fields": [{"name": "leaf", "type": "int"}, {"name": "next", "type": ["null", "Tree"], "default": None}],
    }
    registry.add("tree", tree)
    (orders.parent / "tree").mkdir()
    sql(spark, f"CREATE STREAM tree WITH (path={quote_string(str(orders.parent / 'tree'))}, subject=tree, recursion=1)")
    sql(spark, "INSERT INTO tree (leaf, next) SELECT 1, named_struct('leaf', 2)")
    assert rows(sql(spark, "SELECT leaf, next.leaf FROM tree")) == [(1, 2)]


def test_streams_are_shown_described_and_dropped(spark: SparkSession, orders: Path) -> None:
    """SHOW, DESCRIBE and DROP find streams by name in any case, pass other names to Spark, and hide secrets."""
    sql(spark, f"CREATE STREAM one WITH (path={quote_string(str(orders))}, subject='{SUBJECT}', option.pass='secret')")
    (stream,) = sql(spark, "SHOW STREAMS").collect()
    assert stream == Row(name="one", subject=SUBJECT, records=f"parquet files of {orders}", mode="FAILFAST")
    description = {row.col_name: row.data_type for row in sql(spark, "DESC STREAM ONE").collect()}
    assert description["place"] == "struct<city:string>"
    assert (description["Subject"], description["Version"], description["Schema id"], description["Format"]) == (
        SUBJECT,
        "1",
        "1",
        "AVRO",
    )
    assert "secret" not in str(description)
    assert sql(spark, "DESCRIBE one").collect()[0] == Row(col_name="id", data_type="int", comment="")
    spark.range(1).createOrReplaceTempView("other")
    assert sql(spark, "DESCRIBE other").collect()[0].col_name == "id"
    with pytest.raises(AlreadyExists, match="there is a stream 'ONE' already"):
        create_stream(spark, "ONE", path=str(orders), subject=SUBJECT)
    with pytest.raises(AlreadyExists, match="there is a table or view 'other' already"):
        create_stream(spark, "other", path=str(orders), subject=SUBJECT)
    assert create_stream(spark, "One", if_not_exists=True).name == "one"
    script(spark, "DROP TABLE one; DROP STREAM IF EXISTS one; DROP VIEW other")
    assert list_streams(spark) == []
    with pytest.raises(StatementInvalid, match="line 2, column 3: there is no stream 'one'"):
        sql(spark, "DROP STREAM\n  one")
    with pytest.raises(AnalysisException, match="one"):
        sql(spark, "SELECT * FROM one")
    with pytest.raises(StreamNotFound):
        read_stream(spark, "one")


def test_insert_writes_records(spark: SparkSession, registry: LocalRegistry, orders: Path) -> None:
    """INSERT encodes rows with the newest version, by position, by list and by name. Rows that do not fit fail."""
    registry.add(SUBJECT, V2)
    create_stream(spark, "o", path=str(orders), subject=SUBJECT)
    columns = "id, named_struct('city', 'Oslo') AS place, array('x') AS tags, TIMESTAMP'2026-01-01' AS at"
    script(
        spark,
        f"""INSERT INTO o SELECT {columns} FROM range(10, 12);
        INSERT INTO o (tags, place, AT, ID) VALUES (array('a;b'), named_struct('city', 'Rome'), now(), 12);
        INSERT INTO STREAM o BY NAME SELECT place, 13 AS id, tags, at FROM o WHERE id = 10""",
    )
    assert rows(spark.sql("SELECT id, place.city, tags[0], _schema_id FROM o WHERE id > 9")) == [
        (10, "Oslo", "x", 2),
        (11, "Oslo", "x", 2),
        (12, "Rome", "a;b", 2),
        (13, "Oslo", "x", 2),
    ]
    for statement, error, message in (
        ("INSERT INTO o SELECT 1", Invalid, "the query has 1 columns, but 4 are to be filled: id, place, tags, at"),
        ("INSERT INTO o (id, nope) SELECT 1, 2", Invalid, "o has no column 'nope' to fill: it has id, "),
        ("INSERT INTO o (id, ID) SELECT 1, 2", Invalid, "listed twice"),
        ("INSERT INTO o (id) SELECT 1", EncodeError, "has no column"),
        ("INSERT INTO o SELECT STREAM id, place, tags, at FROM o", Invalid, "INSERT cannot write a streaming query"),
        ("INSERT INTO STREAM nope SELECT 1", StatementInvalid, "column 20: there is no stream 'nope'"),
    ):
        with pytest.raises(error, match=message):
            sql(spark, statement)
    create_stream(spark, "pinned", path=str(orders), subject=SUBJECT, reader="1")
    with pytest.raises(Invalid, match="read by its newest version"):
        sql(spark, "INSERT INTO pinned SELECT * FROM o")


def test_insert_fills_the_files_other_columns(
    spark: SparkSession, registry: LocalRegistry, tmp_path: Path, orders: Path
) -> None:
    """INSERT into files with more columns requires all of them.

    JSON gets base64, and a schema without fields has the column `value`.
    """
    folder = tmp_path / "words"
    number = registry.add("words", "string")
    first = [(b"\0" + number.to_bytes(4, "big") + b"\4ab", 1)]
    frame = spark.createDataFrame([(bytearray(first[0][0]), 1)], "value binary, offset long")
    frame.select(f.base64("value").alias("value"), "offset").write.json(str(folder))
    create_stream(spark, "words", path=str(folder), format="json", subject="words")
    with pytest.raises(Invalid, match="name _offset in the list, too"):
        sql(spark, "INSERT INTO words VALUES ('cd')")
    sql(spark, "INSERT INTO words (_offset, value) VALUES (2, 'cd')")
    assert rows(sql(spark, "SELECT value, _offset FROM words")) == [("ab", 1), ("cd", 2)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topc": "a"}, "there is no option 'topc'; there are topic, bootstrap, path, "),
        ({"topic": "a", "Kafka_Topic": "b"}, "'Kafka_Topic' is the same option as 'topic'"),
        ({"path": "x", "mode": "DROP"}, "the option 'mode' is FAILFAST or PERMISSIVE or DEADLETTER, not 'DROP'"),
        ({"path": "x", "reader": "newest"}, "the option 'reader' is latest or the number of a version"),
        ({"path": "x", "patience": "nan"}, "the option 'patience' is a number of seconds"),
        ({"path": "x", "recursion": "-1"}, "the option 'recursion' is how many times"),
        ({"path": "x", "table": "y"}, "the option 'table' does not go with 'path'"),
        ({"path": "x", "subject": "a,,b"}, "the option 'subject' is a subject"),
        ({"path": "x", "update-mode": "upsert"}, "the option 'update-mode' is append"),
        ({"path": ".", "starting": "latest", "subject": SUBJECT}, "starting works for Kafka topics only"),
        ({"topic": "a"}, "the option 'topic' needs a broker"),
        ({}, "the location of the records of 's' is unknown"),
        ({"path": ".", "wire": "pigeon", "subject": SUBJECT}, "there is no wire 'pigeon'"),
        ({"path": ".", "engine": "steam", "subject": SUBJECT}, "there is no engine 'steam'"),
    ],
)
def test_wrong_options_are_named(spark: SparkSession, orders: Path, options: dict[str, str], message: str) -> None:
    """An option that is unknown, repeated, or has an unknown word is an error that lists the allowed ones."""
    resolved_options = {name: str(orders) if value == "." else value for name, value in options.items()}
    with pytest.raises(Invalid, match=message):
        create_stream(spark, "s", resolved_options)
    assert list_streams(spark) == []


def test_where_the_registry_is(spark: SparkSession, registry: LocalRegistry, orders: Path) -> None:
    """The option overrides the setting, which has two names; a function can open a client; without any it fails."""
    spark.conf.set("spark.stele.registry", "http://127.0.0.1:9")
    create_stream(spark, "s", path=str(orders), subject=SUBJECT)
    spark.conf.unset("stele.registry")
    with pytest.raises(Exception, match=r"127\.0\.0\.1:9"):
        create_stream(spark, "t", path=str(orders), subject=SUBJECT, patience="0")
    spark.conf.unset("spark.stele.registry")
    with pytest.raises(Invalid, match=r"no registry given: set the option registry or stele\.registry"):
        create_stream(spark, "t", path=str(orders), subject=SUBJECT)
    address = registry.url
    create_stream(spark, "t", path=str(orders), subject=SUBJECT, registry=lambda: SchemaRegistryClient(address))
    assert sql(spark, "SELECT * FROM t").count() == 3
    with pytest.raises(SubjectNotFound):
        create_stream(spark, "u", path=str(orders), registry=address)


def test_names_and_values_cannot_break_out(spark: SparkSession, orders: Path) -> None:
    """Names with quotes, dots and semicolons stay names, and values of options stay values."""
    for name in ("a`b", "a.b", "x; DROP VIEW y", "it's", "ünï", "stream", "a$b"):
        quoted = "`" + name.replace("`", "``") + "`"
        value = quote_string(f"{SUBJECT}")
        script(spark, f"CREATE STREAM {quoted} WITH (path={quote_string(str(orders))}, `subject`={value})")
        assert sql(spark, f"SELECT {quoted}.id FROM {quoted}").count() == 3
        assert sql(spark, f"SELECT {quoted}.id FROM STREAM({quoted})").isStreaming
        sql(spark, f"DROP STREAM {quoted}")
        assert not spark.catalog.tableExists(quoted)
    with pytest.raises(SubjectNotFound):
        sql(spark, f"CREATE STREAM s WITH (path={quote_string(str(orders))}, subject='x''); DROP VIEW y; --')")


@settings(
    max_examples=scale_examples(10),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=1, max_size=20))
def test_spark_reads_literals_as_they_are_meant(spark: SparkSession, values: list[str]) -> None:
    """Spark reads the string literals that this package writes as the same strings."""
    assert list(spark.sql(f"SELECT {', '.join(map(quote_string, values))}").first() or ()) == values


TYPES = [
    t.ByteType(), t.ShortType(), t.IntegerType(), t.LongType(), t.FloatType(), t.DoubleType(), t.StringType(),
    t.BooleanType(), t.DateType(), t.TimestampType(), t.BinaryType(), t.DecimalType(5, 0), t.DecimalType(20, 2),
]  # fmt: skip


def test_what_fits_is_not_lost(spark: SparkSession) -> None:
    """Extreme values survive a cast to a type that `can_cast_losslessly` allows, and back, also in nested types."""
    extremes = {
        "tinyint": (-128, 127), "smallint": (-32768, 32767), "int": (-(2**31), 2**31 - 1),
        "bigint": (-(2**63), 2**63 - 1), "decimal(5,0)": (-99999, 99999),
    }  # fmt: skip
    casts = []
    for source in TYPES:
        assert can_cast_losslessly(source, source)
        for target in TYPES:
            good = can_cast_losslessly(source, target)
            assert can_cast_losslessly(t.ArrayType(source), t.ArrayType(target)) == good
            assert can_cast_losslessly(t.MapType(source, source), t.MapType(target, target)) == good
            one, other = t.StructType().add("a", source), t.StructType().add("A", target)
            assert can_cast_losslessly(one, other) == good
            for value in extremes.get(source.simpleString(), ()) if good else ():
                there = f"CAST({value} AS {source.simpleString()})"
                casts.append(f"CAST(CAST({there} AS {target.simpleString()}) AS {source.simpleString()}) = {there}")
    assert len(casts) > 20
    assert all(spark.sql(f"SELECT {', '.join(casts)}").first() or [False])
    assert not can_cast_losslessly(t.LongType(), t.DoubleType())
    assert not can_cast_losslessly(t.StringType(), t.LongType())


CONNECT = """
from stele.spark import script, sql
script(spark, "SET stele.registry={url}; CREATE STREAM o WITH (path={path!r}, topic=orders, mode=deadletter)")
print([row.id for row in sql(spark, "SELECT o.id FROM o ORDER BY id").collect()])
print(sql(spark, "SELECT STREAM o.id FROM o").isStreaming, sql(spark, "SELECT * FROM o$dead").count())
print(sql(spark, "DESCRIBE o").count(), sql(spark, "SHOW STREAMS").first().name)
sql(spark, "DROP STREAM o")
"""


def test_spark_connect(registry: LocalRegistry, orders: Path, run_over_connect: Callable[[str], list[str]]) -> None:
    """Streams work through Spark Connect, in a process of its own."""
    script_ = CONNECT.format(url=registry.url, path=str(orders))
    assert run_over_connect(script_) == ["[0, 1, 2]", "True 0", "12 o"]
