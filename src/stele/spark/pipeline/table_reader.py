"""Rows of a pipeline's table for people: by pyiceberg or pyarrow where they can read it, by Spark elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from stele.errors import NotFound
from stele.spark.pipeline.config import PipelineConfig, TableConfig
from stele.spark.pipeline.runner import StartSession, find_session, open_session
from stele.spark.session import local_session

if TYPE_CHECKING:
    import pyarrow as pa


class TableHead(NamedTuple):
    """Rows of a table; more: there are others."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    more: bool


def read_table_head(config: PipelineConfig, name: str, limit: int, start: StartSession = local_session) -> TableHead:
    """Return rows of a table, in no order; Spark starts only for tables that nothing else here can read.

    Args:
        config: The pipeline.
        name: `namespace.table`, of rows or of dead letters.
        limit: At most so many.
        start: Makes the session where one is needed.

    Raises:
        NotFound: There is no such table yet.
        StoreError: Its catalogue cannot be opened.
        SteleError: Whatever `open_sink` raises where Spark reads the table.
    """
    match config.table.kind:
        case "iceberg":
            return _take_rows(_read_iceberg(config.table, name, limit + 1), limit)
        case "parquet" if config.table.warehouse:
            return _take_rows(_read_parquet(config.table, name, limit + 1), limit)
        case _:
            return _read_with_spark(config, name, limit, start)


def _take_rows(tables: Sequence[pa.Table], limit: int) -> TableHead:
    """Return the rows of tables whose columns may differ: a newer file has more."""
    columns = tuple(dict.fromkeys(column for table in reversed(tables) for column in table.column_names))
    rows = [tuple(map(row.get, columns)) for table in tables for row in table.to_pylist()]
    return TableHead(columns, rows[:limit], len(rows) > limit)


def _read_iceberg(config: TableConfig, name: str, most: int) -> list[pa.Table]:
    from stele.spark.pipeline.sinks.iceberg import open_table

    place = config.catalog.removeprefix("sqlite:///")
    if place != config.catalog and not Path(place).exists():  # opening the catalogue would make it
        raise NotFound(f"there is no table {name} yet: {place} does not exist")
    return [open_table(config, name).scan(limit=most).to_arrow()]


def _read_parquet(config: TableConfig, name: str, most: int) -> list[pa.Table]:
    import pyarrow.dataset as ds
    from pyarrow.fs import FileSystem, FileType

    address = f"{config.warehouse.rstrip('/')}/{name.replace('.', '/')}"
    files, folder = FileSystem.from_uri(address)
    if files.get_file_info(folder).type != FileType.Directory:
        raise NotFound(f"there is no table {name} yet: {address} does not exist")
    tables, left = [], most
    for fragment in ds.dataset(folder, filesystem=files, format="parquet").get_fragments():
        if left <= 0:
            break
        tables.append(fragment.head(left))
        left -= len(tables[-1])
    return tables


def _read_with_spark(config: PipelineConfig, name: str, limit: int, start: StartSession) -> TableHead:
    from stele.spark.pipeline.sinks import open_sink

    with open_session(config, find_session(config, None), start) as spark:
        table = open_sink(spark, config.table, name).read_table()
        rows = [tuple(row) for row in table.limit(limit + 1).collect()]
        return TableHead(tuple(table.columns), rows[:limit], len(rows) > limit)
