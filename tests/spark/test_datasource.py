"""`format("stele")` against a real server: tables as of a sequence number, filters, and the journal as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from tests.support.server_process import serving

from stele.client import CensusRecord, Schema, SchemaReference, SchemaRegistryClient, VersionUsage
from stele.spark import add_source, subject_tables

TEXTS = [f'{{"type":"record","name":"R","fields":[{{"name":"f{n}","type":"int","default":0}}]}}' for n in range(3)]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[str]:
    """The address of a server: two versions of a, b in a namespace, c deleted, d purged; and the source registered."""
    add_source(spark)
    with serving("--store", "memory:", folder=tmp_path_factory.mktemp("server")) as server:
        with SchemaRegistryClient(server.url) as client:
            for subject, text in (("a", 0), ("a", 1), (":.team:b", 0), ("c", 0), ("d", 2)):
                client.register(subject, Schema(TEXTS[text]))
            client.delete_subject("c")
            client.delete_subject("d")
            client.delete_subject("d", permanent=True)
        yield server.url


def table(spark: SparkSession, url: str, name: str, **options: Any) -> DataFrame:
    """Return a table of the source."""
    return spark.read.format("stele").options(registry=url, table=name, **options).load()


def rows(df: DataFrame) -> list[tuple[Any, ...]]:
    """Return the rows in order."""
    return sorted(tuple(row) for row in df.collect())


def seq(url: str, kind: str, subject: str) -> int:
    """Return the sequence number of the last change of a kind to a subject."""
    with SchemaRegistryClient(url) as client:
        page = client.journal()
    return max(entry.seq for entry in page.entries if (entry.kind, entry.subject) == (kind, subject))


def test_subjects_now_and_then(spark: SparkSession, url: str) -> None:
    """Each subject is listed with its newest live version. As of an earlier number, deleted subjects are live."""
    columns = ("namespace", "subject", "versions", "latest_version", "latest_schema_id", "deleted")
    subjects = rows(table(spark, url, "subjects").select(*columns))
    assert subjects == [("", "a", 2, 2, 2, False), ("", "c", 0, None, None, True), ("team", "b", 1, 1, 1, False)]
    then = table(spark, url, "subjects", asOf=seq(url, "registered", "d"))
    assert rows(then.select("subject", "deleted")) == [("a", False), ("b", False), ("c", False), ("d", False)]


def test_versions_with_texts(spark: SparkSession, url: str) -> None:
    """Every version that is not purged has its text. As of an earlier number, a purged one is listed without text."""
    columns = ("subject", "version", "schema_id", "format", "schema", "deleted")
    versions = rows(table(spark, url, "versions").select(*columns))
    assert versions == [
        ("a", 1, 1, "avro", TEXTS[0], False),
        ("a", 2, 2, "avro", TEXTS[1], False),
        ("b", 1, 1, "avro", TEXTS[0], False),
        ("c", 1, 1, "avro", TEXTS[0], True),
    ]
    then = table(spark, url, "versions", asOf=seq(url, "registered", "d")).where("subject = 'd'")
    assert rows(then.select(*columns)) == [("d", 1, 3, "avro", None, False)]


def test_filters_reach_the_registry(spark: SparkSession, url: str) -> None:
    """Filters that the source takes give the same rows as in Spark, and Spark does not apply them again."""
    versions = table(spark, url, "versions")
    for condition in ("subject = 'a' AND namespace = ''", "schema_id = 1", "subject IN ('b', 'c') AND version = 1"):
        whole = rows(spark.createDataFrame(versions.collect(), versions.schema).where(condition).drop("references"))
        assert rows(versions.where(condition).drop("references")) == whole
        assert whole, condition
    journal = table(spark, url, "journal")
    everything = rows(journal)
    last = everything[-1][0]
    narrow = journal.where(f"seq > 1 AND seq < {last} AND subject = 'a'")
    assert rows(narrow) == [row for row in everything if 1 < row[0] < last and row[7] == "a"] != []
    plan = narrow._jdf.queryExecution().executedPlan().toString()
    assert "BatchScan stele" in plan
    assert not any(left in plan for left in (" = a", " > 1", f" < {last}")), plan
    assert rows(journal.where(f"seq = {last}")) == [row for row in everything if row[0] == last]


def test_the_journal_says_who_and_what(spark: SparkSession, url: str) -> None:
    """Changes are in order, with their API and with details as JSON, up to the requested number."""
    journal = table(spark, url, "journal")
    changes = [
        tuple(row) for row in journal.orderBy("seq", "part").select("kind", "subject", "via").collect() if row[1]
    ]
    assert changes[:2] == [("subject_created", "a", "confluent"), ("registered", "a", "confluent")]
    assert changes[-2:] == [("soft_deleted", "d", "confluent"), ("purged", "d", "confluent")]
    of_subjects = journal.where("subject IS NOT NULL")
    formats = of_subjects.selectExpr("get_json_object(details, '$.format')").distinct().collect()
    assert {row[0] for row in formats} == {"avro", None}
    assert table(spark, url, "journal", asOf=2).selectExpr("max(seq)").first()[0] == 2  # type: ignore[index]  # one row


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"table": "nonsense"}, "table is one of"),
        ({"table": "subjects", "asof": "soon"}, "asOf is a whole number"),
        ({"table": "subjects", "asOf": "999999"}, "the journal ends at"),
        ({"table": "subjects", "colour": "red"}, "no option colour"),
        ({"table": "subjects", "registry": "http://127.0.0.1:9", "patience": "0"}, "no registry answered"),
    ],
)
def test_bad_options_say_what_is_wrong(spark: SparkSession, url: str, options: dict[str, str], why: str) -> None:
    """A wrong option, a future sequence number and a registry that does not answer raise a helpful error."""
    with pytest.raises(PySparkException, match=why):
        spark.read.format("stele").options(**{"registry": url, **options}).load().collect()


def run(spark: SparkSession, url: str, folder: Path, **options: Any) -> list[int]:
    """Stream the available changes into a folder. Return the number of rows of each micro-batch that had any."""
    stream = spark.readStream.format("stele").options(**{"registry": url, "table": "journal", **options}).load()
    query = (
        stream.writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(240)
    return [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]


def test_a_stream_reads_each_change_once(spark: SparkSession, url: str, tmp_path: Path) -> None:
    """A run over available changes has batches of the requested size; a restart reads exactly the new changes."""
    with SchemaRegistryClient(url) as client:
        end = client.journal(limit=0).end
        assert len(run(spark, url, tmp_path, maxRecordsPerTrigger=6)) == -(-end // 6)
        client.register("later", Schema(TEXTS[0]))
        client.register("later", Schema(TEXTS[1]))
        new = client.journal(end)
        assert run(spark, url, tmp_path) == [len(new.entries)]
        assert run(spark, url, tmp_path) == []
        written = spark.read.parquet(str(tmp_path / "out"))
        assert rows(written) == rows(table(spark, url, "journal"))
        assert run(spark, url, tmp_path / "new", startingSeq=end, subject="later") == [len(new.entries)]


def test_only_the_journal_streams(spark: SparkSession, url: str, tmp_path: Path) -> None:
    """Another table as a stream, and the journal as of a number, are refused."""
    for options in ({"table": "versions"}, {"table": "journal", "asOf": "3"}):
        with pytest.raises(PySparkException, match="only the table journal"):
            run(spark, url, tmp_path, **options)


def test_usage_is_what_censuses_recorded(spark: SparkSession, url: str) -> None:
    """A place has a row for each version that was seen, with times. Filters give the same rows as in Spark."""
    usages = (
        VersionUsage("a", 1, 1, 7, bytes=70, first_seen=1_000, last_seen=86_400_000),
        VersionUsage("b", 1, 1, 3, namespace="team"),
    )
    with SchemaRegistryClient(url) as client:
        client.record_usage("table shop.orders", CensusRecord(5_000, records=11, seen=usages))
        client.record_usage(
            "lake/orders", CensusRecord(6_000, whole=False, records=1, seen=(VersionUsage("a", 2, 2, 1),))
        )
    usage = table(spark, url, "usage")
    (first,) = usage.where("place = 'table shop.orders' AND subject = 'a'").collect()
    utc = [moment.timestamp() * 1000 for moment in (first.first_seen, first.last_seen, first.counted_at)]
    assert (first.version, first.schema_id, first.records, first.bytes, first.whole) == (1, 1, 7, 70, True)
    assert utc == [1_000, 86_400_000, 5_000]
    narrow = usage.select("place", "namespace", "subject", "schema_id", "whole", "first_seen")
    assert [tuple(row)[:5] for row in narrow.where("schema_id = 2").collect()] == [("lake/orders", "", "a", 2, False)]
    assert [tuple(row) for row in narrow.where("namespace = 'team'").collect()] == [
        ("table shop.orders", "team", "b", 1, True, None)
    ]
    assert narrow.where("subject IN ('a', 'nobody')").count() == 2
    plan = narrow.where("subject = 'a'")._jdf.queryExecution().executedPlan().toString()
    assert "BatchScan stele" in plan
    assert " = a" not in plan


def test_subjects_with_their_columns(spark: SparkSession, url: str) -> None:
    """Each live subject has the columns of its newest version, including references, or the reason why it has none."""
    with SchemaRegistryClient(url) as client:
        inner = '{"type":"record","name":"In","namespace":"n","fields":[{"name":"x","type":"long"}]}'
        outer = '{"type":"record","name":"Out","fields":[{"name":"in","type":"n.In"}]}'
        client.register(":.more:inner", Schema(inner))
        client.register(":.more:outer", Schema(outer, references=(SchemaReference("n.In", "inner", 1),)))
        client.register(":.more:shape", Schema('{"type": "object"}', "JSON"))
    tables = {(row.namespace, row.subject): row for row in subject_tables(spark, url).collect()}
    assert ("", "c") not in tables, "it is deleted"
    assert (tables["", "a"].version, tables["", "a"].spark_schema) == (2, "f1 INT NOT NULL")
    assert tables["more", "outer"].spark_schema == "in STRUCT<x: BIGINT NOT NULL> NOT NULL"
    only = subject_tables(spark, url, namespace="more", subject="inner").collect()
    assert [(row.subject, row.format, row.note) for row in only] == [("inner", "avro", "")]
    alone = subject_tables(spark, url, namespace="more", subject="outer").collect()[0]
    assert (alone.spark_schema, "is not available" in alone.note) == (None, True)


CONNECT = """
from stele.spark import add_source, subject_tables

