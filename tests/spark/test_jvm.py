"""`from_registry` and `to_registry` by the engine `jvm`, and how it is added to a session."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import SparkRuntimeException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from tests.spark.local_registry import LocalRegistry
from tests.spark.orders import SUBJECT, V1, V2, V3, datum, drop, frame_record, order
from tests.support.java_machine import JavaMachine

from stele.client import SchemaRegistryClient
from stele.errors import Invalid
from stele.spark import from_registry, to_registry
from stele.spark.engines import get_engine, jvm
from stele.spark.engines.error_codes import MESSAGES
from stele.spark.engines.jvm.build import build


@pytest.fixture
def three(registry: LocalRegistry) -> LocalRegistry:
    """A registry with all three versions; ids are 1, 2, 3."""
    for document in (V1, V2, V3):
        registry.add(SUBJECT, document)
    return registry


def frame(spark: SparkSession, *values: bytes | None) -> DataFrame:
    """Return a DataFrame of raw records in one partition, with a row number."""
    return spark.createDataFrame(list(enumerate(values)), "row int, value binary").coalesce(1)


MIXED = (order(3, 3, 0), order(1, 1, 1), None, order(2, 2, 3), order(1, 1, 4))
BAD = (order(1, 1, 5)[:-1], b"\0\0\0\0\x63zz", b"", order(2, 2, 6) + b"x")


def is_jvm(df: DataFrame) -> bool:
    """Return whether the last step of the plan is the engine's, not batches sent to Python."""
    plan = df._jdf.queryExecution().executedPlan().toString()
    mine, other = plan.find("io.stele.spark"), plan.find("MapInArrow")
    assert mine != other, "neither is there"
    return mine >= 0 and (other < 0 or mine < other)


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DEADLETTER"])
def test_all_engines_answer_alike(spark: SparkSession, three: LocalRegistry, mode: str) -> None:
    """Values, ids, errors and dead letters are the same with every engine; `auto` is the engine `jvm`."""
    raw = frame(spark, *MIXED, *BAD)
    results: dict[str, Any] = {}
    for engine in ("jvm", "vm", "python", "auto"):
        output: Any = from_registry(
            raw, subject=SUBJECT, registry=three.url, mode=mode, engine=engine, into="made", id_column="writer"
        )
        parts = list(output) if mode == "DEADLETTER" else [output]
        assert is_jvm(parts[0]) == (engine in {"jvm", "auto"})
        results[engine] = [(part.schema.simpleString(), part.collect()) for part in parts]
    assert results["vm"] == results["python"] == results["jvm"] == results["auto"]
    assert len(results["jvm"][0][1]) == (5 if mode == "DEADLETTER" else 9)


def test_the_first_bad_record_is_named(spark: SparkSession, three: LocalRegistry) -> None:
    """FAILFAST raises the same error as the other engines, with id and byte."""
    df = from_registry(frame(spark, MIXED[0], BAD[0]), subject=SUBJECT, registry=three.url, engine="jvm")
    with pytest.raises(SparkRuntimeException, match=r"the record ends inside a value \(schema id 1\) at byte 13"):
        df.collect()
    df = from_registry(frame(spark, BAD[2]), subject=SUBJECT, registry=three.url, engine="jvm")
    with pytest.raises(SparkRuntimeException, match="no frame: the first byte must be 0"):
        df.collect()


def test_a_plan_decodes_once(spark: SparkSession, three: LocalRegistry) -> None:
    """Filters and several columns of the value use one decoded value: the call is in the plan once."""
    df = from_registry(frame(spark, *MIXED), subject=SUBJECT, registry=three.url, engine="jvm", mode="PERMISSIVE")
    both = df.where("value_error is null and value.id >= 0").select("value.id", "value.place.city", "value.tags")
    plan = both._jdf.queryExecution().executedPlan().toString()
    assert plan.count("DecodeFunction") == 1
    assert [row.id for row in both.collect()] == [0, 1, 3, 4]


