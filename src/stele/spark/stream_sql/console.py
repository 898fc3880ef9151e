"""What the shell and notebooks share: streaming queries in the foreground, and error messages of one sentence."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, current_thread, main_thread
from typing import TYPE_CHECKING, Final

from stele.errors import SteleError
from stele.spark.session import JobFailed, spark_failures
from stele.spark.stream_sql.execute import rewrite_for_spark
from stele.spark.stream_sql.query_rewrite import RewrittenQuery
from stele.spark.stream_sql.tokens import StatementText

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


class StatementFailed(SteleError):
    """Raised when Spark rejects a statement or fails to run it."""


@contextmanager
def translate_failures(spark: SparkSession, piece: StatementText) -> Iterator[None]:
    """Turn Spark's exceptions for a statement into `StatementFailed`. Stele's own exceptions pass unchanged."""
    try:
        with spark_failures():
            yield
    except JobFailed as failed:
        raise StatementFailed(_describe_failure(spark, piece, failed)) from failed.__cause__


def silence_spark(spark: SparkSession) -> None:
    """Silence Spark's own copy of errors that the caller already receives as exceptions."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    spark.sparkContext.setLogLevel("OFF")


def _describe_failure(spark: SparkSession, piece: StatementText, failed: JobFailed) -> str:
    """Return the error in one sentence, with the line and column in the statement if Spark knows them."""
    from pyspark.errors import PySparkException

    error = failed.__cause__
    if not isinstance(error, PySparkException):
        return str(failed)
    query = rewrite_for_spark(spark, piece)
    offset = _context_offset(error)
    place = _parse_position(error, query) if offset is None else query.place(offset)
    if place is None:
        return _strip_codes(error, str(failed))
    sentence = _strip_codes(error, (error.getMessage() or str(failed)).strip().splitlines()[0])
    return f"line {place[0]}, column {place[1]}: {sentence}"


def _strip_codes(error: PySparkException, sentence: str) -> str:
    """Return a message of Spark without the error condition before it and the SQL state after it."""
    sentence = sentence.removeprefix(f"[{error.getCondition()}] ").removesuffix(f"SQLSTATE: {error.getSqlState()}")
    return " ".join(sentence.split())


def _context_offset(error: PySparkException) -> int | None:
    """Return the offset of the failed expression in the text that Spark was given, or None if it is unknown."""
    from pyspark.errors.exceptions.base import QueryContextType

    contexts = (context for context in error.getQueryContext() if context.contextType() is QueryContextType.SQL)
    # a context with an object is part of that object's definition, such as a view
    return next((context.startIndex() for context in contexts if not context.objectType()), None)


def _parse_position(error: PySparkException, query: RewrittenQuery) -> tuple[int, int] | None:
    """Return line and column of a syntax error from the exception in the JVM, as Spark gives no context for it."""
    from pyspark.errors import ParseException

    origin = getattr(error, "_origin", None)
    if not isinstance(error, ParseException) or origin is None or origin.line().isEmpty():
        return None
    return query.place_of(origin.line().get(), origin.startPosition().get())


_MODES: Final = ("append", "update", "complete")
_WAIT: Final = 1  # seconds between checks for Ctrl-C


def follow_stream(df: DataFrame, show: Callable[[DataFrame, int], None], *, available_now: bool = False) -> None:
    """Run a streaming DataFrame until it ends or Ctrl-C stops it.

    Aggregates are shown each time they change.

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
    """Yield an event that Ctrl-C sets. PySpark's own handler would interrupt a JVM call and print a stack trace."""
    interrupt = Event()
    if current_thread() is not main_thread():
        yield interrupt
        return
    before = signal.signal(signal.SIGINT, lambda *_: interrupt.set())
    try:
        yield interrupt
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
