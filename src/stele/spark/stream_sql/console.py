"""Run a streaming query in the foreground and hand each micro-batch to a function."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, current_thread, main_thread
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

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