def test_ids_registered_later_are_asked_for_by_python(spark: SparkSession, three: LocalRegistry) -> None:
    """An id that was not pinned is looked up once, by a Python process on the executor, and read by the same rules.

    The caller's function opens the client. An id whose schema cannot be used is the error of its records.
    """
    url = three.url

    def connect() -> SchemaRegistryClient:
        return SchemaRegistryClient(url)

    late = three.add("other", V1 | {"doc": "the same again"})
    wrong = three.add("wrong", {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]})
    frames = [frame_record(V1, datum(1, number), late) for number in range(20)] + [
        struct.pack(">bI", 0, wrong) + b"\2a"
    ]
    for registry in (url, connect):
        three.heal()
        df = from_registry(frame(spark, *frames), subject=SUBJECT, registry=registry, engine="jvm", mode="PERMISSIVE")
        rows = df.collect()
        assert [row.value.id for row in rows[:-1]] == list(range(20))
        reason = rows[-1].value_error.reason
        assert reason.startswith(f"schema id {wrong} cannot be read: id: string cannot be read as long")
        df.collect()
        assert three.requests.count(f"GET /schemas/ids/{late}") == 1


def test_an_outage_fails_the_task_and_is_never_null(spark: SparkSession, three: LocalRegistry) -> None:
    """If the registry does not answer, an unknown id fails the task even in the mode PERMISSIVE.

    Later the id is requested again.
    """
    raw = frame(spark, b"\0\0\0\0\x58zz")
    df = from_registry(raw, subject=SUBJECT, registry=three.url, mode="PERMISSIVE", engine="jvm", patience=0)
    three.break_down()
    with pytest.raises(SparkRuntimeException, match="on purpose"):
        df.collect()
    three.heal()
    assert df.collect()[0].value_error.reason == "unknown schema id 88"


def test_a_snapshot_needs_no_registry(spark: SparkSession, three: LocalRegistry) -> None:
    """With a snapshot no registry is asked: known ids are decoded, others are unknown."""
    with SchemaRegistryClient(three.url) as client:
        snapshot = client.snapshot(subjects=[SUBJECT])
    three.heal()
    df = from_registry(
        frame(spark, *MIXED, BAD[1]), subject=SUBJECT, registry=snapshot, mode="PERMISSIVE", engine="jvm"
    )
    assert [row.id for row in df.select("value.id").collect()] == [0, 1, None, 3, 4, None]
    assert three.requests == []


def test_streams_decode_too(spark: SparkSession, three: LocalRegistry, tmp_path: Path) -> None:
    """The same call works on a streaming DataFrame, and a bad record stops it."""
    drop(tmp_path / "in", "a.parquet", MIXED)
    raw = spark.readStream.schema("value binary").parquet(str(tmp_path / "in"))
    df = from_registry(raw, subject=SUBJECT, registry=three.url, engine="jvm").select("value.id")
    query = df.writeStream.format("memory").queryName("by_jvm").trigger(availableNow=True).start()
    query.awaitTermination()
    assert sorted(row.id for row in spark.table("by_jvm").where("id is not null").collect()) == [0, 1, 3, 4]
    drop(tmp_path / "in", "b.parquet", [BAD[0]])
    query = df.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c")).start()
    with pytest.raises(StreamingQueryException, match="the record ends inside a value"):
        query.processAllAvailable()


def test_rows_are_written_and_read_back(spark: SparkSession, three: LocalRegistry) -> None:
    """Columns are encoded to the bytes of the other engine; the key column is kept; tombstones stay null."""
    rows = from_registry(frame(spark, *MIXED), subject=SUBJECT, registry=three.url)
    wide = rows.where("value is not null").select("row", "value.*")
    mine, other = (
        to_registry(wide, subject=SUBJECT, registry=three.url, keep=["row"], into="bytes", engine=engine)
        for engine in ("jvm", "vm")
    )
    assert (is_jvm(mine), is_jvm(other)) == (True, False)
    assert mine.collect() == other.collect()
    whole = to_registry(rows, subject=SUBJECT, registry=three.url, columns="value", keep=["row"], engine="jvm")
    back = from_registry(whole, subject=SUBJECT, registry=three.url).collect()
    assert back == rows.collect()
    assert back[2].value is None


