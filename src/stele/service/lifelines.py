"""The fields of a subject through its versions: when each field was added, and when it changed.

Versions are read from the newest to the oldest, off the event loop and for a few seconds at most, so an answer always
has the newest ones. Behind `GET /api/lifelines/{subject}`; `stele.pictures` draws the answer.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from stele.core import queries
from stele.core.access import Operation, subject_resource
from stele.core.compatibility_requests import SchemaSource
from stele.core.model import SubjectKey, Version, VersionState
from stele.core.ports import Field, Format
from stele.core.state import State
from stele.errors import SteleError, UnresolvedReference
from stele.formats.registry import get_format
from stele.protocol.history import MOST_COLUMNS, MOST_FIELDS, FieldLifeline, FieldLifelines, FieldSpan
from stele.service.changes import ChangeKind, TreeComparison
from stele.service.diff import make_outline
from stele.service.history import list_history_versions
from stele.service.registry import Registry
from stele.service.schemas import SchemaParser, SchemaTexts, collect_texts, measure_texts

SECONDS: Final = 2.0
"""Seconds of reading versions after which an answer ends."""
_BATCH: Final = 16
"""Maximum number of versions that are read together; their texts are in memory at the same time."""
_BATCH_BYTES: Final = 16 << 20
"""Length of these texts in bytes after which no further version is added."""
_MOST_SPANS: Final = 50_000
"""Maximum number of spans in one answer; further, older versions are left out."""
_LONGEST_TEXT: Final = 300
"""Maximum length of a type, default or doc in an answer, in characters."""


class _VersionTexts(NamedTuple):
    """A version to read. texts is None if they were purged."""

    number: int
    format: str
    source: SchemaSource | None
    texts: SchemaTexts | None


class _ReadVersion(NamedTuple):
    """The parts of a version that was read that the next older one needs."""

    number: int
    format: Format[Any]
    source: SchemaSource
    parsed: Any
    paths: frozenset[str]


async def get_lifelines(registry: Registry, key: SubjectKey, *, limit: int = MOST_COLUMNS) -> FieldLifelines:
    """Return the fields of the newest active versions; of a subject without any, of the soft-deleted ones.

    Args:
        registry: The node.
        key: The subject.
        limit: Maximum number of versions.

    Raises:
        SubjectNotFound: The subject has no version.
        SteleError: `Forbidden`, `Unauthenticated`, `Overloaded`.
    """
    registry.access.require(Operation.READ, subject_resource(key))
    await registry.fresh_state()
    rows = list_history_versions(registry, key)
    rows = [row for row in rows if row.state is VersionState.ACTIVE] or rows
    newest = rows[-min(limit, MOST_COLUMNS) :]
    reader = LifelineReader(registry.parser)
    until = time.monotonic() + SECONDS
    oldest_first = list(newest)
    complete = True
    while oldest_first and complete:
        batch = _take_newest(registry.state, oldest_first)
        complete = await registry.run_stateless(reader.read_versions, batch, until)
    lifelines = await registry.run_stateless(reader.make_lifelines)
    return FieldLifelines(
        namespace=key.namespace,
        subject=key.name,
        versions=tuple(reversed(reader.numbers)),
        fields=tuple(lifelines[:MOST_FIELDS]),
        earlier=len(rows) - len(reader.numbers),
        omitted=max(0, len(lifelines) - MOST_FIELDS),
        complete=complete,
    )


def _take_newest(state: State, rows: list[Version]) -> list[_VersionTexts]:
    """Take versions from the end, newest first, with as many texts as may be in memory together."""
    taken: list[_VersionTexts] = []
    size = 0
    while rows and len(taken) < _BATCH and size < _BATCH_BYTES:
        taken.append(_collect_version(state, rows.pop()))
        texts = taken[-1].texts
        size += measure_texts(texts) if texts is not None else 0
    return taken


def _collect_version(state: State, row: Version) -> _VersionTexts:
    try:
        source = SchemaSource(row.content.sha, queries.resolve_references(state, row.schema.attachments.references))
        return _VersionTexts(row.version_number, row.kind.format, source, collect_texts(state, source))
    except (UnresolvedReference, KeyError):  # purged meanwhile
        return _VersionTexts(row.version_number, row.kind.format, None, None)


class LifelineReader:
    """Joins the fields of consecutive versions, newest first; belongs to one thread at a time."""

    def __init__(self, parser: SchemaParser) -> None:
        self._parser = parser
        self.numbers: list[int] = []
        """Numbers of the versions that were read, descending."""
        self._spans: dict[str, list[FieldSpan]] = {}
        """Spans of each field path, newest first."""
        self._renamed_from: dict[str, str] = {}
        self._next: dict[str, str] = {}
        """The field path that follows each field path; '' is before the first one."""
        self._count = 0
        self._newer: _ReadVersion | None = None

    def read_versions(self, versions: Iterable[_VersionTexts], until: float) -> bool:
        """Add older versions. Return False when the time of the clock `time.monotonic` is up, or the answer is full."""
        for version in versions:
            if time.monotonic() >= until or self._count >= _MOST_SPANS:
                return False
            self._read_version(version)
        return True

    def make_lifelines(self) -> list[FieldLifeline]:
        """Return one lifeline for each field path."""
        lifelines = []
        path = self._next.get("", "")
        while path:
            spans = tuple(reversed(self._spans[path]))
            lifelines.append(FieldLifeline(path, spans, self._renamed_from.get(path)))
            path = self._next.get(path, "")
        return lifelines

    def _read_version(self, version: _VersionTexts) -> None:
        newer, self._newer = self._newer, None
        if newer is not None and newer.source == version.source:
            fields = newer.format.fields(newer.parsed)
            current: _ReadVersion | None = newer._replace(number=version.number)
        else:
            fields, current = self._parse_version(version)
        before = self.numbers[-1] if self.numbers else None
        self.numbers.append(version.number)
        previous = ""
        for field in fields:
            if field.path and field.path not in self._spans:
                self._next[field.path], self._next[previous] = self._next.get(previous, ""), field.path
                self._spans[field.path] = []
            self._add_span(field, version.number, before)
            previous = field.path
        if newer is not None and current is not None and newer.parsed is not current.parsed:
            self._find_renames(current, newer)
        self._newer = current

    def _parse_version(self, version: _VersionTexts) -> tuple[list[Field], _ReadVersion | None]:
        if version.source is None or version.texts is None:
            return [], None
        try:
            fmt = get_format(version.format)
            parsed = self._parser.parse_source(fmt, version.source, version.texts)
            fields = {field.path: field for field in reversed(fmt.fields(parsed)) if field.path}
        except SteleError:
            return [], None
        paths = frozenset(fields)
        return list(reversed(fields.values())), _ReadVersion(version.number, fmt, version.source, parsed, paths)

    def _add_span(self, field: Field, number: int, newer: int | None) -> None:
        spans = self._spans[field.path]
        span = FieldSpan(
            number,
            number,
            field.type[:_LONGEST_TEXT],
            None if field.default is None else field.default[:_LONGEST_TEXT],
            field.doc[:_LONGEST_TEXT],
            field.optional,
        )
        last = spans[-1] if spans else None
        if (
            last is not None
            and last.first == newer
            and msgspec.structs.replace(last, first=number, last=number) == span
        ):
            spans[-1] = msgspec.structs.replace(last, first=number)
        else:
            spans.append(span)
            self._count += 1

    def _find_renames(self, older: _ReadVersion, newer: _ReadVersion) -> None:
        """Find new fields that are renamed old ones. The formats recognise them by aliases and field numbers."""
        removed, added = older.paths - newer.paths, newer.paths - older.paths
        if not removed or not added or older.format.name != newer.format.name:
            return
        outlines = [make_outline(side.format, side.parsed) for side in (older, newer)]
        names: dict[str, set[str]] = {}
        for change in TreeComparison(*outlines).changes:
            if change.kind is ChangeKind.RENAMED:
                names.setdefault(change.after, set()).add(change.before)
        for path in sorted(added):
            parent, dot, name = path.rpartition(".")
            for before in sorted(names.get(name, ())):
                if (was := f"{parent}{dot}{before}") in removed:
                    self._renamed_from[path] = was
