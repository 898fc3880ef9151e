"""Prometheus metrics of a pipeline, served on a port while it runs, and written to a file after every batch.

Counters continue from the checkpoint, so an hourly run of one batch counts like a run that never ends. The number of
label values is bounded: dead letters are counted by kind, and all ids after the first hundred are counted together.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from stele.errors import Conflict, Invalid
from stele.spark.pipeline.config import PipelineConfig
from stele.spark.pipeline.dead_letters import KINDS, OTHER, count_by_kind
from stele.spark.pipeline.journal import BatchJournal, BatchReport
from stele.spark.pipeline.kafka_lag import LagMeter, measure_lag

MAX_IDS: Final = 100
"""Number of ids that get a series of their own, in the order of their first use; all other ids count as `other`."""
BUCKETS: Final = (0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
"""Upper bounds of the histogram buckets for batch durations, in seconds."""
_PREFIX: Final = "stele_pipeline_"


class MetricFamily(NamedTuple):
    """A metric as the documentation shows it; `labels` are those in addition to `pipeline`, the checkpoint."""

    name: str
    type: str
    labels: tuple[str, ...]
    text: str


FAMILIES: Final = (
    MetricFamily("batches", "counter", (), "Batches done."),
    MetricFamily("rows", "counter", ("table",), "Rows added."),
    MetricFamily("records", "counter", ("id",), "Records written to the table, by the schema id of their writer."),
    MetricFamily("dead_letters", "counter", ("kind",), "Records that could not be decoded, by kind of reason."),
    MetricFamily("tombstones", "counter", (), "Null records."),
    MetricFamily("batch_seconds", "histogram", (), "How long batches took."),
    MetricFamily("last_batch", "gauge", (), "Number of the newest batch."),
    MetricFamily("last_batch_timestamp_seconds", "gauge", (), "When the newest batch was done, seconds since 1970."),
    MetricFamily("subject_version", "gauge", ("subject",), "The version whose columns the tables have."),
    MetricFamily("lag_records", "gauge", ("topic",), "Kafka records that no batch has read, if the broker answers."),
)


@contextmanager
def open_metrics(config: PipelineConfig) -> Iterator[Callable[[BatchReport], None]]:
    """Serve and write the configured metrics. Yield a function that the caller calls after every batch.

    The port listens on all addresses of this machine, as scrapers usually run on another one. Does nothing without a
    port and a file. Raises `Conflict` when the port is taken and `Invalid` when the file cannot be written, both before
    the first batch. Later a file that cannot be written is ignored, so that no batch fails for it.
    """
    port, file = config.metrics.port, config.metrics.file
    if not port and not file:
        yield lambda _: None
        return
    metrics = PipelineMetrics(config)
    if file:
        try:
            metrics.write_file(Path(file))
        except OSError as error:
            raise Invalid(f"the metrics file {file} cannot be written: {error.strerror or error}") from error
    with _serve_metrics(metrics, port):
        yield metrics.count_batch


@contextmanager
def _serve_metrics(metrics: PipelineMetrics, port: int) -> Iterator[None]:
    if not port:
        yield
        return
    try:
        server, thread = start_http_server(port, addr="0.0.0.0", registry=metrics.registry)  # noqa: S104 - documented
    except (OSError, OverflowError) as error:
        raise Conflict(f"metrics cannot be served on port {port}: {getattr(error, 'strerror', '') or error}") from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class PipelineMetrics(Collector):
    """The metrics of one pipeline: the sums of its checkpoint plus the batches of this run.

    The journal has no sums by kind of dead letter and none of durations by bucket. They continue from the metrics file
    if there is one, else they start at zero with the run.
    """

    def __init__(
        self, config: PipelineConfig, *, behind: Callable[[PipelineConfig], dict[str, int] | None] = measure_lag
    ) -> None:
        self._config = config
        self._file = Path(config.metrics.file) if config.metrics.file else None
        self._totals = BatchJournal(config.checkpoint).read_totals()
        self._kinds, self._durations = _read_last_file(self._file, self._pipeline_label)
        self._lock = Lock()
        self._behind = LagMeter(lambda: behind(config))
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(self)

    @property
    def _pipeline_label(self) -> str:
        return self._config.checkpoint

    def count_batch(self, batch: BatchReport) -> None:
        """Count a batch, unless it is counted already, and write the metrics file."""
        with self._lock:
            if batch.batch <= self._totals.through:
                return
            self._totals = self._totals.add_batch(batch)
            for kind, count in count_by_kind(batch.codes, batch.dead_letters).items():
                self._kinds[kind] = self._kinds.get(kind, 0) + count
            self._durations = self._durations.add_batch(batch.seconds)
        if self._file is not None:
            try:
                self.write_file(self._file)
            except OSError:
                return

    def write_file(self, file: Path) -> None:
        """Write the metrics file atomically. Raises `OSError`."""
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name(f".{file.name}.{os.getpid()}")
        try:
            draft.write_bytes(generate_latest(self.registry))
            draft.replace(file)
        finally:
            draft.unlink(missing_ok=True)

    def collect(self) -> Iterator[Metric]:
        """Yield every metric family; prometheus-client calls this."""
        behind = self._behind()
        with self._lock:
            totals, kinds, durations = self._totals, dict(self._kinds), self._durations
        values: dict[str, Mapping[str, float] | float] = {
            "batches": totals.batches,
            "rows": totals.tables,
            "records": _limit_ids(totals.records),
            "dead_letters": kinds,
            "tombstones": totals.tombstones,
            "last_batch": totals.through,
            "last_batch_timestamp_seconds": totals.last,
            "subject_version": {subject: used[-1] for subject, used in totals.versions.items() if used},
            "lag_records": behind or {},
        }
        for family in FAMILIES:
            if family.type == "histogram":
                yield self._make_histogram(family, durations)
            elif totals.batches or family.type == "counter":
                yield self._make_family(family, values[family.name])

    def _make_family(self, family: MetricFamily, values: Mapping[str, float] | float) -> Metric:
        cls = CounterMetricFamily if family.type == "counter" else GaugeMetricFamily
        metric = cls(_PREFIX + family.name, family.text, labels=("pipeline", *family.labels))
        if isinstance(values, Mapping):
            for name, value in values.items():
                metric.add_metric((self._pipeline_label, name), value)
        else:
            metric.add_metric((self._pipeline_label,), values)
        return metric

    def _make_histogram(self, family: MetricFamily, durations: _Durations) -> Metric:
        ends = [*(str(end) for end in BUCKETS), "+Inf"]
        histogram = HistogramMetricFamily(_PREFIX + family.name, family.text, labels=("pipeline",))
        histogram.add_metric(
            (self._pipeline_label,), list(zip(ends, accumulate(durations.counts), strict=True)), durations.sum
        )
        return histogram


class _Durations(NamedTuple):
    """Number of batches in each bucket, not cumulative, and the sum of their seconds. The last bucket is unbounded."""

    counts: tuple[int, ...] = (0,) * (len(BUCKETS) + 1)
    sum: float = 0.0

    def add_batch(self, seconds: float) -> _Durations:
        at = bisect_left(BUCKETS, seconds)
        return _Durations((*self.counts[:at], self.counts[at] + 1, *self.counts[at + 1 :]), self.sum + seconds)


def _limit_ids(records: Mapping[str, int]) -> dict[str, int]:
    named = dict(list(records.items())[:MAX_IDS])
    rest = sum(records.values()) - sum(named.values())
    return named | ({OTHER: rest} if rest else {})


def _read_last_file(file: Path | None, pipeline: str) -> tuple[dict[str, int], _Durations]:
    """Return dead letters by kind, and batch durations, from the metrics file of an earlier run.

    A file of another pipeline, or a file that is not a metrics file, gives zeros.
    """
    kinds = dict.fromkeys(KINDS, 0)
    upto: dict[float, int] = {}
    total = 0.0
    try:
        families = list(text_string_to_metric_families(file.read_text("utf-8"))) if file is not None else []
    except (OSError, ValueError):
        families = []
    for sample in (sample for family in families for sample in family.samples):
        if sample.labels.get("pipeline") != pipeline:
            continue
        match sample.name.removeprefix(_PREFIX):
            case "dead_letters_total":
                kinds[sample.labels["kind"]] = int(sample.value)
            case "batch_seconds_bucket":
                upto[float(sample.labels["le"])] = int(sample.value)
            case "batch_seconds_sum":
                total = sample.value
    sums = [upto.get(end, 0) for end in (*BUCKETS, float("inf"))]
    counts = tuple(max(0, here - before) for here, before in zip(sums, [0, *sums[:-1]], strict=True))
    return kinds, _Durations(counts, total)
