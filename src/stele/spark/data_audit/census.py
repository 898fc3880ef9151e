"""Census: which schemas, versions and fields are really in the data, and which versions are no longer needed.

The verdict "safe to delete" covers the counted data only. A topic with retention, a backup or another table can still
hold records of the version. `record_usage` sends a census to the registry, which then warns callers who delete a
version whose records were seen.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, cast

import msgspec

from stele.client import CensusRecord, LocationUsage, ResolvedSchema, SchemaRegistryClient, SchemaSnapshot, VersionUsage
from stele.client.names import split_subject
from stele.errors import Invalid
from stele.spark.data_audit.aggregation import RecordColumn, add_counts, aggregate_records, greatest_known
from stele.spark.data_audit.audit_scope import AuditedVersion, AuditScope, SubjectLike, VersionLocation, load_scope
from stele.spark.data_audit.data_stats import NO_ID, SchemaStats, SchemaStatsAggregator
from stele.spark.data_audit.report import (
    AuditReport,
    Bars,
    Fact,
    ReportState,
    Section,
    bucket_days,
    format_micros,
    pluralize,
)
from stele.spark.data_audit.subject_evolution import SubjectEvolution, describe_missing, draw_evolutions
from stele.spark.registry import PATIENCE, RegistryLike, as_picklable, get_client, retry_unavailable
from stele.spark.session import require_spark
from stele.spark.wires import WireLike

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class FieldUsage(msgspec.Struct, frozen=True):
    """How often a field was set, out of the records that could hold it.

    path     path of the field
    type     type of its column
    present  how often it was not null
    of       number of records that could hold it
    """

    path: str
    type: str
    present: int
    of: int


class IdUsage(msgspec.Struct, frozen=True):
    """The records of one id.

    known        whether the registry has a schema for it
    places       where it is registered, as text: `orders-value v3`
    versions     the same as values
    schema_id    the registry's schema id, even if the wire uses another name; 0 if unknown
    first, last  times of the first and the last record, RFC 3339; '' without a time column
    unreadable   records that could not be read with their own schema, by reason
    fields       fields of the records that could be read; empty if fields were not examined
    note         why the schema or the fields are unknown
    """

    id: str
    known: bool
    places: tuple[str, ...]
    records: int
    bytes: int
    first: str = ""
    last: str = ""
    unreadable: dict[str, int] = {}
    fields: tuple[FieldUsage, ...] = ()
    note: str = ""
    versions: tuple[VersionLocation, ...] = ()
    schema_id: int = 0

    @property
    def never_set(self) -> list[str]:
        """Fields that are null in every record that could hold them."""
        return [field.path for field in self.fields if field.of and not field.present]


class DeletableVersion(msgspec.Struct, frozen=True):
    """A version of an audited subject, and whether it can be deleted.

    safe    whether no record of the data, and no other schema, needs it
    why     one sentence
    hidden  it is soft-deleted already: the question is whether to purge it
    """

    subject: str
    version: int
    id: int
    records: int
    last: str
    safe: bool
    why: str
    hidden: bool = False


class Census(msgspec.Struct, frozen=True):
    """The result of a census.

    records     number of records without null ones, which are tombstones
    unframed    records without an id, by reason
    days        records by day (`2026-11-22`) and id; empty without a time column
    evolutions  histories of the subjects' versions and fields, as far as the registry has them
    """

    subjects: tuple[str, ...]
    wire: str
    records: int
    tombstones: int
    bytes: int
    unframed: dict[str, int]
    ids: tuple[IdUsage, ...]
    versions: tuple[DeletableVersion, ...]
    days: dict[str, dict[str, int]] = {}
    evolutions: tuple[SubjectEvolution, ...] = ()

    @property
    def unknown_ids(self) -> list[str]:
        """Ids in the data that the registry does not know."""
        return [usage.id for usage in self.ids if not usage.known]

    @property
    def is_clean(self) -> bool:
        """Whether every record has a known id and can be read with its schema."""
        return not self.unframed and not self.unknown_ids and not any(usage.unreadable for usage in self.ids)

    def report(self) -> AuditReport:
        """Return the census as a report."""
        return _make_report(self)


def census(
    df: DataFrame,
    column: str = "value",
    *,
    registry: RegistryLike,
    subject: SubjectLike = "",
    wire: WireLike = "confluent",
    headers: str | None = None,
    timestamp: str | None = None,
    message: str = "",
    fields: bool = True,
    engine: str = "auto",
    patience: float = PATIENCE,
) -> Census:
    """Count what is in a column of framed records. Runs one Spark job over a batch DataFrame.

    subject    subject or subjects whose versions are judged; without one, ids are only listed with their locations
    timestamp  column with the time when a record was written: a timestamp, a date, or milliseconds since 1970
    fields     whether every record is decoded with its own schema, to count fields and damage; False reads frames only
    registry, wire, headers, message, engine, patience   as for `from_registry`, but without the engine `jvm`;
               data rules are not run

    Raises `SubjectNotFound`, `RegistryUnreachable`, `Invalid`, `JobFailed`, `NotInstalled`.
    """
    require_spark()
    scope = load_scope(registry, subject, wire=wire, message=message, patience=patience, engine=engine)
    records = RecordColumn(df, column, headers, timestamp)
    return make_census(aggregate_records(records, SchemaStatsAggregator(scope.context, fields=fields)), scope)


def make_census(stats_by_id: Mapping[str, SchemaStats], scope: AuditScope) -> Census:
    """Return the census from the statistics of each id."""
    lost = stats_by_id.get(NO_ID, SchemaStats())
    named = {name: sighting for name, sighting in stats_by_id.items() if name != NO_ID}
    ids, by_version = [], dict[tuple[str, int], list[SchemaStats]]()
    for name, sighting in sorted(named.items(), key=lambda item: (-item[1].records, item[0])):
        schema, note = scope.find_schema(name)
        registered = scope.find_locations(schema) if schema else []
        for place in registered:
            by_version.setdefault((place.subject, place.version), []).append(sighting)
        ids.append(_make_id_usage(name, sighting, registered, note, schema))
    blind = lost.records + sum(each.records for each, it in zip(named.values(), ids, strict=True) if not it.known)
    return Census(
        subjects=tuple(dict.fromkeys(version.subject for version in scope.versions)),
        wire=scope.context.wire.name,
        records=lost.records + sum(each.records for each in named.values()),
        tombstones=lost.nulls,
        bytes=lost.bytes + sum(each.bytes for each in named.values()),
        unframed=lost.reasons,
        ids=tuple(ids),
        versions=tuple(
            _judge_version(it, by_version.get((it.subject, it.version), ()), blind) for it in scope.versions
        ),
        days=_count_by_day(named),
        evolutions=scope.load_evolutions(),
    )


def _make_id_usage(
    name: str, stats: SchemaStats, places: Sequence[VersionLocation], note: str, schema: ResolvedSchema | None
) -> IdUsage:
    return IdUsage(
        id=name,
        known=schema is not None,
        places=tuple(map(str, places)),
        records=stats.records,
        bytes=stats.bytes,
        first=format_micros(stats.first),
        last=format_micros(stats.last),
        unreadable=stats.reasons,
        fields=tuple(FieldUsage(path, it.type, it.present, it.slots) for path, it in stats.fields.items()),
        note=note or stats.note,
        versions=tuple(places),
        schema_id=schema.id if schema else 0,
    )


def _judge_version(version: AuditedVersion, sightings: Sequence[SchemaStats], blind: int) -> DeletableVersion:
    records = sum(stats.records for stats in sightings)
    last = format_micros(greatest_known(*(stats.last for stats in sightings)))
    safe = not records and not version.referred_by
    if records:
        why = f"not safe: {pluralize(records, 'record')}{f', last seen {last}' if last else ''}"
    elif version.referred_by:
        why = f"not safe: needed by {', '.join(f'schema {number}' for number in version.referred_by)}"
    else:
        why = f"safe to {'purge' if version.hidden else 'delete'}: no record here needs it"
        if version.newest:
            why += "; it is the newest version, which readers and writers use by default"
        if blind:
            why += f"; {pluralize(blind, 'record')} here could not be distinguished"
    return DeletableVersion(
        version.subject, version.version, version.schema.id, records, last, safe, why, version.hidden
    )


def _count_by_day(stats_by_id: Mapping[str, SchemaStats]) -> dict[str, dict[str, int]]:
    days: dict[str, dict[str, int]] = {}
    for name, sighting in stats_by_id.items():
        for day, count in sorted((sighting.days or {}).items()):
            days.setdefault(format_micros(day * 86_400_000_000)[:10], {})[name] = count
    return dict(sorted(days.items()))


def _make_report(census: Census) -> AuditReport:
    whole = {usage.id: usage.records for usage in census.ids}
    damaged = sum(sum(usage.unreadable.values()) for usage in census.ids)
    return AuditReport(
        title="Census" + (f" of {', '.join(census.subjects)}" if census.subjects else ""),
        verdict="every record has a known schema and can be read"
        if census.is_clean
        else _describe_problems(census, damaged),
        state=ReportState.from_outcome(good=census.is_clean),
        facts=(
            Fact("records", census.records),
            Fact("tombstones", census.tombstones),
            Fact("bytes", census.bytes),
            Fact("schema ids", len(census.ids)),
            Fact("wire", census.wire),
        ),
        sections=(
            Section(
                "Which versions can be deleted",
                ("subject", "version", "id", "records", "last seen", "verdict"),
                tuple((it.subject, str(it.version), str(it.id), it.records, it.last, it.why) for it in census.versions),
                note="About these data only: others may hold records that were not counted.",
            ),
            Section(
                "Ids in the data",
                ("id", "registered as", "records", "bytes", "first seen", "last seen", "unreadable", "note"),
                tuple(
                    (
                        it.id,
                        ", ".join(it.places) or ("" if it.known else "unknown"),
                        it.records,
                        it.bytes,
                        it.first,
                        it.last,
                        sum(it.unreadable.values()),
                        it.note,
                    )
                    for it in census.ids
                ),
                bars=Bars("records by id", whole),
            ),
            *draw_evolutions(census.evolutions, _label_versions(census), "records here"),
            Section("Records over time", chart=bucket_days(census.days, list(whole))),
            Section("Records that cannot be read", ("id", "reason", "records"), _unreadable_rows(census)),
            Section(
                "Fields never set",
                ("id", "field", "type", "records with room for it"),
                tuple(
                    (it.id, each.path, each.type, each.of)
                    for it in census.ids
                    for each in it.fields
                    if each.of and not each.present
                ),
            ),
        ),
        remarks=describe_missing(census.evolutions),
    )


def _label_versions(census: Census) -> dict[str, dict[int, str]]:
    """Return a label with the number of records by subject and version. Versions without records have no label."""
    labels: dict[str, dict[int, str]] = {}
    for it in census.versions:
        if it.records:
            labels.setdefault(it.subject, {})[it.version] = pluralize(it.records, "record")
    return labels


def _describe_problems(census: Census, damaged: int) -> str:
    unknown = sum(usage.records for usage in census.ids if not usage.known)
    unframed = sum(census.unframed.values())
    parts = [
        f"{pluralize(unknown, 'record')} of unknown schemas" if unknown else "",
        f"{pluralize(unframed, 'record')} without an id" if unframed else "",
        f"{pluralize(damaged, 'record')} that cannot be read" if damaged else "",
    ]
    return ", ".join(part for part in parts if part)


def _unreadable_rows(census: Census) -> tuple[tuple[str, str, int], ...]:
    rows = [("", reason, count) for reason, count in census.unframed.items()]
    rows += [(it.id, reason, count) for it in census.ids for reason, count in add_counts(it.unreadable, {}).items()]
    return tuple(sorted(rows, key=lambda row: -row[2]))


def record_usage(
    result: Census, place: str, registry: RegistryLike, *, whole: bool = True, patience: float = PATIENCE
) -> LocationUsage:
    """Record a census in the registry, in place of the last one of the same place.

    place   name of the data that were counted, such as `topic orders`, `table shop.orders`, or a path
    whole   whether all of it was counted, not a part or a sample

    Ids that are registered in several subjects are recorded for each, unless the census was made for given subjects.
    Ids that the registry does not know are left out. Raises `Invalid` for a snapshot, in which nothing can be recorded,
    `NotFound` for a registry that keeps no censuses, `InvalidName`, `TooLarge`, `RegistryUnreachable`.
    """
    if isinstance(registry, SchemaSnapshot):
        raise Invalid("a census cannot be recorded in a snapshot: give a registry")
    picklable_registry = as_picklable(registry)
    assert not isinstance(picklable_registry, SchemaSnapshot)
    census = make_census_record(result, counted_at=time.time_ns() // 1_000_000, whole=whole)
    # on the driver this is a full client, with more methods than `RegistryClient`
    client = cast("SchemaRegistryClient", get_client(picklable_registry))
    return retry_unavailable(lambda: client.record_usage(place, census), patience)


def make_census_record(census: Census, *, counted_at: int, whole: bool = True) -> CensusRecord:
    """Return a census in the form that the registry keeps; `counted_at` is in milliseconds since 1970 UTC."""
    rows = tuple(row for usage in census.ids if usage.schema_id for row in _usage_rows(usage))
    return CensusRecord(counted_at, whole, census.records, rows)


def _usage_rows(usage: IdUsage) -> list[VersionUsage]:
    rows = []
    for at in usage.versions:
        context, subject = split_subject(at.subject)
        rows.append(
            VersionUsage(
                subject,
                at.version,
                usage.schema_id,
                usage.records,
                namespace=context,
                bytes=usage.bytes,
                first_seen=_to_millis(usage.first),
                last_seen=_to_millis(usage.last),
            )
        )
    return rows


def _to_millis(text: str) -> int | None:
    """Return a time in RFC 3339 as milliseconds since 1970 UTC, 0 for earlier times, None for ''."""
    return max(0, int(datetime.fromisoformat(text).timestamp() * 1000)) if text else None
