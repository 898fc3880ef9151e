"""The status of a pipeline, read from its checkpoint alone, without Spark and without a registry.

`read_status` returns the state and totals. `read_history` adds plots of the batches whose reports are kept. Batches are
grouped into columns of equal time, and a table below each plot has its figures. The history of the subjects comes from
the registry (`load_pipeline_evolutions`); the caller passes it in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from stele.client import Retry, SchemaRegistryClient, SchemaSnapshot
from stele.errors import InvalidRequest, StoreError
from stele.spark.data_audit.report import (
    LEAST_COLUMNS,
    AuditReport,
    Cell,
    Fact,
    ReportState,
    Section,
    Stack,
    format_micros,
    pluralize,
)
from stele.spark.data_audit.subject_evolution import (
    SubjectEvolution,
    describe_missing,
    draw_evolutions,
    load_evolutions,
    miss_evolutions,
)
from stele.spark.pipeline.config import PipelineConfig
from stele.spark.pipeline.dead_letters import count_by_kind
from stele.spark.pipeline.journal import FOLDER, BatchJournal, BatchReport, PipelineReport, add_counts
from stele.spark.pipeline.kafka_lag import has_run, measure_lag

if TYPE_CHECKING:
    from stele.spark.registry import PinnedSchemas


try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # asked for before use


NEWEST: Final = 20
"""Number of newest batches over which the rate is computed."""


class IdCount(msgspec.Struct, frozen=True):
    """Number of good records of one writer's schema.

    id        its id, or the wire's substitute
    subject   its subject, '' when the newest batch knew no version with this id
    version   its version number in the subject, 0 if unknown
    """

    id: str
    records: int
    subject: str = ""
    version: int = 0


class BatchChange(msgspec.Struct, frozen=True):
    """A change of a table, and the batch that made it; `at` is in seconds since 1970."""

    batch: int
    at: float
    table: str
    change: str


class PipelineStatus(msgspec.Struct, frozen=True):
    """The status of a pipeline.

    running   whether a process runs it; None if unknown, as the checkpoint is not on a local disk
    totals    the sums over all batches of the checkpoint
    newest    the newest batch, None before the first one
    rate      records per second of work over the newest batches, including tombstones and dead letters
    ids       good records by writer's schema
    reasons   dead letters by reason, over the batches whose reports are kept
    lag       Kafka records that are in no finished batch, by topic; None if it cannot be measured
    tables    names of the tables with rows
    source    description of the source for reports
    changes   changes of the tables by the batches whose reports are kept, the newest batch first
    """

    checkpoint: str
    running: bool | None
    totals: PipelineReport = PipelineReport()
    newest: BatchReport | None = None
    rate: float = 0.0
    ids: tuple[IdCount, ...] = ()
    reasons: dict[str, int] = {}
    lag: dict[str, int] | None = None
    tables: tuple[str, ...] = ()
    source: str = ""
    changes: tuple[BatchChange, ...] = ()

    def report(self) -> AuditReport:
        """Return the status as a report."""
        return AuditReport(
            f"Pipeline of {', '.join(self.tables)}" if self.tables else "Pipeline",
            _describe_state(self),
            _find_state(self),
            _list_facts(self),
            tuple(_list_sections(self)),
            {"source": self.source, "checkpoint": self.checkpoint},
        )


def read_status(config: PipelineConfig) -> PipelineStatus:
    """Return the status of a pipeline. Changes nothing. Raises `StoreError` for a damaged journal."""
    running = is_running(config.checkpoint)
    tables, source = tuple(route.table for route in config.routes), config.source.describe()
    if not has_run(config.checkpoint):
        return PipelineStatus(config.checkpoint, running, tables=tables, source=source)
    journal = BatchJournal(config.checkpoint)
    totals, reports = journal.read_totals(), journal.read_reports()
    reasons: dict[str, int] = {}
    for batch in reports:
        reasons = add_counts(reasons, batch.reasons)
    entry = journal.read_entry(totals.through)
    return PipelineStatus(
        config.checkpoint,
        running,
        totals,
        reports[-1] if reports else None,
        records_per_second(reports[-NEWEST:]),
        label_ids(totals.records, entry.pins if entry else ()),
        dict(sorted(reasons.items(), key=lambda item: -item[1])),
        measure_lag(config),
        tables,
        source,
        tuple(_list_changes(reports)),
    )


def _list_changes(reports: Sequence[BatchReport]) -> Iterator[BatchChange]:
    """Yield the changes of tables, the newest batch first."""
    for batch in reversed(reports):
        for table_change in batch.changes:
            yield BatchChange(batch.batch, batch.at, table_change.table, table_change.change.describe_outcome())


def is_running(checkpoint: str) -> bool | None:
    """Return whether a process holds the checkpoint's lock, or None where there are no locks.

    See `journal.pipeline_lock`. The check takes a shared lock and releases it at once, so the pipeline is not
    disturbed.
    Raises `StoreError` when the lock file cannot be read.
    """
    if "://" in checkpoint or fcntl is None:
        return None
    try:
        with (Path(checkpoint) / FOLDER / "lock").open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            fcntl.flock(file, fcntl.LOCK_UN)
            return False
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StoreError(f"{checkpoint} cannot be read: {error.strerror}") from error


def records_per_second(reports: Sequence[BatchReport]) -> float:
    """Return the number of records per second of work, 0.0 without batches."""
    seconds = sum(batch.seconds for batch in reports)
    return sum(count_records(batch) for batch in reports) / seconds if seconds else 0.0


def count_records(batch: BatchReport) -> int:
    """Return the number of records that a batch read: rows, dead letters and tombstones."""
    return batch.rows + batch.dead_letters + batch.tombstones


def label_ids(records: dict[str, int], pins: Sequence[PinnedSchemas]) -> tuple[IdCount, ...]:
    """Return the records by id with the version of each id, as the newest batch knew it; most records first."""
    versions: dict[str, tuple[str, int]] = {}
    for pin in pins:
        for schema in sorted(pin.snapshot.schemas, key=lambda schema: schema.version):
            names = (str(schema.id) if schema.id else "", schema.guid)
            if schema.subject == pin.subject:
                versions |= {name: (schema.subject, schema.version) for name in names if name}
    counts = (IdCount(name, count, *versions.get(name, ("", 0))) for name, count in records.items())
    return tuple(sorted(counts, key=lambda it: -it.records))


def _find_state(status: PipelineStatus) -> ReportState:
    """Return the state: attention if the newest batch has dead letters, else good if it runs, else neutral."""
    if status.newest is not None and status.newest.dead_letters:
        return ReportState.ATTENTION
    return ReportState.GOOD if status.running else ReportState.NEUTRAL


def _describe_state(status: PipelineStatus) -> str:
    if status.newest is None:
        return "running, no batch has finished yet" if status.running else "no batch has finished yet"
    word = {True: "running", False: "not running", None: "running or not is unknown from here"}[status.running]
    letters = f", with {pluralize(status.newest.dead_letters, 'dead letter')}" if status.newest.dead_letters else ""
    return f"{word}, last batch {status.newest.batch} at {format_seconds(status.newest.at)}{letters}"


def format_seconds(seconds: float) -> str:
    """Return seconds since 1970 as RFC 3339 in UTC."""
    return format_micros(round(seconds * 1_000_000))


def _list_facts(status: PipelineStatus) -> tuple[Fact, ...]:
    totals = status.totals
    facts = [
        Fact("batches", totals.batches),
        Fact("rows", totals.rows),
        Fact("dead letters", totals.dead_letters),
        Fact("tombstones", totals.tombstones),
        Fact("records/s", round(status.rate) if status.rate >= 10 else round(status.rate, 1)),
    ]
    if status.lag is not None:
        facts.append(Fact("behind Kafka", sum(status.lag.values())))
    return tuple(facts)


def _list_sections(status: PipelineStatus) -> Iterator[Section]:
    totals, newest = status.totals, status.newest
    yield Section("Tables", ("table", "rows"), tuple(totals.tables.items()))
    yield Section(
        "Subjects",
        ("subject", "version in use", "versions so far"),
        tuple((name, str(used[-1]), ", ".join(map(str, used))) for name, used in totals.versions.items() if used),
    )
    if newest is not None:
        yield Section(
            "Last batch",
            ("batch", "done at", "rows", "dead letters", "tombstones", "seconds"),
            (
                (
                    str(newest.batch),
                    format_seconds(newest.at),
                    newest.rows,
                    newest.dead_letters,
                    newest.tombstones,
                    round(newest.seconds, 1),
                ),
            ),
        )
    yield Section(
        "Table changes",
        ("batch", "done at", "table", "change"),
        tuple((str(it.batch), format_seconds(it.at), it.table, it.change) for it in status.changes),
    )
    yield Section(
        "Records by schema id",
        ("id", "records", "subject", "version"),
        tuple((it.id, it.records, it.subject, str(it.version or "")) for it in status.ids),
    )
    dead_letters = pluralize(sum(status.reasons.values()), "dead letter")
    yield Section(
        "Dead letters", ("reason", "records"), tuple(status.reasons.items()), note=f"{dead_letters} of recent batches"
    )
    yield Section("Behind Kafka", ("topic", "records"), tuple((status.lag or {}).items()))


MOST_COLUMNS: Final = 60
"""Maximum number of columns in a plot."""
OPEN_BATCHES: Final = 12
"""Maximum number of rows in an unfolded table of batches; a longer table is folded."""
MOST_SERIES: Final = 8
"""Maximum number of series with a colour of their own; smaller ones are added up in `other`."""
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
    """A pipeline over time: its status, its newest batches (oldest first), and the history of its subjects."""

    status: PipelineStatus
    batches: tuple[BatchReport, ...] = ()
    evolutions: tuple[SubjectEvolution, ...] = ()

    def report(self) -> AuditReport:
        """Return the history as a report."""
        own = self.status.report()
        plots = tuple(_plot_sections(self.batches, self.status.ids)) if len(self.batches) >= LEAST_COLUMNS else ()
        drawn = draw_evolutions(self.evolutions, label_versions(self.batches), "batches")
        return msgspec.structs.replace(
            own,
            sections=(*plots, *drawn, *own.sections, *_batch_sections(self.batches)),
            remarks=describe_missing(self.evolutions),
        )


def read_history(config: PipelineConfig, evolutions: tuple[SubjectEvolution, ...] = ()) -> PipelineHistory:
    """Return the history of a pipeline, from its checkpoint alone. Raises `StoreError` for a damaged journal.

    evolutions   histories of the subjects from the registry, see `load_pipeline_evolutions`
    """
    status = read_status(config)
    batches = BatchJournal(config.checkpoint).read_reports() if has_run(config.checkpoint) else ()
    return PipelineHistory(status, tuple(batches), evolutions)


class TimeSlots:
    """Equal time slots from the first batch to the last one, at most `MOST_COLUMNS` of them."""

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
        """Length of a slot in words."""
        return _STEPS.get(self.step) or f"{self.step // 86400} days"

    def sum_counts(self, count: Callable[[BatchReport], Counts]) -> list[tuple[str, dict[str, int]]]:
        """Return the sums by name in each slot, with the slot's start time."""
        return [(start, _sum_counts(count(batch) for batch in group)) for start, group in self._iterate_slots()]

    def measure_slots(
        self, name: str, figure: Callable[[list[BatchReport]], float]
    ) -> list[tuple[str, dict[str, int]]]:
        """Return one figure of the batches in each slot, rounded up; an empty dict for a slot without batches."""
        return [(start, {name: ceil(figure(group))} if group else {}) for start, group in self._iterate_slots()]

    def _iterate_slots(self) -> Iterator[tuple[str, list[BatchReport]]]:
        for at, group in enumerate(self._groups):
            start = datetime.fromtimestamp((self._first + at) * self.step, UTC)
            clock = "" if self.step >= 86400 else " %H:%M" if self.step >= 60 else " %H:%M:%S"
            yield start.strftime(f"%Y-%m-%d{clock}"), group


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
    """Return a plot with its table; an empty section if all figures are 0 or there are too few columns for a plot."""
    sums = _sum_counts(counts for _, counts in slots)
    ranked = sorted((name for name, count in sums.items() if count), key=lambda name: -sums[name])
    if not ranked:
        return Section(title)
    named = ranked[:MOST_SERIES]
    names = (*named, *([_OTHER] if len(named) < len(ranked) and _OTHER not in named else []))
    buckets = [(start, _sum_counts(_group_small_series(counts, names))) for start, counts in slots]
    chart = Stack(label, names, tuple(buckets))
    if not chart.is_plot:  # the tables of batches and totals have the same figures
        return Section(title)
    rows: list[tuple[Cell, ...]] = [(start, *(counts.get(n, 0) for n in names)) for start, counts in buckets if counts]
    return Section(title, ("from", *names), tuple(rows), chart=chart, folded=True)


