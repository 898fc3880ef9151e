"""Tables a pipeline writes with nothing but PySpark and Python packages: Iceberg through pyiceberg, Parquet."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.sink_suite import SinkSuite, Step

from stele.spark.pipeline.config import TableConfig
from stele.spark.pipeline.sinks import Sink, iceberg, iceberg_upkeep


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
