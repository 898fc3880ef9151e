"""One Spark session for all tests of this folder, and a registry for each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from tests.spark.registry_stub import StubRegistry

from stele.spark import local_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session."""
    session = local_session("stele tests", spark__sql__execution__arrow__maxRecordsPerBatch="500")
    yield session
    session.stop()


@pytest.fixture
def registry() -> Iterator[StubRegistry]:
    """An empty registry that answers over HTTP."""
    stub = StubRegistry()
    yield stub
    stub.close()
