"""One micro-batch from pin to commit."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec
import pyarrow as pa

from stele.errors import Conflict, Invalid, Unavailable
from stele.spark.engines.resolve import Resolver
from stele.spark.pipeline import iceberg
from stele.spark.pipeline.config import PipelineConfig
from stele.spark.pipeline.journal import Entry, Journal
from stele.spark.pipeline.report import BatchReport
from stele.spark.pipeline.task import DEAD_LETTERS, EXTRA_COLUMNS, RESULT_DDL, WritePartition
from stele.spark.source import Pin, RegistryLike, parsed, pin

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyspark.sql import DataFrame, SparkSession

TRIES = 5
"""How often a batch is decoded again because a newer version of the subject was registered while it was decoded."""


@dataclass(slots=True)
class _Written:
    """What the tasks of a batch answered."""

    data: list[str] = field(default_factory=list)
    dead: list[str] = field(default_factory=list)
    rows: int = 0
    dead_letters: int = 0
    tombstones: int = 0
    records: dict[int, int] = field(default_factory=dict)
    met: set[int] = field(default_factory=set)
    blank: set[str] = field(default_factory=set)


class BatchRunner:
    """Works off batches of one pipeline; `stop` ends waiting."""

    def __init__(
        self, config: PipelineConfig, registry: RegistryLike, catalog: Catalog, journal: Journal, stop: Event
    ) -> None:
        self._config = config
        self._stop = stop
        self._registry = registry
        self._catalog = catalog
        self._journal = journal
        self._application = journal.application()

    def check(self) -> None:
        """Raise now what every batch would: no registry, no such subject, a schema without columns."""
        table_schema(pin(self._registry, self._config.source.subject))

    def run(self, df: DataFrame, batch: int) -> BatchReport:
        """Bring the batch into the tables, unless it is there. The frame has columns `value` and `source`."""
        begun = time.monotonic()
        entry = self._journal.entry(batch)
        if entry is not None:
            self._commit(entry)
            return msgspec.structs.replace(entry.report, replayed=True)
        report, written = self._write(df, batch)
        report = msgspec.structs.replace(report, seconds=time.monotonic() - begun)
        entry = Entry(report, tuple(written.data), tuple(written.dead))
        self._journal.keep(entry)
        self._commit(entry)
        return msgspec.structs.replace(report, seconds=time.monotonic() - begun)

    def _pin(self) -> Pin:
        """Pin the subject; a registry that is being restarted is waited for."""
        source, pause = self._config.source, 0.5
        until = time.monotonic() + source.patience
        while True:
            try:
                return pin(self._registry, source.subject)
            except Unavailable:
                if self._stop.is_set() or time.monotonic() + pause > until:
                    raise
            self._stop.wait(pause)
            pause = min(2 * pause, 10.0)

    def _write(self, df: DataFrame, batch: int) -> tuple[BatchReport, _Written]:
        """Decode under the newest version; again when the batch holds a newer one still, so that no column is lost."""
        added: tuple[str, ...] = ()
        pinned = self._pin()
        for _ in range(TRIES):
            table, gained = iceberg.grown(self._catalog, self._config.table.name, table_schema(pinned))
            letters, _ = iceberg.grown(self._catalog, self._config.dead_letter_table, DEAD_LETTERS)
            added += gained
            written = self._map(df, batch, pinned, table, letters)
            newer = self._newer(pinned, written.met)
            missing = self._without_column(df.sparkSession, written.blank)
            if newer is None and missing is None:
                return _report(batch, pinned, written, added), written
            iceberg.discard(table, written.data)
            iceberg.discard(letters, written.dead)
            if missing is not None:
                raise Invalid(f"{missing} has no column {self._config.source.column!r}")
            pinned = newer or pinned
        raise Conflict(f"{pinned.subject} gets new versions faster than a batch can be decoded")

    def _map(self, df: DataFrame, batch: int, pinned: Pin, table: Table, letters: Table) -> _Written:
        task = WritePartition(
            pinned,
            self._registry,
            self._config.engine,
            iceberg.target(table),
            iceberg.target(letters),
            application=self._application,
            batch=batch,
            fail_fast=self._config.mode == "FAILFAST",
        )
        written = _Written()
        for kind, name, count in df.mapInArrow(task, RESULT_DDL).collect():
            match kind:
                case "data":
                    written.data.append(name)
                    written.rows += count
                case "dead":
                    written.dead.append(name)
                    written.dead_letters += count
                case "record":
                    written.records[int(name)] = written.records.get(int(name), 0) + count
                case "met":
                    written.met.add(int(name))
                case "blank":
                    written.blank.add(name)
                case _:
                    written.tombstones += count
        return written

    def _without_column(self, spark: SparkSession, files: set[str]) -> str | None:
        """The first of the files that lacks the column: to Spark its records are null and would pass for tombstones."""
        source = self._config.source
        if source.format == "binaryFile":
            return None
        for file in sorted(files):
            found = spark.read.format(source.format).load(unquote(file)).columns
            if source.column.casefold() not in (name.casefold() for name in found):
                return file
        return None

    def _newer(self, pinned: Pin, met: set[int]) -> Pin | None:
        """A newer pin, when records of the batch were written with a version newer than the one pinned."""
        strange = met - {schema.id for schema in pinned.snapshot.schemas}
        if not strange:
            return None
        fresh = self._pin()
        later = {number for number, version in fresh.versions.items() if version > pinned.reader_version}
        return fresh if strange & later else None

    def _commit(self, entry: Entry) -> None:
        batch = entry.report.batch
        for name, files in ((self._config.table.name, entry.data), (self._config.dead_letter_table, entry.dead)):
            if files:
                iceberg.commit(self._catalog.load_table(name), files, self._application, batch)


def table_schema(pinned: Pin) -> pa.Schema:
    """The columns a table needs for the reader's schema. Raises `Invalid` when that is no record."""
    root = Resolver(parsed(pinned.reader), for_spark=True).root
    if not pa.types.is_struct(root.type):
        raise Invalid(f"the newest schema of {pinned.subject} is no record, so it has no columns")
    return pa.schema([*root.type, *EXTRA_COLUMNS])


def _report(batch: int, pinned: Pin, written: _Written, added: tuple[str, ...]) -> BatchReport:
    return BatchReport(
        batch=batch,
        rows=written.rows,
        dead_letters=written.dead_letters,
        tombstones=written.tombstones,
        reader_version=pinned.reader_version,
        records=dict(sorted(written.records.items())),
        columns_added=tuple(dict.fromkeys(added)),
    )
