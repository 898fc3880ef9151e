"""The stream that the journal page follows: its content, its access control, and its end."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from tests.unit.ui.conftest import open_server, register

from stele.server.in_process import InProcessServer
from stele.service.journal import read_page
from stele.ui import open_feeds
from stele.ui.work import journal_feed

SECONDS = 60.0
"""Maximum time in seconds that a test waits for an immediate effect."""


@pytest.fixture(scope="module")
def server_and_client() -> Iterator[tuple[InProcessServer, httpx.Client]]:
    """A server and a client; its requests, and therefore its streams, have a high time limit."""
    yield from open_server()


@pytest.fixture
def server(server_and_client: tuple[InProcessServer, httpx.Client]) -> InProcessServer:
    """The server."""
    return server_and_client[0]


@pytest.fixture
def client(server_and_client: tuple[InProcessServer, httpx.Client]) -> httpx.Client:
    """A client of that server."""
    return server_and_client[1]


class Stream:
    """One stream, as an HTTP server would send it to a browser that can disconnect."""

    def __init__(self) -> None:
        self.status = 0
        self.text = ""
        self.leave = asyncio.Event()
        self._news = asyncio.Event()
        self._is_read = False

    async def receive(self) -> dict[str, Any]:
        """Return the request, and a disconnect when the browser leaves."""
        if not self._is_read:
            self._is_read = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.leave.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        """Store a message of the server."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self.text += message.get("body", b"").decode()
        self._news.set()

    async def wait_for(self, is_there: Callable[[str], object]) -> None:
        """Wait until a condition holds for the text of the stream."""
        async with asyncio.timeout(SECONDS):
            while not is_there(self.text):
                self._news.clear()
                await self._news.wait()

    def list_subjects(self) -> list[str]:
        """Return the subjects of all rows, in the order of the events."""
        return re.findall(r'class="title" href="[^"]*"><bdi>([^<]*)', self.text)


@asynccontextmanager
async def follow(server: InProcessServer, query: str = "", **headers: str) -> AsyncIterator[Stream]:
    """Yield a stream of the journal; the browser disconnects at the end, and no task of the stream remains."""
    stream = Stream()
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/ui/journal/feed",
        "raw_path": b"/ui/journal/feed",
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(b"host", b"127.0.0.1:8081")]
        + [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
        "server": ("127.0.0.1", 8081),
        "client": ("127.0.0.1", 50000),
        "state": {},
    }
    task = asyncio.ensure_future(server(scope, stream.receive, stream.send))
    try:
        await stream.wait_for(bool)
        yield stream
    finally:
        stream.leave.set()
        async with asyncio.timeout(SECONDS):
            await task


async def post(server: InProcessServer, subject: str) -> None:
    """Register a schema from within the server's event loop."""
    transport = httpx.ASGITransport(server)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8081") as client:
        response = await client.post(f"/subjects/{subject}/versions", json={"schema": '"int"'})
    assert response.status_code == 200, response.text


def test_new_rows_come_in_order(server: InProcessServer, client: httpx.Client) -> None:
    """A stream begins at the end of the log. New entries arrive once, newest first in an event.

    Each event has the id of the record after which a later stream continues.
    """
    register(client, "before", '"int"')

    async def run() -> Stream:
        async with follow(server, "kind=registered") as stream:
            for name in ("first", "second", "third"):
                await post(server, name)
            await stream.wait_for(lambda text: "third" in text)
            return stream

    stream = server.run(run())
    assert (stream.status, "before" in stream.text) == (200, False)
    rows = list(map(int, re.findall(r'data-seq="(\d+)"', stream.text)))
    assert len(rows) == len(set(rows)) == len(stream.list_subjects())
    assert set(stream.list_subjects()) == {"first", "second", "third"}
    ids = list(map(int, re.findall(r"^id: (\d+)", stream.text, re.MULTILINE)))
    assert ids == sorted(ids)
    assert ids[-1] == max(rows)
    for event in stream.text.replace("\r", "").split("\n\n"):
        event_rows = list(map(int, re.findall(r'data-seq="(\d+)"', event)))
        assert event_rows == sorted(event_rows, reverse=True)