SAMPLE = {
    "type": "record",
    "name": "S",
    "fields": [
        {"name": "i", "type": "int"},
        {"name": "d", "type": "double"},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A"]}},
        {"name": "m", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}]},
        {"name": "u", "type": ["null", {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}]},
        {"name": "l", "type": {"type": "array", "items": "int"}},
    ],
}


def test_rows_that_do_not_fit_are_named(spark: SparkSession, registry: LocalRegistry) -> None:
    """A forbidden null, an unknown symbol, a number too large and text that is not a UUID are named in the error."""
    registry.add("s", SAMPLE)
    good = "1L AS i, 2f AS d, 'A' AS e, 1.25BD AS m, null AS u, array(1) AS l".replace(
        "1.25BD", "cast(-1.5 AS decimal(20, 2))"
    )
    for wrong, message in (
        ("3000000000L AS i", "i: 3000000000 does not fit an int"),
        ("'B' AS e", "e: the enum does not have this symbol"),
        ("'nothing' AS u", "u: is not a UUID"),
        ("array(1, null) AS l", r"l\[\]: null where the schema does not allow it"),
        ("cast(null AS double) AS d", "d: null where the schema does not allow it"),
    ):
        name = wrong.rpartition(" ")[2]
        columns = [wrong if part.endswith(f" {name}") else part for part in _parts(good)]
        df = to_registry(spark.range(1).selectExpr(*columns), subject="s", registry=registry.url, engine="jvm")
        with pytest.raises(SparkRuntimeException, match=message):
            df.collect()
    df = spark.range(1).selectExpr(*_parts(good))
    mine, other = (
        to_registry(df, subject="s", registry=registry.url, engine=engine).collect() for engine in ("jvm", "vm")
    )
    assert mine == other


def _parts(columns: str) -> list[str]:
    """Return the expressions of a select list, without splitting at commas inside types."""
    return [part.replace(";", ",") for part in columns.replace("(20, 2)", "(20; 2)").split(", ")]


def test_columns_it_cannot_take_go_through_python(spark: SparkSession, registry: LocalRegistry) -> None:
    """A column of another type than the schema's is cast by another engine; with `jvm` the error has the reason."""
    registry.add("n", {"type": "record", "name": "N", "fields": [{"name": "a", "type": "string"}]})
    df = spark.createDataFrame([(b"x",)], "a binary")
    assert not is_jvm(to_registry(df, subject="n", registry=registry.url))
    with pytest.raises(Invalid, match="the engine jvm cannot do this: a is binary and not string; choose auto"):
        to_registry(df, subject="n", registry=registry.url, engine="jvm")


def test_what_it_cannot_do_goes_through_python(spark: SparkSession, three: LocalRegistry) -> None:
    """Other wires are read by the other engines; with `jvm` the error says what it supports."""
    raw = frame(spark, order(1, 1, 7)[5:])
    assert not is_jvm(from_registry(raw, subject=SUBJECT, registry=three.url, wire="unframed:1"))
    with pytest.raises(Invalid, match="the engine jvm cannot do this: it knows the wire 'confluent' only"):
        from_registry(raw, subject=SUBJECT, registry=three.url, wire="unframed:1", engine="jvm")
    with pytest.raises(Invalid, match="the engine jvm works in plans"):
        get_engine("jvm")


