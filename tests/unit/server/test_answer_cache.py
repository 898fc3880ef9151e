"""The cache of responses: only while nothing they depend on has changed, and only for the same caller and request."""

from __future__ import annotations

import ast
import io
import itertools
import json
import re
import socket
import time
from collections.abc import AsyncIterator, Iterator
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from tests.support.server_process import call, serving

import stele
from stele.server.answer_cache import KEY_HEADERS, ResponseCache
from stele.server.asgi import ReceivedRequest
from stele.server.dialects import build_dispatcher
from stele.server.dispatch import Dispatcher
from stele.server.metrics import Metrics
from stele.server.settings import ServerSettings
from stele.service.registry import Registry
from stele.storage import open_log
from stele.storage.memory import MemoryLog, MemoryStore

_TEXT = '{"type":"record","name":"R","fields":[{"name":"a","type":"int","doc":"%s"}]}'


@pytest.fixture
async def registry() -> AsyncIterator[Registry]:
    """An empty node."""
    node = await Registry.open(await open_log("memory:"))
    yield node
    await node.close()


class Client:
    """Sends requests to a dispatcher, and reports whether the response came from its cache."""

    def __init__(self, registry: Registry, **settings: Any) -> None:
        self.metrics = Metrics()
        self.front: Dispatcher = build_dispatcher(registry, ServerSettings(**settings), self.metrics)
        self._registry = registry
        self._http = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.front),
            base_url="http://registry",
            headers={"accept-encoding": "identity"},
        )

    def count_hits(self) -> int:
        """Return how many cached responses were returned so far."""
        text = self.metrics.render_metrics(self._registry)[0].decode()
        match = re.search(r"^stele_answer_cache_hits_total (\S+)$", text, re.MULTILINE)
        assert match is not None
        return int(float(match[1]))

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[bool, httpx.Response]:
        """Return whether the cache had the response, and the response."""
        before = self.count_hits()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        response = await self._http.request(method, path, json=body, headers=named)
        assert re.fullmatch("[0-9a-f]{32}", response.headers.pop("x-request-id"))
        return self.count_hits() > before, response

    def find_at_once(self, method: str, path: str, body: Any = None) -> tuple[bytes, bytes, bytes] | None:
        """Return what the connection of a request would write without the application."""
        request = self._http.build_request(method, path, json=body)
        headers = [(name.lower(), value) for name, value in request.headers.raw]
        place = ("http", None)  # as httpx sends it
        incoming = ReceivedRequest(method, path.encode(), headers, request.content, place, "registry", "127.0.0.2")  # type: ignore[arg-type]
        return self.front.find_answer_at_once(incoming)

    async def register(self, subject: str, doc: str = "", **more: Any) -> tuple[bool, httpx.Response]:
        """Register a version."""
        return await self.ask("POST", f"/subjects/{subject}/versions", {"schema": _TEXT % doc, **more})

    async def expect(self, path: str, *, known: bool) -> httpx.Response:
        """Return the response to a GET; it must come from the cache, or must not."""
        hit, response = await self.ask("GET", path)
        assert hit is known, path
        assert response.status_code == 200
        return response


async def test_an_answer_is_given_again_until_its_subject_changes(registry: Registry) -> None:
    """A new version in another subject does not invalidate a response about this one; every other change does."""
    client = Client(registry)
    await client.register("a")
    await client.register("b")
    path = "/subjects/a/versions/latest"
    first = await client.expect(path, known=False)
    again = await client.expect(path, known=True)
    assert (again.headers, again.content) == (first.headers, first.content)
    await client.register("b", "another")
    await client.register("c")
    await client.expect(path, known=True)
    await client.register("a", "another")
    assert (await client.expect(path, known=False)).json()["version"] == 2
    for method, target, body in (
        ("PUT", "/config/b", {"compatibility": "NONE"}),
        ("PUT", "/mode/b", {"mode": "READONLY"}),
        ("DELETE", "/subjects/c", None),
        ("DELETE", "/subjects/a/versions/2", None),
    ):
        await client.expect(path, known=True)
        assert (await client.ask(method, target, body))[1].status_code == 200
        await client.expect(path, known=False)
    assert (await client.expect(path, known=True)).json()["version"] == 1


async def test_a_list_of_names_is_given_again_until_there_is_another_name(registry: Registry) -> None:
    """A new version of a known subject invalidates the list of names only if the subject had no active version."""
    client = Client(registry)
    await client.register("a")
    assert (await client.expect("/subjects", known=False)).json() == ["a"]
    await client.register("a", "another")
    await client.expect("/subjects", known=True)
    await client.register("b")
    assert (await client.expect("/subjects", known=False)).json() == ["a", "b"]
    await client.ask("DELETE", "/subjects/a")
    assert (await client.expect("/subjects", known=False)).json() == ["b"]
    await client.register("a", "a third one")
    assert (await client.expect("/subjects", known=False)).json() == ["a", "b"]


