"""The dispatcher alone: authentication, refused bodies, metrics; cached responses are in `test_answer_cache`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest
from tests.support.authentication import HeaderAuthenticator

from stele.apis.http.requests import MOUNTED_PREFIX, PRINCIPAL, REFUSAL, SLASH
from stele.errors import Unauthenticated
from stele.server.answer_cache import ResponseCache
from stele.server.asgi import ReceivedRequest
from stele.server.dispatch import Dispatcher, MountedDialect
from stele.server.metrics import Metrics
from stele.service.access import Headers, Principal
from stele.service.registry import Registry
from stele.storage.memory import MemoryLog

Pairs = Sequence[tuple[bytes, bytes]]


class Client:
    """Sends requests to an ASGI application and stores the messages of the response."""

    def __init__(self, app: Dispatcher) -> None:
        self.app = app
        self.messages: list[Any] = []
        self.body = [b""]
        self.port = 8081

    async def ask(
        self, path: str, method: str = "GET", headers: Pairs = (), query: bytes = b"", raw: bytes = b""
    ) -> int:
        """Send a request and return the status of the response."""
        self.messages.clear()
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": raw or path.encode(),
            "headers": list(headers),
            "server": ("127.0.0.1", self.port),
        }
        chunks = list(self.body)

        async def receive() -> Any:
            chunk = chunks.pop(0)
            return {"type": "http.request", "body": chunk, "more_body": bool(chunks)}

        async def send(message: Any) -> None:
            self.messages.append(message)

        await self.app({**scope, "query_string": query}, receive, send)
        self.unread = len(chunks)
        status: int = self.messages[0]["status"]
        return status

    @property
    def headers(self) -> dict[bytes, bytes]:
        """Headers of the response."""
        return dict(self.messages[0]["headers"])


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the path and the caller of the scope, or refuse if the scope has a refusal."""
    status = 200 if scope[REFUSAL] is None else 401
    body = f"{scope['path']} {scope[PRINCIPAL].name}".encode()
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


def mount_named(name: str, root: str = "") -> MountedDialect:
    """Return a mount that answers with its name, the path and the prefix of the scope."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = [
            (b"app", name.encode()),
            (b"path", scope["path"].encode()),
            (b"base", scope[MOUNTED_PREFIX].encode()),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    return MountedDialect(name, app, root)


async def refusing(scope: Any, receive: Any, send: Any) -> None:
    """Refuse a request without reading its body."""
    await send({"type": "http.response.start", "status": 413, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def front(**more: Any) -> Dispatcher:
    """Return a dispatcher over the two applications."""
    return Dispatcher({"big": MountedDialect("big", refusing)}, MountedDialect("echo", echo), Metrics(), **more)


async def test_every_request_passes_the_authenticator() -> None:
    """A caller without valid credentials gets 401, even if the response is cached; others arrive with their name."""

    def by_token(headers: Headers) -> Principal:
        for name, value in headers:
            if name == b"authorization":
                return Principal(value.decode())
        raise Unauthenticated("say who you are")

    client = Client(
        front(authenticator=HeaderAuthenticator(by_token), cache=ResponseCache(Registry(MemoryLog()), 100_000))
    )
    for _ in range(2):
        assert await client.ask("/x") == 401
        assert b"www-authenticate" in client.headers
        for name in (b"ann", b"bob"):
            assert await client.ask("/x", headers=[(b"authorization", name)]) == 200
            assert client.messages[1]["body"] == b"/x " + name
    request = ReceivedRequest("GET", b"/x", [], b"", ("http", 8081), "127.0.0.1", "127.0.0.1")
    assert client.app.find_answer_at_once(request) is None


async def test_request_ids_are_echoed_only_when_harmless() -> None:
    """A client's request id is returned if it is short and printable; otherwise the server makes one."""
    client = Client(front())
    await client.ask("/x", headers=[(b"x-request-id", b"mine")])
    assert client.headers[b"x-request-id"] == b"mine"
    for bad in (b"a\r\nset-cookie: x", b"", b"x" * 129):
        await client.ask("/x", headers=[(b"x-request-id", bad)])
        assert len(client.headers[b"x-request-id"]) == 32


