"""Start of Spark for a command: the command prints that Spark starts, and hides the output of its JVM."""

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
    """Start a local session, or return the active one.

    The standard error of its JVM goes to a temporary file, which is kept if Spark does not start. Spark does not print
    errors that commands print as a sentence.
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
    """Redirect the standard error of this process, and of those that it starts, to a file until the block ends."""
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
