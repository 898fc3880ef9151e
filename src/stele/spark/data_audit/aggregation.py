"""Run an aggregator over all records as one Spark job: tasks compute partial results, which are merged.

A task keeps one partial result for each schema id it meets and emits it at its end, so the shuffled data do not grow
with the records. The results of one id are merged in one task, and the driver gets one result for each id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, Self, TypeVar

import msgspec

from stele.errors import Invalid
from stele.spark.engines.arrow import Column
from stele.spark.session import spark_failures

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

RAW: Final = "raw"
HEADERS: Final = "headers"
TIME: Final = "time"
POSITION: Final = "place"
CHOSEN: Final = "chosen"
"""Columns of the batches that an aggregator sees, see `RecordColumn.select_columns`."""

_ANSWERS: Final = "name string, answer binary"


@dataclass(frozen=True, slots=True)
class RecordColumn:
    """A column of a DataFrame that holds records, and the columns that belong to it.

    df         a batch DataFrame
    column     its binary column with the records
    headers    the column with the headers of records, for wires that use them
    timestamp  column with the time when a record was written: a timestamp, a date, or milliseconds since 1970
    position   columns that locate a record (partition and offset, file and row), for examples
    """

    df: DataFrame
    column: str = "value"
    headers: str | None = None
    timestamp: str | None = None
    position: tuple[str, ...] = ()

    def select_columns(self, *, needs_headers: bool, sample: float = 1.0, seed: int = 0) -> DataFrame:
        """Return the columns that an aggregator needs: the record, and those of the others that exist.

        place is the JSON text of the position's columns; chosen is whether a record is in the sample. Raises `Invalid`.
        """
        from pyspark.sql import functions as f
        from pyspark.sql.types import BinaryType, NullType

        if self.df.isStreaming:
            raise Invalid("an audit needs a batch DataFrame, not a stream")
        if not 0 < sample <= 1:
            raise Invalid(f"sample must be a fraction above 0 and at most 1, not {sample}")
        every = self.df.toDF(*(f"c{n}" for n in range(len(self.df.columns))))
        kind = self._column_type(self.column)
        if not isinstance(kind, BinaryType | NullType):
            raise Invalid(f"framed records are a binary column, {self.column!r} is {kind.simpleString()}")
        columns = [self._spark_column(self.column).cast("binary").alias(RAW)]
        if needs_headers:
            if self.headers is None:
                raise Invalid("this wire has ids in record headers: name their column, such as headers='headers'")
            columns.append(self._spark_column(self.headers).alias(HEADERS))
        if self.timestamp is not None:
            columns.append(self._time_in_micros(self.timestamp).alias(TIME))
        if self.position:
            parts = [self._spark_column(name).alias(name) for name in self.position]
            columns.append(f.to_json(f.struct(*parts)).alias(POSITION))
        if sample < 1:
            columns.append((f.rand(seed) < sample).alias(CHOSEN))
        return every.select(*columns)

    def _column_index(self, name: str) -> int:
        places = [place for place, other in enumerate(self.df.columns) if other == name]
        if not places:
            raise Invalid(f"there is no column {name!r}: the data have {', '.join(self.df.columns)}")
        if len(places) > 1:
            raise Invalid(f"the data have {len(places)} columns {name!r}: rename them first")
        return places[0]

    def _column_type(self, name: str) -> DataType:
        return self.df.schema.fields[self._column_index(name)].dataType

    def _spark_column(self, name: str) -> SparkColumn:
        from pyspark.sql import functions as f

        return f.col(f"c{self._column_index(name)}")

    def _time_in_micros(self, name: str) -> SparkColumn:
        """Return a column with the time in microseconds since 1970. Raises `Invalid` for a column of another type."""
        from pyspark.sql import functions as f
        from pyspark.sql import types as t

        kind, column = self._column_type(name), self._spark_column(name)
        if isinstance(kind, t.LongType | t.IntegerType):
            return column.cast("long") * 1000
        if isinstance(kind, t.TimestampType | t.TimestampNTZType | t.DateType):
            return f.unix_micros(column.cast("timestamp"))
        raise Invalid(f"a time column must hold timestamps, dates or milliseconds; {name!r} is {kind.simpleString()}")


class PartialResult(Protocol):
    """The result for some records of one id. It is a `msgspec.Struct`, so that it can be sent between tasks."""

    def merge_with(self, other: Self) -> Self:
        """Return the result for both sets of records. Order and grouping of merges do not change the result."""
        ...


A = TypeVar("A", bound=PartialResult)
A_co = TypeVar("A_co", bound=PartialResult, covariant=True)


class Aggregator(Protocol[A_co]):
    """The computation of a task over its part of some rows. It is sent to the tasks, so it must be picklable."""

    @property
    def result_type(self) -> type[A_co]:
        """The type of its partial results."""
        ...

    def start_task(self) -> Callable[[pa.RecordBatch], Mapping[str, A_co]]:
        """Return a function for one task that maps a batch to partial results by name.

        For framed records the name is the schema id.
        """
        ...


class RecordAggregator(Aggregator[A_co], Protocol[A_co]):
    """An aggregator of framed records."""

    @property
    def needs_headers(self) -> bool:
        """Whether it looks at the headers of records."""
        ...


def aggregate_records(
    records: RecordColumn, aggregator: RecordAggregator[A], *, sample: float = 1.0, seed: int = 0
) -> dict[str, A]:
    """Run an aggregator over all records and return the result for each id. Runs one Spark job.

    sample is the fraction of the records that the column `CHOSEN` marks. Raises `Invalid`, `JobFailed`.
    """
    with spark_failures():
        return aggregate_rows(
            records.select_columns(needs_headers=aggregator.needs_headers, sample=sample, seed=seed), aggregator
        )


def aggregate_rows(df: DataFrame, aggregator: Aggregator[A]) -> dict[str, A]:
    """Run an aggregator over the rows of any DataFrame and return the result for each name.

    Runs one Spark job. Raises `JobFailed`.
    """
    with spark_failures():
        parts = df.mapInArrow(_PartialAggregation(aggregator), _ANSWERS)
        rows = parts.repartition("name").mapInArrow(_FinalAggregation(aggregator.result_type), _ANSWERS).collect()
    return {row["name"]: msgspec.msgpack.decode(row["answer"], type=aggregator.result_type) for row in rows}


class _PartialAggregation(Generic[A]):
    """The first half, on batches of records."""

    def __init__(self, aggregator: Aggregator[A]) -> None:
        self._aggregator = aggregator

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        answer = self._aggregator.start_task()
        known: dict[str, A] = {}
        for batch in batches:
            for name, evidence in answer(batch).items():
                known[name] = known[name].merge_with(evidence) if name in known else evidence
        yield from _encode_results(known)


class _FinalAggregation(Generic[A]):
    """The second step, which merges the partial results of all tasks for some of the ids."""

    def __init__(self, answers: type[A]) -> None:
        self._answers = answers

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        known: dict[str, A] = {}
        for batch in batches:
            for row in batch.to_pylist():
                name, evidence = row["name"], msgspec.msgpack.decode(row["answer"], type=self._answers)
                known[name] = known[name].merge_with(evidence) if name in known else evidence
        yield from _encode_results(known)


def _encode_results(answers: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    if answers:
        packed = [msgspec.msgpack.encode(answer) for answer in answers.values()]
        yield pa.RecordBatch.from_arrays(
            [pa.array(list(answers), pa.string()), pa.array(packed, pa.binary())], ["name", "answer"]
        )


def count_values(values: Column) -> dict[Any, int]:
    """Return how often each value is in a column. Nulls are not counted."""
    import pyarrow.compute as pc

    counts = pc.value_counts(values.drop_null())
    return {item["values"]: item["counts"] for item in counts.to_pylist()}


def add_counts(one: Mapping[str, int], other: Mapping[str, int], limit: int = 0, rest: str = "other") -> dict[str, int]:
    """Return the sums by key. Above `limit` keys the least frequent are added up under `rest` (0: no limit)."""
    sums = dict(one)
    for key, count in other.items():
        sums[key] = sums.get(key, 0) + count
    return limit_kinds(sums, limit, rest) if limit else sums


def limit_kinds(counts: Mapping[str, int], limit: int, rest: str = "other") -> dict[str, int]:
    """Return the most frequent keys, with the others added up under `rest`.

    Which keys remain can depend on the order of merging.
    """
    if len(counts) <= limit:
        return dict(counts)
    ranked = sorted((key for key in counts if key != rest), key=lambda key: (-counts[key], key))
    most_frequent = {key: counts[key] for key in ranked[: limit - 1]}
    return {**most_frequent, rest: sum(counts.values()) - sum(most_frequent.values())}


def least_known(*times: Any) -> Any:
    """Return the least value that is not None, or None if all are None."""
    return min((time for time in times if time is not None), default=None)


def greatest_known(*times: Any) -> Any:
    """Return the greatest value that is not None, or None if all are None."""
    return max((time for time in times if time is not None), default=None)


def merge_sorted(items: Sequence[Any], other: Sequence[Any], limit: int, key: Callable[[Any], Any]) -> list[Any]:
    """Return the first `limit` items of two lists, sorted by `key`."""
    return sorted([*items, *other], key=key)[:limit]
