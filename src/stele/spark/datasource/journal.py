"""The journal of a registry over HTTP: read in parts by tasks, and folded into the subjects and versions there were."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar, cast

import msgspec
from pyspark.sql.datasource import InputPartition

from stele.client import JournalEntry, LocationUsage, SchemaRegistryClient
from stele.errors import DataError
from stele.spark.datasource.tables import Row, SourceOptions, TableScope, journal_row, to_timestamp
from stele.spark.registry.clients import get_client, retry_unavailable

T = TypeVar("T")

_PAGE = 1000


class JournalFeed:
    """What a read asks of its registry. Every method may raise `RegistryUnreachable`, after patience."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def end(self) -> int:
        """Return the last sequence number of the journal."""
        return self._query(lambda client: client.journal(limit=0)).end

    def with_end(self, scope: TableScope) -> int:
        """Return where a scope ends: as of its number, or now.

        Raises `DataError` for a number that the journal has not reached.
        """
        end = self.end()
        if scope.until is not None and scope.until > end:
            raise DataError(f"asOf is {scope.until}, and the journal ends at {end}")
        return end if scope.until is None else scope.until

    def changes(self, scope: TableScope) -> Iterator[JournalEntry]:
        """Changes of a scope that has an end, in order; ids are not looked at."""
        until = scope.until or 0
        namespace, subject = _only_value(scope.namespaces), _only_value(scope.subjects)
        if scope.namespaces == frozenset() or scope.subjects == frozenset():
            return
        wanted = replace(scope, ids=None)
        for after in range(scope.after, until, _PAGE):
            page = self._read_page(after, min(_PAGE, until - after), namespace, subject)
            yield from (entry for entry in page if wanted.has(entry.namespace, entry.subject, None))

    def usage(self, scope: TableScope) -> list[LocationUsage]:
        """Return the places in which records of a scope were seen, with what was seen; ids are not looked at."""
        if scope.namespaces == frozenset() or scope.subjects == frozenset():
            return []
        namespace, subject = _only_value(scope.namespaces), _only_value(scope.subjects)
        locations = self._query(lambda client: client.usage(namespace=namespace, subject=subject))
        wanted = replace(scope, ids=None)
        kept = [
            (place, tuple(row for row in place.seen if wanted.has(row.namespace, row.subject, None)))
            for place in locations
        ]
        return [msgspec.structs.replace(place, seen=rows) for place, rows in kept]

    def texts(self, digests: Iterable[str]) -> dict[str, bytes]:
        """Texts by SHA-256 in hexadecimal, those that were purged left out."""
        wanted = list(digests)
        return self._query(lambda client: client.schema_texts(wanted)) if wanted else {}

    def _read_page(
        self, after: int, limit: int, namespace: str | None, subject: str | None
    ) -> tuple[JournalEntry, ...]:
        page = self._query(lambda client: client.journal(after, limit=limit, namespace=namespace, subject=subject))
        if page.next != after + limit:
            raise DataError(f"the journal ends at {page.end}, before {after + limit}: it is not the one there was")
        return page.entries

    def _query(self, question: Callable[[SchemaRegistryClient], T]) -> T:
        registry = self._options.registry
        return retry_unavailable(
            lambda: question(cast("SchemaRegistryClient", get_client(registry))), self._options.patience
        )


def _only_value(values: frozenset[str] | None) -> str | None:
    """Return the one value there is, if there is one."""
    return next(iter(values)) if values is not None and len(values) == 1 else None


@dataclass(frozen=True, slots=True)
class KnownVersion:
    """A version: the change that registered it, and whether it was (soft-)deleted since."""

    entry: JournalEntry
    deleted: bool = False

    @property
    def format(self) -> str:
        """Name of the format, as the registry calls it."""
        return str(self.entry.details.get("format", ""))

    @property
    def sha256(self) -> str:
        """Digest of the text, in hexadecimal."""
        return str(self.entry.details.get("sha256", ""))

    def row(self, text: str | None) -> Row:
        """As a row of the table versions."""
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
    """Subjects and their versions; `add` the changes in order."""

    def __init__(self) -> None:
        self._subjects: dict[tuple[str, str], _Subject] = {}

    def add(self, entry: JournalEntry) -> None:
        """Take note of a change."""
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
        """Return all versions by namespace, subject and number."""
        for _, subject in sorted(self._subjects.items()):
            for _, known in sorted(subject.versions.items()):
                yield known

    def subjects(self) -> Iterator[Row]:
        """Return all subjects by name, as rows of the table subjects."""
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
"""Records of the journal one task reads."""


class JournalPartition(InputPartition):
    """Changes behind one sequence number up to another."""

    def __init__(self, scope: TableScope) -> None:
        self.scope = scope


class RowsPartition(InputPartition):
    """Rows that are known already."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows


class VersionsPartition(InputPartition):
    """Versions whose texts are to be fetched."""

    def __init__(self, versions: list[KnownVersion]) -> None:
        self.versions = versions


def split_scope(scope: TableScope, until: int) -> list[InputPartition]:
    """Return a scope of the journal up to a sequence number, in parts for tasks."""
    return [
        JournalPartition(scope.between(after, min(after + RECORDS, until)))
        for after in range(scope.after, until, RECORDS)
    ]


def read_stretch(feed: JournalFeed, scope: TableScope) -> Iterator[Row]:
    """Its changes as rows."""
    return (journal_row(entry) for entry in feed.changes(scope) if scope.ids is None or entry.schema_id in scope.ids)
