"""Tables a pipeline writes with the runtimes of Delta and Iceberg, in catalogues and folders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrameWriter, SparkSession
from pyspark.sql.readwriter import DataFrameWriterV2
from tests.spark.lakehouse.conftest import settings
from tests.spark.sink_suite import SinkSuite, Step

from stele.spark.pipeline.config import TableConfig
from stele.spark.pipeline.sinks import Sink


class TestDeltaInAFolder(SinkSuite):
    steps = (Step(DataFrameWriter, "save"),)

    @pytest.fixture
    def config(self, tmp_path: Path, folder: Path) -> TableConfig:
        """A table by its path."""
        type(self).session = settings(folder)
        return TableConfig(kind="delta", warehouse=str(tmp_path / "ware house"))

    def history(self, table: Sink) -> int:
        """Return the number of entries in the table's log."""
        return int(table.read_table().sparkSession.sql(f"DESCRIBE HISTORY {table._sql_name}").count())  # type: ignore[attr-defined]


class TestDeltaInACatalogue(TestDeltaInAFolder):
    steps = (Step(DataFrameWriter, "saveAsTable"),)

    @pytest.fixture
    def config(self, spark: SparkSession) -> Iterator[TableConfig]:
        """A table named in the session's own catalogue."""
        yield TableConfig(kind="delta")
        spark.sql("DROP TABLE IF EXISTS shop.things")

    # the catalogue ends with its process, so only tables in folders can be written by two processes
    test_a_writer_killed_half_way = None  # type: ignore[assignment]


class TestIcebergInACatalogue(SinkSuite):
    steps = (Step(DataFrameWriterV2, "append"),)

    @pytest.fixture
    def config(self, spark: SparkSession, folder: Path) -> Iterator[TableConfig]:
        """A table of the catalogue `ice`."""
        type(self).session = settings(folder)
        yield TableConfig(kind="iceberg-spark", catalog="ice")
        spark.sql("DROP TABLE IF EXISTS ice.shop.things PURGE")

    def history(self, table: Sink) -> int:
        """Return the number of snapshots."""
        return int(table.read_table().sparkSession.table("ice.shop.things.snapshots").count())
