"""Tables a pipeline writes with nothing but PySpark and Python packages: Iceberg through pyiceberg, Parquet."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from unittest.mock import Mock

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType
from tests.spark.sink_suite import SinkSuite, Step

from stele.errors import Invalid
from stele.spark.pipeline.config import TableConfig
from stele.spark.pipeline.schema_evolution import plan_changes
from stele.spark.pipeline.sinks import Sink, iceberg, open_sink, parquet
from stele.spark.pipeline.sinks.file_writer import FileTarget, FileWriter
from stele.spark.pipeline.sinks.sql_table import HadoopFolder, error_condition, get_jvm


class TestIceberg(SinkSuite):
    steps = (
        Step(iceberg, "delete_unreferenced"),
        Step(iceberg.IcebergSink, "_write_files"),
        Step(iceberg, "commit_files"),
        Step(iceberg, "delete_unreferenced", 2),
        Step(iceberg, "expire_snapshots"),
    )

    @pytest.fixture
    def config(self, tmp_path: Path) -> TableConfig:
        """An SQL catalogue in a file."""
        return TableConfig(catalog=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "warehouse"))

    def history(self, table: Sink) -> int:
        """Return the number of snapshots."""
        assert isinstance(table, iceberg.IcebergSink)
        return len(table._require_table().snapshots())

    def left_over(self, table: Sink) -> None:
        """Check that the snapshot names every data file below the table."""
        assert isinstance(table, iceberg.IcebergSink)
        iceberg_table = table._require_table()
        named = {task.file.file_path.removeprefix("file://") for task in iceberg_table.scan().plan_files()}
        folder = Path(iceberg_table.location().removeprefix("file://"))
        assert {str(path) for path in folder.rglob("*.parquet")} == named


class TestParquet(SinkSuite):
    atomic = False
    steps = (
        Step(HadoopFolder, "delete_path"),
        Step(parquet.ParquetSink, "_stage_rows"),
        Step(HadoopFolder, "write_text"),
        Step(HadoopFolder, "move_file", 1),
        Step(HadoopFolder, "move_file", 2),
        Step(HadoopFolder, "move_file", 3),
        Step(parquet.ParquetSink, "_refresh_table"),
    )

    @pytest.fixture
    def config(self, spark: SparkSession, tmp_path: Path) -> Iterator[TableConfig]:
        """A table in a folder, known to a catalogue that ends with the session."""
        yield TableConfig(kind="parquet", warehouse=str(tmp_path / "ware house"))
        spark.sql("DROP TABLE IF EXISTS shop.things")

    def history(self, table: Sink) -> int:
        """Return the number of batches, by the names of files."""
        folder = Path(table._given)  # type: ignore[attr-defined]
        return len({path.name.rpartition("-")[0] for path in folder.glob("*.parquet")})

    def left_over(self, table: Sink) -> None:
        """Check that no files are staged."""
        hidden = Path(table._given) / parquet.HIDDEN  # type: ignore[attr-defined]
        assert not list(hidden.rglob("*.parquet"))


def _catalogue(folder: Path) -> TableConfig:
    return TableConfig(catalog=f"sqlite:///{folder}/catalog.db", warehouse=str(folder / "warehouse"))


def test_two_pipelines_may_begin_one_table_at_once(tmp_path: Path) -> None:
    """Two writers create catalogue, namespace, table and columns at the same time; neither fails or loses any."""

    def work(round_: int, mine: str) -> None:
        start.wait()
        table = iceberg.IcebergSink(Mock(), _catalogue(tmp_path / str(round_)), "a.b")
        for number in range(3):
            wanted = StructType([StructField(name, LongType()) for name in ("id", f"{mine}{number}")])
            table.apply_changes(plan_changes(table.load_columns(), wanted, table.capabilities), wanted)

    for round_ in range(4):
        start = Barrier(2)
        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(work, round_, mine) for mine in "xy"]:
                done.result()
        columns = iceberg.IcebergSink(Mock(), _catalogue(tmp_path / str(round_)), "a.b").load_columns()
        assert columns is not None
        assert sorted(columns.names) == ["id", "x0", "x1", "x2", "y0", "y1", "y2"]


def test_old_snapshots_of_an_iceberg_table_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old snapshots are dropped with the metadata that only they needed. The newest ones stay, and no row is lost."""
    monkeypatch.setattr(iceberg, "TOGETHER", 4)
    sink = iceberg.IcebergSink(Mock(), _catalogue(tmp_path), "a.b")
    wanted = StructType([StructField("id", LongType())])
    sink.apply_changes(plan_changes(None, wanted, sink.capabilities), wanted)
    with sink._require_table().transaction() as transaction:
        transaction.set_properties({iceberg.LEAST: "3", iceberg.OLDEST: "0"})
    for batch in range(9):
        table = sink._require_table()
        target = FileTarget(schema_to_pyarrow(table.schema()), f"{table.location()}/data", "stele-", {})
        with FileWriter(target) as writer:
            writer.write_rows(pa.RecordBatch.from_pydict({"id": [batch]}))
        iceberg.commit_files(table, list(writer.files), "app", batch)
        time.sleep(0.002)  # a snapshot cannot expire in the millisecond of its creation
        iceberg.expire_snapshots(table)
    table = sink._require_table()
    assert 3 <= len(table.snapshots()) < 3 + 4
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [*range(9)]
    assert iceberg.is_committed(table, "app", 8)
    lists = {path.name for path in tmp_path.rglob("snap-*.avro")}
    assert lists == {snapshot.manifest_list.rpartition("/")[2] for snapshot in table.snapshots()}
    assert iceberg.delete_unreferenced(table, f"{table.location()}/data") == []
    stray = Path(f"{table.location()}/data/stele-stray.parquet".removeprefix("file://"))
    stray.write_bytes(b"")
    assert iceberg.delete_unreferenced(table, f"{table.location()}/data") == [f"{table.location()}/data/{stray.name}"]
    assert not stray.exists()
    assert len(list(stray.parent.glob("*.parquet"))) == 9