async def test_a_refused_body_is_read_to_its_end() -> None:
    """The client receives the 413 instead of a broken connection while it is still sending."""
    client = Client(front())
    client.body = [b"x" * 1000] * 50
    assert await client.ask("/big", "POST") == 413
    assert client.unread == 0


async def test_encoded_slashes_stay_inside_their_name() -> None:
    """`%2F` is not a separator; everything else is decoded once."""
    client = Client(front())
    await client.ask("/subjects/a/b c", raw=b"/subjects/a%2Fb%20c%252F")
    assert client.messages[1]["body"].decode() == f"/subjects/a{SLASH}b c%2F "


async def test_metrics_have_no_label_a_client_can_choose() -> None:
    """Unknown paths and methods have one label each, and cached responses are counted exactly."""
    metrics = Metrics()
    app = Dispatcher({}, MountedDialect("echo", echo), metrics)
    client = Client(app)
    for number in range(30):
        await client.ask(f"/made/up/{number}", f"METHOD{number}")
    for _ in range(300):
        metrics.get_counter("confluent", "/schemas/ids/{id}", "GET", 200).count_cached(time.perf_counter())
    registry = Registry(MemoryLog())
    text = metrics.render_metrics(registry)[0].decode()
    lines = [line for line in text.splitlines() if line.startswith("stele_requests_total")]
    assert len(lines) == 2
    assert 'method="OTHER",route="unmatched",status="200"} 30.0' in text
    assert 'route="/schemas/ids/{id}",status="200"} 300.0' in text


async def test_a_body_that_was_read_is_not_waited_for() -> None:
    """A refusal after the end of the body is sent at once, without waiting for more data."""

    async def reads_first(scope: Any, receive: Any, send: Any) -> None:
        while (await receive())["more_body"]:
            pass
        await refusing(scope, receive, send)

    client = Client(Dispatcher({}, MountedDialect("big", reads_first), Metrics()))
    client.body = [b"a", b"b"]
    assert await client.ask("/", "POST") == 413


async def test_the_longer_beginning_of_a_path_decides() -> None:
    """A dialect can own `/v1/metadata` while another has the rest of `/v1`; all other paths go to the fallback."""
    mounts = {"v1": mount_named("groups"), "v1/metadata": mount_named("root")}
    client = Client(Dispatcher(mounts, mount_named("fallback"), Metrics()))
    for path, app in {
        "/v1": b"groups",
        "/v1/groups/metadata": b"groups",
        "/v1/metadata": b"root",
        "/v1/metadata/id": b"root",
        "/v1/metadatas": b"groups",
        "/v2/metadata": b"fallback",
        "/": b"fallback",
    }.items():
        await client.ask(path)
        assert client.headers[b"app"] == app, path


async def test_a_dialect_answers_below_its_name() -> None:
    """A first segment without an owner may be the name of a dialect, which gets the rest of the path and the prefix."""
    names = {"groups": mount_named("groups"), "repo": mount_named("repo")}
    client = Client(
        Dispatcher({"v1": names["groups"], "repo": names["repo"]}, mount_named("fallback"), Metrics(), names=names)
    )
    for path, expected in {
        "/groups/v1/a": (b"groups", b"/v1/a", b"/groups"),
        "/groups": (b"groups", b"/", b"/groups"),
        "/groups/": (b"groups", b"/", b"/groups"),
        "/groups/groups": (b"groups", b"/groups", b"/groups"),
        "/v1/groups": (b"groups", b"/v1/groups", b""),
        "/repo/a": (b"repo", b"/repo/a", b""),
        "/_docs/groups/openapi.json": (b"groups", b"/_docs/groups/openapi.json", b""),
        "/_docs/": (b"fallback", b"/_docs/", b""),
        "/_docs": (b"fallback", b"/_docs", b""),
        "/groupsy": (b"fallback", b"/groupsy", b""),
    }.items():
        await client.ask(path)
        assert tuple(client.headers[name] for name in (b"app", b"path", b"base")) == expected, path


