"""The metrics of the server. Labels come from route templates and fixed words, never from a path a client chose."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from stele.core.state import State
from stele.service.delivery.stats import DeliveryStats, count_paused
from stele.service.delivery.targets import DeliveryCode
from stele.service.registry import Registry
from stele.service.replication.documents import find_node, list_statuses

_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_DELIVERY_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600)
_ATTEMPT = ("protocol", "code")
_FOLLOWER = ("kind", "follower")
UNMATCHED = "unmatched"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class RequestCounter:
    """Counts the answered requests of one dialect, route, method and status.

    Updating the shared metric takes as long as returning a cached response. So for cached responses only every
    sixteenth duration is recorded, and their number is added to the metric from time to time.
    """

    __slots__ = ("_cached", "_count_hits", "_increment", "_observe", "_passed")

    def __init__(
        self, increment: Callable[[float], None], observe: Callable[[float], None], count_hits: Callable[[float], None]
    ) -> None:
        self._increment = increment
        self._observe = observe
        self._count_hits = count_hits
        self._cached = self._passed = 0

    def count_request(self, seconds: float) -> None:
        """Count one request that was not answered from the cache."""
        self._increment(1)
        self._observe(seconds)

    def count_cached(self, started: float) -> None:
        """Count one request that began at that time (`time.perf_counter`) and got a cached response."""
        self._cached += 1
        if not self._cached & 15:
            self._observe(time.perf_counter() - started)
            if not self._cached & 255:
                self.flush()

    def flush(self) -> None:
        """Add the number of cached responses to the metrics that all workers share."""
        if self._cached > self._passed:
            self._increment(self._cached - self._passed)
            self._count_hits(self._cached - self._passed)
            self._passed = self._cached


class MetricDescription(NamedTuple):
    """A metric as the reference documentation shows it."""

    name: str
    type: str
    labels: tuple[str, ...]
    text: str


def _make_gauges(registry: CollectorRegistry) -> dict[str, Gauge]:
    """Return the gauges by their attribute names in `Metrics`."""
    gauges = {
        name: Gauge(f"stele_{name}", text, registry=registry, multiprocess_mode="mostrecent")
        for name, text in (
            ("log_seq", "Sequence number of the newest record folded."),
            ("log_lag", "Records of other nodes that this node had not folded when it last looked."),
            ("log_age_seconds", "Seconds since this node was last known to have every record of the log."),
            ("schemas", "Distinct schema texts held."),
            ("subjects", "Subjects held, those with soft-deleted versions only included."),
            ("text_bytes", "Bytes of the schema texts held, before compression."),
            ("packed_bytes", "Bytes the compressed schema texts take."),
            ("records_appended", "Records this process appended."),
            ("append_conflicts", "Appends lost to another node and decided again."),
            ("plain_secrets", "Documents with secrets that are stored as plain text."),
            ("locked_secrets", "Documents with secrets that are sealed with a key this server does not have."),
        )
    } | {
        name: Gauge(f"stele_{name}", text, registry=registry, multiprocess_mode="livesum")
        for name, text in (
            ("audit_dropped", "Entries of the audit trail that were lost before they were written or delivered."),
            ("quota_refusals", "Registrations refused because their callers had registered as much as one caller may."),
            ("audit_failing", "Processes that cannot write the file of the audit trail."),
            ("connections", "Open connections."),
            ("answer_cache_bytes", "Memory that cached answers take, about."),
            ("work_running", "Threads that parse and compare schemas for the registry right now."),
            ("work_waiting", "Calls that wait for such a thread."),
            ("writes_waiting", "Changes that wait for the store or are being written."),
            ("stateless_running", "Threads that work on checks, conversions and the like right now."),
            ("stateless_waiting", "Calls that wait for a thread for checks and the like."),
        )
    }
    gauges["can_write"] = Gauge(
        "stele_can_write",
        "1 while the log takes records, 0 while it does not; as /health/ready says.",
        registry=registry,
        multiprocess_mode="livemin",
    )
    return gauges


def _make_replication_gauges(registry: CollectorRegistry) -> dict[str, Gauge]:
    """Return gauges with the name of a replication as their label. Every process reads the same values from the log."""
    return {
        name: Gauge(f"stele_replication_{name}", text, ("replication",), registry=registry, multiprocess_mode="max")
        for name, text in (
            ("lag_seconds", "For how long the target has not held all that the source had; 0 while it follows."),
            ("registered_versions", "Versions that were registered at the target, in all."),
            ("removed_versions", "Versions that were deleted at the target, in all."),
            ("conflicts", "Versions that cannot be replicated now."),
            ("errors", "Attempts that failed, in all."),
            ("is_here", "1 while a process of this server applies the changes, 0 while another node does."),
        )
    }


def _make_follower_gauges(registry: CollectorRegistry) -> tuple[Gauge, Gauge]:
    """Return the gauges of subscriptions and exporters: how far each is behind, and how many are paused."""
    lags = Gauge(
        "stele_delivery_lag_seconds",
        "Age of the oldest change a follower waits for; of the first 100 by id, all others together as `other`.",
        _FOLLOWER,
        registry=registry,
        multiprocess_mode="mostrecent",
    )
    paused = Gauge(
        "stele_delivery_paused",
        "Followers that are paused until they are resumed.",
        ("kind",),
        registry=registry,
        multiprocess_mode="mostrecent",
    )
    return lags, paused


class Metrics:
    """The metrics of one process; with a multiprocess directory, of all workers together."""

    def __init__(self, *, multiprocess: bool = False) -> None:
        self._registry = CollectorRegistry()
        self._multiprocess = multiprocess
        labels = ("dialect", "route", "method", "status")
        self._requests = Counter("stele_requests", "Requests answered.", labels, registry=self._registry)
        self._seconds = Histogram(
            "stele_request_seconds",
            "Time from a request to the last byte of its answer; of cached answers one in 16.",
            ("dialect", "route"),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._closed = Counter(
            "stele_connections_closed",
            "Connections the server closed, by reason.",
            ("reason",),
            registry=self._registry,
        )
        self._limited = Counter(
            "stele_requests_limited",
            "Requests refused because their caller sent too many, by the rate they would have passed.",
            ("rate",),
            registry=self._registry,
        )
        self._hits = Counter("stele_answer_cache_hits", "Requests that got a cached answer.", registry=self._registry)
        self._misses = Counter(
            "stele_answer_cache_misses",
            "Requests that could have got a cached answer and got a new one.",
            registry=self._registry,
        )
        self._attempts = Counter(
            "stele_delivery_attempts",
            "Attempts to deliver an event, by protocol and what became of them (`delivered`, `refused` …).",
            _ATTEMPT,
            registry=self._registry,
        )
        self._delays = Histogram(
            "stele_delivery_seconds",
            "Time from a change to the moment when the sink took its event.",
            ("protocol",),
            buckets=_DELIVERY_BUCKETS,
            registry=self._registry,
        )
        self._lags, self._paused = _make_follower_gauges(self._registry)
        self._known_lags: frozenset[tuple[str, str]] = frozenset()
        self._gauges = _make_gauges(self._registry)
        self._replications = _make_replication_gauges(self._registry)
        self._counters: dict[tuple[str, str, str, int], RequestCounter] = {}

    def count_request(self, dialect: str, route: str, method: str, status: int, seconds: float) -> None:
        """Count one request that was not answered from the cache."""
        self.get_counter(dialect, route, method, status).count_request(seconds)

    def get_counter(self, dialect: str, route: str, method: str, status: int) -> RequestCounter:
        """Return the counter of requests with these labels."""
        if method not in _METHODS:
            method = "OTHER"
        known = self._counters.get((dialect, route, method, status))
        if known is None:
            known = self._counters[dialect, route, method, status] = RequestCounter(
                self._requests.labels(dialect, route, method, status).inc,
                self._seconds.labels(dialect, route).observe,
                self._hits.inc,
            )
        return known

    def count_limited_request(self, rate: str) -> None:
        """Count a request that was refused because of a rate limit."""
        self._limited.labels(rate).inc()

    def count_closed_connection(self, reason: str) -> None:
        """Count a connection that the server closed."""
        self._closed.labels(reason).inc()

    def count_delivery(self, protocol: str, code: str, seconds: float) -> None:
        """Count an attempt to deliver an event, so many seconds after its change."""
        self._attempts.labels(protocol, code).inc()
        if code == DeliveryCode.DELIVERED:
            self._delays.labels(protocol).observe(max(seconds, 0.0))

    def count_miss(self) -> None:
        """Count one request that could be cached but was not in the cache."""
        self._misses.inc()

    def describe_metrics(self) -> list[MetricDescription]:
        """Return a description of every metric, for documentation."""
        of_requests = [
            (self._requests, ("dialect", "route", "method", "status")),
            (self._seconds, ("dialect", "route")),
            (self._closed, ("reason",)),
            (self._limited, ("rate",)),
            (self._hits, ()),
            (self._misses, ()),
            (self._attempts, _ATTEMPT),
            (self._delays, ("protocol",)),
            (self._lags, _FOLLOWER),
            (self._paused, ("kind",)),
        ]
        of_replications = [(gauge, ("replication",)) for gauge in self._replications.values()]
        rows = [*of_requests, *((gauge, ()) for gauge in self._gauges.values()), *of_replications]
        return [
            MetricDescription(family.name, family.type, labels, family.documentation)
            for metric, labels in rows
            for family in metric.describe()
        ]

    def collect_metrics(
        self, registry: Registry, counts: Mapping[str, int], delivery: DeliveryStats
    ) -> Iterable[Metric]:
        """Return the metrics of this process alone. counts has values of gauges that the registry does not know."""
        self._update_gauges(registry, counts)
        self._update_delivery(registry, delivery)
        return self._registry.collect()

    def render_metrics(
        self,
        registry: Registry,
        counts: Mapping[str, int] = MappingProxyType({}),
        delivery: DeliveryStats | None = None,
    ) -> tuple[bytes, str]:
        """Return the exposition text and its content type, for all processes. counts is as for `collect_metrics`."""
        self._update_gauges(registry, counts)
        self._update_delivery(registry, delivery or DeliveryStats())
        if not self._multiprocess:
            return generate_latest(self._registry), CONTENT_TYPE_LATEST
        merged = CollectorRegistry()
        MultiProcessCollector(merged)  # type: ignore[no-untyped-call]  # the library has no annotation here
        return generate_latest(merged), CONTENT_TYPE_LATEST

    def _update_delivery(self, registry: Registry, delivery: DeliveryStats) -> None:
        lags = delivery.list_lags()
        for labels in self._known_lags - lags.keys():
            if self._multiprocess:  # the library cannot remove series that other processes may export
                self._lags.labels(*labels).set(0)
            else:
                self._lags.remove(*labels)
        for labels, seconds in lags.items():
            self._lags.labels(*labels).set(seconds)
        self._known_lags = frozenset(lags)
        for kind, count in count_paused(registry.state).items():
            self._paused.labels(kind).set(count)

    def _update_gauges(self, registry: Registry, counts: Mapping[str, int]) -> None:
        for counter in self._counters.values():
            counter.flush()
        state = registry.state
        plain_secrets, locked_secrets = registry.secrets.count_documents(state)
        values = {
            "plain_secrets": plain_secrets,
            "locked_secrets": locked_secrets,
            "log_seq": state.seq,
            "log_lag": registry.lag_records,
            "log_age_seconds": time.monotonic() - registry.caught_up_at,
            "schemas": len(state.contents),
            "subjects": sum(len(namespace.subjects) for namespace in state.namespaces.values()),
            "text_bytes": state.text_bytes,
            "packed_bytes": state.packed_texts.packed_bytes,
            "records_appended": registry.appended,
            "append_conflicts": registry.conflicts,
            "quota_refusals": registry.quota_refusals,
            "writes_waiting": registry.waiting_writes,
            "can_write": int(registry.write_failure is None),
            **counts,
        }
        for name, value in values.items():
            self._gauges[name].set(value)
        self._update_replications(state, registry.node_name)

    def _update_replications(self, state: State, node: str) -> None:
        if not self._multiprocess:  # The library cannot remove labels there.
            for gauge in self._replications.values():
                gauge.clear()
        for name, status in list_statuses(state).items():
            values = {
                "lag_seconds": status.measure_lag(),
                "registered_versions": status.registered,
                "removed_versions": status.removed,
                "conflicts": status.conflict_count,
                "errors": status.errors,
                "is_here": int(find_node(state, name) == node),
            }
            for what, value in values.items():
                self._replications[what].labels(name).set(value)
