"""The page about a pipeline: how many records came through and when, by which schemas, and what went wrong.

Plots are of the batches whose reports are kept, gathered into columns of equal time; the figures of each are below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from math import ceil
from typing import Final, TypeAlias

import msgspec

from stele.spark.data_audit.charts import Stack
from stele.spark.data_audit.report import AuditReport, Cell, Section
from stele.spark.pipeline.config import PipelineConfig
from stele.spark.pipeline.dead_letters import count_by_kind
from stele.spark.pipeline.journal import BatchJournal
from stele.spark.pipeline.kafka_lag import has_run
from stele.spark.pipeline.report import BatchReport
from stele.spark.pipeline.status import IdCount, PipelineStatus, count_records, format_seconds, read_status

MOST_COLUMNS: Final = 60
"""Columns of a plot."""
MOST_SERIES: Final = 8
"""Series of a plot with a colour of their own; the smaller ones are gathered in `other`."""
_STEPS: Final = {
    1: "second",
    5: "5 seconds",
    15: "15 seconds",
    60: "minute",
    300: "5 minutes",
    900: "15 minutes",
    3600: "hour",
    3 * 3600: "3 hours",
    6 * 3600: "6 hours",
    86400: "day",
    7 * 86400: "week",
}
_OTHER: Final = "other"

Counts: TypeAlias = Mapping[str, int]


class PipelineHistory(msgspec.Struct, frozen=True):
    """A pipeline over time: its status, and the newest batches, oldest first."""

    status: PipelineStatus
    batches: tuple[BatchReport, ...] = ()

    def report(self) -> AuditReport:
        """The summary for people."""
        own = self.status.report()
        plots = tuple(_plot_sections(self.batches, self.status.ids)) if self.batches else ()
        return msgspec.structs.replace(own, sections=(*plots, *own.sections, *_batch_sections(self.batches)))


def read_history(config: PipelineConfig) -> PipelineHistory:
    """The summary of a pipeline, from its checkpoint alone. Raises `StoreError` for a damaged journal."""
    found = read_status(config)
    return PipelineHistory(
        found, tuple(BatchJournal(config.checkpoint).read_reports()) if has_run(config.checkpoint) else ()
    )


class TimeSlots:
    """Equal spans of time from the first batch to the last one, at most `MOST_COLUMNS` of them."""

    def __init__(self, batches: Sequence[BatchReport]) -> None:
        times = [batch.at for batch in batches]
        first, last = min(times), max(times)
        longest = max(_STEPS)
        fitting = (step for step in _STEPS if last // step - first // step < MOST_COLUMNS)
        self.step = next(fitting, int((last - first) // MOST_COLUMNS // longest + 1) * longest)
        self._first = int(first // self.step)
        self._groups: list[list[BatchReport]] = [[] for _ in range(int(last // self.step) - self._first + 1)]
        for batch in batches:
            self._groups[int(batch.at // self.step) - self._first].append(batch)

    @property
    def slot_name(self) -> str:
        """How long each is, in words."""
        return _STEPS.get(self.step) or f"{self.step // 86400} days"

    def sum_counts(self, count: Callable[[BatchReport], Counts]) -> list[tuple[str, dict[str, int]]]:
        """Sums by name in each, under its start."""
        return [(start, _sum_counts(count(batch) for batch in group)) for start, group in self._iterate_slots()]

    def measure_slots(
        self, name: str, figure: Callable[[list[BatchReport]], float]
    ) -> list[tuple[str, dict[str, int]]]:
        """One figure of the batches in each, rounded up; nothing where there are none."""
        return [(start, {name: ceil(figure(group))} if group else {}) for start, group in self._iterate_slots()]

    def _iterate_slots(self) -> Iterator[tuple[str, list[BatchReport]]]:
        for at, group in enumerate(self._groups):
            start = datetime.fromtimestamp((self._first + at) * self.step, UTC)
            yield start.strftime("%Y-%m-%d" if self.step >= 86400 else "%Y-%m-%d %H:%M:%S"), group


def _plot_sections(batches: Sequence[BatchReport], ids: Iterable[IdCount]) -> Iterator[Section]:
    slots = TimeSlots(batches)
    titles = {it.id: f"{it.id} ({it.subject} v{it.version})" if it.subject else it.id for it in ids}
    yield _plot_section("Throughput", f"rows by {slots.slot_name}", slots.sum_counts(lambda batch: batch.tables))
    speed = slots.measure_slots(
        "records per second", lambda group: sum(map(count_records, group)) / (_total_seconds(group) or 1.0)
    )
    yield _plot_section("Speed", f"records per second of work, by {slots.slot_name}", speed)
    slow = slots.measure_slots("milliseconds", lambda group: 1000 * max(batch.seconds for batch in group))
    yield _plot_section("Batches", f"milliseconds of the longest batch, by {slots.slot_name}", slow)
    yield _plot_section(
        "Schema ids in use",
        f"good records by {slots.slot_name}",
        slots.sum_counts(lambda batch: {titles.get(name, name): count for name, count in batch.records.items()}),
    )
    letters = slots.sum_counts(lambda batch: count_by_kind(batch.codes, batch.dead_letters))
    yield _plot_section("Dead letters by kind", f"dead letters by {slots.slot_name}", letters)


def _total_seconds(group: Iterable[BatchReport]) -> float:
    return sum(batch.seconds for batch in group)


def _plot_section(title: str, label: str, slots: Sequence[tuple[str, dict[str, int]]]) -> Section:
    """A plot with its figures; nothing is shown of a figure that is 0 throughout."""
    sums = _sum_counts(counts for _, counts in slots)
    ranked = sorted((name for name, count in sums.items() if count), key=lambda name: -sums[name])
    if not ranked:
        return Section(title)
    named = ranked[:MOST_SERIES]
    names = (*named, *([_OTHER] if len(named) < len(ranked) and _OTHER not in named else []))
    shown = [(start, _sum_counts(_group_small_series(counts, names))) for start, counts in slots]
    rows: list[tuple[Cell, ...]] = [(start, *(counts.get(n, 0) for n in names)) for start, counts in shown if counts]
    return Section(title, ("from", *names), tuple(rows), chart=Stack(label, names, tuple(shown)), folded=True)


def _group_small_series(counts: Counts, names: Sequence[str]) -> Iterator[Counts]:
    for name, count in counts.items():
        yield {name if name in names else _OTHER: count}


def _sum_counts(counts: Iterable[Counts]) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in counts:
        for name, count in each.items():
            found[name] = found.get(name, 0) + count
    return found


def _batch_sections(batches: Sequence[BatchReport]) -> Iterator[Section]:
    head = ("batch", "done at", "rows", "dead letters", "tombstones", "seconds", "versions", "new columns")
    rows = tuple(
        (
            batch.batch,
            format_seconds(batch.at),
            batch.rows,
            batch.dead_letters,
            batch.tombstones,
            round(batch.seconds, 1),
            ", ".join(f"{subject} v{version}" for subject, version in batch.versions.items()),
            ", ".join(batch.columns_added),
        )
        for batch in reversed(batches)
    )
    yield Section("Newest batches", head, rows, note=f"The newest {len(rows):,}.", folded=True)
