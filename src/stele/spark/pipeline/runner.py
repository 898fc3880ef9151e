"""Run a pipeline as a Spark streaming query until its trigger is done, it is stopped, or something fails."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from stele.errors import Invalid, NotFound, SteleError
from stele.spark.pipeline.config import PipelineConfig
from stele.spark.pipeline.journal import BatchReport, PipelineReport
from stele.spark.registry import RegistryLike, as_picklable
from stele.spark.session import find_cause, local_session, require_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from stele.spark.pipeline.classification import BatchClassifier
if TYPE_CHECKING:
    from pyspark.sql import SparkSession


StartSession: TypeAlias = "Callable[..., SparkSession]"
"""Function that creates a session from a name, a number of cores and settings, such as `local_session`."""

POLL = 0.2
"""Seconds between checks of the stop event."""


class PipelineFailed(SteleError):
    """Raised when Spark ends the query with an error; the message is the innermost cause that Spark reports."""


def run_pipeline(
    config: PipelineConfig,
    *,
    spark: SparkSession | None = None,
    registry: RegistryLike | None = None,
    progress: Callable[[BatchReport], None] | None = None,
    on_batch_start: Callable[[int, SparkSession], None] | None = None,
    stop: threading.Event | None = None,
    start: StartSession = local_session,
) -> PipelineReport:
    """Run the pipeline and return a report of the run.

    spark     session to use; None is the active one, or else one from the configuration, which is stopped after the run
    registry  registry to use instead of the configured one (for credentials, or a snapshot)
    progress  called after every batch
    on_batch_start  called before every batch with its number and the session
    stop      event that ends the run between two batches; in the main thread SIGINT (Ctrl-C) and SIGTERM set it, too,
              and a second signal ends the run at once
    start     creates the session if there is none, after the registry has confirmed the subjects

    Raises what a batch raised on the driver (`SubjectNotFound`, `RegistryUnreachable`, `Conflict` when a table cannot
    take a schema, or another process runs this pipeline …), `PipelineFailed` for a failure in a task or in Spark,
    `NotFound` (no such folder), `NotInstalled`, `JavaMissing`.
    """
    from stele.spark.pipeline.classification import BatchClassifier
    from stele.spark.pipeline.journal import BatchJournal, pipeline_lock
    from stele.spark.pipeline.metrics import open_metrics

    existing_session = find_session(config, spark)
    _check_source(config)
    ending = stop or threading.Event()
    with pipeline_lock(config.checkpoint), open_metrics(config) as metrics:
        judge = BatchClassifier(config, resolve_registry(config, registry), ending)
        judge.check_routes(waiting=BatchJournal(config.checkpoint).read_totals().batches > 0)
        with open_session(config, existing_session, start) as session, _stop_on_signals(ending), _silence_py4j():
            listeners = [metrics, *([progress] if progress else [])]
            run = _PipelineRun(session, config, judge, ending, listeners, on_batch_start or (lambda *_: None))
            run.run_query()
        return run.report


def _check_source(config: PipelineConfig) -> None:
    """Raise `NotFound` before anything is started if the source folder does not exist."""
    path = config.source.path
    if path and "://" not in path and not set(path) & set("*?[{") and not Path(path).exists():
        raise NotFound(f"there is no folder {path} to read records from")


@contextmanager
def _stop_on_signals(stop: threading.Event) -> Iterator[None]:
    """Make SIGINT and SIGTERM set the event. Replaces Spark's own handler, which cancels all jobs."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ask(number: int, _: Any) -> None:
        stop.set()
        signal.signal(number, signal.default_int_handler)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _silence_py4j() -> Iterator[None]:
    """Keep py4j from logging the exceptions of a batch with a stack trace; the caller receives them anyway."""

    def other(record: logging.LogRecord) -> bool:
        return "executing the Python Proxy" not in record.getMessage()

    logger = logging.getLogger("py4j.clientserver")
    logger.addFilter(other)
    try:
        yield
    finally:
        logger.removeFilter(other)


