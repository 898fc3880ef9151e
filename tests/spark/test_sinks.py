"""Tables a pipeline writes with nothing but PySpark and Python packages: Iceberg through pyiceberg, Parquet."""

from __future__ import annotations

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
