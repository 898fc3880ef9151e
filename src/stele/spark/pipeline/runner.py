"""Runs a pipeline as a Spark streaming query until its trigger is done, it is stopped, or something fails."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from stele.errors import SteleError
from stele.spark.functions import quoted
from stele.spark.pipeline.config import PipelineConfig
from stele.spark.pipeline.report import BatchReport, PipelineReport
from stele.spark.session import local_session, need_spark
from stele.spark.source import RegistryLike

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

POLL = 0.2
"""Seconds between looks at the stop event."""


class PipelineFailed(SteleError):
    """Spark gave up on the query; the sentence is the innermost cause it reports."""


def run_pipeline(
    config: PipelineConfig,
    *,
    spark: SparkSession | None = None,
    registry: RegistryLike | None = None,
    progress: Callable[[BatchReport], None] | None = None,
    stop: threading.Event | None = None,
) -> PipelineReport:
    """Run the pipeline and report what it did.

    spark     a session to use; None is the active one, or a local one that ends with the run
    registry  instead of the one of the configuration (credentials, a snapshot)
    progress  called after every batch
    stop      ends a pipeline with an interval trigger between two batches; so does Ctrl-C

    Raises what a batch raised on the driver (`SubjectNotFound`, `RegistryUnreachable`, `Conflict` when the table cannot
    take a schema …), `PipelineFailed` for what happened in a task, `NotInstalled`, `JavaMissing`.
    """
    need_spark()
    from pyspark.sql import SparkSession

    given = spark or SparkSession.getActiveSession()
    session = given or local_session("stele pipeline")
    try:
        run = _Run(config, config.source.opened_registry() if registry is None else registry, progress)
        run.wait(run.start(session), stop)
        return run.report
    finally:
        if given is None:
            session.stop()


class _Run:
    """One run: the batches' sums, and the first failure as it was raised, which Spark would only pass on as text."""

    def __init__(
        self, config: PipelineConfig, registry: RegistryLike, progress: Callable[[BatchReport], None] | None
    ) -> None:
        from stele.spark.pipeline.batch import BatchRunner
        from stele.spark.pipeline.iceberg import open_catalog
        from stele.spark.pipeline.journal import Journal

        self.report = PipelineReport()
        self._failure: SteleError | None = None
        self._config = config
        self._progress = progress
        self._batches = BatchRunner(config, registry, open_catalog(config.table), Journal(config.checkpoint))

    def start(self, spark: SparkSession) -> StreamingQuery:
        """Start the query."""
        writer = frames(spark, self._config).writeStream.foreachBatch(self._batch)
        return _triggered(writer.option("checkpointLocation", self._config.checkpoint), self._config).start()

    def wait(self, query: StreamingQuery, stop: threading.Event | None) -> None:
        """Wait for the query's end, and raise what ended it."""
        from pyspark.errors import StreamingQueryException

        try:
            while not query.awaitTermination(POLL):  # type: ignore[arg-type]  # a float does, the hint says int
                if stop is not None and stop.is_set():
                    break
        except KeyboardInterrupt:
            pass
        except StreamingQueryException as error:
            if self._failure is not None:
                raise self._failure from error
            raise PipelineFailed(_cause(str(error))) from error
        finally:
            query.stop()

    def _batch(self, df: DataFrame, number: int) -> None:
        try:
            done = self._batches.run(df, number)
        except SteleError as error:
            self._failure = error
            raise
        self.report = self.report.plus(done)
        if self._progress is not None:
            self._progress(done)


def frames(spark: SparkSession, config: PipelineConfig) -> DataFrame:
    """The stream of raw records: `value` and the file they came from as `source`."""
    from pyspark.sql import functions as f

    source = config.source
    reader = spark.readStream.format(source.format)
    if source.max_files_per_trigger:
        reader = reader.option("maxFilesPerTrigger", source.max_files_per_trigger)
    if source.format != "binaryFile":
        reader = reader.schema(f"{quoted(source.column)} binary")
        return reader.load(source.path).select(
            f.col(quoted(source.column)).alias("value"), f.col("_metadata.file_path").alias("source")
        )
    return reader.load(source.path).select(f.col("content").alias("value"), f.col("path").alias("source"))


def _triggered(writer: DataStreamWriter, config: PipelineConfig) -> DataStreamWriter:
    if config.trigger.interval:
        return writer.trigger(processingTime=config.trigger.interval)
    return writer.trigger(availableNow=True)


def _cause(text: str) -> str:
    """The line of a Spark error that says what happened: the last one naming a Python or Java exception."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if line.startswith(("stele.", "pyarrow.", "Caused by:"))]
    return (named or lines or ["the query failed"])[-1]