def _group_small_series(counts: Counts, names: Sequence[str]) -> Iterator[Counts]:
    for name, count in counts.items():
        yield {name if name in names else _OTHER: count}


def _sum_counts(counts: Iterable[Counts]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for each in counts:
        for name, count in each.items():
            sums[name] = sums.get(name, 0) + count
    return sums


def _batch_sections(batches: Sequence[BatchReport]) -> Iterator[Section]:
    head = ("batch", "done at", "rows", "dead letters", "tombstones", "seconds", "versions", "table changes")
    rows = tuple(
        (
            str(batch.batch),
            format_seconds(batch.at),
            batch.rows,
            batch.dead_letters,
            batch.tombstones,
            round(batch.seconds, 1),
            ", ".join(f"{subject} v{version}" for subject, version in batch.versions.items()),
            "; ".join(map(str, batch.changes)),
        )
        for batch in reversed(batches)
    )
    yield Section("Newest batches", head, rows, folded=len(rows) > OPEN_BATCHES)


_ROUNDS: Final = 2
"""How often the registry's servers are tried. It is low because the report can be made without them."""


def label_versions(batches: Iterable[BatchReport]) -> dict[str, dict[int, str]]:
    """Return for each subject and version a label of the batches whose tables had the version's columns.

    A label is `batch 3`, `batches 0–41`, or `batches 0–1, 5` if the tables went back to a version. The batches must be
    in their order.
    """
    used: dict[str, list[tuple[int, int]]] = {}
    for batch in batches:
        for subject, version in batch.versions.items():
            used.setdefault(subject, []).append((version, batch.batch))
    return {subject: _label_runs(pairs) for subject, pairs in used.items()}


def _label_runs(pairs: Iterable[tuple[int, int]]) -> dict[int, str]:
    """Return a label for each version, from pairs of a version and a batch number."""
    spans: dict[int, list[str]] = {}
    for version, run in groupby(pairs, key=lambda pair: pair[0]):
        numbers = [number for _, number in run]
        first, last = numbers[0], numbers[-1]
        spans.setdefault(version, []).append(str(first) if first == last else f"{first}–{last}")
    return {
        version: f"batch {ranges[0]}" if len(ranges) == 1 and ranges[0].isdecimal() else f"batches {', '.join(ranges)}"
        for version, ranges in spans.items()
    }


def load_pipeline_evolutions(config: PipelineConfig) -> tuple[SubjectEvolution, ...]:
    """Return the histories of a pipeline's subjects. A history that cannot be read carries the reason."""
    subjects = [route.subject for route in config.routes]
    try:
        registry = config.source.open_registry()
    except (OSError, InvalidRequest) as error:
        return miss_evolutions(subjects, f"{config.source.registry} cannot be read: {error}")
    if isinstance(registry, SchemaSnapshot):
        return miss_evolutions(subjects, "a snapshot holds no history")
    with SchemaRegistryClient(registry, retry=Retry(rounds=_ROUNDS)) as client:
        return load_evolutions(client.send, subjects)