class _PipelineRun:
    """One run: the sums of its batches, and the first exception itself, as Spark passes on only its text."""

    def __init__(
        self,
        spark: SparkSession,
        config: PipelineConfig,
        judge: BatchClassifier,
        stop: threading.Event,
        listeners: Sequence[Callable[[BatchReport], None]],
        on_batch_start: Callable[[int, SparkSession], None],
    ) -> None:
        from stele.spark.pipeline.batch import BatchRunner
        from stele.spark.pipeline.journal import BatchJournal
        from stele.spark.pipeline.tables import PipelineTables

        self.report = PipelineReport()
        self._spark, self._config = spark, config
        self._stop, self._listeners, self._on_batch_start = stop, listeners, on_batch_start
        self._busy = threading.Lock()
        self._refused = False
        self._failure: SteleError | None = None
        self._batches = BatchRunner(config, judge, PipelineTables(spark, config), BatchJournal(config.checkpoint))

    def run_query(self) -> None:
        """Run the query until it ends, or stop it after the running batch. Raise the error that ended it.

        A query that failed is started again as long as each attempt finishes a batch. Reasons are lost tasks, brokers
        that restart, and Spark 4.1, which fails once after it has repeated a batch of Kafka records.
        """
        from pyspark.errors import StreamingQueryException

        while True:
            before = self.report.batches
            try:
                self._wait_for_end(self._start_query())
                return
            except StreamingQueryException as error:
                if self._refused:
                    return
                if self._failure is not None:
                    raise self._failure from error
                if self._stop.is_set() or self.report.batches == before:
                    raise PipelineFailed(find_cause(str(error))) from error
                logging.getLogger(__name__).warning(
                    "the query is started again, since it failed: %s", find_cause(str(error))
                )

    def _start_query(self) -> StreamingQuery:
        from pyspark.errors import PySparkException

        from stele.spark.pipeline.raw_records import read_raw_stream

        try:
            writer = read_raw_stream(self._spark, self._config).writeStream.foreachBatch(self._run_batch)
            return _set_trigger(writer.option("checkpointLocation", self._config.checkpoint), self._config).start()
        except PySparkException as error:
            raise PipelineFailed(str(error).partition("\n")[0]) from error

    def _wait_for_end(self, query: StreamingQuery) -> None:
        from py4j.protocol import Py4JError

        try:
            while not query.awaitTermination(POLL):  # type: ignore[arg-type]  # a float does, the hint says int
                if self._stop.is_set():
                    with self._busy:
                        break
        except (Py4JError, ConnectionError) as error:
            if self._stop.is_set():
                return  # a SIGTERM to the whole process group also ends the JVM
            raise PipelineFailed(f"Spark's JVM no longer answers: {error}") from error
        finally:
            with suppress(Py4JError, ConnectionError):
                query.stop()

    def _run_batch(self, df: DataFrame, number: int) -> None:
        with self._busy:
            if self._stop.is_set():
                self._refused = True
                raise PipelineFailed("the pipeline is being stopped")
            self._on_batch_start(number, self._spark)
            try:
                done = self._batches.run_batch(df, number)
            except SteleError as error:
                self._failure = error
                raise
            self.report = self.report.add_batch(done)
            for tell in self._listeners:
                tell(done)


def _set_trigger(writer: DataStreamWriter, config: PipelineConfig) -> DataStreamWriter:
    if config.trigger.interval:
        return writer.trigger(processingTime=config.trigger.interval)
    return writer.trigger(availableNow=True)


def find_session(config: PipelineConfig, spark: SparkSession | None) -> SparkSession | None:
    """Return the given session or the active one, or None if one must be created. Raises `NotInstalled`, `Invalid`."""
    require_spark()
    from pyspark.sql import SparkSession

    session = spark or SparkSession.getActiveSession()
    if session is not None and not hasattr(session, "_jvm"):
        raise Invalid("pipelines cannot run through Spark Connect: use a classic session")
    return session


@contextmanager
def open_session(
    config: PipelineConfig, existing: SparkSession | None, start: StartSession = local_session
) -> Iterator[SparkSession]:
    """Yield the given session, or a configured one that is stopped at the end. Raises `NotInstalled`, `JavaMissing`."""
    if existing is not None:
        yield existing
        return
    conf = dict(config.spark.conf)
    if config.spark.packages:
        conf["spark.jars.packages"] = ",".join(config.spark.packages)
    session = start("stele pipeline", config.spark.cores, **conf)
    try:
        yield session
    finally:
        from py4j.protocol import Py4JError

        # the JVM may have ended: a SIGTERM to the whole process group also ends it
        with suppress(Py4JError, ConnectionError):
            session.stop()


def resolve_registry(config: PipelineConfig, registry: RegistryLike | None) -> RegistryLike:
    """Return the given registry or the configured one, in a form that can be pickled for tasks."""
    return as_picklable(config.source.open_registry() if registry is None else registry)
