"""How commands start Spark: the output of its JVM and of PySpark stays off the terminal. No JVM is started."""

from __future__ import annotations

import logging
import os
from types import SimpleNamespace

import pytest
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from stele.cli.spark_start import SparkNotStarted, start_spark


@pytest.fixture(autouse=True)
def _no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the active session that other tests may have left."""
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr("stele.spark.session.require_java", lambda: None)


def test_nothing_of_the_jvm_is_printed(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Warnings of the JVM are hidden, and Spark does not log errors that the command prints."""
    levels: list[str] = []

    def start(*_: object, **__: object) -> SimpleNamespace:
        os.write(2, b"WARNING: Using incubator modules: jdk.incubator.vector\n")
        return SimpleNamespace(sparkContext=SimpleNamespace(setLogLevel=levels.append))

    monkeypatch.setattr("stele.spark.session.local_session", start)
    start_spark("test")
    lines = capfd.readouterr().err.splitlines()
    assert lines[0] == "starting Spark …"
    assert lines[1].startswith("Spark runs after ")
    assert len(lines) == 2
    assert levels == ["OFF"]
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        assert PySparkLogger.getLogger(name).level == logging.CRITICAL


def test_what_it_said_is_told_when_it_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """If Spark does not start, the error has the last line of the JVM, and the file has all lines."""

    def start(*_: object, **__: object) -> None:
        os.write(2, b"WARNING: first\nInvalid maximum heap size: -Xmx9z\n")
        raise RuntimeError("Java gateway process exited")

    monkeypatch.setattr("stele.spark.session.local_session", start)
    with pytest.raises(SparkNotStarted, match="Spark did not start: Invalid maximum heap size: -Xmx9z"):
        start_spark("test")
