"""The journal as a stream: a change feed. An offset is the sequence number of the last record read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from stele.errors import DataError
from stele.spark.datasource.tables import JournalFeed, JournalPartition, Row, SourceOptions, read_stretch, split_scope

_SEQ = "seq"


class JournalReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads each record of the journal once, in order, in micro-batches. A restart continues after the checkpoint."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options
        self._end: int | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return the offset at which a stream without a checkpoint begins."""
        start = self.options.start
        return {_SEQ: JournalFeed(self.options).end() if start is None else start}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the limit of one micro-batch: `maxRecordsPerTrigger`, or no limit."""
        return ReadAllAvailable() if self.options.most is None else ReadMaxRows(self.options.most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Fix the end of the run at the present end of the journal."""
        self._end = JournalFeed(self.options).end()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return the offset at which the next micro-batch ends.

        Raises `DataError` when the journal is shorter than what was already read.
        """
        end = JournalFeed(self.options).end() if self._end is None else self._end
        behind = int(start[_SEQ])
        if end < behind:
            raise DataError(
                f"the journal ends at {end}, but {behind} records of it were read: the registry was replaced"
            )
        return {_SEQ: min(end, behind + limit.max_rows) if isinstance(limit, ReadMaxRows) else end}

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return the offset of the journal's end, for the progress of the query."""
        return {_SEQ: JournalFeed(self.options).end()}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the partitions that the tasks of a micro-batch read."""
        return split_scope(self.options.scope.between(after=int(start[_SEQ])), int(end[_SEQ]))

    def read(self, partition: InputPartition) -> Iterator[Row]:
        """Return the rows of one partition."""
        assert isinstance(partition, JournalPartition)
        return read_stretch(JournalFeed(self.options), partition.scope)
