"""A Spark of a command's own: it says that it starts, and nothing that the JVM prints gets onto the terminal."""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from stele.cli.output import print_progress
from stele.errors import SteleError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STDERR: Final = 2
_LAST_BYTES: Final = 2000


class SparkNotStarted(SteleError):
    """Spark's JVM ended before it answered."""


def start_spark(name: str, cores: int = 2, **conf: str) -> SparkSession:
    """Start a local session, or take the one that runs.

    What its JVM writes to standard error goes to a temporary file, which stays if Spark does not start. Errors that
    commands tell in a sentence are not printed by Spark, too.
    Raises `NotInstalled`, `JavaMissing`, `SparkNotStarted`.
    """
    from stele.spark.session import local_session, require_java, require_spark
    from stele.spark.stream_sql.console import silence_spark

    require_spark()
    require_java()
    from pyspark.sql import SparkSession

    if SparkSession.getActiveSession() is not None:
        return local_session(name, cores, **conf)
    print_progress("starting Spark …")
    begun = time.monotonic()
    log = Path(tempfile.mkstemp(prefix="stele-spark-", suffix=".log")[1])
    try:
        with _redirect_stderr(log):
            spark = local_session(name, cores, **conf)
    except (RuntimeError, OSError) as error:
        raise SparkNotStarted(
            f"Spark did not start: {_last_line(log) or error}. Its whole output is in {log}"
        ) from error
    atexit.register(log.unlink, missing_ok=True)
    silence_spark(spark)
    print_progress(f"Spark runs after {time.monotonic() - begun:.1f} s")
    return spark


@contextmanager
def _redirect_stderr(log: Path) -> Iterator[None]:
    """Let processes that are started meanwhile write their standard error to a file."""
    sys.stderr.flush()
    saved_stderr = os.dup(_STDERR)
    with log.open("ab") as file:
        os.dup2(file.fileno(), _STDERR)
    try:
        yield
    finally:
        os.dup2(saved_stderr, _STDERR)
        os.close(saved_stderr)


def _last_line(log: Path) -> str:
    lines = log.read_bytes()[-_LAST_BYTES:].decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else ""
