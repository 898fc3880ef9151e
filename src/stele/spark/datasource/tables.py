"""The tables of the source: their columns, the options that choose among their rows, and how a change becomes a row."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from stele.client import JournalEntry, LocationUsage
from stele.errors import Invalid
from stele.spark.registry.clients import PATIENCE

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
_FARTHEST = 253_402_300_799_999  # milliseconds: the last instant Python and Spark both write


@dataclass(frozen=True, slots=True)
class TableScope:
    """Which part of a table is read. None: no limit; namespace '' is the default one.

    ids     of schemas
    after   sequence number behind which changes count
    until   the last one that counts; None: the journal's end when the query is planned
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
        """Return the same with changes behind a sequence number, or up to one, only."""
        return replace(
            self,
            after=self.after if after is None else max(self.after, after),
            until=self.until if until is None else until if self.until is None else min(self.until, until),
        )

    def has(self, namespace: str | None, subject: str | None, schema_id: int | None) -> bool:
        """Whether a row is within it."""
        return (
            (self.namespaces is None or namespace in self.namespaces)
            and (self.subjects is None or subject in self.subjects)
            and (self.ids is None or schema_id in self.ids)
        )


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of a read.

    registry      address, several with commas
    start         of a stream without a checkpoint: the sequence number behind which it begins; None: at the end
    most          records of the journal in one micro-batch, None: all there are
    patience      seconds a registry that does not answer is asked again
    """

    registry: str
    table: str
    scope: TableScope
    start: int | None = 0
    most: int | None = None
    patience: float = PATIENCE

    @classmethod
    def of(cls, given: Mapping[str, str]) -> SourceOptions:
        """Return the options a user gave; their names are not case-sensitive. Raises `Invalid`."""
        known = {name.lower(): name for name in OPTIONS}
        said = {known.get(name.lower(), name): value for name, value in given.items()}
        if strange := said.keys() - set(OPTIONS) - {"path"}:
            raise Invalid(f"the source has no option {', '.join(sorted(strange))}; its options: {', '.join(OPTIONS)}")
        table = said.get("table") or said.get("path", SUBJECTS)
        if table not in COLUMNS:
            raise Invalid(f"table is one of {', '.join(COLUMNS)}, not {table!r}")
        if not said.get("registry"):
            raise Invalid("the option registry is missing: the address of a registry")
        if table == USAGE and "asOf" in said:
            raise Invalid("the table usage has the last census of each place only: asOf is for the other tables")
        start = said.get("startingSeq", "0")
        return cls(
            said["registry"],
            table,
            _read_scope(said),
            None if start == "latest" else _read_whole_number(start, "startingSeq", " or latest"),
            _read_whole_number(said["maxRecordsPerTrigger"], "maxRecordsPerTrigger")
            if "maxRecordsPerTrigger" in said
            else None,
            float(_read_whole_number(said["patience"], "patience")) if "patience" in said else PATIENCE,
        )


def _read_scope(said: Mapping[str, str]) -> TableScope:
    scope = TableScope(until=_read_whole_number(said["asOf"], "asOf") if "asOf" in said else None)
    for name in ("namespace", "subject"):
        if name in said:
            scope = scope.narrow_to(name, frozenset({said[name]}))
    return scope


def _read_whole_number(text: str, name: str, otherwise: str = "") -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Invalid(f"{name} is a whole number{otherwise}, not {text!r}")
    return int(text)


def to_timestamp(milliseconds: int) -> datetime:
    """Return a time in milliseconds since 1970 as Spark takes it; what is out of its reach is brought to its ends."""
    return _EPOCH + timedelta(milliseconds=max(0, min(milliseconds, _FARTHEST)))


def usage_rows(place: LocationUsage) -> Iterator[Row]:
    """Return the census of a place as rows of the table usage, one for each version that was seen."""
    for seen in place.seen:
        yield (
            place.place,
            seen.namespace,
            seen.subject,
            seen.version,
            seen.schema_id,
            seen.records,
            seen.bytes,
            None if seen.first_seen is None else to_timestamp(seen.first_seen),
            None if seen.last_seen is None else to_timestamp(seen.last_seen),
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
