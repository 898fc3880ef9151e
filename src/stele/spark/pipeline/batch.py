"""Run one micro-batch, from pinning the schemas to the commit of its tables, or replay dead letters.

A replay decodes dead letters again with the schemas that the registry has now. Before it appends rows, it writes the
list of the dead letters that become rows into a table of its own. A replay that was interrupted is finished by that
list. So a dead letter becomes a row once, however often it is replayed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from stele.errors import DecodeError, NotFound
from stele.spark.engines.base import decode_error
from stele.spark.engines.error_codes import ErrorCode
from stele.spark.pipeline.classification import BatchClassifier, ClassifiedBatch
from stele.spark.pipeline.config import PipelineConfig
from stele.spark.pipeline.dead_letters import DeadLetterTable
from stele.spark.pipeline.journal import (
    MOST_REASONS,
    BatchEntry,
    BatchJournal,
    BatchReport,
    DeadLetterSample,
    PipelineReport,
    add_counts,
)
from stele.spark.pipeline.raw_records import RAW, check_files
from stele.spark.pipeline.routes import ERROR
from stele.spark.pipeline.schema_evolution import TableChange
from stele.spark.pipeline.tables import PipelineTables
from stele.spark.registry import RegistryLike

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


SAMPLE_BYTES: Final = 1024
"""Number of leading bytes of a dead letter that a sample keeps."""


class BatchRunner:
    """Writes the batches of one pipeline into its tables."""

    def __init__(
        self, config: PipelineConfig, judge: BatchClassifier, tables: PipelineTables, journal: BatchJournal
    ) -> None:
        self._config, self._judge, self._tables, self._journal = config, judge, tables, journal
        self._application = journal.application_name()

    def run_batch(self, df: DataFrame, batch: int) -> BatchReport:
        """Write the batch into the tables, unless it is there. The frame has the columns of `raw_records.RAW`."""
        begun = time.monotonic()
        before = self._journal.read_entry(batch)
        if before is not None and before.done:
            return BatchReport(batch, time.time(), replayed=True)
        with self._judge.classify_batch(df, batch, before) as judged:
            if judged.counts.tombstones:
                check_files(df, self._config.source)
            if judged.counts.dead_letters and self._config.mode == "FAILFAST":
                raise _first_error(judged)
            changed = self._tables.evolve(judged.routes)
            entry = before or make_entry(judged)
            if before is None:
                self._journal.save_entry(entry)
            self._commit_tables(judged)
            seconds, samples = time.monotonic() - begun, self._config.dead_letter.samples
            report = make_report(judged, changed, seconds, replayed=before is not None, samples=samples)
        self._journal.finish_batch(entry, report)
        return report

    def _commit_tables(self, judged: ClassifiedBatch) -> None:
        batch = judged.counts.batch
        if judged.counts.dead_letters:
            self._tables.append_dead_letters([df for _, df in judged.parts], self._application, batch)
        for group, df in judged.parts:
            if group is not None:
                self._tables.append_rows(group, df, self._application, batch)


def make_entry(judged: ClassifiedBatch) -> BatchEntry:
    """Return the journal entry of a batch: the schemas and the known ids that it was classified by."""
    return BatchEntry(judged.counts.batch, tuple(route.pinned for route in judged.routes), judged.known_ids)


def make_report(
    judged: ClassifiedBatch,
    changes: tuple[TableChange, ...],
    seconds: float,
    *,
    replayed: bool = False,
    samples: int = 0,
) -> BatchReport:
    """Return the report of a batch that is in its tables.

    changes  the changes that were made to the tables for this batch
    samples  number of dead letters of each code that the report keeps
    """
    versions = {route.pinned.subject: route.pinned.reader_version for route in judged.routes}
    return msgspec.structs.replace(
        judged.counts,
        at=time.time(),
        seconds=seconds,
        columns_added=tuple(_list_added_columns(judged, changes)),
        changes=changes,
        versions=versions,
        replayed=replayed,
        reasons=_count_reasons(judged) if judged.counts.dead_letters else {},
        samples=tuple(_collect_samples(judged, samples)) if samples else (),
    )


def _collect_samples(judged: ClassifiedBatch, most: int) -> Iterator[DeadLetterSample]:
    """Yield at most `most` dead letters of each code."""
    from pyspark.sql import functions as f

    place = f.coalesce("source", f.concat_ws(" ", "topic", "partition", "offset"))
    columns = (
        f.col(ERROR)["reason"].alias("reason"),
        f.base64(f.substring("value", 1, SAMPLE_BYTES)).alias("start"),
        f.length("value").alias("bytes"),
        place.alias("place"),
    )
    for code in judged.counts.codes:
        left = most
        for _, df in judged.parts:
            rows = df.where(f.col(ERROR)["code"] == code).limit(left).select(*columns).collect() if left else ()
            left -= len(rows)
            for row in rows:
                start = "".join((row["start"] or "").split())  # Spark wraps base64 into lines
                yield DeadLetterSample(code, row["reason"], start, row["bytes"] or 0, row["place"])


def _list_added_columns(judged: ClassifiedBatch, changes: Sequence[TableChange]) -> Iterator[str]:
    """Yield the columns that the routes' tables gained, each after its table's name if there are several tables."""
    tables = [route.config.table for route in judged.routes]
    for table, change in ((each.table, each.change) for each in changes if each.table in tables):
        if change.kind == "add":
            yield f"{table}: {change.column}" if len(tables) > 1 else change.column


def _count_reasons(judged: ClassifiedBatch) -> dict[str, int]:
    """Return the number of dead letters by reason; if there are very many reasons, only the most frequent ones."""
    from pyspark.sql import functions as f

    counts: dict[str, int] = {}
    for _, df in judged.parts:
        bad = df.where(f.col(ERROR).isNotNull()).groupBy(f.col(ERROR)["reason"].alias("reason")).count()
        most = bad.orderBy(f.desc("count")).limit(MOST_REASONS).collect()
        counts = add_counts(counts, {row.reason: row["count"] for row in most})
    return counts


def _first_error(judged: ClassifiedBatch) -> DecodeError:
    """Return the error of the first bad record, for a pipeline in the mode FAILFAST."""
    from pyspark.sql import functions as f

    for _, df in judged.parts:
        row = df.where(f.col(ERROR).isNotNull()).select(ERROR).first()
        if row is None:
            continue
        error = row[0]
        return decode_error(ErrorCode[error.code], error.reason, error.schema_id, error.offset)
    raise AssertionError("no record is bad")


NAME: Final = "replay"
"""Name of replays in a checkpoint's journal, and suffix of their application's name in tables."""


def run_replay(
    spark: SparkSession,
    config: PipelineConfig,
    registry: RegistryLike,
    where: str,
    progress: Callable[[BatchReport], None] | None,
) -> PipelineReport:
    """Decode open dead letters again, after finishing a replay that was interrupted."""
    runner = _Replayer(spark, config, registry)
    report = PipelineReport()
    for done in runner.run_replays(where):
        report = report.add_batch(done)
        if progress is not None:
            progress(done)
    return report


class _Replayer:
    def __init__(self, spark: SparkSession, config: PipelineConfig, registry: RegistryLike) -> None:
        self._journal = BatchJournal(config.checkpoint, NAME)
        self._application = f"{self._journal.application_name()}-{NAME}"
        self._judge = BatchClassifier(config, registry, threading.Event())
        self._tables = PipelineTables(spark, config)
        self._letters = DeadLetterTable(spark, config)

    def run_replays(self, where: str) -> list[BatchReport]:
        """Finish an interrupted replay, then replay the dead letters that meet the condition. Return the reports."""
        number = self._journal.read_totals().through + 1
        reports = []
        entry, begun = self._journal.read_entry(number), self._letters.letters_of_replay(number)
        if entry is not None and begun is not None:
            reports.append(self._finish_replay(begun, entry, number))
            number += 1
        try:
            chosen = self._letters.select_open(where)
        except NotFound:
            return reports
        done = self._start_replay(chosen, number)
        return [*reports, *([done] if done else [])]

    def _start_replay(self, chosen: DataFrame, number: int) -> BatchReport | None:
        started = time.monotonic()
        with self._judge.classify_batch(chosen.select("letter", *RAW), number) as judged:
            changed = self._tables.evolve(judged.routes) if judged.counts.rows else ()
            report = make_report(judged, changed, time.monotonic() - started)
            if not report.rows:
                return report if report.dead_letters else None
            entry = make_entry(judged)
            self._journal.save_entry(entry)
            self._letters.mark_replayed(judged, number, self._application)
            return self._append_rows(judged, entry, report)

    def _finish_replay(self, begun: DataFrame, entry: BatchEntry, number: int) -> BatchReport:
        started = time.monotonic()
        with self._judge.classify_batch(begun.select("letter", *RAW), number, entry) as judged:
            changed = self._tables.evolve(judged.routes)
            report = make_report(judged, changed, time.monotonic() - started, replayed=True)
            return self._append_rows(judged, entry, report)

    def _append_rows(self, judged: ClassifiedBatch, entry: BatchEntry, report: BatchReport) -> BatchReport:
        for group, df in judged.parts:
            if group is not None:
                self._tables.append_rows(group, df, self._application, entry.batch)
        self._journal.finish_batch(entry, report)
        return report