async def test_pages_of_names_are_parts_of_one_list(registry: Registry) -> None:
    """Without a response cache, every list of names is current, and every page is a slice of it."""
    client = Client(registry, answer_cache_bytes=0)

    async def list_names(query: str = "") -> list[str]:
        return list((await client.ask("GET", f"/subjects?{query}"))[1].json())

    for name in ("b", "a", ":.c:z", "ab"):
        await client.register(name)
    for _ in range(2):
        assert await list_names() == [":.c:z", "a", "ab", "b"]
        assert await list_names("subjectPrefix=a") == ["a", "ab"]
        assert [await list_names(f"offset={start}&limit=2") for start in (0, 2, 4)] == [[":.c:z", "a"], ["ab", "b"], []]
    await client.register("aa")
    assert await list_names("subjectPrefix=a&limit=2") == ["a", "aa"]
    await client.ask("DELETE", "/subjects/aa")
    assert await list_names("subjectPrefix=a") == ["a", "ab"]
    assert await list_names("subjectPrefix=a&deleted=true") == ["a", "aa", "ab"]
    assert await list_names("subjectPrefix=a&deletedOnly=true") == ["aa"]
    await client.register("aa", "again")
    assert await list_names("subjectPrefix=a") == ["a", "aa", "ab"]


async def test_a_schema_by_id_lasts_until_a_purge(registry: Registry) -> None:
    """Only a purge invalidates the cached response of a schema by id."""
    client = Client(registry)
    await client.register("a")
    await client.expect("/schemas/ids/1", known=False)
    await client.register("a", "another")
    await client.ask("DELETE", "/subjects/a")
    await client.expect("/schemas/ids/1", known=True)
    await client.ask("DELETE", "/subjects/a?permanent=true")
    hit, response = await client.ask("GET", "/schemas/ids/1")
    assert (hit, response.status_code) == (False, 404)


async def test_a_schema_that_stands_in_for_another_is_forgotten_with_the_first_own_version(registry: Registry) -> None:
    """A response found in another context or by an alias ends with the first version of the name itself."""
    client = Client(registry)
    await client.register(":.other:a")
    await client.register("z")
    assert (await client.expect("/subjects/a/versions/latest", known=False)).json()["subject"] == ":.other:a"
    await client.expect("/subjects/a/versions/latest", known=True)
    await client.register("a", "own")
    assert (await client.expect("/subjects/a/versions/latest", known=False)).json()["subject"] == "a"
    await client.ask("PUT", "/config/a", {"alias": "z"})
    assert (await client.expect("/subjects/a/versions/latest", known=False)).json()["subject"] == "z"
    await client.register("z", "newer")
    assert (await client.expect("/subjects/a/versions/latest", known=False)).json()["version"] == 2


async def test_questions_with_a_body_are_answered_again(registry: Registry) -> None:
    """Responses to look-ups, checks and known registrations are cached like reads; new schemas are registered."""
    client = Client(registry)
    assert (await client.register("a"))[0] is False
    questions = (
        ("/subjects/a", {"schema": _TEXT % ""}),
        ("/subjects/a/versions", {"schema": _TEXT % ""}),
        ("/compatibility/subjects/a/versions/latest", {"schema": _TEXT % "next"}),
    )
    for path, body in questions:
        first = await client.ask("POST", path, body)
        again = await client.ask("POST", path, body)
        assert (first[0], again[0]) == (False, True), path
        assert first[1].content == again[1].content
        assert (await client.ask("POST", path, {**body, "references": []}))[0] is False
    changed = _TEXT % "next"
    assert (await client.ask("POST", "/subjects/a/versions", {"schema": changed}))[1].json()["id"] == 2
    for path, body in questions:
        assert (await client.ask("POST", path, body))[0] is False, path
    await client.ask("DELETE", "/subjects/a/versions/1")
    assert (await client.ask("POST", *questions[0]))[1].status_code == 404
    assert (await client.ask("POST", "/subjects/a/versions", {"schema": _TEXT % ""}))[1].json()["version"] == 3


