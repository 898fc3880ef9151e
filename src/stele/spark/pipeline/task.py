"""What tasks do: decode a partition and write it as data files of the two tables, saying which files those are.

Files that no commit names do not exist for readers of the table, so a task may die, or run twice, at any point.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final, Self
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from stele.spark.decoding import fail_on_bad
from stele.spark.engines.arrow import ArrowType, Column
from stele.spark.engines.base import Decoded, engine_named
from stele.spark.pipeline.iceberg import Target
from stele.spark.source import Lookup, Pin, RegistryLike, parsed

ID_COLUMN: Final = "_stele_schema_id"
VERSION_COLUMN: Final = "_stele_version"
EXTRA_COLUMNS: Final = (pa.field(ID_COLUMN, pa.int32()), pa.field(VERSION_COLUMN, pa.int32()))
"""Columns every pipeline table has: the id each record was written with, and the version of the subject that id is,
null where the id belongs to another subject."""

_LETTER: Final[dict[str, ArrowType]] = {
    "value": pa.binary(),
    "schema_id": pa.int32(),
    "offset": pa.int32(),
    "reason": pa.string(),
    "source": pa.string(),
    "batch": pa.int64(),
    "application": pa.string(),
    "seen_at": pa.timestamp("us", "UTC"),
}
DEAD_LETTERS: Final = pa.schema(_LETTER)
"""The dead-letter table: the raw record, what is wrong with it at which byte of the payload, and where it came from."""

_RESULT: Final[dict[str, ArrowType]] = {"kind": pa.string(), "name": pa.string(), "count": pa.int64()}
RESULT: Final = pa.schema(_RESULT)
RESULT_DDL: Final = "kind string, name string, count long"
"""What a task answers: `data` and `dead` files with rows, `record` ids with good records, `met` ids, `tombstone`s, and
`blank` source files, of which it has seen nothing but nulls."""


class WritePartition:
    """The function Spark maps over the partitions of a batch."""

    def __init__(
        self,
        pinned: Pin,
        registry: RegistryLike,
        engine: str,
        data: Target,
        dead: Target,
        *,
        application: str,
        batch: int,
        fail_fast: bool,
    ) -> None:
        self._pinned, self._registry, self._engine = pinned, registry, engine
        self._data, self._dead = data, dead
        self._application, self._batch, self._fail_fast = application, batch, fail_fast

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decode and write; one answer per partition."""
        lookup = Lookup(self._pinned, self._registry)
        reader = parsed(self._pinned.reader)
        decoder = engine_named(self._engine).decoder(reader, lookup, for_spark=True)
        counts: Counter[tuple[str, str]] = Counter()
        null: set[str] = set()
        filled: set[str] = set()
        with FileWriter(self._data) as data, FileWriter(self._dead) as dead:
            for batch in batches:
                decoded = decoder.decode(batch.column("value"))
                if self._fail_fast:
                    fail_on_bad(decoded)
                data.write(self._rows(decoded, counts))
                dead.write(self._letters(batch, decoded))
                counts["tombstone", ""] += batch.column("value").null_count
                absent: Column = batch.column("value").is_null()
                source: Column = batch.column("source")
                null.update(source.filter(absent).unique().to_pylist())
                filled.update(source.filter(pc.invert(absent)).unique().to_pylist())
        for kind, writer in (("data", data), ("dead", dead)):
            if writer.path:
                counts[kind, writer.path] = writer.rows
        counts.update({("met", str(number)): 1 for number in lookup.met})
        counts.update({("blank", file): 1 for file in null - filled})
        columns: dict[str, Column] = {
            "kind": [kind for kind, _ in counts],
            "name": [name for _, name in counts],
            "count": list(counts.values()),
        }
        yield pa.RecordBatch.from_pydict(columns, RESULT)

    def _rows(self, decoded: Decoded, counts: Counter[tuple[str, str]]) -> pa.Table:
        good = decoded.values.is_valid()
        values, ids = decoded.values.filter(good), decoded.schema_ids.filter(good)
        versions = self._pinned.versions
        for found in pc.value_counts(ids).to_pylist():
            counts["record", str(found["values"])] += found["counts"]
        numbers = pa.array([versions.get(number) for number in ids.unique().to_pylist()], pa.int32())
        columns = dict(zip((field.name for field in values.type), values.flatten(), strict=True))
        columns[ID_COLUMN] = ids
        columns[VERSION_COLUMN] = numbers.take(pc.index_in(ids, ids.unique()))
        return pa.table(columns)

    def _letters(self, batch: pa.RecordBatch, decoded: Decoded) -> pa.Table:
        bad = decoded.reasons.is_valid()
        columns = {
            "value": batch.column("value").filter(bad).cast(pa.binary()),
            "schema_id": decoded.schema_ids.filter(bad),
            "offset": decoded.places.filter(bad),
            "reason": decoded.reasons.filter(bad),
            "source": batch.column("source").filter(bad).cast(pa.string()),
        }
        rows = len(columns["value"])
        columns["batch"] = pa.repeat(pa.scalar(self._batch, pa.int64()), rows)
        columns["application"] = pa.repeat(pa.scalar(self._application), rows)
        columns["seen_at"] = pa.repeat(pa.scalar(datetime.now(UTC), DEAD_LETTERS.field("seen_at").type), rows)
        return pa.table(columns)


