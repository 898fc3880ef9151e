"""A streaming query whose rows are handed to a function as they arrive."""

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
    """Start a query over a streaming DataFrame and wait for its end, or for Ctrl-C, which stops it.

    show           gets every micro-batch and its number
    available_now  end when all there is is read

    Aggregates are shown as they change. Raises `AnalysisException` for what cannot be streamed and
    `StreamingQueryException` for a query that fails.
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
    """Take note of Ctrl-C. PySpark's own handler would break into a conversation with the JVM, and show its stack."""
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
    """The query in the first output mode it can have. Raises what Spark said of the first."""
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
