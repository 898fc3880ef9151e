"""New entries of the journal as server-sent events, each with the HTML of rows, which the page inserts at the top.

A stream occupies one connection and ends before the time limit of a request. The browser then reconnects after the last
record that it has received. The number of streams is limited, in total and per caller. A stream reads the log at most
twice a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

from litestar import Request, get
from litestar.response import ServerSentEvent, ServerSentEventMessage

from stele.apis.http.access import Place, access
from stele.apis.http.dependencies import VOLATILE
from stele.apis.http.requests import mark_waiting, parse_whole_number, time_limit
from stele.core.access import Operation
from stele.errors import Overloaded
from stele.service.access import CALLER
from stele.service.journal import read_page
from stele.templates import render_template
from stele.ui.pages import PageFrame, PageRequest
from stele.ui.work.journal import make_row, read_filter

_LAST: Final = 2**63 - 1
_RECORDS_OF_EVENT: Final = 500
"""Maximum number of log records in one event."""
_PAUSE_SECONDS: Final = 0.5
"""Pause of a stream after an event, in seconds; changes during the pause share the next event."""
_BREATH_SECONDS: Final = 15.0
"""Seconds after which a stream without entries sends a comment, to keep the connection open."""
_SHARE_OF_LIMIT: Final = 0.8
"""Maximum duration of a stream, as a share of the time limit of a request."""


def _name_caller() -> str:
    caller = CALLER.get()
    return caller.principal.name or f"address {caller.address}"


async def _find_start(page: PageRequest) -> int:
    """Return the record after which a stream begins; the newest one if the browser names none.

    Raises `InvalidRequest`.
    """
    end = (await page.registry.fresh_state()).seq
    last = page.request.headers.get("last-event-id", "")
    position_text = last or page.get_query("after")
    return (
        min(parse_whole_number("Last-Event-ID" if last else "after", position_text, 0, _LAST), end)
        if position_text
        else end
    )


async def _stream_rows(page: PageRequest, after: int, deadline: float) -> AsyncIterator[ServerSentEventMessage]:
    """Yield the HTML of the rows after a record, newest first in each event, until the deadline of the loop's clock.

    The log is read at least once. A stream beyond the limit of open streams ends at once.
    """
    clock = asyncio.get_running_loop().time
    wanted, frame, caller = read_filter(page), PageFrame(page, "", None), _name_caller()
    feeds = page.site.feeds
    if feeds.find_refusal(caller):  # Other streams opened at the same time.
        return
    with feeds.hold(caller):
        yield ServerSentEventMessage(None, comment="entries follow", retry=1000)
        while True:
            await page.registry.wait_for_record(after + 1, min(deadline - clock(), _BREATH_SECONDS))
            journal_page = await read_page(page.registry, after, _RECORDS_OF_EVENT)
            after = journal_page.next
            rows = [make_row(entry) for entry in wanted.select_rows(reversed(journal_page.entries))]
            if rows:
                html = render_template("stele.ui", "journal_rows.html.j2", rows=rows, frame=frame)
                yield ServerSentEventMessage(html, event="entries", id=str(after))
            else:
                yield ServerSentEventMessage(None, comment="nothing new", id=str(after))
            if (left := deadline - clock()) <= 0:
                return
            await asyncio.sleep(min(_PAUSE_SECONDS, left))


@get("/ui/journal/feed", opt={VOLATILE: True, **access(Operation.READ, Place.LIST)})
async def follow_journal(request: Request[Any, Any, Any]) -> ServerSentEvent:
    # GET /ui/journal/feed?after&kind&subject&ns&actor
    """Send new entries of the journal as they come: rows of the page's table, as server-sent events."""
    page = PageRequest(request)
    if refusal := page.site.feeds.find_refusal(_name_caller()):
        raise Overloaded(refusal)
    read_filter(page)  # An invalid query is rejected before the stream begins.
    start = await _find_start(page)
    mark_waiting(request)
    deadline = asyncio.get_running_loop().time() + time_limit(request) * _SHARE_OF_LIMIT
    return ServerSentEvent(_stream_rows(page, start, deadline))


ROUTES: Final = (follow_journal,)
"""The endpoint of the stream."""
