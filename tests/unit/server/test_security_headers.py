"""Security headers of responses; names never become markup, headers or log lines."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest

from stele.server.answers import AnswerOptions
from stele.server.dialects import DIALECTS
from stele.server.in_process import InProcessServer, InProcessTransport
from stele.server.settings import ServerSettings
from stele.templates import PAGE_HEADERS

SCRIPT = "<script>alert(1)</script>"
EVIL_NAMES = [
    SCRIPT,
    f'"><img src=x onerror=alert(1)>{SCRIPT}',
    "javascript:alert(1)",
    "' onmouseover='alert(1)",
    "&lt;b&gt;",
]
AVRO = json.dumps({"type": "record", "name": "R", "doc": SCRIPT, "fields": []})
SPLITS = [
    "a\r\nX-Injected: 1",
    "a\nX-Injected: 1",
    "a\r\n\r\nHTTP/1.1 200 OK",
    "a\x00b",
    "a\x85b",
    "a\u2028b",
    "a\x1b[31m",
]


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    """A client of a server with subjects whose names contain markup."""
    server = InProcessServer(ServerSettings(store="memory:"))
    with httpx.Client(transport=InProcessTransport(server), base_url="http://127.0.0.1:8081") as client:
        for name in EVIL_NAMES:
            segment = quote(name, safe="")
            assert client.put(f"/schema-repo/{segment}", data={name: SCRIPT}).status_code == 200
            assert client.put(f"/schema-repo/{segment}/register", content=AVRO).status_code == 200
        yield client
    server.stop()


def test_no_answer_may_be_taken_for_something_else(client: httpx.Client) -> None:
    """Every response forbids content sniffing, once: of every dialect, of operations pages, and errors."""
    paths = ["/health/live", "/health/ready", "/metrics", "/", "/nothing/here", "/schemas/ids/99", "/config?x"]
    paths += [f"/_docs/{dialect.name}/openapi.json" for dialect in DIALECTS]
    paths += [f"/{dialect.name}/nobody/nothing" for dialect in DIALECTS]
    for path in [*paths, *paths]:  # the second time from the cache, where an answer can be given again
        answer = client.get(path)
        assert answer.headers.get_list("x-content-type-options") == ["nosniff"], path


def collect_pages(client: httpx.Client) -> dict[str, httpx.Response]:
    """Return every HTML page except those of `/ui`, by path: the start page, and linked pages."""
    pages: dict[str, httpx.Response] = {}
    pending = [
        "/",
        "/schema-repo-browser",
        "/avro1124/schema-repo-browser",
        "/schema-repo-admin/config",
        "/avro1124/config",
    ]
    while pending:
        path = pending.pop()
        answer = client.get(path, headers={"accept": "text/html"})
        assert answer.status_code == 200, path
        if answer.headers["content-type"].startswith("text/html"):
            pages[path] = answer
            links = (html.unescape(link) for link in re.findall('href="([^"]*)"', answer.text))
            pending += [
                link for link in links if link.startswith("/") and not link.startswith("/ui") and link not in pages
            ]
    return pages


def test_names_are_no_markup_on_any_page(client: httpx.Client) -> None:
    """Names, texts and config are escaped on every page, and no page runs a script or can be framed."""
    pages = collect_pages(client)
    assert len(pages) >= 5 + 2 * 4 * len(EVIL_NAMES)
    for path, answer in pages.items():
        text = answer.text
        for markup in ("<script", "<img", "onerror=alert(1)>", "<b>", 'javascript:alert(1)"', "' onmouseover='"):
            assert markup not in text, (path, markup)
        for name, value in PAGE_HEADERS.items():
            assert answer.headers[name] == value, path
    assert html.escape(SCRIPT) in pages["/schema-repo-browser"].text


def test_only_schema_repo_and_the_start_page_have_pages(client: httpx.Client) -> None:
    """Every route that returns HTML is among the pages of the tests above."""
    html_routes = set()
    for dialect in DIALECTS:
        document = client.get(f"/_docs/{dialect.name}/openapi.json").json()
        for path, operations in document["paths"].items():
            for operation in operations.values():
                for response in operation.get("responses", {}).values():
                    if "text/html" in response.get("content", {}):
                        html_routes.add(path)
    assert html_routes
    assert all("schema-repo-browser" in path for path in html_routes), html_routes


@pytest.mark.parametrize("name", SPLITS)
def test_names_cannot_split_an_answer(client: httpx.Client, name: str) -> None:
    """A line break in a name is refused or escaped, and never appears in a header."""
    segment = quote(name, safe="")
    requests = [
        ("POST", f"/subjects/{segment}/versions", json.dumps({"schema": AVRO}), "application/json"),
        ("PUT", f"/schema-repo/{segment}", "", "application/x-www-form-urlencoded"),
        ("PUT", f"/schemagroups/{segment}", '{"format":"avro"}', "application/json"),
        ("POST", f"/schemagroups/g/schemas/{segment}?format=avro", AVRO, "application/json;format=avro"),
        ("GET", f"/schemagroups/g/schemas/{segment}", "", ""),
        (
            "PUT",
            f"/$schemagroups/{segment}/schemas/s?api-version=2023-07-01",
            AVRO,
            "application/json; serialization=Avro",
        ),
        (
            "POST",
            f"/schema-registry/v1/subject/{segment}/schema/S",
            json.dumps({"schemaIdl": AVRO}),
            "application/json",
        ),
        ("POST", f"/openschema/subjects/{segment}/versions", json.dumps({"schema": AVRO}), "application/json"),
        ("POST", "/v1/groups", json.dumps({"groupName": name, "groupProperties": {}}), "application/json"),
        ("GET", f"/v1/groups/{segment}", "", ""),
        ("PUT", f"/api/policies/{segment}", '{"policy":"none"}', "application/json"),
    ]
    client.put("/schemagroups/g", json={"format": "avro"})
    for method, path, body, content_type in requests:
        answer = client.request(method, path, content=body or None, headers={"content-type": content_type})
        assert answer.status_code < 500, (method, path, answer.text)
        for pair in answer.headers.raw:
            assert not re.search(rb"[\x00-\x08\x0a-\x1f\x7f]", b"".join(pair)), (path, pair)
        assert "x-injected" not in answer.headers


def test_answers_to_a_known_caller_are_his_own() -> None:
    """Shared caches do not store responses to authenticated callers."""
    options = AnswerOptions()
    for immutable in (False, True):
        control = dict(options.caching_headers(b"x", immutable=immutable, private=True))[b"cache-control"]
        assert control.startswith(b"private, ")
        assert b"private" not in dict(options.caching_headers(b"x", immutable=immutable))[b"cache-control"]
