"""`GET /api/events`: pages, waiting, and the stream for browsers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import httpx
import pytest

from stele.client import SchemaRegistryClient
from stele.testing import registry

TEXT = '"string"'


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server on a port of its own."""
    with registry(port=0) as box:
        yield box.url


def register(url: str, subject: str) -> None:
    """Register a schema."""
    httpx.post(f"{url}/subjects/{subject}/versions", json={"schema": TEXT}, timeout=60).raise_for_status()


def test_waits_for_the_next_event(url: str) -> None:
    """A long poll ends with the event, whose source is the registry's address; `next` is the position after it."""
    register(url, "before")
    with SchemaRegistryClient(url, timeout=120) as client:
        end = str(client.journal(0, limit=0).end)
        threading.Timer(0.5, register, (url, "orders")).start()
        page = client.events(end, wait=40)
        assert [event.subject for event in page.events] == ["/schemagroups/default/schemas/orders/versions/1"]
        assert page.events[0].source == url
        assert client.events(page.next).events == ()
        begun = time.monotonic()
        assert client.events(page.next, wait=1, subject="/schemagroups/none").events == ()
        assert 0.9 < time.monotonic() - begun < 40


def test_streams_events(url: str) -> None:
    """A stream of server-sent events begins with new events, and after a reconnection with those after the last one."""
    register(url, "first")
    with httpx.stream("GET", f"{url}/api/events", headers={"accept": "text/event-stream"}, timeout=60) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.iter_lines()
        assert next(lines) == ": events follow"
        register(url, "second")
        # On a slow machine the stream may first send the comment `nothing new`, which also has an id.
        for line in lines:
            if line.startswith("id: "):
                event_id = line.removeprefix("id: ")
            elif line.startswith("event: "):
                break
        assert line.startswith("event: io.cloudevents.schemaregistry.updated")
    register(url, "third")
    headers = {"accept": "text/event-stream", "last-event-id": event_id}
    with httpx.stream("GET", f"{url}/api/events", headers=headers, timeout=60) as answer:
        data = next(line for line in answer.iter_lines() if line.startswith("data: "))
    assert "/schemas/third/versions/1" in data


@pytest.mark.parametrize("query", ["after=x", "wait=-1", "wait=1000", "limit=0", "limit=100000"])
def test_refuses_bad_queries(url: str, query: str) -> None:
    """An invalid query is refused in the API's own shape."""
    answer = httpx.get(f"{url}/api/events?{query}")
    assert answer.status_code == 422
    assert answer.json()["error"]
