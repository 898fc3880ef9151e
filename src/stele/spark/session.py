"""A local Spark session with settings for Arrow and small jobs, and clear error messages.

An error about a missing part says what to install. An error of a job has the line that names its cause.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from stele.errors import NotInstalled, SteleError
from stele.spark.engines.jvm import settings as engine_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MISSING_KAFKA: Final = frozenset({"KAFKA_DATA_SOURCE_NOT_ENABLED", "DATA_SOURCE_NOT_FOUND"})
"""Spark's error conditions for a session without the Kafka connector."""

WORKER_DAEMON: Final = "stele.spark.decode.worker_daemon"
"""The module that forks Spark's Python workers, for the setting `spark.python.daemon.module`."""

LOGGING = Path(__file__).resolve().with_name("log4j2.properties")
"""Logging configuration of a session that is created here, unless SPARK_CONF_DIR is set."""


class JavaMissing(SteleError):
    """Raised when no Java is found. Spark needs Java 17 or newer."""

    def __init__(self) -> None:
        super().__init__("Spark needs Java 17 or newer: install a JDK, then set JAVA_HOME or put java on the PATH")


def require_spark() -> None:
    """Raise `NotInstalled` if PySpark is not installed."""
    try:
        import pyspark  # noqa: F401 - an optional part, only tried
    except ImportError as missing:
        raise NotInstalled("PySpark", "spark") from missing


def require_java() -> Path:
    """Return the path of the java program that Spark will start. Raises `JavaMissing`."""
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / ("java.exe" if os.name == "nt" else "java")
        if java.exists():
            return java
        raise JavaMissing
    executable = shutil.which("java")
    if executable is None:
        raise JavaMissing
    return Path(executable)


def local_session(app: str = "stele", cores: int = 2, **conf: str) -> SparkSession:
    """Return a session in this process's own JVM, or the one already running.

    `conf` are Spark settings with `__` for the dots (`spark__driver__memory="4g"`). They override these defaults: Arrow
    on, UTC, no web UI, few shuffle partitions, 2 GiB for the driver, and a log of errors only. The jar of the engine
    `jvm`, if it is built, is added to the jars of `conf`. The workers run this Python, unless `PYSPARK_PYTHON` names
    another, and are forked with the modules that they need already imported (`WORKER_DAEMON`).
    Raises `NotInstalled`, `JavaMissing`.
    """
    require_spark()
    require_java()
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {
        "spark.driver.memory": "2g",
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(max(2, cores)),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
        "spark.sql.streaming.numRecentProgressUpdates": "20",
    }
    if os.environ["PYSPARK_PYTHON"] == sys.executable:
        settings["spark.python.daemon.module"] = WORKER_DAEMON
    if "SPARK_CONF_DIR" not in os.environ:
        settings["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={LOGGING.as_uri()}"
    overrides = {name.replace("__", "."): value for name, value in conf.items()}
    settings |= overrides | engine_settings(overrides.get("spark.jars", ""))
    builder = SparkSession.builder.appName(app).master(f"local[{cores}]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


class JobFailed(SteleError):
    """Raised when Spark cannot read the data or finish the job."""


@contextmanager
def spark_failures() -> Iterator[None]:
    """Turn exceptions of Spark and its JVM into `JobFailed` with the line that names the cause."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise JobFailed(find_cause(str(error))) from error


_PLAN_OR_STACK: Final = re.compile(r"=== Streaming Query ===|JVM stacktrace")
_EXCEPTION: Final = re.compile(r"(Caused by: )?(\w+(\.[\w$]+)+|[A-Z]\w*(Error|Exception)): ")
_WRAPPERS: Final = re.compile(
    r"^(Caused by: |stele\.[\w.]+: |java\.lang\.RuntimeException: |[\w.]*\.SparkException: )+"
)


def find_cause(text: str) -> str:
    """Return the line of a Spark error that names its cause.

    That is the last line that names a Python or Java exception, or else the first line. Plans and stack traces are left
    out.
    """
    message = _PLAN_OR_STACK.split(text, maxsplit=1)[0]
    lines = [re.sub(r"\s*SQLSTATE: \w+", "", line.strip()) for line in message.splitlines()]
    lines = [line for line in lines if line]
    named = [line for line in lines if _EXCEPTION.match(line)]
    line = named[-1] if named else (lines or ["Spark stopped without a message"])[0]
    return _WRAPPERS.sub("", line)
