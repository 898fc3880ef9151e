"""Classify each record of a batch as a row of a table, a dead letter with its reason, or a tombstone."""

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
from stele.client.names import split_subject
from stele.errors import Conflict, ContentNotFound, Unavailable
from stele.spark.decode.rules import refuse_reading
from stele.spark.engines.error_codes import MESSAGES, ErrorCode
from stele.spark.pipeline.config import PipelineConfig
from stele.spark.pipeline.journal import BatchEntry, BatchReport, add_counts
from stele.spark.pipeline.routes import (
    ERROR,
    ID,
    VALUE,
    PinnedRoute,
    RouteGroup,
    group_routes,
    has_unrouted,
    id_type,
    schema_names,
)
from stele.spark.registry import PinnedSchemas, RegistryLike, get_client, pin_schemas, retry_unavailable
from stele.spark.wires import Prefix, get_wire

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from stele.client import ResolvedSchema
if TYPE_CHECKING:
    from pyspark.sql import DataFrame
RoutePart: TypeAlias = "tuple[RouteGroup | None, DataFrame]"
MAX_ATTEMPTS = 5
"""Maximum number of attempts to classify a batch, which is repeated when schemas were registered meanwhile."""
MAX_LATE_IDS = 20
"""Maximum number of unknown ids of a batch for which the registry is asked again."""
_DEAD, _NULL = "dead", "null"
_UNKNOWN = ErrorCode.UNKNOWN_SCHEMA_ID.name


def select_unrouted(raw: DataFrame, grouped: Sequence[RouteGroup], config: PipelineConfig) -> DataFrame | None:
    """Return the records of topics without a route as dead letters, or None if there can be none."""
    from pyspark.sql import functions as f

    if not has_unrouted(config):
        return None
    topics = [group.topic for group in grouped]
    nothing = f.lit(None).cast(id_type(config))
    sentence, after = MESSAGES[ErrorCode.UNROUTED].split("{detail}")
    error = _error_struct(nothing, ErrorCode.UNROUTED, f.concat(f.lit(sentence), f.col("topic"), f.lit(after)))
    rest = raw.where(~f.col("topic").isin(*topics))
    return rest.select("*", f.lit(None).cast("string").alias(VALUE), nothing.alias(ID), error.alias(ERROR))


def freeze_unknown_ids(judged: DataFrame, known: Sequence[str], label: str) -> DataFrame:
    """Return the classification with every unknown id made final.

    Records whose id is not in `known` become dead letters, even if the id has been registered since. `label` is the
    wire's word for an id.
    """
    from pyspark.sql import functions as f

    late = f.col(ERROR).isNull() & f.col(ID).isNotNull() & ~f.col(ID).cast("string").isin(*known)
    sentence, after = MESSAGES[ErrorCode.UNKNOWN_SCHEMA_ID].format(label=label, id="\0").split("\0")
    reason = f.concat(f.lit(sentence), f.col(ID).cast("string"), f.lit(after))
    error = _error_struct(f.col(ID), ErrorCode.UNKNOWN_SCHEMA_ID, reason)
    return judged.withColumns({VALUE: f.when(~late, f.col(VALUE)), ERROR: f.when(late, error).otherwise(f.col(ERROR))})


def _error_struct(schema_id: Column, code: ErrorCode, reason: Column) -> Column:
    """Return an error struct in the form that decoding makes, without an offset."""
    from pyspark.sql import functions as f

    return f.struct(
        schema_id.alias("schema_id"),
        f.lit(None).cast("int").alias("offset"),
        f.lit(code.name).alias("code"),
        reason.alias("reason"),
    )


@dataclass(frozen=True, slots=True)
class ClassifiedBatch:
    """A batch whose records are classified.

    routes     the routes with the schemas that the batch was classified by
    parts      its records by group, persisted by Spark until the batch is done; the group is None for unrouted records
    known_ids  ids whose schema was found, as texts
    counts     number of rows, dead letters and tombstones
    """

    routes: tuple[PinnedRoute, ...]
    parts: tuple[RoutePart, ...]
    known_ids: tuple[str, ...]
    counts: BatchReport


