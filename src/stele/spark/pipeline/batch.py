"""One micro-batch from pin to commit."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from stele.client import ResolvedSchema, SchemaSnapshot
from stele.client.names import split
from stele.errors import Conflict, ContentNotFound, DecodeError, Unavailable
from stele.spark.decode.errors import decode_error
from stele.spark.decode.rules import refuse_reading
from stele.spark.engines.error_codes import ErrorCode
from stele.spark.pipeline.config import PipelineConfig
from stele.spark.pipeline.journal import Entry, Journal
from stele.spark.pipeline.judging import ERROR, ID, Group, Route, groups, names_of, settled, unrouted
from stele.spark.pipeline.raw_records import check_files
from stele.spark.pipeline.report import MOST_REASONS, BatchReport, summed
from stele.spark.pipeline.tables import Tables
from stele.spark.registry.clients import RegistryLike, get_client, retry_unavailable
from stele.spark.registry.snapshot import PinnedSchemas, pin_schemas
from stele.spark.wires import Prefix, wire_named

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Part: TypeAlias = "tuple[Group | None, DataFrame]"

TRIES = 5
"""How often a batch is judged again because something was registered meanwhile."""
MOST_ASKED = 20
"""Unknown ids of a batch that are asked for again; more of them are no schemas that came late."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A batch that was judged.

    routes  with the schemas it was judged by
    parts   its records by group, kept by Spark until the batch is done; None for records of no group
    known   ids that were found, as texts
    counts  what came of the records
    """

    routes: tuple[Route, ...]
    parts: tuple[Part, ...]
    known: tuple[str, ...]
    counts: BatchReport


class Judge:
    """Judges batches of one pipeline; `stop` ends waiting for a registry."""

    def __init__(self, config: PipelineConfig, registry: RegistryLike, stop: Event) -> None:
        self._config, self._registry, self._stop = config, registry, stop
        self._label = wire_named(config.source.wire).id_label

    def pinned(self) -> tuple[Route, ...]:
        """The routes with the newest versions of their subjects; a registry that is being restarted is waited for."""
        return tuple(Route(route, self._pin(route.subject)) for route in self._config.routes)

    def check(self, *, waiting: bool) -> None:
        """Raise now what every batch would: no registry, no such subject, a schema without columns.

        waiting   whether a registry that does not answer is waited for: it did before, so its address is right
        """
        for route in self._config.routes:
            Route(route, self._pin(route.subject, waiting=waiting)).columns(self._config)

    @contextmanager
    def judged(self, raw: DataFrame, batch: int, entry: Entry | None = None) -> Iterator[Judged]:
        """The batch as it was judged before, or, where no entry is given, by what is known now.

        A batch with strange ids is judged again when there are newer versions by then, so that no column is lost.
        Raises `Conflict` when versions come faster than that.
        """
        kept: list[DataFrame] = []
        try:
            if entry is not None:
                routes = tuple(Route(*each) for each in zip(self._config.routes, entry.pins, strict=True))
                parts = self._parts(raw, routes, kept, entry.known)
                yield Judged(routes, parts, entry.known, _counted(parts, batch)[0])
                return
            routes = self.pinned()
            for _ in range(TRIES):
                parts = self._parts(raw, routes, kept)
                counts, known, unknown = _counted(parts, batch)
                fresh = self._newer(routes) if unknown or not known <= _pinned(routes) else None
                if fresh is None and unknown:
                    fresh = self._found(routes, parts)
                if fresh is None:
                    if unknown:
                        parts = tuple((group, settled(df, sorted(known), self._label)) for group, df in parts)
                    yield Judged(routes, parts, tuple(sorted(known)), counts)
                    return
                routes = fresh
                _release(kept)
            raise Conflict("schemas are registered faster than a batch can be decoded")
        finally:
            _release(kept)

    def _parts(
        self, raw: DataFrame, routes: Sequence[Route], kept: list[DataFrame], known: Sequence[str] | None = None
    ) -> tuple[Part, ...]:
        """The judged records by group, each kept once it is computed."""
        found: list[Part] = []
        grouped = groups(routes)
        for group in grouped:
            judged = group.judged(raw, self._config, self._registry)
            found.append((group, (judged if known is None else settled(judged, known, self._label)).persist()))
        rest = unrouted(raw, grouped, self._config)
        if rest is not None:
            found.append((None, rest.persist()))
        kept += [df for _, df in found]
        return tuple(found)

    def _pin(self, subject: str, *, waiting: bool = True) -> PinnedSchemas:
        """The subject's versions now. Raises `RulesRefused` where nobody decided about the rules they have."""
        pause = 0.5
        until = time.monotonic() + self._config.source.patience
        while True:
            try:
                found = pin_schemas(self._registry, subject)
                if self._config.source.rules == "refuse":
                    refuse_reading(found)
                return found
            except Unavailable:
                if not waiting or self._stop.is_set() or time.monotonic() + pause > until:
                    raise
            self._stop.wait(pause)
            pause = min(2 * pause, 10.0)

    def _newer(self, routes: Sequence[Route]) -> tuple[Route, ...] | None:
        """The routes with fresh pins, when there is a newer version of a subject."""
        fresh = self.pinned()
        pairs = zip(routes, fresh, strict=True)
        return fresh if any(new.pinned.reader_version > old.pinned.reader_version for old, new in pairs) else None

    def _found(self, routes: Sequence[Route], parts: Sequence[Part]) -> tuple[Route, ...] | None:
        """The routes with schemas of ids that tasks did not know, when the registry knows some of them by now.

        Tasks do not ask again for a while; and an id may be registered while a batch is judged.
        """
        registry = self._registry
        if isinstance(registry, SchemaSnapshot) or not isinstance(wire_named(self._config.source.wire), Prefix):
            return None
        context = split(routes[0].pinned.subject).context
        found: list[ResolvedSchema] = []
        for number in _unknown_ids(parts):
            with suppress(ContentNotFound):
                asked = partial(get_client(registry).resolve, number, context=context)
                found.append(retry_unavailable(asked, self._config.source.patience))
        if not found:
            return None
        return tuple(Route(route.config, _with(route.pinned, found)) for route in routes)