class FileWriter:
    """Writes one Parquet file of a table, opened with the first row; columns the rows lack are null."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._writer: pq.ParquetWriter | None = None
        self._stream: Any = None
        self._files: Any = None
        self.path = ""
        self.rows = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()
            self._stream.close()
            if failure is not None:
                self._files.delete(self.path)

    def write(self, rows: pa.Table) -> None:
        """Append rows."""
        if not rows.num_rows:
            return
        if self._writer is None:
            self._open()
        assert self._writer is not None
        columns = []
        for field in self._target.schema:
            place = rows.schema.get_field_index(field.name)
            found = pa.nulls(rows.num_rows, field.type) if place < 0 else conformed(rows.column(place), field.type)
            columns.append(found)
        self._writer.write_table(pa.table(columns, schema=self._target.schema))
        self.rows += rows.num_rows

    def _open(self) -> None:
        from pyiceberg.io import load_file_io

        self.path = f"{self._target.folder}/{uuid4()}.parquet"
        self._files = load_file_io(self._target.properties, self._target.folder)
        self._stream = self._files.new_output(self.path).create()
        self._writer = pq.ParquetWriter(self._stream, self._target.schema, compression="zstd")


def conformed(column: Column, type_: ArrowType) -> Column:
    """A column in the table's type: wider numbers, and null for nested fields it does not have."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_struct(type_):
        parts = dict(zip((field.name for field in column.type), column.flatten(), strict=True))
        children = [
            conformed(parts[field.name], field.type) if field.name in parts else pa.nulls(len(column), field.type)
            for field in type_
        ]
        return pa.StructArray.from_arrays(children, fields=list(type_), mask=column.is_null())
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        make = pa.LargeListArray if pa.types.is_large_list(type_) else pa.ListArray
        return make.from_arrays(_offsets(column), conformed(column.values, type_.value_type), type=type_)
    if pa.types.is_map(type_):
        keys, items = conformed(column.keys, type_.key_type), conformed(column.items, type_.item_type)
        return pa.MapArray.from_arrays(_offsets(column), keys, items, type=type_)  # type: ignore[call-overload]  # the stubs lag behind
    return column.cast(type_)


def _offsets(column: Column) -> Column:
    """Offsets of a list or map in which a null entry marks a null list, as `from_arrays` wants them."""
    if not column.null_count:
        return column.offsets
    mask = pa.concat_arrays([column.is_null(), pa.array([False])])
    return pc.if_else(mask, pa.scalar(None, column.offsets.type), column.offsets)