class BatchClassifier:
    """Classifies the batches of one pipeline; setting `stop` ends the wait for a registry."""

    def __init__(self, config: PipelineConfig, registry: RegistryLike, stop: Event) -> None:
        self._config, self._registry, self._stop = config, registry, stop
        self._label = get_wire(config.source.wire).id_label

    def pin_routes(self) -> tuple[PinnedRoute, ...]:
        """Return the routes with the newest versions of their subjects.

        Waits for a registry that does not answer.
        """
        return tuple(PinnedRoute(route, self._pin_subject(route.subject)) for route in self._config.routes)

    def check_routes(self, *, waiting: bool) -> None:
        """Raise early the errors that every batch would raise: no registry, no such subject, a schema without columns.

        waiting   whether to wait for a registry that does not answer. The caller sets it when the pipeline has run
                  before, as its address is right then
        """
        for route in self._config.routes:
            PinnedRoute(route, self._pin_subject(route.subject, waiting=waiting)).table_columns(self._config)

    @contextmanager
    def classify_batch(self, raw: DataFrame, batch: int, entry: BatchEntry | None = None) -> Iterator[ClassifiedBatch]:
        """Yield the classified batch; with a journal entry, it is classified as it was before.

        If a batch has unknown ids, or ids that were not pinned, and the registry has newer versions by then, the batch
        is classified again, so that no column is lost. Raises `Conflict` when new versions arrive after every attempt.
        """
        persisted: list[DataFrame] = []
        try:
            if entry is not None:
                routes = tuple(PinnedRoute(*each) for each in zip(self._config.routes, entry.pins, strict=True))
                parts = self._classify_parts(raw, routes, persisted, entry.known)
                yield ClassifiedBatch(routes, parts, entry.known, _count_outcomes(parts, batch)[0])
                return
            routes = self.pin_routes()
            for _ in range(MAX_ATTEMPTS):
                parts = self._classify_parts(raw, routes, persisted)
                counts, known, unknown = _count_outcomes(parts, batch)
                fresh = self._pin_if_newer(routes) if unknown or not known <= _pinned_names(routes) else None
                if fresh is None and unknown:
                    fresh = self._add_late_schemas(routes, parts)
                if fresh is None:
                    if unknown:
                        parts = tuple(
                            (group, freeze_unknown_ids(df, sorted(known), self._label)) for group, df in parts
                        )
                    yield ClassifiedBatch(routes, parts, tuple(sorted(known)), counts)
                    return
                routes = fresh
                _unpersist_all(persisted)
            raise Conflict("new schemas keep arriving while the batch is decoded")
        finally:
            _unpersist_all(persisted)

    def _classify_parts(
        self,
        raw: DataFrame,
        routes: Sequence[PinnedRoute],
        persisted: list[DataFrame],
        known: Sequence[str] | None = None,
    ) -> tuple[RoutePart, ...]:
        """Return the classified records by group, each persisted when it is first computed."""
        parts: list[RoutePart] = []
        grouped = group_routes(routes)
        for group in grouped:
            judged = group.decode_records(raw, self._config, self._registry)
            parts.append(
                (group, (judged if known is None else freeze_unknown_ids(judged, known, self._label)).persist())
            )
        rest = select_unrouted(raw, grouped, self._config)
        if rest is not None:
            parts.append((None, rest.persist()))
        persisted += [df for _, df in parts]
        return tuple(parts)

    def _pin_subject(self, subject: str, *, waiting: bool = True) -> PinnedSchemas:
        """Return the subject's versions now. Raises `RulesRefused` if they have rules and `rules` is `refuse`."""
        pause = 0.5
        until = time.monotonic() + self._config.source.patience
        while True:
            try:
                pinned = pin_schemas(self._registry, subject)
                if self._config.source.rules == "refuse":
                    refuse_reading(pinned)
                return pinned
            except Unavailable:
                if not waiting or self._stop.is_set() or time.monotonic() + pause > until:
                    raise
            self._stop.wait(pause)
            pause = min(2 * pause, 10.0)

    def _pin_if_newer(self, routes: Sequence[PinnedRoute]) -> tuple[PinnedRoute, ...] | None:
        """Return the routes with fresh pins if a subject has a newer version, else None."""
        fresh = self.pin_routes()
        pairs = zip(routes, fresh, strict=True)
        return fresh if any(new.pinned.reader_version > old.pinned.reader_version for old, new in pairs) else None

    def _add_late_schemas(
        self, routes: Sequence[PinnedRoute], parts: Sequence[RoutePart]
    ) -> tuple[PinnedRoute, ...] | None:
        """Return the routes with added schemas, or None if the registry still does not know the unknown ids.

        The added schemas are those of ids that tasks did not know. Tasks cache an unknown id for a while, and an id can
        be registered while a batch is classified.
        """
        registry = self._registry
        if isinstance(registry, SchemaSnapshot) or not isinstance(get_wire(self._config.source.wire), Prefix):
            return None
        context = split_subject(routes[0].pinned.subject).context
        late: list[ResolvedSchema] = []
        for number in _unknown_ids(parts):
            with suppress(ContentNotFound):
                lookup = partial(get_client(registry).resolve, number, context=context)
                late.append(retry_unavailable(lookup, self._config.source.patience))
        if not late:
            return None
        return tuple(PinnedRoute(route.config, _with_schemas(route.pinned, late)) for route in routes)


