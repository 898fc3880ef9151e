"""One Spark session for all tests of this folder, which also serves Spark Connect, and a registry for each test."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession
from tests.spark.local_registry import LocalRegistry

from stele.spark import local_session
from stele.spark.pipeline.sinks.sql_table import get_jvm


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give tests a longer timeout, as sessions, brokers and processes can start slowly.

    A test's own timeout has priority.
    """
    for item in items:
        if item.nodeid.startswith("tests/spark/"):
            item.add_marker(pytest.mark.timeout(900))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session."""
    session = local_session(
        "stele tests",
        spark__sql__execution__arrow__maxRecordsPerBatch="500",
        spark__plugins="org.apache.spark.sql.connect.SparkConnectPlugin",
        spark__connect__grpc__binding__address="127.0.0.1",
        spark__connect__grpc__binding__port="0",
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def connect_address(spark: SparkSession) -> str:
    """The address of the session's Spark Connect server, which took a free port when it started."""
    service = get_jvm(spark).org.apache.spark.sql.connect.service
    port = getattr(getattr(service, "SparkConnectService$"), "MODULE$").localPort()  # a Scala object
    return f"sc://127.0.0.1:{port}"


@pytest.fixture
def run_over_connect(connect_address: str) -> Callable[[str], list[str]]:
    """A function that runs a script in another process, in which `spark` is a Spark Connect session.

    It returns the lines of the script's output.
    """
    start = f"""
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote("{connect_address}").getOrCreate()
"""

    def run(script: str) -> list[str]:
        command = [sys.executable, "-c", f"{start}\n{script}\nspark.stop()"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout.splitlines()

    return run


@pytest.fixture
def registry() -> Iterator[LocalRegistry]:
    """An empty registry with an HTTP server."""
    with LocalRegistry() as box:
        yield box