def _unknown_ids(parts: Sequence[Part]) -> list[int]:
    """Some of the ids in a batch that tasks did not know."""
    from pyspark.sql import functions as f

    ids: list[int] = []
    for _, df in parts:
        bad = df.where((f.col(ERROR)["code"] == _UNKNOWN) & f.col(ID).isNotNull())
        ids += [row[0] for row in bad.select(ID).distinct().limit(MOST_ASKED).collect()]
    return [number for number in dict.fromkeys(ids) if number > 0][:MOST_ASKED]


def _with(pinned: PinnedSchemas, found: Sequence[ResolvedSchema]) -> PinnedSchemas:
    return msgspec.structs.replace(pinned, snapshot=SchemaSnapshot((*pinned.snapshot.schemas, *found)))


def _pinned(routes: Sequence[Route]) -> set[str]:
    return {name for route in routes for schema in route.pinned.snapshot.schemas for name in names_of(schema)}


def _release(kept: list[DataFrame]) -> None:
    while kept:
        kept.pop().unpersist()


_DEAD, _NULL = "dead", "null"
_UNKNOWN = ErrorCode.UNKNOWN_SCHEMA_ID.name


def _counted(parts: Sequence[Part], batch: int) -> tuple[BatchReport, set[str], bool]:
    """What came of the records, ids that were found, and whether others were not."""
    from pyspark.sql import functions as f

    report, known, unknown = BatchReport(batch), set[str](), False
    for group, df in parts:
        outcome, code = f.when(f.col(ERROR).isNotNull(), _DEAD), f.col(ERROR)["code"]
        outcome = outcome.when(f.col("value").isNull(), _NULL)
        for place, route in enumerate(group.routes if group else ()):
            outcome = outcome.when(group.value(route).isNotNull(), str(place))  # type: ignore[union-attr]  # of a group
        name = f.when(code.isNull() | (code != _UNKNOWN), f.col(ID).cast("string"))
        rows = df.groupBy(outcome.alias("outcome"), code.alias("code"), name.alias("id")).count().collect()
        known |= {row.id for row in rows if row.id is not None}
        unknown = unknown or any(row.code == _UNKNOWN for row in rows)
        report = _plus(report, group, rows)
    return report, known, unknown


