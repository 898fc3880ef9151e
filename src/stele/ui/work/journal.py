"""The journal: what changed, newest first, and live as long as the page is open.

The page follows a stream of server-sent events, each with the HTML of new rows, and puts them on top.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from litestar import Request, get
from litestar.handlers import HTTPRouteHandler
from litestar.response import ServerSentEvent, ServerSentEventMessage

from stele.apis.http.access import Place, access
from stele.apis.http.dependencies import VOLATILE
from stele.apis.http.requests import mark_waiting, parse_whole_number, time_limit
from stele.core.access import Operation
from stele.service.journal import JournalEntry, read_page
from stele.templates import render_template
from stele.ui.pages import Page, PageFrame, PageRequest, Site

_ROWS: Final = 50
_RECORDS: Final = 500
"""Records of the log that are read at a time, backwards."""
_MOST_RECORDS: Final = 5_000
"""Records of the log that one page looks through for rows that pass its filters."""
_LAST: Final = 2**63 - 1
_RECORDS_OF_EVENT: Final = 100
"""Records of the log that one event of the stream is made of, at most."""
_BREATH_SECONDS: Final = 15.0
"""How often a stream without entries says that it is there."""
_SHARE_OF_LIMIT: Final = 0.8
"""Of the time a request may take, a stream takes this share: the browser asks again by itself."""
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
"""Kinds of entries that can be asked for."""


class JournalFilter(NamedTuple):
    """Which entries are wanted; '' is any, and the namespace `.` is the default one."""

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
    """An entry; details are its texts in short."""

    entry: JournalEntry
    details: str


class LiveJournalPage(msgspec.Struct, frozen=True):
    """Entries of the journal, newest first.

    before   the page shows records up to this one
    older    where older entries begin; None: there are none
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
    """Show what changed, newest first, filtered by kind, subject, namespace and who did it."""
    wanted = _read_filter(page)
    end = (await page.registry.fresh_state()).seq
    asked = page.get_query("before")
    before = min(parse_whole_number("before", asked, 1, _LAST), end) if asked else end
    rows: list[JournalEntry] = []
    place = before
    while place > 0 and len(rows) < _ROWS and before - place < _MOST_RECORDS:
        after = max(0, place - _RECORDS)
        found = await read_page(page.registry, after, place - after)
        rows += wanted.select_rows(reversed(found.entries))
        place = after
    if len(rows) > _ROWS:
        last = rows[_ROWS - 1].seq
        rows = [row for row in rows if row.seq >= last]  # A record is not torn apart.
        place = last - 1
    return LiveJournalPage(
        rows=[_make_row(entry) for entry in rows],
        kind=wanted.kind,
        subject=wanted.subject,
        namespace=wanted.namespace,
        actor=wanted.actor,
        kinds=KINDS,
        before=before,
        older=place or None,
        end=end,
        is_live=not asked,
    )


def _read_filter(page: PageRequest) -> JournalFilter:
    return JournalFilter(*(page.get_query(name).strip() for name in ("kind", "subject", "ns", "actor")))


def _make_row(entry: JournalEntry) -> JournalRow:
    return JournalRow(entry, _describe_details(entry.details))


def _describe_details(details: dict[str, Any]) -> str:
    """Return what an entry says beside its names, on one line."""
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


async def _find_start(page: PageRequest) -> int:
    """Return the record behind which a stream begins; the newest one where the browser does not say.

    Raises `InvalidRequest`.
    """
    end = (await page.registry.fresh_state()).seq
    last = page.request.headers.get("last-event-id", "")
    asked = last or page.get_query("after")
    return min(parse_whole_number("Last-Event-ID" if last else "after", asked, 0, _LAST), end) if asked else end


async def _stream_rows(page: PageRequest, after: int, deadline: float) -> AsyncIterator[ServerSentEventMessage]:
    """Yield the HTML of the rows behind a record, newest first in each event, until the deadline of the loop's clock."""
    clock = asyncio.get_running_loop().time
    wanted, frame = _read_filter(page), PageFrame(page, "", None)
    yield ServerSentEventMessage(None, comment="entries follow", retry=1000)
    while (left := deadline - clock()) > 0:
        await page.registry.wait_for_record(after + 1, min(left, _BREATH_SECONDS))
        found = await read_page(page.registry, after, _RECORDS_OF_EVENT)
        after = found.next
        rows = [_make_row(entry) for entry in wanted.select_rows(reversed(found.entries))]
        if rows:
            html = render_template("stele.ui", "journal_rows.html.j2", rows=rows, frame=frame)
            yield ServerSentEventMessage(html, event="entries", id=str(after))
        else:
            yield ServerSentEventMessage(None, comment="nothing new", id=str(after))


def create_routes(site: Site) -> list[HTTPRouteHandler]:
    """Return the endpoint that the page follows."""

    @get("/ui/journal/feed", opt={VOLATILE: True, **access(Operation.READ, Place.LIST)})
    async def follow_journal(request: Request[Any, Any, Any]) -> ServerSentEvent:
        # GET /ui/journal/feed?after&kind&subject&ns&actor
        """Send new entries of the journal as they come: rows of the page's table, as server-sent events."""
        page = PageRequest(site, request)
        start = await _find_start(page)
        mark_waiting(request)
        deadline = asyncio.get_running_loop().time() + time_limit(request) * _SHARE_OF_LIMIT
        return ServerSentEvent(_stream_rows(page, start, deadline))

    return [follow_journal]


def list_pages() -> list[Page]:
    """Return the pages of this module."""
    return [Page("/ui/journal", view_journal, "journal.html.j2", access(Operation.READ, Place.LIST), menu="/journal")]
