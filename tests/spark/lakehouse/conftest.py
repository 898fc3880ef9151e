"""One Spark session with Kafka, Avro, Delta and Iceberg from Maven Central, for tests that need more than PyPI."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.lakehouse.stack import spark_settings

from stele.spark import local_session


def settings(folder: Path) -> dict[str, str]:
    """Return the settings of the session: its own catalogue has Delta tables, `ice` has Iceberg tables."""
    more = {"spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.sql.execution.arrow.maxRecordsPerBatch": "500"}
    return spark_settings(folder) | more


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """The folder of the tables of the session's catalogues."""
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


@pytest.fixture(scope="session")
def spark(folder: Path) -> Iterator[SparkSession]:
    """The session."""
    session = local_session("stele lakehouse tests", **settings(folder))
    yield session
    session.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this folder with `servers`, as they need packages from Maven."""
    for item in items:
        if item.nodeid.startswith("tests/spark/lakehouse/"):
            item.add_marker(pytest.mark.servers)
