"""Errors of Spark jobs, told by the line that names their cause."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from stele.errors import SteleError


class JobFailed(SteleError):
    """Spark could not read the data or finish the job."""


@contextmanager
def spark_failures() -> Iterator[None]:
    """Turn what Spark and its JVM raise into `JobFailed` with the line that says what happened."""
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
    """Return the line of a Spark error that tells what happened, for people.

    That is the last line that names a Python or Java exception, or else the first line. Plans and stacks are left out.
    """
    told = _PLAN_OR_STACK.split(text, maxsplit=1)[0]
    lines = [re.sub(r"\s*SQLSTATE: \w+", "", line.strip()) for line in told.splitlines()]
    lines = [line for line in lines if line]
    named = [line for line in lines if _EXCEPTION.match(line)]
    line = named[-1] if named else (lines or ["Spark stopped without a message"])[0]
    return _WRAPPERS.sub("", line)