add_source(spark)
def table(reader, name):
    return reader.format("stele").options(registry={url!r}, table=name).load()
print([tuple(row) for row in table(spark.read, "versions").where("subject = 'a'").select("version").collect()])
print(table(spark.read, "usage").where("namespace = ''").select("place").distinct().count())
print([row.spark_schema for row in subject_tables(spark, {url!r}, subject="a").collect()])
stream = table(spark.readStream, "journal").writeStream.format("parquet").trigger(availableNow=True)
query = stream.option("path", {folder!r} + "/out").option("checkpointLocation", {folder!r} + "/c").start()
print(query.awaitTermination(200))
print(spark.read.parquet({folder!r} + "/out").count() == table(spark.read, "journal").count())
"""


def test_connect(url: str, tmp_path: Path, run_over_connect: Callable[[str], list[str]]) -> None:
    """Tables and the stream of the journal work through Spark Connect, in a process of its own."""
    with SchemaRegistryClient(url) as client:
        client.record_usage("lake/orders", CensusRecord(6_000, records=1, seen=(VersionUsage("a", 2, 2, 1),)))
    script = CONNECT.format(url=url, folder=str(tmp_path))
    counted, usage, shapes, ended, same = run_over_connect(script)
    assert counted == "[(1,), (2,)]"
    assert int(usage) >= 1
    assert (shapes, ended, same) == ("['f1 INT NOT NULL']", "True", "True")
