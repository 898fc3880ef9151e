"""Index of the fields of all schemas: the subjects, versions and types of the fields with a name.

The index is built in the background on first use, newest changes first, and follows the log. It reads schemas in
threads and pauses in between, so that the node can do other work. Until it is complete it answers from what it has, and
reports how much that is. It holds a limited number of fields.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from stele.core import queries
from stele.core.compatibility_requests import SchemaSource
from stele.core.model import Subject, SubjectKey, Version, VersionState
from stele.core.state import State
from stele.errors import SteleError
from stele.formats.registry import get_format
from stele.service.log_changes import find_changed_subjects
from stele.service.registry import Registry
from stele.service.schemas import SchemaTexts, collect_texts

MOST_FIELDS: Final = 2_000_000
"""Maximum number of fields in the index: about 200 bytes each."""
MOST_VERSIONS: Final = 50
"""Versions of a subject that are read, the newest ones."""
_LONGEST_TEXT: Final = 256 * 1024
"""Maximum length in bytes of a text that is read, with its references."""
_LONGEST_PATH: Final = 500
_LONGEST_TYPE: Final = 200
_BATCH: Final = 20
"""Subjects whose texts are in memory together."""
_PAUSE_SECONDS: Final = 5.0
_PATIENCE_SECONDS: Final = 0.5
"""Seconds that a search waits for the index to be complete."""


class FieldHit(NamedTuple):
    """A field of a subject.

    key    the subject
    path   dotted path of the field
    type   its type in the newest version that has it
    first  number of the oldest version that was read and has it
    last   number of the newest version that has it
    is_current  whether the newest version of the subject has it
    """

    key: SubjectKey
    path: str
    type: str
    first: int
    last: int
    is_current: bool


class FieldMatches(NamedTuple):
    """Result of a search.

    hits      up to the requested number of fields: whole names first, then beginnings, then parts
    is_cut    whether there are more
    done      number of subjects that were read
    total     number of subjects to read; the answer is complete where both are the same
    is_full   whether the index has no room for more fields
    """

    hits: Sequence[FieldHit]
    is_cut: bool
    done: int
    total: int
    is_full: bool


class _Posting(NamedTuple):
    key: SubjectKey
    type: str
    first: int
    last: int
    is_current: bool


class _SubjectTexts(NamedTuple):
    key: SubjectKey
    versions: Sequence[tuple[int, str, bytes, SchemaTexts]]


class _FoundField(NamedTuple):
    path: str
    posting: _Posting


class FieldIndex:
    """The fields of a registry.

    Args:
        registry: Registry of the schemas.
        duty: Share of the time that the index works, from 0 to 1, while it is being built.
    """

    def __init__(self, registry: Registry, *, duty: float = 0.5) -> None:
        self._registry = registry
        self._rest = (1 - duty) / duty
        self._postings: dict[str, dict[SubjectKey, _Posting]] = {}
        self._folded: dict[str, str] = {}
        self._paths: dict[SubjectKey, tuple[str, ...]] = {}
        self._pending: dict[SubjectKey, None] = {}
        self._count = 0
        self._state: State | None = None
        self._seq = 0
        self._refreshing = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_full(self) -> bool:
        """Whether there is no room for more fields."""
        return self._count >= MOST_FIELDS

    async def follow_log(self) -> None:
        """Note which subjects are new or changed, and go on reading in the background."""
        state = await self._registry.fresh_state()
        async with self._refreshing:
            state, seq = self._registry.state, self._registry.state.seq
            if state is not self._state or seq != self._seq:
                is_known = state is self._state
                changed = await find_changed_subjects(self._registry, self._seq, seq) if is_known else None
                if not is_known:
                    self._forget_all()
                keys = changed if changed is not None else [subject.key for subject in _list_newest_first(state)]
                self._pending = dict.fromkeys([*keys, *self._pending])
                self._state, self._seq = state, seq
        if self._pending and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._read_pending())

    async def finish(self) -> None:
        """Wait until all subjects that are known now were read."""
        await self.follow_log()
        if self._task is not None:
            await self._task

    async def find_fields(self, words: str, most: int, can_read: Callable[[SubjectKey], bool]) -> FieldMatches:
        """Return fields whose path contains a text.

        Args:
            words: Text to look for, in any case.
            most: Maximum number of fields.
            can_read: Test of whether the caller may read a subject; called often.
        """
        await self.follow_log()
        if self._task is not None and not self._task.done():
            await asyncio.wait({self._task}, timeout=_PATIENCE_SECONDS)
        folded = words.casefold()
        ranked: list[tuple[int, str]] = []
        for path, text in self._folded.items():
            if folded in text:
                name = text.rpartition(".")[2]
                ranked.append((0 if folded in (name, text) else 1 if name.startswith(folded) else 2, path))
        ranked.sort()
        hits: list[FieldHit] = []
        is_cut = False
        for _, path in ranked:
            for posting in self._postings[path].values():
                if not can_read(posting.key):
                    continue
                if len(hits) == most:
                    is_cut = True
                    break
                hits.append(FieldHit(posting.key, path, posting.type, posting.first, posting.last, posting.is_current))
            if is_cut:
                break
        done = len(self._paths)
        return FieldMatches(hits, is_cut, done, done + len(self._pending), self.is_full)

    async def _read_pending(self) -> None:
        """Read pending subjects, a few at a time, and pause in between."""
        while self._pending and not self.is_full:
            keys, state = list(self._pending)[:_BATCH], self._state
            for key in keys:
                del self._pending[key]  # A change from now on makes it pending again.
            started = time.monotonic()
            texts = [subject_texts for key in keys if (subject_texts := self._collect_texts(key)) is not None]
            try:
                fields = await self._registry.run_stateless(_read_subjects, texts)
            except SteleError:  # the threads are overloaded
                self._pending = dict.fromkeys([*self._pending, *keys])
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            except RuntimeError:  # the node is closing
                return
            if state is self._state:
                for key in keys:
                    self._replace_fields(key, fields.get(key))
            await asyncio.sleep((time.monotonic() - started) * self._rest)

    def _collect_texts(self, key: SubjectKey) -> _SubjectTexts | None:
        """Return the newest versions of a subject with all texts that they need; None if it has no versions."""
        state = self._registry.state
        subject = state.find_subject(key)
        if subject is None or not subject.versions:
            return None
        active = [version for version in subject.versions if version.state is VersionState.ACTIVE]
        versions = (active or subject.versions)[-MOST_VERSIONS:]
        version_texts = [_collect_version(state, version) for version in reversed(versions)]
        return _SubjectTexts(key, [each for each in version_texts if each is not None])

    def _replace_fields(self, key: SubjectKey, fields: Sequence[_FoundField] | None) -> None:
        for path in self._paths.pop(key, ()):
            postings = self._postings[path]
            if postings.pop(key, None) is not None:
                self._count -= 1
            if not postings:
                del self._postings[path], self._folded[path]
        if fields is None:
            return
        self._paths[key] = tuple(field.path for field in fields)
        for field in fields:
            if field.path not in self._postings:
                self._postings[field.path] = {}
                self._folded[field.path] = field.path.casefold()
            self._postings[field.path][key] = field.posting
            self._count += 1

    def _forget_all(self) -> None:
        for table in (self._postings, self._folded, self._paths, self._pending):
            table.clear()
        self._count = 0


def _list_newest_first(state: State) -> list[Subject]:
    subjects = [
        subject
        for namespace in state.namespaces.values()
        if not namespace.hidden
        for subject in namespace.subjects.values()
        if subject.versions
    ]
    return sorted(subjects, key=lambda subject: subject.versions[-1].seq, reverse=True)


def _collect_version(state: State, version: Version) -> tuple[int, str, bytes, SchemaTexts] | None:
    """Return number, format, digest and texts of a version; None if they are purged or too long."""
    try:
        source = SchemaSource(
            version.content.sha, queries.resolve_references(state, version.schema.attachments.references)
        )
        texts = collect_texts(state, source)
    except (SteleError, KeyError):  # purged meanwhile
        return None
    size = len(texts.text) + sum(map(len, texts.references.values()))
    return (version.version_number, version.kind.format, source.sha, texts) if size <= _LONGEST_TEXT else None


def _read_subjects(subjects: Iterable[_SubjectTexts]) -> dict[SubjectKey, list[_FoundField]]:
    """Return the fields of subjects, in a thread."""
    return {subject.key: _read_subject(subject) for subject in subjects}


def _read_subject(subject: _SubjectTexts) -> list[_FoundField]:
    """Return the fields of a subject, whose versions are ordered newest first."""
    postings: dict[str, _Posting] = {}
    known: dict[tuple[bytes, tuple[bytes, ...]], list[tuple[str, str]]] = {}
    for place, (number, format_name, sha, texts) in enumerate(subject.versions):
        identity = sha, tuple(texts.references.values())
        if identity not in known:
            known[identity] = _parse_fields(format_name, texts)
        for path, kind in known[identity]:
            before = postings.get(path)
            postings[path] = (
                _Posting(subject.key, kind, number, number, place == 0)
                if before is None
                else before._replace(first=number)
            )
    return [_FoundField(path, posting) for path, posting in postings.items()]


def _parse_fields(format_name: str, texts: SchemaTexts) -> list[tuple[str, str]]:
    """Return path and type of the fields of a text; none if no installed format can parse it."""
    try:
        fmt: Any = get_format(format_name)
        fields = fmt.fields(fmt.parse(texts.text, texts.references, strict=False))
    except SteleError:
        return []
    return [(field.path[:_LONGEST_PATH], field.type[:_LONGEST_TYPE]) for field in fields]
