"""Detects changes in the lists of a Confluent-compatible registry, with as few requests as the registry allows.

From a registry with entity tags, the lists are requested with these tags. From a registry with pages, the end of its
lists and its subjects are requested, and the whole lists from time to time. From a registry without `/schemas`, its
subjects and their version numbers are requested. Whole lists and numbers also show which subjects changed.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple
from urllib.parse import quote

import httpx
import msgspec

from stele.errors import NotFound
from stele.migrate.registry_reader import subject_path
from stele.replicate.dump_versions import parse_place
from stele.replicate.foreign_api import AT_ONCE, ForeignApi
from stele.replicate.registries import Changes

WHOLE_SECONDS: Final = 30.0
"""Seconds between two comparisons of whole lists, where comparing their ends may miss a change."""
_PAGE: Final = 1000
_MOST_PAGES: Final = 20_000
_PREFIX: Final = "subjectPrefix=%3A%2A%3A"
_MOST_NAMED: Final = 50
"""Highest number of changed subjects that are named. With more, reading everything is faster."""
_rows: Final = msgspec.json.Decoder(list[msgspec.Raw])
_names: Final = msgspec.json.Decoder(list[str])
_numbers: Final = msgspec.json.Decoder(list[int])


class _Row(msgspec.Struct):
    subject: str = ""
    deleted: bool | None = None


_row: Final = msgspec.json.Decoder(_Row)


class _SeenRow(NamedTuple):
    """A row of a list: its subject, whether it is deleted (None: the row does not say), and its digest."""

    subject: str
    deleted: bool | None
    digest: bytes


class _Page(NamedTuple):
    """A response that was received: its entity tag, a digest of its body, and its rows."""

    tag: str
    digest: bytes
    rows: tuple[_SeenRow, ...]


class _ListState(NamedTuple):
    """The result of the last check of whole lists; subjects has a digest of all rows of each subject."""

    position: str
    at: float
    counts: tuple[int, ...]
    ends: bytes
    has_ends: bool
    subjects: Mapping[str, bytes]


class ListWatcher:
    """Compares the lists of a registry with their earlier content.

    Args:
        api: Sends requests.
    """

    def __init__(self, api: ForeignApi) -> None:
        self._api = api
        self._pages: dict[str, _Page] = {}
        self._seen: _ListState | None = None
        self._subjects: dict[str, tuple[list[int], list[int]]] = {}
        self._position = ""
        self._checked = 0.0

    def look(self, position: str) -> Changes:
        """Return the changes since a position. Raises `SteleError` where the registry does not answer."""
        previous = self._seen
        now = time.monotonic()
        is_recent = previous is not None and previous.position == position and now - previous.at < WHOLE_SECONDS
        if (
            previous is not None
            and is_recent
            and previous.has_ends
            and self._digest_ends(previous.counts) == previous.ends
        ):
            return Changes(frozenset(), position)
        try:
            current = self._read_lists(now)
        except NotFound:
            return self._look_at_subjects(position, now)
        if previous is not None and current.position == previous.position:
            # Keep the ends from before the lists were read. Changes in between are detected at the next check.
            current = current._replace(ends=previous.ends)
        self._seen = current
        if current.position == position:
            return Changes(frozenset(), position)
        is_known = previous is not None and previous.position == position
        return _name_changes(
            previous.subjects if is_known and previous is not None else {}, current.subjects, current.position
        )

    # --- by lists of versions -------------------------------------------------------------------------------------

    def _read_lists(self, now: float) -> _ListState:
        """Read both whole lists. Raises `NotFound` for a registry without them.

        If each row of the first list shows whether its version is deleted, the list of active versions is not needed.
        """
        digest = hashlib.sha256()
        is_paged, is_tagged = True, True
        counts = []
        subjects: dict[str, bytes] = {}
        live: int | None = 0
        for deleted in ("true", "false"):
            if deleted == "false" and live is not None:
                counts.append(live)
                break
            count = longest = 0
            previous = b""
            for _ in range(_MOST_PAGES):
                page = self._read_page(f"/schemas?{_PREFIX}&deleted={deleted}&offset={count}&limit={_PAGE}")
                if page.digest == previous or len(page.rows) > _PAGE:
                    is_paged = False  # The server has no pages and returns everything each time.
                if page.digest == previous:
                    break
                digest.update(page.digest)
                previous = page.digest
                count += len(page.rows)
                for row in page.rows:
                    content = subjects.get(row.subject, b"") + row.digest + deleted.encode()
                    subjects[row.subject] = hashlib.sha256(content).digest()
                    live = None if live is None or row.deleted is None else live + (not row.deleted)
                is_tagged = is_tagged and bool(page.tag)
                # A server may return fewer rows than requested, so the first page is never known to be the last one.
                if len(page.rows) < longest or not page.rows or not is_paged:
                    break
                longest = len(page.rows)
            counts.append(count)
        has_ends = is_paged and not is_tagged
        ends = self._digest_ends(tuple(counts)) if has_ends else b""
        return _ListState(digest.hexdigest(), now, tuple(counts), ends, has_ends, subjects)

    def _read_page(self, path: str) -> _Page:
        known = self._pages.get(path)
        answer = self._api.get(path, {"if-none-match": known.tag} if known is not None and known.tag else None)
        if known is not None and answer.status_code == httpx.codes.NOT_MODIFIED:
            return known
        rows = tuple(map(_read_row, self._api.decode(_rows.decode, answer)))
        page = _Page(answer.headers.get("etag", ""), hashlib.sha256(answer.content).digest(), rows)
        if page.tag:
            self._pages[path] = page
        return page

    def _digest_ends(self, counts: tuple[int, ...]) -> bytes:
        """Return a digest of the subjects, and of the last version and all that follow it in each list."""
        digest = hashlib.sha256()
        for deleted, count in zip(("true", "false"), counts, strict=True):
            for path in (
                f"/subjects?{_PREFIX}&deleted={deleted}",
                f"/schemas?{_PREFIX}&deleted={deleted}&offset={max(count - 1, 0)}&limit=2",
            ):
                digest.update(self._api.get(path).content)
                digest.update(b"\n")
        return digest.digest()

    # --- by subjects ----------------------------------------------------------------------------------------------

    def _look_at_subjects(self, position: str, now: float) -> Changes:
        """Return the subjects whose version numbers changed; from time to time, that anything may have changed."""
        names = sorted(self._list_names("?deleted=true") | self._list_names(""))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            numbers_by_subject = dict(zip(names, pool.map(self._list_numbers, names), strict=True))
        before, self._subjects = self._subjects, numbers_by_subject
        new_position = hashlib.sha256(msgspec.json.encode(numbers_by_subject)).hexdigest()
        is_known = bool(position) and position == self._position
        self._position = new_position
        if not is_known or now - self._checked >= WHOLE_SECONDS:
            self._checked = now
            return Changes(None, new_position)
        return _name_changes(
            before, {name: numbers for name, numbers in numbers_by_subject.items() if any(numbers)}, new_position
        )

    def _list_names(self, query: str) -> set[str]:
        return set(self._api.decode(_names.decode, self._api.get(f"/subjects{query}")))

    def _list_numbers(self, subject: str) -> tuple[list[int], list[int]]:
        path = f"/subjects/{quote(subject_path(subject), safe='')}/versions"
        return self._read_numbers(path), self._read_numbers(f"{path}?deleted=true")

    def _read_numbers(self, path: str) -> list[int]:
        try:
            return self._api.decode(_numbers.decode, self._api.get(path))
        except NotFound:
            return []


def _read_row(raw: msgspec.Raw) -> _SeenRow:
    """Return a row of a list; '' for its subject if it has none."""
    try:
        row = _row.decode(raw)
    except msgspec.MsgspecError:
        row = _Row()
    return _SeenRow(row.subject, row.deleted, hashlib.sha256(raw).digest())


def _name_changes(before: Mapping[str, object], after: Mapping[str, object], position: str) -> Changes:
    """Return the changed subjects; None where they are not known, or where everything is to be read.

    A registry that lists nothing any more is read completely, since it may have lost its data.
    """
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    if not before or not after or "" in changed or len(changed) > _MOST_NAMED:
        return Changes(None, position)
    return Changes(frozenset(parse_place(name) for name in changed), position)