def _unknown_ids(parts: Sequence[RoutePart]) -> list[int]:
    """Return at most `MAX_LATE_IDS` ids of a batch that tasks did not know."""
    from pyspark.sql import functions as f

    ids: list[int] = []
    for _, df in parts:
        bad = df.where((f.col(ERROR)["code"] == _UNKNOWN) & f.col(ID).isNotNull())
        ids += [row[0] for row in bad.select(ID).distinct().limit(MAX_LATE_IDS).collect()]
    return [number for number in dict.fromkeys(ids) if number > 0][:MAX_LATE_IDS]


def _with_schemas(pinned: PinnedSchemas, schemas: Sequence[ResolvedSchema]) -> PinnedSchemas:
    return msgspec.structs.replace(pinned, snapshot=SchemaSnapshot((*pinned.snapshot.schemas, *schemas)))


def _pinned_names(routes: Sequence[PinnedRoute]) -> set[str]:
    return {name for route in routes for schema in route.pinned.snapshot.schemas for name in schema_names(schema)}


def _unpersist_all(persisted: list[DataFrame]) -> None:
    while persisted:
        persisted.pop().unpersist()


def _count_outcomes(parts: Sequence[RoutePart], batch: int) -> tuple[BatchReport, set[str], bool]:
    """Return the counts of the records, the ids that were found, and whether there were unknown ids."""
    from pyspark.sql import functions as f

    report, known, unknown = BatchReport(batch), set[str](), False
    for group, df in parts:
        outcome, code = f.when(f.col(ERROR).isNotNull(), _DEAD), f.col(ERROR)["code"]
        outcome = outcome.when(f.col("value").isNull(), _NULL)
        for place, route in enumerate(group.routes if group else ()):
            outcome = outcome.when(group.value_column(route).isNotNull(), str(place))  # type: ignore[union-attr]  # of a group
        name = f.when(code.isNull() | (code != _UNKNOWN), f.col(ID).cast("string"))
        rows = df.groupBy(outcome.alias("outcome"), code.alias("code"), name.alias("id")).count().collect()
        known |= {row.id for row in rows if row.id is not None}
        unknown = unknown or any(row.code == _UNKNOWN for row in rows)
        report = _add_outcomes(report, group, rows)
    return report, known, unknown


def _add_outcomes(report: BatchReport, group: RouteGroup | None, rows: Sequence[Any]) -> BatchReport:
    tables: dict[str, int] = {}
    records: dict[str, int] = {}
    codes: dict[str, int] = {}
    null = 0
    for row in rows:
        if row.outcome == _DEAD:
            codes = add_counts(codes, {row.code: row["count"]})
        elif row.outcome in (_NULL, None):
            null += row["count"]
        elif group is not None:
            tables = add_counts(tables, {group.routes[int(row.outcome)].config.table: row["count"]})
            records = add_counts(records, {row.id or "": row["count"]})
    return msgspec.structs.replace(
        report,
        rows=report.rows + sum(tables.values()),
        dead_letters=report.dead_letters + sum(codes.values()),
        codes=add_counts(report.codes, codes),
        tombstones=report.tombstones + null,
        tables=add_counts(report.tables, tables),
        records=add_counts(report.records, records),
    )