async def test_a_reference_to_the_latest_version_is_followed(registry: Registry) -> None:
    """The next version of a referenced subject invalidates the response about the referring schema."""
    client = Client(registry)
    await client.register("target")
    body = {
        "schema": '{"type":"record","name":"S","fields":[{"name":"r","type":"R"}]}',
        "references": [{"name": "R", "subject": "target", "version": -1}],
    }
    assert (await client.ask("POST", "/subjects/a/versions", body))[1].status_code == 200
    assert (await client.ask("POST", "/subjects/a", body))[1].json()["references"][0]["version"] == 1
    await client.register("target", "newer")
    assert (await client.ask("POST", "/subjects/a", body))[1].status_code == 404


async def test_the_answer_to_a_body_is_written_at_once_until_the_subject_changes(registry: Registry) -> None:
    """A cached response to a POST is written at once and logged; another body or path is another request."""
    client = Client(registry)
    await client.register("a b")
    body, other = {"schema": _TEXT % ""}, {"schema": _TEXT % "another"}
    path = "/subjects/a%20b/versions"
    assert client.find_at_once("POST", path, body) is None
    first = (await client.ask("POST", path, body))[1]
    with structlog.testing.capture_logs() as lines:
        response = client.find_at_once("POST", path, body)
        assert response is not None
        assert (response[0], response[2]) == (b"HTTP/1.1 200 OK\r\n", first.content)
        assert client.find_at_once("POST", path, other) is None
        assert client.find_at_once("POST", "/contexts", body) is None
    expected = {"event": "request", "method": "POST", "path": "/subjects/a b/versions", "status": 200}
    assert len(lines) == 1
    assert lines[0].items() >= {**expected, "subject": "a b", "caller": "127.0.0.2", "dialect": "confluent"}.items()
    await client.register("a b", "another")
    assert client.find_at_once("POST", path, body) is None


async def test_a_node_that_may_be_behind_catches_up_first(registry: Registry) -> None:
    """A change by another node invalidates a cached response, even before this node has read it."""
    store = MemoryStore()
    await registry.reset(MemoryLog(store))
    other = await Registry.open(MemoryLog(store))
    client, elsewhere = Client(registry), Client(other)
    await client.register("a")
    await client.expect("/subjects", known=False)
    await client.expect("/subjects", known=True)
    await elsewhere.register("b")
    assert client.find_at_once("GET", "/subjects") is None
    assert (await client.expect("/subjects", known=False)).json() == ["a", "b"]
    await elsewhere.register("b", "another")
    await client.expect("/subjects", known=True)
    await other.close()


async def test_who_asks_otherwise_gets_his_own_answer(registry: Registry) -> None:
    """Media type, coding, host and entity tag are part of the key; HEAD and time-dependent responses are not cached."""
    client = Client(registry, compression_bytes=1)
    await client.register("a", "x" * 500)
    path = "/subjects/a/versions/latest"
    plain = await client.expect(path, known=False)
    tag = plain.headers["etag"]
    for headers in (
        {"accept": "application/json"},
        {"accept-encoding": "gzip"},
        {"accept-encoding": "zstd"},
        {"host": "other"},
        {"if-none-match": tag},
        {"if-none-match": '"other"'},
    ):
        first = await client.ask("GET", path, **headers)
        again = await client.ask("GET", path, **headers)
        assert (first[0], again[0]) == (False, True), headers
        assert first[1].status_code == again[1].status_code == (304 if headers.get("if-none-match") == tag else 200)
        assert first[1].headers == again[1].headers
    for method, volatile in (
        ("HEAD", path),
        ("GET", "/schema-repo-admin/config"),
        ("GET", "/schema-repo-admin/status"),
    ):
        for _ in range(2):
            hit, response = await client.ask(method, volatile)
            assert (hit, response.status_code) == (False, 200), volatile


async def test_cache_is_bounded(registry: Registry) -> None:
    """The least recently used responses are dropped when the bytes run out; a very large one is never stored."""
    client = Client(registry, answer_cache_bytes=40_000)
    for number in range(30):
        await client.register("a", f"{number}")
        await client.expect(f"/schemas/ids/{number + 1}", known=False)
    cache = client.front.cache
    assert cache is not None
    assert 5 < len(cache) < 20
    assert 0 < cache.bytes <= 40_000
    assert sum(answer.size for answer in cache._answers.values()) == cache.bytes
    await client.expect("/schemas/ids/30", known=True)
    await client.expect("/schemas/ids/1", known=False)
    await client.register("a", "x" * 10_000)
    for _ in range(2):
        await client.expect("/schemas/ids/31", known=False)
    assert build_dispatcher(registry, ServerSettings(answer_cache_bytes=0), Metrics()).cache is None


