"""One Spark session for all tests of this folder, which also serves Spark Connect, and a registry for each."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession
from tests.spark.local_registry import LocalRegistry
from tests.support.server_process import free_port

from stele.spark import local_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session."""
    session = local_session(
        "stele tests",
        spark__sql__execution__arrow__maxRecordsPerBatch="500",
        spark__plugins="org.apache.spark.sql.connect.SparkConnectPlugin",
        spark__connect__grpc__binding__address="127.0.0.1",
        spark__connect__grpc__binding__port=str(free_port()),
    )
    yield session
    session.stop()


@pytest.fixture
def run_over_connect(spark: SparkSession) -> Callable[[str], list[str]]:
    """Runs a script in a process of its own whose `spark` is a session of Spark Connect; its lines of output."""
    port = spark.conf.get("spark.connect.grpc.binding.port")
    start = f"""
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote("sc://127.0.0.1:{port}").getOrCreate()
"""

    def run(script: str) -> list[str]:
        command = [sys.executable, "-c", f"{start}\n{script}\nspark.stop()"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout.splitlines()

    return run


@pytest.fixture
def registry() -> Iterator[LocalRegistry]:
    """An empty registry that answers over HTTP."""
    with LocalRegistry() as box:
        yield box
