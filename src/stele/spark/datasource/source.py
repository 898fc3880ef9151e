"""The data source `stele` in the form that Spark expects, and its batch reader. Imported only after PySpark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from stele.errors import Invalid, NotInstalled
from stele.spark.datasource.tables import (
    COLUMNS,
    JOURNAL,
    SUBJECTS,
    USAGE,
    History,
    JournalFeed,
    JournalPartition,
    Row,
    RowsPartition,
    SourceOptions,
    VersionsPartition,
    read_stretch,
    split_scope,
    usage_rows,
)

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

_VERSIONS = 500
"""Number of versions whose texts one task fetches."""


class SteleSource(DataSource):
    """The source `spark.read.format("stele")`.

    For its tables see `stele.spark.datasource`; for its options see `tables.SourceOptions`.
    """

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "stele"

    def schema(self) -> str:
        """Return the columns of the table."""
        return COLUMNS[SourceOptions.of(self.options).table]

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a batch reader of the table, now or as of `asOf`."""
        return TableReader(SourceOptions.of(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return a streaming reader of the journal.

        Raises `Invalid` for another table, `NotInstalled` before Spark 4.2.
        """
        options = SourceOptions.of(self.options)
        if options.table != JOURNAL or options.scope.until is not None:
            raise Invalid("only the table journal can be streamed, and without asOf: .option('table', 'journal')")
        try:
            from stele.spark.datasource.stream import JournalReader
        except ImportError as missing:
            raise NotInstalled("Spark 4.2 (streams from Python that end)", "spark") from missing
        return JournalReader(options)


class TableReader(DataSourceReader):
    """Reads the rows of one table. It takes the filters that the registry, or the journal's order, can apply."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options
        self.scope = options.scope

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Take the filters that can be applied here, and return the others to Spark."""
        return [each for each in filters if not self._can_take(each)]

    def _can_take(self, filter_: Filter) -> bool:
        from pyspark.sql.datasource import EqualTo, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual

        column = getattr(filter_, "attribute", ())
        value = getattr(filter_, "value", None)
        if column in {("namespace",), ("subject",)} or (column == ("schema_id",) and self.options.table != SUBJECTS):
            values = filter_.value if isinstance(filter_, In) else (value,) if isinstance(filter_, EqualTo) else None
            if values is not None:
                self.scope = self.scope.narrow_to(column[0], frozenset(values) - {None})
            return values is not None
        if column != ("seq",) or self.options.table != JOURNAL or not isinstance(value, int):
            return False
        match filter_:
            case EqualTo():
                self.scope = self.scope.between(value - 1, value)
            case GreaterThan():
                self.scope = self.scope.between(after=value)
            case GreaterThanOrEqual():
                self.scope = self.scope.between(after=value - 1)
            case LessThan():
                self.scope = self.scope.between(until=value - 1)
            case LessThanOrEqual():
                self.scope = self.scope.between(until=value)
            case _:
                return False
        return True

    def partitions(self) -> Sequence[InputPartition]:
        """Return the partitions that the tasks read. The state of the registry is that of now, or of `asOf`."""
        feed = JournalFeed(self.options)
        if self.options.table == USAGE:
            rows = [row for place in feed.usage(self.scope) for row in usage_rows(place)]
            return [RowsPartition([row for row in rows if self.scope.ids is None or row[4] in self.scope.ids])]
        end = feed.with_end(self.options.scope)
        until = end if self.scope.until is None else min(end, self.scope.until)
        if self.options.table == JOURNAL:
            return split_scope(self.scope, until)
        history = History()
        for entry in feed.changes(self.scope.between(until=until)):
            history.add(entry)
        if self.options.table == SUBJECTS:
            return [RowsPartition(list(history.subjects()))]
        known = [
            each for each in history.versions() if self.scope.ids is None or each.entry.schema_id in self.scope.ids
        ]
        return [VersionsPartition(known[first : first + _VERSIONS]) for first in range(0, len(known), _VERSIONS)]

    def read(self, partition: InputPartition) -> Iterator[Row]:
        """Yield the rows of one partition."""
        feed = JournalFeed(self.options)
        if isinstance(partition, RowsPartition):
            yield from partition.rows
        elif isinstance(partition, JournalPartition):
            yield from read_stretch(feed, partition.scope)
        elif isinstance(partition, VersionsPartition):
            texts = feed.texts(known.sha256 for known in partition.versions)
            yield from (known.row(_text_or_null(texts.get(known.sha256))) for known in partition.versions)


def _text_or_null(data: bytes | None) -> Any:
    """Return the text; null if it was purged or is not text, such as a compiled descriptor."""
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None
