"""Requests about texts that are answered in a separate process get the same responses as in a thread."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from stele.server.in_process import InProcessServer, InProcessTransport
from stele.server.settings import ServerSettings

LONG = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"long"}]}'
SHORT = '{"type":"record","name":"R","fields":[{"name":"a","type":"long"}]}'
BAD = '{"type":"recod"}'
PROTO = 'syntax = "proto3"; message M { string a = 1; }'
QUESTIONS: list[tuple[str, Any]] = [
    ("check", {"format": "avro", "schema": LONG, "against": [{"schema": SHORT}], "policy": "FULL"}),
    ("check", {"format": "avro", "schema": BAD, "against": [{"schema": SHORT}]}),
    ("check", {"format": "avro", "schema": SHORT, "against": [], "policy": "NONSENSE"}),
    ("check", {"format": "protobuf", "schema": PROTO, "against": [{"schema": PROTO}]}),
    ("diff", {"format": "avro", "old": {"schema": SHORT}, "new": {"schema": LONG}}),
    ("diff", {"format": "avro", "old": {"schema": SHORT}}),
    ("lint", {"format": "avro", "schema": LONG}),
    ("lint", {"format": "avro", "schema": LONG, "rules": ["no-such-rule"]}),
    ("convert", {"format": "avro", "to": "json", "schema": LONG}),
    ("convert", {"format": "avro", "to": "nothing", "schema": LONG}),
    ("infer", {"to": "avro", "samples": [{"a": 1}, {"a": 2.5, "b": "x"}]}),
    ("example", {"format": "avro", "schema": LONG}),
    ("fields", {"format": "avro", "schema": LONG}),
    ("fields", {"format": "avro", "schema": 5}),
    ("fields", "{no json"),
    ("fields", b"\xff\xfe\xfd"),
]


@contextmanager
def serving(**settings: Any) -> Iterator[httpx.Client]:
    """A client of a server in this process."""
    server = InProcessServer(ServerSettings(store="memory:", **settings))
    with httpx.Client(transport=InProcessTransport(server), base_url="http://127.0.0.1:8081", timeout=60) as client:
        yield client
    server.stop()


@pytest.fixture(scope="module")
def clients() -> Iterator[tuple[httpx.Client, httpx.Client]]:
    """Clients of two servers: one handles every body in a separate process, the other one none."""
    with serving(process_bytes=1) as one, serving(process_bytes=0) as other:
        yield one, other


def ask(client: httpx.Client, path: str, body: Any) -> tuple[int, Any, dict[str, str]]:
    """Return status, body and headers of a response, without values that differ each time."""
    content = body if isinstance(body, str | bytes) else json.dumps(body)
    answer = client.post(f"/api/{path}", content=content, headers={"content-type": "application/json"})
    headers = {name: value for name, value in answer.headers.items() if name not in {"x-request-id", "date"}}
    return answer.status_code, answer.json(), headers


@pytest.mark.parametrize(("path", "body"), QUESTIONS)
def test_answers_are_the_same(path: str, body: Any, clients: tuple[httpx.Client, httpx.Client]) -> None:
    """Successful and refused requests have equal responses, including headers, and none is a server error."""
    answer = ask(clients[0], path, body)
    assert answer == ask(clients[1], path, body)
    assert answer[0] < 500


def test_most_questions_are_answered(clients: tuple[httpx.Client, httpx.Client]) -> None:
    """Each endpoint has at least one successful request among those that are compared."""
    answered = {path for path, body in QUESTIONS if ask(clients[1], path, body)[0] == 200}
    assert answered == {path for path, _ in QUESTIONS}


def test_a_killed_process_is_no_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the process is killed, the response is 503 with `Retry-After`."""
    monkeypatch.setattr("stele.service.process_launcher.__file__", "/nonexistent/worker.py")
    with serving(process_bytes=1) as client:
        status, body, headers = ask(client, "fields", {"format": "avro", "schema": LONG})
    assert (status, headers["retry-after"]) == (503, "1")
    assert "killed" in body["error"]["message"]