def _plus(report: BatchReport, group: Group | None, rows: Sequence[Any]) -> BatchReport:
    tables: dict[str, int] = {}
    records: dict[str, int] = {}
    codes: dict[str, int] = {}
    null = 0
    for row in rows:
        if row.outcome == _DEAD:
            codes = summed(codes, {row.code: row["count"]})
        elif row.outcome in (_NULL, None):
            null += row["count"]
        elif group is not None:
            tables = summed(tables, {group.routes[int(row.outcome)].config.table: row["count"]})
            records = summed(records, {row.id or "": row["count"]})
    return msgspec.structs.replace(
        report,
        rows=report.rows + sum(tables.values()),
        dead_letters=report.dead_letters + sum(codes.values()),
        codes=summed(report.codes, codes),
        tombstones=report.tombstones + null,
        tables=summed(report.tables, tables),
        records=summed(report.records, records),
    )


class BatchRunner:
    """Brings batches of one pipeline into its tables."""

    def __init__(self, config: PipelineConfig, judge: Judge, tables: Tables, journal: Journal) -> None:
        self._config, self._judge, self._tables, self._journal = config, judge, tables, journal
        self._application = journal.application()

    def run(self, df: DataFrame, batch: int) -> BatchReport:
        """Bring the batch into the tables, unless it is there. The frame has the columns of `source.RAW`."""
        begun = time.monotonic()
        before = self._journal.entry(batch)
        if before is not None and before.done:
            return BatchReport(batch, time.time(), replayed=True)
        with self._judge.judged(df, batch, before) as judged:
            if judged.counts.tombstones:
                check_files(df, self._config.source)
            if judged.counts.dead_letters and self._config.mode == "FAILFAST":
                raise _first_error(judged)
            added = self._tables.grow(judged.routes)
            entry = before or entry_of(judged)
            if before is None:
                self._journal.keep(entry)
            self._commit(judged)
            report = finished(judged, added, time.monotonic() - begun, replayed=before is not None)
        self._journal.finish(entry, report)
        return report

    def _commit(self, judged: Judged) -> None:
        batch = judged.counts.batch
        if judged.counts.dead_letters:
            self._tables.set_aside([df for _, df in judged.parts], self._application, batch)
        for group, df in judged.parts:
            if group is not None:
                self._tables.append(group, df, self._application, batch)


def entry_of(judged: Judged) -> Entry:
    """What a batch was judged by."""
    return Entry(judged.counts.batch, tuple(route.pinned for route in judged.routes), judged.known)


def finished(judged: Judged, added: tuple[str, ...], seconds: float, *, replayed: bool = False) -> BatchReport:
    """The report of a batch that is in its tables."""
    versions = {route.pinned.subject: route.pinned.reader_version for route in judged.routes}
    return msgspec.structs.replace(
        judged.counts,
        at=time.time(),
        seconds=seconds,
        columns_added=added,
        versions=versions,
        replayed=replayed,
        reasons=_reasons(judged) if judged.counts.dead_letters else {},
    )


def _reasons(judged: Judged) -> dict[str, int]:
    """The dead letters by reason; of many different ones the most frequent."""
    from pyspark.sql import functions as f

    found: dict[str, int] = {}
    for _, df in judged.parts:
        bad = df.where(f.col(ERROR).isNotNull()).groupBy(f.col(ERROR)["reason"].alias("reason")).count()
        most = bad.orderBy(f.desc("count")).limit(MOST_REASONS).collect()
        found = summed(found, {row.reason: row["count"] for row in most})
    return found


def _first_error(judged: Judged) -> DecodeError:
    """The error for a pipeline that does not take bad records."""
    from pyspark.sql import functions as f

    for _, df in judged.parts:
        row = df.where(f.col(ERROR).isNotNull()).select(ERROR).first()
        if row is None:
            continue
        error = row[0]
        return decode_error(ErrorCode[error.code], error.reason, error.schema_id, error.offset)
    raise AssertionError("no record is bad")
