"""Tables a pipeline writes with nothing but PySpark and Python packages: Iceberg through pyiceberg, Parquet."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.sink_suite import SinkSuite, Step

from stele.spark.pipeline.config import TableConfig
from stele.spark.pipeline.sinks import Sink, iceberg, iceberg_upkeep, parquet
from stele.spark.pipeline.sinks.hadoop import Folder


class TestIceberg(SinkSuite):
    steps = (
        Step(iceberg_upkeep, "sweep"),
        Step(iceberg.IcebergSink, "_written"),
        Step(iceberg, "commit"),
        Step(iceberg_upkeep, "sweep", 2),
        Step(iceberg_upkeep, "expire"),
    )

    @pytest.fixture
    def config(self, tmp_path: Path) -> TableConfig:
        """An SQL catalogue in a file."""
        return TableConfig(catalog=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "warehouse"))

    def history(self, table: Sink) -> int:
        """Snapshots."""
        assert isinstance(table, iceberg.IcebergSink)
        return len(table._needed().snapshots())

    def left_over(self, table: Sink) -> None:
        """Every data file below the table is named by its snapshot."""
        assert isinstance(table, iceberg.IcebergSink)
        found = table._needed()
        named = {task.file.file_path.removeprefix("file://") for task in found.scan().plan_files()}
        folder = Path(found.location().removeprefix("file://"))
        assert {str(path) for path in folder.rglob("*.parquet")} == named


class TestParquet(SinkSuite):
    atomic = False
    steps = (
        Step(Folder, "delete"),
        Step(parquet.ParquetSink, "_stage"),
        Step(Folder, "write"),
        Step(Folder, "move", 1),
        Step(Folder, "move", 2),
        Step(Folder, "move", 3),
        Step(parquet.ParquetSink, "_refresh"),
    )

    @pytest.fixture
    def config(self, spark: SparkSession, tmp_path: Path) -> Iterator[TableConfig]:
        """A table in a folder, known to a catalogue that ends with the session."""
        yield TableConfig(kind="parquet", warehouse=str(tmp_path / "ware house"))
        spark.sql("DROP TABLE IF EXISTS shop.things")

    def history(self, table: Sink) -> int:
        """Batches, by the names of files."""
        folder = Path(table._given)  # type: ignore[attr-defined]
        return len({path.name.rpartition("-")[0] for path in folder.glob("*.parquet")})

    def left_over(self, table: Sink) -> None:
        """Nothing is staged any more."""
        hidden = Path(table._given) / parquet.HIDDEN  # type: ignore[attr-defined]
        assert not list(hidden.rglob("*.parquet"))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_table_of_a_metastore_outlives_its_writer(tmp_path: Path) -> None:
    """A Hive metastore keeps columns, nested and wider ones too, and a batch whose writer was killed is there once.

    A metastore that takes no nested ones says what to set.
    """
    for mode, code in (("refuse", 0), ("die", -9), ("finish", 0)):
        (tmp_path / mode.replace("finish", "die")).mkdir(exist_ok=True)
        command = [sys.executable, "-c", HIVE, str(tmp_path / mode.replace("finish", "die")), mode]
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
        if mode == "refuse":
            told = done.stdout.splitlines()[-1]
            assert 'disallow.incompatible.col.type.changes" = "false" to conf' in told
            assert told.endswith("struct<id:bigint,Place:struct<City:string>,text:string>")
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
from stele.spark.pipeline.sinks.hadoop import Folder
from tests.spark.sink_suite import NAME, grow

folder, mode = sys.argv[1:]
spark = local_session(
    "hive",
    spark__sql__catalogImplementation="hive",
    spark__hadoop__javax__jdo__option__ConnectionURL=f"jdbc:derby:;databaseName={folder}/metastore;create=true",
    spark__sql__warehouse__dir=f"{folder}/warehouse",
    **{"spark.hadoop.hive.metastore.disallow.incompatible.col.type.changes": str(mode == "refuse").lower()},
)
table = open_sink(spark, TableConfig(kind="parquet"), NAME)
place = "named_struct('City', 'Bergen', 'n', 1099511627776L)"
rows = spark.range(10, 14, 1, 2).selectExpr("id", f"{place} AS Place", "concat('text ', id) AS text")
if mode == "refuse":
    grow(table, "id int, Place struct<City: string>")
    grow(table, "id bigint, Place struct<City: string>, text string")
    try:
        grow(table, "Place struct<City: string, n: bigint>")
    except Conflict as error:
        print(error, table.columns().simpleString())
    sys.exit()
if mode == "die":
    grow(table, "id int, Place struct<City: string>")
    table.append(spark.createDataFrame([(1, ("Oslo",))], table.columns()), "app", 0)
    grow(table, "id bigint, Place struct<City: string, n: bigint>, text string")
    move, calls = Folder.move, []
    def deadly(self, path, to):
        calls.append(path)
        if len(calls) == 3:
            os.kill(os.getpid(), 9)
        move(self, path, to)
    Folder.move = deadly
table.append(rows, "app", 1)
table.append(rows, "app", 1)
found = sorted(json.loads(json.dumps([list(row) for row in table.read().collect()])))
print(json.dumps([table.columns().simpleString(), found]))
"""