def test_a_session_without_the_runtime_says_what_to_add(spark: SparkSession) -> None:
    """Kinds of tables that this session cannot write are refused at once, with the packages and settings to add."""
    with pytest.raises(Invalid, match=r"io\.delta:delta-spark_2\.13.*DeltaSparkSessionExtension"):
        open_sink(spark, TableConfig(kind="delta"), "a.b")
    with pytest.raises(Invalid, match=r"org\.apache\.iceberg:iceberg-spark-runtime"):
        open_sink(spark, TableConfig(kind="iceberg-spark"), "a.b")
    with pytest.raises(Invalid, match="give the table a warehouse"):
        open_sink(spark, TableConfig(kind="parquet"), "a.b")


def test_errors_have_conditions(spark: SparkSession) -> None:
    """Errors of PySpark and errors of Spark's JVM have their error condition; other errors have none."""
    jvm = get_jvm(spark)
    unknown = Py4JJavaError("", jvm.org.apache.spark.SparkException.internalError("words"))
    assert error_condition(spark, unknown) == "INTERNAL_ERROR"
    assert error_condition(spark, Py4JJavaError("", jvm.java.lang.IllegalStateException("DELTA_CONCURRENT_"))) == ""
    with pytest.raises(AnalysisException) as refused:
        spark.table("nowhere")
    assert error_condition(spark, refused.value) == "TABLE_OR_VIEW_NOT_FOUND"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_table_of_a_metastore_outlives_its_writer(tmp_path: Path) -> None:
    """A Hive metastore keeps columns, including nested and wider ones; a batch of a killed writer is in the table once.

    For a metastore that does not accept nested columns, the error says what to set.
    """
    for mode, code in (("die", -9), ("finish", 0)):
        command = [sys.executable, "-c", HIVE, str(tmp_path), mode]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        )
        assert done.returncode == code, done.stderr[-3000:]
        if mode == "die":
            message = done.stdout.splitlines()[-1]
            assert 'disallow.incompatible.col.type.changes" = "false" to conf' in message
            assert message.endswith("struct<id:bigint,Place:struct<City:string>,text:string>")
    columns, rows = json.loads(done.stdout.splitlines()[-1])
    assert columns == "struct<id:bigint,Place:struct<City:string,n:bigint>,text:string>"
    assert rows == [
        [1, ["Oslo", None], None],
        *([number, ["Bergen", 1 << 40], f"text {number}"] for number in range(10, 14)),
    ]


HIVE = """
import json, os, sys
from stele.errors import Conflict
from stele.spark import local_session
from stele.spark.pipeline.config import TableConfig
from stele.spark.pipeline.sinks import open_sink
from stele.spark.pipeline.sinks.sql_table import HadoopFolder
from tests.spark.sink_suite import NAME, grow

folder, mode = sys.argv[1:]

def start(strict):
    return local_session(
        "hive",
        spark__sql__catalogImplementation="hive",
        spark__hadoop__javax__jdo__option__ConnectionURL=f"jdbc:derby:;databaseName={folder}/metastore;create=true",
        spark__sql__warehouse__dir=f"{folder}/warehouse",
        **{"spark.hadoop.hive.metastore.disallow.incompatible.col.type.changes": str(strict).lower()},
    )

if mode == "die":
    spark = start(strict=True)
    table = open_sink(spark, TableConfig(kind="parquet"), f"{NAME}_strict")
    grow(table, "id int, Place struct<City: string>")
    grow(table, "id bigint, Place struct<City: string>, text string")
    try:
        grow(table, "Place struct<City: string, n: bigint>")
    except Conflict as error:
        print(error, table.load_columns().simpleString(), flush=True)  # before the kill
    spark.stop()
spark = start(strict=False)
table = open_sink(spark, TableConfig(kind="parquet"), NAME)
place = "named_struct('City', 'Bergen', 'n', 1099511627776L)"
rows = spark.range(10, 14, 1, 2).selectExpr("id", f"{place} AS Place", "concat('text ', id) AS text")
if mode == "die":
    grow(table, "id int, Place struct<City: string>")
    table.append_batch(spark.createDataFrame([(1, ("Oslo",))], table.load_columns()), "app", 0)
    grow(table, "id bigint, Place struct<City: string, n: bigint>, text string")
    move, calls = HadoopFolder.move_file, []
    def deadly(self, path, to):
        calls.append(path)
        if len(calls) == 3:
            os.kill(os.getpid(), 9)
        move(self, path, to)
    HadoopFolder.move_file = deadly
table.append_batch(rows, "app", 1)
table.append_batch(rows, "app", 1)
stored_rows = sorted(json.loads(json.dumps([list(row) for row in table.read_table().collect()])))
print(json.dumps([table.load_columns().simpleString(), stored_rows]))
"""
