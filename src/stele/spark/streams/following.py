"""A streaming query whose rows are handed to a function as they arrive."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_MODES: Final = ("append", "update", "complete")
_WAIT: Final = 1  # second between looks at Ctrl-C


def follow(df: DataFrame, show: Callable[[DataFrame, int], None], *, available_now: bool = False) -> None:
    """Start a query over a streaming DataFrame and wait for its end; it is stopped when the wait is interrupted.

    show           gets every micro-batch and its number
    available_now  end when all there is is read

    Aggregates are shown as they change. Raises `AnalysisException` for what cannot be streamed and
    `StreamingQueryException` for a query that fails.
    """
    query = _started(df, show, available_now=available_now)
    try:
        while not query.awaitTermination(_WAIT):
            pass
    finally:
        query.stop()


def _started(df: DataFrame, show: Callable[[DataFrame, int], None], *, available_now: bool) -> StreamingQuery:
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
