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
from stele.spark.data_audit.report import Cell, Report, Section
from stele.spark.pipeline.config import PipelineConfig
from stele.spark.pipeline.dead_letter_kinds import by_kind
from stele.spark.pipeline.journal import Journal
from stele.spark.pipeline.kafka_lag import begun
from stele.spark.pipeline.report import BatchReport
from stele.spark.pipeline.status import IdCount, Status, met, status, when

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


class Summary(msgspec.Struct, frozen=True):
    """A pipeline over time: its status, and the newest batches, oldest first."""

    status: Status
    batches: tuple[BatchReport, ...] = ()

    def report(self) -> Report:
        """The summary for people."""
        own = self.status.report()
        plots = tuple(_plots(self.batches, self.status.ids)) if self.batches else ()
        return msgspec.structs.replace(own, sections=(*plots, *own.sections, *_batches(self.batches)))


def summary(config: PipelineConfig) -> Summary:
    """The summary of a pipeline, from its checkpoint alone. Raises `StoreError` for a damaged journal."""
    found = status(config)
    return Summary(found, tuple(Journal(config.checkpoint).reports()) if begun(config.checkpoint) else ())


class Slots:
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
    def span(self) -> str:
        """How long each is, in words."""
        return _STEPS.get(self.step) or f"{self.step // 86400} days"

    def counted(self, count: Callable[[BatchReport], Counts]) -> list[tuple[str, dict[str, int]]]:
        """Sums by name in each, under its start."""
        return [(start, _sums(count(batch) for batch in group)) for start, group in self._each()]

    def judged(self, name: str, figure: Callable[[list[BatchReport]], float]) -> list[tuple[str, dict[str, int]]]:
        """One figure of the batches in each, rounded up; nothing where there are none."""
        return [(start, {name: ceil(figure(group))} if group else {}) for start, group in self._each()]

    def _each(self) -> Iterator[tuple[str, list[BatchReport]]]:
        for at, group in enumerate(self._groups):
            start = datetime.fromtimestamp((self._first + at) * self.step, UTC)
            yield start.strftime("%Y-%m-%d" if self.step >= 86400 else "%Y-%m-%d %H:%M:%S"), group


def _plots(batches: Sequence[BatchReport], ids: Iterable[IdCount]) -> Iterator[Section]:
    slots = Slots(batches)
    titles = {it.id: f"{it.id} ({it.subject} v{it.version})" if it.subject else it.id for it in ids}
    yield _plot("Throughput", f"rows by {slots.span}", slots.counted(lambda batch: batch.tables))
    speed = slots.judged("records per second", lambda group: sum(map(met, group)) / (_seconds(group) or 1.0))
    yield _plot("Speed", f"records per second of work, by {slots.span}", speed)
    slow = slots.judged("milliseconds", lambda group: 1000 * max(batch.seconds for batch in group))
    yield _plot("Batches", f"milliseconds of the longest batch, by {slots.span}", slow)
    yield _plot(
        "Schema ids in use",
        f"good records by {slots.span}",
        slots.counted(lambda batch: {titles.get(name, name): count for name, count in batch.records.items()}),
    )
    letters = slots.counted(lambda batch: by_kind(batch.codes, batch.dead_letters))
    yield _plot("Dead letters by kind", f"dead letters by {slots.span}", letters)


def _seconds(group: Iterable[BatchReport]) -> float:
    return sum(batch.seconds for batch in group)


def _plot(title: str, label: str, slots: Sequence[tuple[str, dict[str, int]]]) -> Section:
    """A plot with its figures; nothing is shown of a figure that is 0 throughout."""
    sums = _sums(counts for _, counts in slots)
    ranked = sorted((name for name, count in sums.items() if count), key=lambda name: -sums[name])
    if not ranked:
        return Section(title)
    named = ranked[:MOST_SERIES]
    names = (*named, *([_OTHER] if len(named) < len(ranked) and _OTHER not in named else []))
    shown = [(start, _sums(_gathered(counts, names))) for start, counts in slots]
    rows: list[tuple[Cell, ...]] = [(start, *(counts.get(n, 0) for n in names)) for start, counts in shown if counts]
    return Section(title, ("from", *names), tuple(rows), chart=Stack(label, names, tuple(shown)), folded=True)


def _gathered(counts: Counts, names: Sequence[str]) -> Iterator[Counts]:
    for name, count in counts.items():
        yield {name if name in names else _OTHER: count}


def _sums(counts: Iterable[Counts]) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in counts:
        for name, count in each.items():
            found[name] = found.get(name, 0) + count
    return found


def _batches(batches: Sequence[BatchReport]) -> Iterator[Section]:
    head = ("batch", "done at", "rows", "dead letters", "tombstones", "seconds", "versions", "new columns")
    rows = tuple(
        (
            batch.batch,
            when(batch.at),
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