async def test_a_changed_registry_ends_what_began_before(registry: Registry) -> None:
    """A response whose request began before a change it depends on is not stored, and a reset empties the cache."""
    client = Client(registry)
    cache = client.front.cache
    assert isinstance(cache, ResponseCache)
    await client.register("a")
    await client.expect("/subjects", known=False)
    ((key, answer),) = ((key, answer) for key, answer in cache._answers.items() if key[1] == b"/subjects")
    await client.register("b")
    cache.keep_answer(key, answer)
    assert cache.find_answer(key) is None
    await client.expect("/subjects", known=False)
    await registry.reset(await open_log("memory:"))
    assert (await client.expect("/subjects", known=False)).json() == []


def test_every_header_that_an_endpoint_reads_is_in_the_key() -> None:
    """The key contains every header that an endpoint reads; headers of PUT only are not needed."""
    folder = Path(stele.__file__).parent / "apis"
    read = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("headers.get", "_join_header")):
                names = (arg.value for arg in node.args if isinstance(arg, ast.Constant) and arg.value)
                read |= {name if isinstance(name, bytes) else str(name).encode() for name in names}
    assert read
    assert read <= KEY_HEADERS


# --- over a connection ------------------------------------------------------------------------------------------------


_opened: list[socket.socket] = []


class _OpenFile(io.BufferedReader):
    """A file that stays open for the next response."""

    def close(self) -> None:
        """Do nothing."""


PATIENT = {"STELE_HEADER_SECONDS": "600", "STELE_IDLE_SECONDS": "600"}
"""Settings of a server that does not close the connections of a test that a busy machine delays."""


class Connection:
    """A connection to a server, which stays open."""

    def __init__(self, url: str) -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        self._file = _OpenFile(socket.SocketIO(self.socket, "rb"))
        _opened.append(self.socket)

    def makefile(self, _mode: str) -> _OpenFile:
        """Return the file that a response is read from."""
        return self._file

    def send(self, *lines: str) -> HTTPResponse:
        """Send the lines of a head, and return the response."""
        self.socket.sendall("\r\n".join((*lines, "", "")).encode())
        return self.receive(lines[0].partition(" ")[0])

    def receive(self, method: str = "GET") -> HTTPResponse:
        """Return one complete response."""
        response = HTTPResponse(self, method=method)  # type: ignore[arg-type]  # that makes a file
        response.begin()
        response.body = response.read()  # type: ignore[attr-defined]  # kept for the caller
        return response


def test_a_connection_writes_what_the_server_would(tmp_path: Path) -> None:
    """Cached responses have every header; requests with special headers or forms get the right response, too."""
    with serving("--store", "memory:", folder=tmp_path, environ=PATIENT) as server:
        assert call(f"{server.url}/subjects/a/versions", "POST", {"schema": _TEXT % ("x" * 3000)}).status == 200
        path = "/subjects/a/versions/latest"
        connection = Connection(server.url)
        get = (f"GET {path} HTTP/1.1", "Host: r")
        answers = [connection.send(*get) for _ in range(3)]
        ids = {answer.getheader("x-request-id") for answer in answers}
        assert len(ids) == 3
        summaries = [
            (answer.status, [name for name, _ in answer.getheaders()], answer.getheader("etag"), answer.body)  # type: ignore[attr-defined]
            for answer in answers
        ]
        assert summaries[0] == summaries[1] == summaries[2]
        assert answers[2].getheader("date")
        tag = str(answers[2].getheader("etag"))
        for lines, status in (
            ((f"HEAD {path} HTTP/1.1", "Host: r"), 200),
            ((*get, f"If-None-Match: {tag}"), 304),
            ((*get, f"If-None-Match: {tag}"), 304),
            ((*get, "X-Request-ID: mine"), 200),
            ((f"GET {path} HTTP/1.1", "Host: r", "Content-Length: 0"), 200),
            ((f"GET http://r{path} HTTP/1.1", "Host: r"), 200),
        ):
            answer = connection.send(*lines)
            assert answer.status == status, lines
            assert len(answer.body) == (len(answers[0].body) if status == 200 and lines[0][0] == "G" else 0)  # type: ignore[attr-defined]
        assert connection.send(*get, "X-Request-ID: mine").getheader("x-request-id") == "mine"
        many = ("\r\n".join((*get, "", ""))).encode() * 5
        connection.socket.sendall(many)
        assert [connection.receive().body for _ in range(5)] == [answers[0].body] * 5  # type: ignore[attr-defined]
        for byte in "\r\n".join((*get, "", "")).encode():
            connection.socket.sendall(bytes([byte]))
        assert connection.receive().status == 200
        closing = connection.send(*get, "Connection: close")
        assert closing.getheader("connection") == "close"
        assert connection.socket.recv(1) == b""
        refused = Connection(server.url).send(*get, *(f"X-{number}: 1" for number in range(120)))
        assert refused.status == 431
        old = Connection(server.url).send(f"GET {path} HTTP/1.0", "Host: r")
        assert (old.status, len(old.body)) == (200, len(answers[0].body))  # type: ignore[attr-defined]
        metrics = str(call(f"{server.url}/metrics").body)
        counted = re.search(
            r'stele_requests_total\{dialect="confluent",method="GET",route="[^"]*latest[^"]*|'
            r'stele_requests_total\{dialect="confluent",method="GET",route="/subjects/\{subject\}/versions/\{version\}"'
            r',status="200"\} (\S+)',
            metrics,
        )
        assert counted is not None
        assert float(counted[1]) == 3 + 3 + 1 + 5 + 1 + 1 + 1


