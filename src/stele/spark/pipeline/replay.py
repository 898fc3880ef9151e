"""Dead letters, and their second chance: decoded again by what the registry knows now.

Which letters a replay brings into their tables is written into a table of its own before they are; a replay that was
cut short is finished by that list. So a letter becomes a row once, however often it is tried.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from stele.errors import Invalid, NotFound
from stele.spark.engines.arrow import ArrowType
from stele.spark.functions import to_spark_types
from stele.spark.pipeline.batch import BatchClassifier, ClassifiedBatch, make_entry, make_report
from stele.spark.pipeline.config import PipelineConfig
from stele.spark.pipeline.journal import BatchEntry, BatchJournal
from stele.spark.pipeline.judging import ERROR
from stele.spark.pipeline.raw_records import RAW
from stele.spark.pipeline.report import BatchReport, PipelineReport
from stele.spark.pipeline.schema_evolution import ColumnChange
from stele.spark.pipeline.sinks import Sink, open_sink
from stele.spark.pipeline.tables import PipelineTables
from stele.spark.registry.clients import RegistryLike

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

NAME: Final = "replay"
"""Of replays in a checkpoint's journal, and behind the name of its application in tables."""
_MARKS: Final[dict[str, ArrowType]] = {
    "letter": pa.string(),
    "replay": pa.int64(),
    "replayed_at": pa.timestamp("us", "UTC"),
}


def _mark_columns() -> StructType:
    from pyspark.sql.types import StructField, StructType

    types = zip(_MARKS, to_spark_types(list(_MARKS.values())), strict=True)
    return StructType([StructField(name, type_) for name, type_ in types])


class DeadLetterTable:
    """The dead letters of one pipeline and the marks of those that were replayed."""

    def __init__(self, spark: SparkSession, config: PipelineConfig) -> None:
        self._letters = open_sink(spark, config.table, config.dead_letter_table)
        self.marks: Sink = open_sink(spark, config.table, f"{config.dead_letter_table}_replayed")

    def read_all(self) -> DataFrame:
        """All letters, with the time they were replayed at, null for open ones. Raises `NotFound` without a table."""
        from pyspark.sql import functions as f

        found = self._letters.read_table()
        if self.marks.load_columns() is None:
            return found.withColumn("replayed_at", f.lit(None).cast("timestamp"))
        return found.join(self.marks.read_table().select("letter", "replayed_at"), "letter", "left")

    def select_open(self, where: str) -> DataFrame:
        """Those not replayed yet that meet a condition. Raises `Invalid` for one Spark does not understand."""
        from pyspark.errors import AnalysisException, ParseException

        try:
            found = self.read_all().where("replayed_at IS NULL")
            return found.where(where) if where else found
        except (AnalysisException, ParseException) as error:
            raise Invalid(f"the condition {where!r} is not understood: {str(error).partition(chr(10))[0]}") from error

    def letters_of_replay(self, replay: int) -> DataFrame | None:
        """The letters a replay brought or was about to bring into their tables, None where it did not get that far."""
        if self.marks.load_columns() is None:
            return None
        mine = self.marks.read_table().where(f"replay = {replay}").select("letter")
        return None if mine.isEmpty() else self._letters.read_table().join(mine, "letter", "leftsemi")

    def mark_replayed(self, judged: ClassifiedBatch, replay: int, application: str) -> None:
        """Note which letters became rows."""
        from pyspark.sql import functions as f

        if self.marks.load_columns() is None:
            self.marks.apply_changes((ColumnChange("create"),), _mark_columns())
        found: DataFrame | None = None
        for _, df in judged.parts:
            good = df.where(f.col(ERROR).isNull()).select("letter")
            found = good if found is None else found.union(good)
        assert found is not None
        rows = found.select(
            "letter", f.lit(replay).cast("bigint").alias("replay"), f.current_timestamp().alias("replayed_at")
        )
        columns = self.marks.load_columns()
        assert columns is not None
        self.marks.append_batch(rows.to(columns), application, replay)


def run_replay(
    spark: SparkSession,
    config: PipelineConfig,
    registry: RegistryLike,
    where: str,
    progress: Callable[[BatchReport], None] | None,
) -> PipelineReport:
    """Decode open dead letters again; a replay that was cut short is finished first."""
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
        """Finish what was begun, then do what is asked."""
        number = self._journal.read_totals().through + 1
        found = []
        entry, begun = self._journal.read_entry(number), self._letters.letters_of_replay(number)
        if entry is not None and begun is not None:
            found.append(self._finish_replay(begun, entry, number))
            number += 1
        try:
            chosen = self._letters.select_open(where)
        except NotFound:
            return found
        done = self._start_replay(chosen, number)
        return [*found, *([done] if done else [])]

    def _start_replay(self, chosen: DataFrame, number: int) -> BatchReport | None:
        started = time.monotonic()
        with self._judge.classify_batch(chosen.select("letter", *RAW), number) as judged:
            added = self._tables.evolve(judged.routes) if judged.counts.rows else ()
            report = make_report(judged, added, time.monotonic() - started)
            if not report.rows:
                return report if report.dead_letters else None
            entry = make_entry(judged)
            self._journal.save_entry(entry)
            self._letters.mark_replayed(judged, number, self._application)
            return self._append_rows(judged, entry, report)

    def _finish_replay(self, begun: DataFrame, entry: BatchEntry, number: int) -> BatchReport:
        started = time.monotonic()
        with self._judge.classify_batch(begun.select("letter", *RAW), number, entry) as judged:
            added = self._tables.evolve(judged.routes)
            report = make_report(judged, added, time.monotonic() - started, replayed=True)
            return self._append_rows(judged, entry, report)

    def _append_rows(self, judged: ClassifiedBatch, entry: BatchEntry, report: BatchReport) -> BatchReport:
        for group, df in judged.parts:
            if group is not None:
                self._tables.append_rows(group, df, self._application, entry.batch)
        self._journal.finish_batch(entry, report)
        return report
