"""Writing of data files in tasks, for tables that are committed on the driver.

Each task writes a partition as data files and returns their paths. Readers of the table ignore files that no commit
names, so a task can fail or run twice at any point.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from stele.errors import Invalid

if TYPE_CHECKING:
    from stele.spark.engines.arrow import ArrowType, Column

_RESULT: Final[dict[str, ArrowType]] = {"path": pa.string(), "rows": pa.int64()}
RESULT: Final = pa.schema(_RESULT)
RESULT_DDL: Final = "path string, rows long"
"""Columns of a task's result: its files, and the number of rows in each."""

GROUP_ROWS: Final = 500_000
GROUP_BYTES: Final = 64 << 20
"""Size of buffered rows at which a row group is written. One batch from Spark is too small for a row group."""
FILE_BYTES: Final = 512 << 20
"""Size of a file at which a new file is started."""


class FileTarget(NamedTuple):
    """What a task needs to write files of a table. It is sent to the executors.

    schema      the table's columns as Arrow, with Iceberg's field ids
    folder      folder of the files
    prefix      prefix of the files' names
    properties  settings of the file system
    """

    schema: pa.Schema
    folder: str
    prefix: str
    properties: dict[str, str]


class PartitionWriter:
    """The function that Spark applies to each partition of a batch; `names` are the names of its columns."""

    def __init__(self, target: FileTarget, names: Sequence[str]) -> None:
        self._target, self._names = target, list(names)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows, and yield one result for the partition."""
        with FileWriter(self._target) as writer:
            for batch in batches:
                writer.write_rows(pa.RecordBatch.from_arrays(batch.columns, names=self._names))
        columns: dict[str, Any] = {"path": list(writer.files), "rows": list(writer.files.values())}
        yield pa.RecordBatch.from_pydict(columns, RESULT)


class FileWriter:
    """Writes Parquet files of a table. The first file is opened with the first rows; missing columns are null.

    files  number of rows by the path of each file
    """

    def __init__(self, target: FileTarget) -> None:
        self._target = target
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        self._writer: pq.ParquetWriter | None = None
        self._stream: Any = None
        self._path = ""
        self._io: Any = None
        self.files: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        if failure is None:
            self._write_row_group()
        self._close_file()
        if failure is not None:
            for path in self.files:
                self._io.delete(path)

    def write_rows(self, rows: pa.RecordBatch) -> None:
        """Append rows. Raises `Invalid` for a null in a column that must not be null."""
        if not rows.num_rows:
            return
        self._waiting.append(table_rows(rows, self._target.schema))
        self._rows += rows.num_rows
        self._bytes += rows.nbytes
        if self._rows >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
            self._write_row_group()

    def _write_row_group(self) -> None:
        if not self._waiting:
            return
        writer = self._writer or self._open_file()
        writer.write_table(pa.Table.from_batches(self._waiting), row_group_size=self._rows)
        self.files[self._path] += self._rows
        self._waiting, self._rows, self._bytes = [], 0, 0
        if self._stream.tell() >= FILE_BYTES:
            self._close_file()

    def _open_file(self) -> pq.ParquetWriter:
        from pyiceberg.io import load_file_io

        self._path = f"{self._target.folder}/{self._target.prefix}{uuid4()}.parquet"
        self._io = self._io or load_file_io(self._target.properties, self._target.folder)
        self._stream = self._io.new_output(self._path).create()
        self.files[self._path] = 0
        self._writer = pq.ParquetWriter(self._stream, self._target.schema, compression="zstd")
        return self._writer

    def _close_file(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._stream.close()
            self._writer = None


def table_rows(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows in the table's columns. Raises `Invalid` for a null in a column that must not be null."""
    columns = []
    for field in schema:
        place = rows.schema.get_field_index(field.name)
        column = pa.nulls(rows.num_rows, field.type) if place < 0 else conform_column(rows.column(place), field.type)
        if not field.nullable and column.null_count:
            raise Invalid(f"column {field.name} of the table must have a value in every row")
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def conform_column(column: Column, type_: ArrowType) -> Column:
    """Return a column in the table's type: numbers are widened, and missing nested fields are null."""
    if pa.types.is_struct(type_):
        parts = dict(zip((field.name for field in column.type), column.flatten(), strict=True))
        children = [
            conform_column(parts[field.name], field.type) if field.name in parts else pa.nulls(len(column), field.type)
            for field in type_
        ]
        return pa.StructArray.from_arrays(children, fields=list(type_), mask=column.is_null())
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        make = pa.LargeListArray if pa.types.is_large_list(type_) else pa.ListArray
        return make.from_arrays(_null_offsets(column), conform_column(column.values, type_.value_type), type=type_)
    if pa.types.is_map(type_):
        keys, items = conform_column(column.keys, type_.key_type), conform_column(column.items, type_.item_type)
        return pa.MapArray.from_arrays(_null_offsets(column), keys, items, type=type_)  # type: ignore[call-overload]  # the stubs lag behind
    return column if column.type == type_ else column.cast(type_)


def _null_offsets(column: Column) -> Column:
    """Return the offsets of a list or map in the form of `from_arrays`, where a null offset marks a null list."""
    if not column.null_count:
        return column.offsets
    mask = pa.concat_arrays([column.is_null(), pa.array([False])])
    return pc.if_else(mask, pa.scalar(None, column.offsets.type), column.offsets)
