"""The tables of the source: their columns, options and rows, made from the journal of a registry.

Tasks read the journal in parts over HTTP. The driver folds it into the subjects and versions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar, cast

import msgspec
from pyspark.sql.datasource import InputPartition

from stele.client import JournalEntry, LocationUsage, SchemaRegistryClient
from stele.errors import DataError, Invalid
from stele.spark.registry import PATIENCE, get_client, retry_unavailable

SUBJECTS, VERSIONS, JOURNAL, USAGE = "subjects", "versions", "journal", "usage"

COLUMNS: Final[Mapping[str, str]] = {
    SUBJECTS: (
        "namespace string, subject string, format string, versions int, latest_version int, latest_schema_id int, "
        "deleted boolean, seq bigint"
    ),
    VERSIONS: (
        "namespace string, subject string, version int, schema_id int, format string, type string, schema string, "
        "references array<struct<name: string, namespace: string, subject: string, version: int>>, deleted boolean, "
        "registered_at timestamp, actor string, via string, sha256 string, seq bigint"
    ),
    JOURNAL: (
        "seq bigint, part int, time timestamp, actor string, via string, kind string, namespace string, "
        "subject string, version int, schema_id int, details string"
    ),
    USAGE: (
        "place string, namespace string, subject string, version int, schema_id int, records bigint, bytes bigint, "
        "first_seen timestamp, last_seen timestamp, counted_at timestamp, whole boolean"
    ),
}
"""Columns of each table, as DDL."""

OPTIONS: Final = (
    "registry",
    "table",
    "asOf",
    "namespace",
    "subject",
    "startingSeq",
    "maxRecordsPerTrigger",
    "patience",
)

Row = tuple[Any, ...]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FARTHEST = 253_402_300_799_999  # milliseconds: the last instant that both Python and Spark can represent


@dataclass(frozen=True, slots=True)
class TableScope:
    """The part of a table that is read. None means no limit; the namespace '' is the default one.

    ids     schema ids
    after   sequence number after which changes are read
    until   sequence number of the last change; None: the journal's end when the query is planned
    """

    namespaces: frozenset[str] | None = None
    subjects: frozenset[str] | None = None
    ids: frozenset[int] | None = None
    after: int = 0
    until: int | None = None

    def narrow_to(self, column: str, values: frozenset[Any]) -> TableScope:
        """Return the scope limited to rows whose column (namespace, subject or schema_id) has one of the values."""
        member = {"namespace": "namespaces", "subject": "subjects", "schema_id": "ids"}[column]
        own = getattr(self, member)
        return replace(self, **{member: values if own is None else own & values})  # type: ignore[arg-type]  # by name

    def between(self, after: int | None = None, until: int | None = None) -> TableScope:
        """Return the scope limited to changes after one sequence number and up to another."""
        return replace(
            self,
            after=self.after if after is None else max(self.after, after),
            until=self.until if until is None else until if self.until is None else min(self.until, until),
        )

    def has(self, namespace: str | None, subject: str | None, schema_id: int | None) -> bool:
        """Return whether a row is in the scope."""
        return (
            (self.namespaces is None or namespace in self.namespaces)
            and (self.subjects is None or subject in self.subjects)
            and (self.ids is None or schema_id in self.ids)
        )


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of a read.

    registry      address, several with commas
    start         for a stream without a checkpoint, the sequence number after which it begins; None: at the end
    most          maximum number of journal records in one micro-batch; None: no limit
    patience      seconds for which requests are repeated to a registry that does not answer
    """

    registry: str
    table: str
    scope: TableScope
    start: int | None = 0
    most: int | None = None
    patience: float = PATIENCE

    @classmethod
    def of(cls, written: Mapping[str, str]) -> SourceOptions:
        """Return the options a user gave; their names are not case-sensitive. Raises `Invalid`."""
        known = {name.lower(): name for name in OPTIONS}
        options = {known.get(name.lower(), name): value for name, value in written.items()}
        if strange := options.keys() - set(OPTIONS) - {"path"}:
            raise Invalid(f"the source has no option {', '.join(sorted(strange))}; its options: {', '.join(OPTIONS)}")
        table = options.get("table") or options.get("path", SUBJECTS)
        if table not in COLUMNS:
            raise Invalid(f"table is one of {', '.join(COLUMNS)}, not {table!r}")
        if not options.get("registry"):
            raise Invalid("the option registry is missing: give the address of a registry")
        if table == USAGE and "asOf" in options:
            raise Invalid("the table usage has the last census of each place only, so it cannot be read with asOf")
        start = options.get("startingSeq", "0")
        return cls(
            options["registry"],
            table,
            _read_scope(options),
            None if start == "latest" else _read_whole_number(start, "startingSeq", " or latest"),
            _read_whole_number(options["maxRecordsPerTrigger"], "maxRecordsPerTrigger")
            if "maxRecordsPerTrigger" in options
            else None,
            float(_read_whole_number(options["patience"], "patience")) if "patience" in options else PATIENCE,
        )