def test_a_session_without_the_jar_says_what_to_do(
    spark: SparkSession, three: LocalRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the catalog setting or the jar, `auto` is another engine and `jvm` raises an error with the remedy."""
    raw = frame(spark, MIXED[0])
    other = spark.newSession()
    other.conf.unset("spark.sql.catalog.stele")
    other.conf.set("spark.sql.catalog.stele", "org.nowhere.Catalog")
    monkeypatch.setattr(jvm, "is_loaded", lambda session: False)
    with pytest.raises(jvm.JarMissing, match=r"stele\.spark\.add_engine"):
        jvm.require_engine(other)
    monkeypatch.setattr(jvm, "JAR", Path("/nowhere/stele.jar"))
    with pytest.raises(jvm.JarMissing, match=r"run: python -m stele\.spark\.engines\.jvm\.build"):
        jvm.add_engine(other)
    assert jvm.settings() == {}
    monkeypatch.undo()
    assert not jvm.is_loaded(other)
    assert jvm.is_loaded(spark)
    assert is_jvm(from_registry(raw, subject=SUBJECT, registry=three.url))


def test_the_jar_is_reproducible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two builds have the same bytes, and the jar's sentences are those of the other engines."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")  # javac runs briefly
    one, two = build(tmp_path / "one.jar"), build(tmp_path / "two.jar")
    assert one.read_bytes() == two.read_bytes()
    with zipfile.ZipFile(one) as content:
        messages = json.loads(content.read("io/stele/spark/error_messages.json"))
    assert messages == {code.name: message for code, message in MESSAGES.items()}


RUNNING = """
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession
from stele.spark import add_engine, from_registry, to_registry
from stele.client import SchemaSnapshot
from stele.spark.engines.jvm import JAR

session = (
    getattr(SparkSession.builder, sys.argv[3])("local[1]")
    .config("spark.ui.enabled", "false").config("spark.driver.host", "localhost")
    .getOrCreate()
)
add_engine(session)
snapshot = SchemaSnapshot.from_json(Path(sys.argv[1]).read_bytes())
frames = [bytes.fromhex(text) for text in sys.argv[2].split(",")]
raw = session.createDataFrame([(each,) for each in frames], "value binary")
df = from_registry(raw, subject="orders-value", registry=snapshot, engine="jvm", mode="PERMISSIVE")
again = to_registry(df.where("value is not null"), subject="orders-value", registry=snapshot, columns="value",
                    engine="jvm")
print(json.dumps([[row.value and row.value.id for row in df.collect()], again.count(), type(session).__module__]))
"""


@pytest.fixture(scope="module")
def machine_without_engine() -> Iterator[JavaMachine]:
    """A Java machine whose Spark contexts do not have the jar; each context that gets it has its own copy."""
    machine = JavaMachine(engine=False)
    yield machine
    machine.close()


@pytest.mark.slow
@pytest.mark.parametrize("builder", ["remote", "master"])
def test_a_running_session_takes_the_engine(
    three: LocalRegistry, tmp_path: Path, machine_without_engine: JavaMachine, builder: str
) -> None:
    """A Spark Connect session and a session of this process get the jar while they run, and then use it."""
    with SchemaRegistryClient(three.url) as client:
        (tmp_path / "snapshot.json").write_bytes(client.snapshot(subjects=[SUBJECT]).to_json())
    frames = ",".join(each.hex() for each in (*MIXED, *BAD) if each is not None)
    with machine_without_engine.lend(tmp_path) as variables:
        done = subprocess.run(
            [sys.executable, "-c", RUNNING, str(tmp_path / "snapshot.json"), frames, builder],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            # Connect takes a free port when SPARK_TESTING is set
            env=os.environ | variables | {"PYSPARK_PYTHON": sys.executable, "SPARK_TESTING": "1"},
        )
    assert done.returncode == 0, done.stderr[-2000:]
    ids, written, module = json.loads(done.stdout.splitlines()[-1])
    assert ids == [0, 1, 3, 4, None, None, None, None]
    assert written == 4
    assert ("connect" in module) == (builder == "remote")
