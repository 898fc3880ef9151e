"""The journal: changes, newest first. Its newest page updates itself (`journal_feed`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from stele.apis.http.access import Place, access
from stele.apis.http.requests import parse_whole_number
from stele.core.access import Operation
from stele.service.journal import JournalEntry, read_page
from stele.ui.pages import Page, PageRequest

_ROWS: Final = 50
_RECORDS: Final = 500
"""Number of log records that are read at a time, backwards."""
_MOST_RECORDS: Final = 5_000
"""Maximum number of log records that one page searches for rows that match its filter."""
_LAST: Final = 2**63 - 1
KINDS: Final = (
    "registered",
    "soft_deleted",
    "purged",
    "subject_created",
    "subject_changed",
    "subject_closed",
    "settings_changed",
    "mode_changed",
    "namespace_created",
    "namespace_changed",
    "namespace_deleted",
    "binding_added",
    "binding_removed",
    "item_changed",
    "item_removed",
    "codec_added",
    "encoding_assigned",
    "ruleset_adopted",
    "ids_skipped",
)
"""Kinds of entries to choose from."""


class JournalFilter(NamedTuple):
    """Which entries are shown; '' matches all, and the namespace `.` is the default one."""

    kind: str
    subject: str
    namespace: str
    actor: str

    def select_rows(self, entries: Iterable[JournalEntry]) -> list[JournalEntry]:
        """Return the entries that pass, in their order."""
        return [
            entry
            for entry in entries
            if self.kind in ("", entry.kind)
            and (not self.subject or self.subject.lower() in (entry.subject or "").lower())
            and (not self.namespace or entry.namespace == ("" if self.namespace == "." else self.namespace))
            and self.actor in ("", entry.actor)
        ]


class JournalRow(msgspec.Struct, frozen=True):
    """An entry; details is a short text of its details."""

    entry: JournalEntry
    details: str


class LiveJournalPage(msgspec.Struct, frozen=True):
    """Entries of the journal, newest first.

    before   highest record that the page shows
    older    highest record of the next page, with older entries; None if there are none
    end      the newest record
    is_live  whether the page follows the journal
    """

    rows: Sequence[JournalRow]
    kind: str
    subject: str
    namespace: str
    actor: str
    kinds: Sequence[str]
    before: int
    older: int | None
    end: int
    is_live: bool


async def view_journal(page: PageRequest) -> LiveJournalPage:
    """Show the changes, newest first, filtered by kind, subject, namespace and actor."""
    wanted = read_filter(page)
    end = (await page.registry.fresh_state()).seq
    before_text = page.get_query("before")
    before = min(parse_whole_number("before", before_text, 1, _LAST), end) if before_text else end
    rows: list[JournalEntry] = []
    place = before
    while place > 0 and len(rows) < _ROWS and before - place < _MOST_RECORDS:
        after = max(0, place - _RECORDS)
        journal_page = await read_page(page.registry, after, place - after)
        rows += wanted.select_rows(reversed(journal_page.entries))
        place = after
    if len(rows) > _ROWS:
        last = rows[_ROWS - 1].seq
        rows = [row for row in rows if row.seq >= last]  # The entries of one record stay on one page.
        place = last - 1
    return LiveJournalPage(
        rows=[make_row(entry) for entry in rows],
        kind=wanted.kind,
        subject=wanted.subject,
        namespace=wanted.namespace,
        actor=wanted.actor,
        kinds=KINDS,
        before=before,
        older=place or None,
        end=end,
        is_live=not before_text,
    )


def read_filter(page: PageRequest) -> JournalFilter:
    """Return the filter in a query. Raises `InvalidRequest`."""
    return JournalFilter(*(page.get_query(name).strip() for name in ("kind", "subject", "ns", "actor")))


def make_row(entry: JournalEntry) -> JournalRow:
    """Return an entry as a row of the table."""
    return JournalRow(entry, _describe_details(entry.details))


def _describe_details(details: dict[str, Any]) -> str:
    """Return the details of an entry on one line."""
    parts = []
    for name, value in details.items():
        if name == "sha256":
            continue
        if name == "references":
            text = ", ".join(f"{row['subject']} {row['version']}" for row in value)
        elif isinstance(value, dict):
            text = ", ".join(f"{key} {each}" for key, each in value.items() if each not in ("", [], None))
        elif isinstance(value, list | tuple):
            text = ", ".join(map(str, value))
        else:
            text = str(value)
        parts.append(f"{name.replace('_', ' ')}: {text}")
    return "; ".join(parts)


def list_pages() -> list[Page]:
    """Return the pages of this module."""
    return [Page("/ui/journal", view_journal, "journal.html.j2", access(Operation.READ, Place.LIST), menu="/journal")]
