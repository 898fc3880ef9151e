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
from stele.spark.pipeline.batch import Judge, Judged, entry_of, finished
from stele.spark.pipeline.config import PipelineConfig
from stele.spark.pipeline.journal import Entry, Journal
from stele.spark.pipeline.judging import ERROR
from stele.spark.pipeline.raw_records import RAW
from stele.spark.pipeline.report import BatchReport, PipelineReport
from stele.spark.pipeline.schema_evolution import Change
from stele.spark.pipeline.sinks import Sink, open_sink
from stele.spark.pipeline.tables import Tables
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


def _columns() -> StructType:
    from pyspark.sql.types import StructField, StructType

    types = zip(_MARKS, to_spark_types(list(_MARKS.values())), strict=True)
    return StructType([StructField(name, type_) for name, type_ in types])


class Letters:
    """The dead letters of one pipeline and the marks of those that were replayed."""

    def __init__(self, spark: SparkSession, config: PipelineConfig) -> None:
        self._letters = open_sink(spark, config.table, config.dead_letter_table)
        self.marks: Sink = open_sink(spark, config.table, f"{config.dead_letter_table}_replayed")

    def all(self) -> DataFrame:
        """All letters, with the time they were replayed at, null for open ones. Raises `NotFound` without a table."""
        from pyspark.sql import functions as f

        found = self._letters.read()
        if self.marks.columns() is None:
            return found.withColumn("replayed_at", f.lit(None).cast("timestamp"))
        return found.join(self.marks.read().select("letter", "replayed_at"), "letter", "left")

    def open(self, where: str) -> DataFrame:
        """Those not replayed yet that meet a condition. Raises `Invalid` for one Spark does not understand."""
        from pyspark.errors import AnalysisException, ParseException

        try:
            found = self.all().where("replayed_at IS NULL")
            return found.where(where) if where else found
        except (AnalysisException, ParseException) as error:
            raise Invalid(f"the condition {where!r} is not understood: {str(error).partition(chr(10))[0]}") from error

    def of(self, replay: int) -> DataFrame | None:
        """The letters a replay brought or was about to bring into their tables, None where it did not get that far."""
        if self.marks.columns() is None:
            return None
        mine = self.marks.read().where(f"replay = {replay}").select("letter")
        return None if mine.isEmpty() else self._letters.read().join(mine, "letter", "leftsemi")

    def mark(self, judged: Judged, replay: int, application: str) -> None:
        """Note which letters became rows."""
        from pyspark.sql import functions as f

        if self.marks.columns() is None:
            self.marks.change((Change("create"),), _columns())
        found: DataFrame | None = None
        for _, df in judged.parts:
            good = df.where(f.col(ERROR).isNull()).select("letter")
            found = good if found is None else found.union(good)
        assert found is not None
        rows = found.select(
            "letter", f.lit(replay).cast("bigint").alias("replay"), f.current_timestamp().alias("replayed_at")
        )
        columns = self.marks.columns()
        assert columns is not None
        self.marks.append(rows.to(columns), application, replay)


def replay(
    spark: SparkSession,
    config: PipelineConfig,
    registry: RegistryLike,
    where: str,
    progress: Callable[[BatchReport], None] | None,
) -> PipelineReport:
    """Decode open dead letters again; a replay that was cut short is finished first."""
    runner = _Replays(spark, config, registry)
    report = PipelineReport()
    for done in runner.run(where):
        report = report.plus(done)
        if progress is not None:
            progress(done)
    return report


class _Replays:
    def __init__(self, spark: SparkSession, config: PipelineConfig, registry: RegistryLike) -> None:
        self._journal = Journal(config.checkpoint, NAME)
        self._application = f"{self._journal.application()}-{NAME}"
        self._judge = Judge(config, registry, threading.Event())
        self._tables = Tables(spark, config)
        self._letters = Letters(spark, config)

    def run(self, where: str) -> list[BatchReport]:
        """Finish what was begun, then do what is asked."""
        number = self._journal.totals().through + 1
        found = []
        entry, begun = self._journal.entry(number), self._letters.of(number)
        if entry is not None and begun is not None:
            found.append(self._finish(begun, entry, number))
            number += 1
        try:
            chosen = self._letters.open(where)
        except NotFound:
            return found
        done = self._begin(chosen, number)
        return [*found, *([done] if done else [])]

    def _begin(self, chosen: DataFrame, number: int) -> BatchReport | None:
        started = time.monotonic()
        with self._judge.judged(chosen.select("letter", *RAW), number) as judged:
            added = self._tables.grow(judged.routes) if judged.counts.rows else ()
            report = finished(judged, added, time.monotonic() - started)
            if not report.rows:
                return report if report.dead_letters else None
            entry = entry_of(judged)
            self._journal.keep(entry)
            self._letters.mark(judged, number, self._application)
            return self._bring(judged, entry, report)

    def _finish(self, begun: DataFrame, entry: Entry, number: int) -> BatchReport:
        started = time.monotonic()
        with self._judge.judged(begun.select("letter", *RAW), number, entry) as judged:
            added = self._tables.grow(judged.routes)
            report = finished(judged, added, time.monotonic() - started, replayed=True)
            return self._bring(judged, entry, report)

    def _bring(self, judged: Judged, entry: Entry, report: BatchReport) -> BatchReport:
        for group, df in judged.parts:
            if group is not None:
                self._tables.append(group, df, self._application, entry.batch)
        self._journal.finish(entry, report)
        return report