def _read_scope(options: Mapping[str, str]) -> TableScope:
    scope = TableScope(until=_read_whole_number(options["asOf"], "asOf") if "asOf" in options else None)
    for name in ("namespace", "subject"):
        if name in options:
            scope = scope.narrow_to(name, frozenset({options[name]}))
    return scope


def _read_whole_number(text: str, name: str, otherwise: str = "") -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Invalid(f"{name} is a whole number{otherwise}, not {text!r}")
    return int(text)


def to_timestamp(milliseconds: int) -> datetime:
    """Return a time in milliseconds since 1970 as Spark takes it, limited to the range from 1970 to 9999."""
    return _EPOCH + timedelta(milliseconds=max(0, min(milliseconds, _FARTHEST)))


def usage_rows(place: LocationUsage) -> Iterator[Row]:
    """Yield the census of a place as rows of the table usage, one for each version that was seen."""
    for version_usage in place.seen:
        yield (
            place.place,
            version_usage.namespace,
            version_usage.subject,
            version_usage.version,
            version_usage.schema_id,
            version_usage.records,
            version_usage.bytes,
            None if version_usage.first_seen is None else to_timestamp(version_usage.first_seen),
            None if version_usage.last_seen is None else to_timestamp(version_usage.last_seen),
            to_timestamp(place.counted_at),
            place.whole,
        )


def journal_row(entry: JournalEntry) -> Row:
    """Return a change as a row of the table journal."""
    return (
        entry.seq,
        entry.part,
        to_timestamp(entry.at),
        entry.actor,
        entry.via,
        entry.kind,
        entry.namespace,
        entry.subject,
        entry.version,
        entry.schema_id,
        json.dumps(entry.details, ensure_ascii=False, sort_keys=True),
    )


T = TypeVar("T")

_PAGE = 1000


