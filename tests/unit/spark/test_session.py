"""The settings of a local session. No JVM is started."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from pyspark.sql import SparkSession

from stele.spark import local_session
from stele.spark.session import WORKER_DAEMON


class RecordingBuilder:
    """Records settings in place of Spark's builder, and creates no session."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self

    def config(self, name: str, value: str) -> RecordingBuilder:
        """Record a setting."""
        self.settings[name] = value
        return self


@pytest.mark.parametrize(
    ("python", "settings", "daemon"),
    [
        (None, {}, WORKER_DAEMON),
        (sys.executable, {}, WORKER_DAEMON),
        ("/usr/bin/python3", {}, None),
        (None, {"spark__python__daemon__module": "pyspark.daemon"}, "pyspark.daemon"),
    ],
)
def test_workers_of_this_python_have_our_daemon(
    monkeypatch: pytest.MonkeyPatch, python: str | None, settings: dict[str, str], daemon: str | None
) -> None:
    """Workers of this Python use Stele's daemon; those of another Python, which may lack Stele, use Spark's.

    A setting of the caller overrides this.
    """
    monkeypatch.setattr("stele.spark.session.require_java", lambda: None)
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    if python is not None:
        monkeypatch.setenv("PYSPARK_PYTHON", python)
    builder = RecordingBuilder()
    monkeypatch.setattr(SparkSession, "builder", builder)
    local_session("test", **settings)
    assert builder.settings.get("spark.python.daemon.module") == daemon