def test_a_stream_goes_on_where_the_last_one_ended(server: InProcessServer, client: httpx.Client) -> None:
    """`Last-Event-ID` takes precedence over the query; entries that were missed are sent at once."""
    end = client.get("/api/journal?limit=0").json()["end"]
    register(client, "meanwhile", '"int"')

    async def run(query: str, **headers: str) -> list[str]:
        async with follow(server, query, **headers) as stream:
            await stream.wait_for(lambda text: "data-seq" in text)
            return stream.list_subjects()

    assert set(server.run(run(f"after={end}"))) == {"meanwhile"}
    assert set(server.run(run("after=0", last_event_id=str(end)))) == {"meanwhile"}


def test_filters_hold(server: InProcessServer) -> None:
    """Rows that do not match the page's filter are not sent, and the stream continues after them."""

    async def run() -> Stream:
        async with follow(server, "kind=registered&subject=wanted") as stream:
            for name in ("other", "wanted-1", "another"):
                await post(server, name)
            await stream.wait_for(lambda text: "wanted-1" in text)
            return stream

    stream = server.run(run())
    assert stream.list_subjects() == ["wanted-1"]


def test_bad_queries_are_refused_before_the_stream(client: httpx.Client) -> None:
    """An invalid query has an error status instead of a stream that breaks."""
    assert client.get("/ui/journal/feed?after=x").status_code == 422
    assert client.get("/ui/journal/feed?kind=a&kind=b").status_code == 422
    assert client.get("/ui/journal/feed", headers={"last-event-id": "-1"}).status_code == 422


def test_streams_are_bounded(server: InProcessServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of streams is limited per caller and in total; a closed stream makes room for another."""

    async def run() -> None:
        async with follow(server) as first, follow(server) as second:
            assert (first.status, second.status) == (200, 200)
            async with follow(server) as third:
                assert third.status == 503
                assert "the limit" in third.text
        async with follow(server) as again:
            assert again.status == 200

    monkeypatch.setattr(open_feeds, "MOST_OF_CALLER", 2)
    server.run(run())
    monkeypatch.setattr(open_feeds, "MOST_OF_CALLER", 20)
    monkeypatch.setattr(open_feeds, "MOST_FEEDS", 2)
    server.run(run())


def test_who_leaves_ends_the_work(server: InProcessServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the browser disconnects, its stream no longer reads the log."""
    reads: list[int] = []

    async def count_reads(registry: Any, after: int, limit: int) -> Any:
        reads.append(after)
        return await read_page(registry, after, limit)

    monkeypatch.setattr(journal_feed, "read_page", count_reads)

    async def run() -> tuple[int, int]:
        async with follow(server) as stream:
            await post(server, "seen")
            await stream.wait_for(lambda text: "seen" in text)
        count = len(reads)
        await post(server, "unseen")
        await asyncio.sleep(2 * journal_feed._PAUSE_SECONDS)
        return count, len(reads)

    before, after = server.run(run())
    assert before == after > 0


def test_a_busy_log_costs_a_stream_little(server: InProcessServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries during the pause after an event share the next event: the log is read once for all of them."""
    monkeypatch.setattr(journal_feed, "_PAUSE_SECONDS", 1.0)
    rests: list[int] = []

    async def run() -> str:
        async with follow(server) as stream:
            begun = time.monotonic()
            for number in range(20):
                await post(server, f"busy-{number}")
            rests.append(int((time.monotonic() - begun) / journal_feed._PAUSE_SECONDS))
            await stream.wait_for(lambda text: "busy-19" in text)
            return stream.text

    # On a busy machine the changes may take longer than one rest.
    assert server.run(run()).count("event: entries") <= 2 + rests[0]


def test_a_stream_ends_before_the_time_of_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream ends without an error before the time limit, and states when to reconnect."""
    assert journal_feed._SHARE_OF_LIMIT <= 0.8
    monkeypatch.setattr(journal_feed, "_SHARE_OF_LIMIT", 0.02)  # the rest is for a busy machine
    for _, client in open_server(request_seconds=60):
        begun = time.monotonic()
        answer = client.get("/ui/journal/feed?after=0")
        assert time.monotonic() - begun < 60
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.text.count("retry: 1000") == 1
        assert answer.status_code == 200
