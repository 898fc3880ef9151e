"""What went wrong in a statement, in one sentence with the place in the text; for the shell and for notebooks."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from stele.errors import SteleError
from stele.spark.failures import JobFailed, find_cause, spark_failures
from stele.spark.stream_sql.execute import rewrite_for_spark
from stele.spark.stream_sql.tokens import StatementText

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POS: Final = re.compile(r"\bline (\d+),? pos (\d+)")
_POSITION: Final = re.compile(r"== SQL \(line (\d+), position (\d+)\) ==")
_NOISE: Final = re.compile(
    r"\[[A-Z][A-Z0-9_.]+\]\s*|\s*SQLSTATE: \w+|[;,]?\s*\(?\bline \d+,? pos \d+\)?;?|^[\w.]*(?:Error|Exception): "
)


class StatementFailed(SteleError):
    """Spark refused a statement, or failed at it."""


@contextmanager
def translate_failures(spark: SparkSession, piece: StatementText) -> Iterator[None]:
    """Turn what Spark raises for a statement into `StatementFailed`; errors of this package stay as they are."""
    try:
        with spark_failures():
            yield
    except JobFailed as failed:
        raise StatementFailed(_describe_failure(spark, piece, str(failed.__cause__ or failed))) from failed.__cause__


def silence_spark(spark: SparkSession) -> None:
    """Keep Spark from writing errors to the terminal, too, which somebody is told anyway."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    spark.sparkContext.setLogLevel("OFF")


def _describe_failure(spark: SparkSession, piece: StatementText, text: str) -> str:
    said = " ".join(_NOISE.sub("", find_cause(text)).split()).strip(" ;") or "Spark stopped without a message"
    for pattern, first in ((_POS, 0), (_POSITION, 1)):
        if found := pattern.search(text):
            line, column = rewrite_for_spark(spark, piece).place_of(int(found[1]), int(found[2]) - first)
            return f"line {line}, column {column}: {said}"
    return said