class JournalFeed:
    """Reads data of the registry. Every method can raise `RegistryUnreachable`, after `patience` seconds."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def end(self) -> int:
        """Return the last sequence number of the journal."""
        return self._query(lambda client: client.journal(limit=0)).end

    def with_end(self, scope: TableScope) -> int:
        """Return the last sequence number of a scope: its own limit, or the journal's end.

        Raises `DataError` for a limit that the journal has not reached.
        """
        end = self.end()
        if scope.until is not None and scope.until > end:
            raise DataError(f"asOf is {scope.until}, but the journal ends at {end}")
        return end if scope.until is None else scope.until

    def changes(self, scope: TableScope) -> Iterator[JournalEntry]:
        """Yield the changes of a scope that has an end, in order. Schema ids are not filtered."""
        until = scope.until or 0
        namespace, subject = _only_value(scope.namespaces), _only_value(scope.subjects)
        if scope.namespaces == frozenset() or scope.subjects == frozenset():
            return
        wanted = replace(scope, ids=None)
        for after in range(scope.after, until, _PAGE):
            page = self._read_page(after, min(_PAGE, until - after), namespace, subject)
            yield from (entry for entry in page if wanted.has(entry.namespace, entry.subject, None))

    def usage(self, scope: TableScope) -> list[LocationUsage]:
        """Return the places in which records of a scope were seen, with their counts. Schema ids are not filtered."""
        if scope.namespaces == frozenset() or scope.subjects == frozenset():
            return []
        namespace, subject = _only_value(scope.namespaces), _only_value(scope.subjects)
        locations = self._query(lambda client: client.usage(namespace=namespace, subject=subject))
        wanted = replace(scope, ids=None)
        selection = [
            (place, tuple(row for row in place.seen if wanted.has(row.namespace, row.subject, None)))
            for place in locations
        ]
        return [msgspec.structs.replace(place, seen=rows) for place, rows in selection]

    def texts(self, digests: Iterable[str]) -> dict[str, bytes]:
        """Return texts by SHA-256 in hexadecimal, without those that were purged."""
        wanted = list(digests)
        return self._query(lambda client: client.schema_texts(wanted)) if wanted else {}

    def _read_page(
        self, after: int, limit: int, namespace: str | None, subject: str | None
    ) -> tuple[JournalEntry, ...]:
        page = self._query(lambda client: client.journal(after, limit=limit, namespace=namespace, subject=subject))
        if page.next != after + limit:
            raise DataError(f"the journal ends at {page.end}, before {after + limit}: the registry was replaced")
        return page.entries

    def _query(self, question: Callable[[SchemaRegistryClient], T]) -> T:
        registry = self._options.registry
        return retry_unavailable(
            lambda: question(cast("SchemaRegistryClient", get_client(registry))), self._options.patience
        )


def _only_value(values: frozenset[str] | None) -> str | None:
    """Return the single value of the set, or None."""
    return next(iter(values)) if values is not None and len(values) == 1 else None


@dataclass(frozen=True, slots=True)
class KnownVersion:
    """A version: the change that registered it, and whether it was soft-deleted since."""

    entry: JournalEntry
    deleted: bool = False

    @property
    def format(self) -> str:
        """Name of the format in the registry."""
        return str(self.entry.details.get("format", ""))

    @property
    def sha256(self) -> str:
        """SHA-256 of the text, in hexadecimal."""
        return str(self.entry.details.get("sha256", ""))

    def row(self, text: str | None) -> Row:
        """Return the version as a row of the table versions."""
        entry, details = self.entry, self.entry.details
        references = [
            (each.get("name"), each.get("namespace"), each.get("subject"), each.get("version"))
            for each in details.get("references", ())
        ]
        return (
            entry.namespace,
            entry.subject,
            entry.version,
            entry.schema_id,
            self.format,
            details.get("type", ""),
            text,
            references,
            self.deleted,
            to_timestamp(details.get("registered_at", entry.at)),
            entry.actor,
            entry.via,
            self.sha256,
            entry.seq,
        )


@dataclass(slots=True)
class _Subject:
    versions: dict[int, KnownVersion] = field(default_factory=dict)
    seq: int = 0


class History:
    """The subjects and their versions. Changes must be added in order."""

    def __init__(self) -> None:
        self._subjects: dict[tuple[str, str], _Subject] = {}

    def add(self, entry: JournalEntry) -> None:
        """Apply one change."""
        if entry.namespace is None or entry.subject is None:
            return
        key = entry.namespace, entry.subject
        if entry.kind in {"subject_created", "registered"} and key not in self._subjects:
            self._subjects[key] = _Subject()
        subject = self._subjects.get(key)
        if subject is None:
            return
        subject.seq = entry.seq
        number = entry.version
        if entry.kind == "registered" and number is not None:
            subject.versions[number] = KnownVersion(entry)
        elif entry.kind == "soft_deleted" and number in subject.versions:
            subject.versions[number] = replace(subject.versions[number], deleted=True)
        elif entry.kind == "purged":
            if number is not None:
                subject.versions.pop(number, None)
            if not subject.versions:
                del self._subjects[key]
        elif entry.kind == "subject_closed":
            del self._subjects[key]

    def versions(self) -> Iterator[KnownVersion]:
        """Yield all versions, sorted by namespace, subject and number."""
        for _, subject in sorted(self._subjects.items()):
            for _, known in sorted(subject.versions.items()):
                yield known

    def subjects(self) -> Iterator[Row]:
        """Yield all subjects as rows of the table subjects, sorted by namespace and name."""
        for (namespace, name), subject in sorted(self._subjects.items()):
            live = [known for _, known in sorted(subject.versions.items()) if not known.deleted]
            latest = live[-1] if live else None
            yield (
                namespace,
                name,
                latest.format if latest else None,
                len(live),
                latest.entry.version if latest else None,
                latest.entry.schema_id if latest else None,
                bool(subject.versions) and not live,
                subject.seq,
            )


RECORDS = 10_000
"""Number of journal records that one task reads."""


class JournalPartition(InputPartition):
    """Changes after one sequence number up to another."""

    def __init__(self, scope: TableScope) -> None:
        self.scope = scope


class RowsPartition(InputPartition):
    """Rows that were computed on the driver."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows


class VersionsPartition(InputPartition):
    """Versions whose texts a task fetches."""

    def __init__(self, versions: list[KnownVersion]) -> None:
        self.versions = versions


def split_scope(scope: TableScope, until: int) -> list[InputPartition]:
    """Return a scope of the journal, up to a sequence number, as partitions for tasks."""
    return [
        JournalPartition(scope.between(after, min(after + RECORDS, until)))
        for after in range(scope.after, until, RECORDS)
    ]


def read_stretch(feed: JournalFeed, scope: TableScope) -> Iterator[Row]:
    """Return the changes of a scope as rows, filtered by its schema ids."""
    return (journal_row(entry) for entry in feed.changes(scope) if scope.ids is None or entry.schema_id in scope.ids)
