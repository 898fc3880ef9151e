"""One Spark session with Kafka, Avro, Delta and Iceberg from Maven Central, for tests that PyPI alone cannot run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.servers.maven import jars

from stele.spark import local_session

POM = Path(__file__).parents[1] / "servers" / "spark-pom.xml"

DELTA = {
    "spark__sql__extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark__sql__catalog__spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def settings(folder: Path) -> dict[str, str]:
    """Of a session with all of it: the session's own catalogue has Delta tables, `lake` has Iceberg's, in a folder."""
    return {
        "spark__jars": ",".join(str(jar) for jar in sorted(jars(POM).glob("*.jar"))),
        "spark__sql__warehouse__dir": str(folder / "warehouse"),
        "spark__sql__catalog__lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark__sql__catalog__lake__type": "hadoop",
        "spark__sql__catalog__lake__warehouse": str(folder / "lake"),
        "spark__sql__execution__arrow__maxRecordsPerBatch": "500",
        **DELTA,
    }


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """Where the session's catalogues keep their tables."""
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


@pytest.fixture(scope="session")
def spark(folder: Path) -> Iterator[SparkSession]:
    """The session."""
    session = local_session("stele lakehouse tests", **settings(folder))
    yield session
    session.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder need what Maven brings."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.servers)
