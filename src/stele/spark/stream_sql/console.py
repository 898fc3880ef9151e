"""What the shell and notebooks share: foreground streaming queries, and one-sentence errors of statements."""

from __future__ import annotations

import logging
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, current_thread, main_thread
from typing import TYPE_CHECKING, Final

from stele.errors import SteleError
from stele.spark.failures import JobFailed, find_cause, spark_failures
from stele.spark.stream_sql.execute import rewrite_for_spark
from stele.spark.stream_sql.tokens import StatementText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

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


_MODES: Final = ("append", "update", "complete")
_WAIT: Final = 1  # second between looks at Ctrl-C


def follow_stream(df: DataFrame, show: Callable[[DataFrame, int], None], *, available_now: bool = False) -> None:
    """Run a streaming DataFrame until it ends or Ctrl-C stops it.

    Aggregates are shown as they change.

    Args:
        df: A streaming DataFrame.
        show: Called with every micro-batch and its number.
        available_now: Whether the query ends once all available records are read.

    Raises:
        AnalysisException: If the DataFrame cannot be streamed.
        StreamingQueryException: If the query fails.
    """
    query = _start_query(df, show, available_now=available_now)
    try:
        with _note_interrupts() as interrupted:
            while not interrupted.is_set() and not query.awaitTermination(_WAIT):
                pass
    finally:
        query.stop()


@contextmanager
def _note_interrupts() -> Iterator[Event]:
    """Set an event on Ctrl-C. PySpark's own handler would interrupt a call to the JVM and show its stack."""
    seen = Event()
    if current_thread() is not main_thread():
        yield seen
        return
    before = signal.signal(signal.SIGINT, lambda *_: seen.set())
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)


def _start_query(df: DataFrame, show: Callable[[DataFrame, int], None], *, available_now: bool) -> StreamingQuery:
    """Start the query in the first output mode that Spark accepts. Raises Spark's error for the first mode."""
    from pyspark.errors import AnalysisException

    refused: AnalysisException | None = None
    for mode in _MODES:
        writer = df.writeStream.foreachBatch(show).outputMode(mode)
        try:
            return (writer.trigger(availableNow=True) if available_now else writer).start()
        except AnalysisException as error:
            refused = refused or error
    assert refused is not None
    raise refused