def test_a_connection_answers_known_questions_with_a_body(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A cached response is returned however the body arrives; each request is logged once."""
    body = json.dumps({"schema": _TEXT % "x"})
    head = ("Host: r", "Content-Type: application/json", f"Content-Length: {len(body)}")
    request_head = ("POST /subjects/a HTTP/1.1", *head)
    with serving("--store", "memory:", "--log-level", "info", folder=tmp_path, environ=PATIENT) as server:
        assert call(f"{server.url}/subjects/a/versions", "POST", json.loads(body)).status == 200
        connection = Connection(server.url)
        whole = "\r\n".join((*request_head, "", body)).encode()

        def ask(*pieces: bytes) -> HTTPResponse:
            for piece in pieces:
                connection.socket.sendall(piece)
                time.sleep(0.01)
            return connection.receive("POST")

        first = ask(whole)
        assert json.loads(first.body)["version"] == 1  # type: ignore[attr-defined]
        head_end = whole.index(b"{")
        known = [
            ask(whole),
            ask(whole[:head_end], whole[head_end:]),
            ask(whole[: head_end + 9], whole[head_end + 9 : -5], whole[-5:]),
            ask(whole[:20], whole[20:]),
        ]
        for answer in known:
            assert [name for name, _ in answer.getheaders()] == [name for name, _ in first.getheaders()]
            assert (answer.status, answer.body) == (200, first.body)  # type: ignore[attr-defined]
        assert len({answer.getheader("x-request-id") for answer in known}) == 4
        expecting = whole.replace(b"Host: r", b"Host: r\r\nExpect: 100-continue")
        connection.socket.sendall(expecting[: expecting.index(b"{")])
        assert connection._file.readline() == b"HTTP/1.1 100 Continue\r\n"
        assert connection._file.readline() == b"\r\n"
        assert ask(expecting[expecting.index(b"{") :]).body == first.body  # type: ignore[attr-defined]
        unknown = whole.replace(b'"x', b'"y').replace(b"x\\", b"y\\")
        assert len(unknown) == len(whole)
        connection.socket.sendall(whole + unknown + whole + unknown[:-1])
        assert [connection.receive("POST").status for _ in range(3)] == [200, 404, 200]
        assert ask(unknown[-1:]).status == 404
        assert call(f"{server.url}/subjects/a", "DELETE").status == 200
        assert ask(whole).status == 404
        closing = ask(whole.replace(b"Host: r", b"Host: r\r\nConnection: close"))
        assert (closing.status, closing.getheader("connection")) == (404, "close")
    logged = capfd.readouterr().err.splitlines()
    lines = [line for line in logged if "path=/subjects/a " in line and "method=POST" in line]
    assert len(lines) == 1 + 4 + 1 + 3 + 1 + 1 + 1
    assert all("caller=127.0.0.1" in line and "subject=a" in line for line in lines)


def test_no_answer_is_older_than_what_was_acknowledged(tmp_path: Path) -> None:
    """With two processes over one file, one returns at once what the other has acknowledged."""
    with serving("--store", "sqlite:///log.db", "--workers", "2", folder=tmp_path, environ=PATIENT) as server:
        connections = [Connection(server.url) for _ in range(8)]
        for number in range(1, 40):
            body = {"schema": _TEXT % number}
            assert call(f"{server.url}/subjects/a/versions", "POST", body).status == 200
            for connection, _ in itertools.product(connections, range(2)):
                answer = connection.send("GET /subjects/a/versions/latest HTTP/1.1", "Host: r")
                assert json.loads(answer.body)["version"] == number  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def _clean_up() -> Iterator[None]:
    structlog.reset_defaults()
    yield
    while _opened:
        _opened.pop().close()
