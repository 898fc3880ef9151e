"""Replay dead letters: decode them again with the schemas that the registry has now.

Which letters a replay brings into their tables is written into a table of its own before they are; a replay that was
cut short is finished by that list. So a letter becomes a row once, however often it is tried.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from stele.errors import NotFound
from stele.spark.pipeline.batch import make_entry, make_report
from stele.spark.pipeline.classification import BatchClassifier, ClassifiedBatch
from stele.spark.pipeline.config import PipelineConfig
from stele.spark.pipeline.dead_letters import DeadLetterTable
from stele.spark.pipeline.journal import BatchEntry, BatchJournal, BatchReport, PipelineReport
from stele.spark.pipeline.raw_records import RAW
from stele.spark.pipeline.tables import PipelineTables
from stele.spark.registry.clients import RegistryLike

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME: Final = "replay"
"""Of replays in a checkpoint's journal, and behind the name of its application in tables."""


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
