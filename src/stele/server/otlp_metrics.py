"""Converts the metrics of `/metrics` to OpenTelemetry, under the same names."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

from opentelemetry.sdk.metrics import export as otel
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client import Metric
from prometheus_client.samples import Sample

_STARTED: Final = time.time_ns()
"""Approximate time when this process began to count, in nanoseconds since 1970."""
_CUMULATIVE: Final = otel.AggregationTemporality.CUMULATIVE
_Labels = tuple[tuple[str, str], ...]


def to_metrics_data(families: Iterable[Metric], resource: Resource, scope: str) -> otel.MetricsData:
    """Return the families in the form that an OTLP exporter takes. Types that the server does not use are left out."""
    now = time.time_ns()
    converted = [
        otel.Metric(family.name, family.documentation, _find_unit(family.name), data)
        for family in families
        if (data := _convert_family(family, now)) is not None
    ]
    scoped = otel.ScopeMetrics(InstrumentationScope(scope), converted, "")
    return otel.MetricsData([otel.ResourceMetrics(resource, [scoped], "")])


def _find_unit(name: str) -> str:
    return "s" if name.endswith("_seconds") else "By" if name.endswith("_bytes") else "1"


def _convert_family(family: Metric, now: int) -> otel.Sum | otel.Gauge | otel.Histogram | None:
    if family.type == "gauge":
        return otel.Gauge(list(_number_points(family.samples, now)))
    if family.type == "counter":
        counted = (sample for sample in family.samples if sample.name.endswith("_total"))
        return otel.Sum(list(_number_points(counted, now)), _CUMULATIVE, is_monotonic=True)
    if family.type == "histogram":
        return otel.Histogram(list(_histogram_points(family.samples, now)), _CUMULATIVE)
    return None


def _number_points(samples: Iterable[Sample], now: int) -> Iterator[otel.NumberDataPoint]:
    for sample in samples:
        yield otel.NumberDataPoint(dict(sample.labels), _STARTED, now, sample.value)


def _histogram_points(samples: Iterable[Sample], now: int) -> Iterator[otel.HistogramDataPoint]:
    """Yield a point for each set of labels.

    Prometheus counts all values up to a bound, OpenTelemetry those between two bounds.
    """
    below: dict[_Labels, dict[float, float]] = defaultdict(dict)
    sums: dict[_Labels, float] = {}
    for sample in samples:
        labels = tuple(sorted((name, value) for name, value in sample.labels.items() if name != "le"))
        if sample.name.endswith("_bucket"):
            below[labels][float(sample.labels["le"])] = sample.value
        elif sample.name.endswith("_sum"):
            sums[labels] = sample.value
    for labels, by_bound in below.items():
        bounds = sorted(by_bound)
        counts = [int(by_bound[bound]) for bound in bounds]
        between = [count - before for count, before in zip(counts, [0, *counts], strict=False)]
        unknown: Any = None  # min and max are optional in the protocol, and Prometheus does not store them
        yield otel.HistogramDataPoint(
            dict(labels), _STARTED, now, counts[-1], sums.get(labels, 0.0), between, bounds[:-1], unknown, unknown
        )
