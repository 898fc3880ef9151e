"""SQL over topics of a real broker, schemas from a real registry: batch, streaming, INSERT."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.lakehouse.stack import open_producer, register, send, spark_settings
from tests.spark.orders import V1, V2, V3, order
from tests.support.kafka import kafka
from tests.support.server_process import serving

from stele.spark import describe_stream, drop_stream, list_streams, script, sql


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real broker."""
    with kafka(tmp_path_factory.mktemp("kafka")) as address:
        yield address


@pytest.fixture
def registry(spark: SparkSession, broker: str, tmp_path: Path) -> Iterator[str]:
    """The address of a real registry, which is set in the session with the broker's."""
    with serving("--store", "memory:", folder=tmp_path) as server:
        spark.conf.set("stele.registry", server.url)
        spark.conf.set("stele.bootstrap", broker)
        yield server.url
    for stream in list_streams(spark):
        drop_stream(spark, stream.name)


def read_stream(df: DataFrame) -> list[tuple[object, ...]]:
    """Return the rows of a streaming DataFrame up to the end of the available records."""
    assert df.isStreaming
    query = df.writeStream.format("memory").queryName("seen").trigger(availableNow=True).start()
    assert query.awaitTermination(240)
    return sorted(tuple(row) for row in df.sparkSession.table("seen").collect())


def test_a_topic_is_a_table(spark: SparkSession, broker: str, registry: str) -> None:
    """CREATE STREAM of a topic, then SELECT in batch and streaming.

    The second SELECT has the columns of a version registered between the two. Bad records are in a table of their own,
    with their positions.
    """
    producer = open_producer(broker)
    first = register(registry, "orders-value", V1)
    send(producer, "orders", [order(1, first, number) for number in range(3)])
    sql(spark, "CREATE STREAM orders WITH (topic=orders, mode=deadletter)")
    assert sql(spark, "SELECT * FROM orders").columns == [
        *("id", "place", "tags", "_schema_id", "_key", "_topic", "_partition", "_offset", "_timestamp"),
        "_timestampType",
    ]
    rows = sql(spark, "SELECT id, string(_key), _topic, _offset FROM orders ORDER BY id").collect()
    assert [tuple(row) for row in rows] == [(0, "0", "orders", 0), (1, "1", "orders", 1), (2, "2", "orders", 2)]
    register(registry, "orders-value", V2)
    third = register(registry, "orders-value", V3)
    send(producer, "orders", [order(3, third, 7), b"xx", None])
    assert sql(spark, "SELECT note FROM orders WHERE id = 7").first() == ("note 7",)
    assert read_stream(sql(spark, "SELECT STREAM id, note FROM orders WHERE id > 1")) == [(2, None), (7, "note 7")]
    assert read_stream(
        sql(spark, "SELECT s.id FROM STREAM(orders) s JOIN orders o ON s.id = o.id AND o._offset > 2")
    ) == [(7,)]
    dead = sql(spark, "SELECT _value, _offset, _error.reason FROM orders$dead").collect()
    assert [(bytes(row[0]), row[1]) for row in dead] == [(b"xx", 4)]
    assert describe_stream(spark, "orders").version == 3


def test_declared_columns_and_starting_offsets(spark: SparkSession, broker: str, registry: str) -> None:
    """Columns of record and topic are declared together, with a key as text; offsets set where reading begins."""
    number = register(registry, "places-value", V1)
    send(open_producer(broker), "places", [order(1, number, each) for each in range(4)])
    script(
        spark,
        f"""CREATE TABLE places (id BIGINT, _key VARCHAR, _offset BIGINT,)
            WITH ('connector.topic'='places', 'bootstrap'='{broker}', 'format.type'='avro', 'update-mode'='append');
        CREATE STREAM late WITH (topic=places, starting='{{"places": {{"0": 3}}}}', extras=false);
        CREATE STREAM newest WITH (topic=places, starting=latest);""",
    )
    assert sql(spark, "SELECT * FROM places ORDER BY id").collect()[3] == (3, "3", 3)
    assert [row.id for row in sql(spark, "SELECT * FROM late").collect()] == [3]
    assert read_stream(sql(spark, "SELECT STREAM id FROM late")) == [(3,)]
    assert read_stream(sql(spark, "SELECT STREAM id FROM newest")) == []
    assert sql(spark, "SELECT count(*) FROM newest").first() == (4,)


def test_insert_into_a_topic(spark: SparkSession, broker: str, registry: str) -> None:
    """INSERT writes rows as framed records, with keys, and with ids in headers if the wire uses them."""
    register(registry, "copies-value", V1)
    register(registry, "source-value", V1)
    for wire in ("confluent", "confluent-header"):
        send(open_producer(broker), f"copies-{wire}", [])
        script(
            spark,
            f"""CREATE STREAM `copies {wire}` WITH (topic='copies-{wire}', subject='copies-value', wire='{wire}');
            INSERT INTO `copies {wire}` (id, place, tags, _key)
                SELECT 1, named_struct('city', 'Rome'), array('x;y'), 'k'""",
        )
        rows = sql(spark, f"SELECT id, place.city, tags[0], string(_key) FROM `copies {wire}`").collect()
        assert [tuple(row) for row in rows] == [(1, "Rome", "x;y", "k")]


def test_the_shell_reads_a_topic(spark: SparkSession, broker: str, registry: str, folder: Path) -> None:
    """`stele sql` with the connector's jars prints the rows of a topic, in batch and streaming."""
    number = register(registry, "shell-value", V1)
    send(open_producer(broker), "shell", [order(1, number, 5)])
    text = "CREATE STREAM s WITH (topic=shell, extras=false); SELECT id FROM s; SELECT STREAM id FROM s"
    more = {"spark.jars": spark_settings(folder)["spark.jars"], "stele.bootstrap": broker}
    conf = [part for name, value in more.items() for part in ("--conf", f"{name}={value}")]
    command = [sys.executable, "-m", "stele.cli", "sql", "--registry", registry, *conf, "--available-now", "-o", "json"]
    done = subprocess.run([*command, "-e", text], capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == [{"id": 5}, {"id": 5}]