async def test_a_port_can_belong_to_one_dialect() -> None:
    """On its own port a dialect gets every path, with its root in front, and no cached responses of other dialects."""
    own = mount_named("own", "/root")
    mounts = {"v1": mount_named("v1"), "root": own, "also": own}
    cache = ResponseCache(Registry(MemoryLog()), 100_000)
    client = Client(Dispatcher(mounts, mount_named("fallback"), Metrics(), cache=cache, ports={9092: own}))
    await client.ask("/v1")
    assert client.headers[b"app"] == b"v1"
    client.port = 9092
    for path, inner in {
        "/v1": b"/root/v1",
        "/root/a": b"/root/a",
        "/also/b": b"/also/b",
        "/rooted": b"/root/rooted",
        "/": b"/root/",
        "/_docs/own/openapi.json": b"/_docs/own/openapi.json",
    }.items():
        await client.ask(path)
        assert (client.headers[b"app"], client.headers[b"path"]) == (b"own", inner), path


def answering(name: str) -> MountedDialect:
    """Return a dialect that answers with its name."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        head = [(b"app", name.encode()), (b"path", scope["path"].encode())]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": b""})

    return MountedDialect(name, app)


OTHER = "application/vnd.other.v1+json"


@pytest.mark.parametrize(
    ("accept", "content_type", "app"),
    [
        ("", "", "root"),
        ("*/*", "", "root"),
        ("application/vnd.schemaregistry.v1+json", "", "root"),
        ("application/json", "", "root"),
        (OTHER, "", "other"),
        (OTHER.upper(), "", "other"),
        (f"{OTHER}; charset=utf-8", "", "other"),
        (f"{OTHER}, application/json;q=0.9", "", "other"),
        (f"application/json, {OTHER}", "", "other"),
        (f"*/*, {OTHER}", "", "other"),
        (f"*/*;q=0.1, {OTHER};q=0.5", "", "other"),
        (f"application/json, {OTHER};q=0.5", "", "root"),
        (f"application/vnd.schemaregistry.v1+json, {OTHER};q=0.5", "", "root"),
        (f"{OTHER};q=0, */*", "", "root"),
        (f"{OTHER};q=nonsense", "", "root"),
        (f"{OTHER}x", "", "root"),
        (f"x{OTHER}", "", "root"),
        ("application/json", OTHER, "other"),
        ("*/*", f"{OTHER}; charset=utf-8", "other"),
        ("*/*", f"text/plain; x={OTHER}", "root"),
    ],
)
async def test_media_types_choose_a_dialect_at_the_root(accept: str, content_type: str, app: str) -> None:
    """A client selects a dialect by sending its media type, or by preferring it in `Accept`."""
    media = {OTHER: answering("other")}
    candidates = [(b"accept", accept.encode()), (b"content-type", content_type.encode())]
    headers = [pair for pair in candidates if pair[1]]
    cache = ResponseCache(Registry(MemoryLog()), 100_000)
    client = Client(Dispatcher({}, answering("root"), Metrics(), cache=cache, media=media))
    for request_headers in ((), headers, headers):
        await client.ask("/subjects", headers=request_headers)
        assert client.headers[b"app"].decode() == (app if request_headers else "root")


async def test_media_types_choose_nothing_elsewhere() -> None:
    """Below a prefix, on its own port, for documents and on paths of one dialect, media types select nothing."""
    root, own, media = answering("root"), answering("own"), {OTHER: answering("other")}
    front = Dispatcher({"v1": own}, root, Metrics(), names={"root": root, "own": own}, ports={9000: root}, media=media)
    client = Client(front)
    for port, path, app in (
        (8081, "/v1/groups", b"own"),
        (8081, "/own/x", b"own"),
        (8081, "/root/x", b"root"),
        (8081, "/_docs/root/openapi.json", b"root"),
        (9000, "/subjects", b"root"),
        (8081, "/subjects", b"other"),
    ):
        client.port = port
        await client.ask(path, headers=[(b"accept", OTHER.encode())])
        assert client.headers[b"app"] == app, path
