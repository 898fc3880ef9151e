"""What a pipeline has done and where it is, from its checkpoint alone: no Spark, and no registry, need to run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from stele.errors import StoreError
from stele.spark.data_audit.report import AuditReport, Fact, Section, format_micros, pluralize
from stele.spark.pipeline.config import PipelineConfig
from stele.spark.pipeline.journal import FOLDER, BatchJournal
from stele.spark.pipeline.kafka_lag import has_run, measure_lag
from stele.spark.pipeline.report import BatchReport, PipelineReport, summed

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # asked for before use

if TYPE_CHECKING:
    from stele.spark.registry.snapshot import PinnedSchemas

NEWEST: Final = 20
"""Batches a rate is of."""


class IdCount(msgspec.Struct, frozen=True):
    """Good records of one writer's schema.

    id        what names it: an id, or what the wire has instead
    subject   of which it is a version, '' when the newest batch knew no version with this id
    version   its number in the subject, 0 without one
    """

    id: str
    records: int
    subject: str = ""
    version: int = 0


class PipelineStatus(msgspec.Struct, frozen=True):
    """A pipeline, seen from outside.

    running   None where nobody can tell: the checkpoint is on no disk of this machine
    totals    all that the checkpoint has seen
    newest    the newest batch, None before the first one
    rate      records per second of work, tombstones and dead letters too, over the newest batches
    ids       good records by writer's schema
    reasons   dead letters by reason, over the batches whose reports are kept
    lag       records of Kafka that no batch has had, by topic; None where nobody can say
    """

    checkpoint: str
    running: bool | None
    totals: PipelineReport = PipelineReport()
    newest: BatchReport | None = None
    rate: float = 0.0
    ids: tuple[IdCount, ...] = ()
    reasons: dict[str, int] = {}
    lag: dict[str, int] | None = None

    def report(self) -> AuditReport:
        """The status for people."""
        return AuditReport(
            f"Pipeline {self.checkpoint}",
            _describe_state(self),
            self.running is not False,
            _list_facts(self),
            tuple(_list_sections(self)),
        )


def read_status(config: PipelineConfig) -> PipelineStatus:
    """The status. Nothing is touched. Raises `StoreError` for a damaged journal."""
    running = is_running(config.checkpoint)
    if not has_run(config.checkpoint):
        return PipelineStatus(config.checkpoint, running)
    journal = BatchJournal(config.checkpoint)
    totals, reports = journal.read_totals(), journal.read_reports()
    reasons: dict[str, int] = {}
    for batch in reports:
        reasons = summed(reasons, batch.reasons)
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
    )


def is_running(checkpoint: str) -> bool | None:
    """Whether a process holds the checkpoint; None where it cannot be held. See `journal.held`.

    The question is put by a shared lock, given back at once: it takes nothing from the holder.
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
        raise StoreError(f"{checkpoint} cannot be looked into: {error.strerror}") from error


def records_per_second(reports: Sequence[BatchReport]) -> float:
    """Records per second of work."""
    seconds = sum(batch.seconds for batch in reports)
    return sum(count_records(batch) for batch in reports) / seconds if seconds else 0.0


def count_records(batch: BatchReport) -> int:
    """Records a batch read: rows, dead letters and tombstones."""
    return batch.rows + batch.dead_letters + batch.tombstones


def label_ids(records: dict[str, int], pins: Sequence[PinnedSchemas]) -> tuple[IdCount, ...]:
    """Records by id, with the versions the ids are, as the newest batch knew them; most records first."""
    versions: dict[str, tuple[str, int]] = {}
    for pin in pins:
        for schema in sorted(pin.snapshot.schemas, key=lambda schema: schema.version):
            names = (str(schema.id) if schema.id else "", schema.guid)
            if schema.subject == pin.subject:
                versions |= {name: (schema.subject, schema.version) for name in names if name}
    found = (IdCount(name, count, *versions.get(name, ("", 0))) for name, count in records.items())
    return tuple(sorted(found, key=lambda it: -it.records))


def _describe_state(status: PipelineStatus) -> str:
    if status.newest is None:
        return "running, no batch is done yet" if status.running else "it has done no batch yet"
    word = {True: "running", False: "not running", None: "whether it runs cannot be seen from here"}[status.running]
    return f"{word}, last batch {status.newest.batch} at {format_seconds(status.newest.at)}"


def format_seconds(seconds: float) -> str:
    """Seconds since 1970 as RFC 3339 in UTC."""
    return format_micros(round(seconds * 1_000_000))


def _list_facts(status: PipelineStatus) -> tuple[Fact, ...]:
    totals = status.totals
    facts = [
        Fact("batches", totals.batches),
        Fact("rows", totals.rows),
        Fact("dead letters", totals.dead_letters),
        Fact("tombstones", totals.tombstones),
        Fact("records per second", round(status.rate) if status.rate >= 10 else round(status.rate, 1)),
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
        tuple((name, used[-1], ", ".join(map(str, used))) for name, used in totals.versions.items() if used),
    )
    if newest is not None:
        yield Section(
            "Last batch",
            ("batch", "done at", "rows", "dead letters", "tombstones", "seconds", "new columns"),
            (
                (
                    newest.batch,
                    format_seconds(newest.at),
                    newest.rows,
                    newest.dead_letters,
                    newest.tombstones,
                    round(newest.seconds, 1),
                    ", ".join(newest.columns_added),
                ),
            ),
        )
    yield Section(
        "Records by schema id",
        ("id", "records", "subject", "version"),
        tuple((it.id, it.records, it.subject, it.version or None) for it in status.ids),
    )
    kept = pluralize(sum(status.reasons.values()), "dead letter")
    yield Section(
        "Dead letters", ("reason", "records"), tuple(status.reasons.items()), note=f"{kept} of recent batches"
    )
    yield Section("Behind Kafka", ("topic", "records"), tuple((status.lag or {}).items()))
