"""One Spark session for all tests of this folder, and a registry for each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from tests.spark.local_registry import LocalRegistry

from stele.spark import local_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session."""
    session = local_session("stele tests", spark__sql__execution__arrow__maxRecordsPerBatch="500")
    yield session
    session.stop()


@pytest.fixture
def registry() -> Iterator[LocalRegistry]:
    """An empty registry that answers over HTTP."""
    with LocalRegistry() as box:
        yield box
