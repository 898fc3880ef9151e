"""Entity tags, caching headers, compression and CORS headers of responses."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx
import pytest
from tests.support.time_limit import limit_time

from stele.errors import InvalidRequest
from stele.server.answers import AnswerOptions
from stele.server.in_process import InProcessServer, InProcessTransport
from stele.server.settings import ServerSettings, load_settings

SCHEMA = {"schema": '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'}
FIELDS = [{"name": f"field_{number}", "type": "int"} for number in range(100)]
LONG = {"schema": json.dumps({"type": "record", "name": "Long", "fields": FIELDS})}


@pytest.fixture
def server() -> Any:
    """A server with two schemas, one of them long."""
    running = InProcessServer(ServerSettings(store="memory:", cors_origins=("https://ui.example.org",)))
    with httpx.Client(transport=InProcessTransport(running), base_url="http://stele") as client:
        assert client.post("/subjects/s/versions", json=SCHEMA).status_code == 200
        assert client.post("/subjects/long/versions", json=LONG).status_code == 200
        yield client
    running.stop()


@pytest.mark.parametrize(
    ("path", "lasting"),
    [
        ("/schemas/ids/1", True),
        ("/contexts/.other/schemas/ids/1", True),
        ("/schemas/ids/1/schema", True),
        ("/schemas/ids/1?fetchMaxId=true", False),
        ("/schemas/ids/1/versions", False),
        ("/subjects/s/versions/1", False),
        ("/subjects", False),
        ("/config", False),
        ("/schemagroups", False),
        ("/api/journal", False),
        ("/v1/groups", False),
    ],
)
def test_what_never_changes_is_kept_without_asking(server: httpx.Client, path: str, lasting: bool) -> None:
    """A schema by its id is immutable for caches; all other responses are revalidated and get 304 until they change."""
    server.post("/subjects/:.other:s/versions", json=SCHEMA)
    first = server.get(path)
    assert first.status_code == 200
    assert first.headers["cache-control"] == ("max-age=86400, immutable" if lasting else "no-cache")
    again = server.get(path, headers={"if-none-match": f'"other", {first.headers["etag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert "content-type" not in again.headers
    assert server.get(path, headers={"if-none-match": '"other"'}).status_code == 200
    head = server.head(path)
    assert (head.status_code, head.headers["etag"]) == (200, first.headers["etag"])


def test_guid_is_immutable(server: httpx.Client) -> None:
    """A schema by its GUID is immutable, too."""
    guid = server.get("/schemas/ids/1").json()["guid"]
    assert "immutable" in server.get(f"/schemas/guids/{guid}").headers["cache-control"]
    assert "immutable" not in server.get(f"/schemas/guids/{guid}/ids").headers["cache-control"]


def test_a_change_gets_another_tag(server: httpx.Client) -> None:
    """The entity tag of a list changes with the list; errors are never cached."""
    before = server.get("/subjects").headers["etag"]
    server.post("/subjects/new/versions", json=SCHEMA)
    assert server.get("/subjects", headers={"if-none-match": before}).status_code == 200
    missing = server.get("/schemas/ids/77", headers={"if-none-match": "*"})
    assert (missing.status_code, missing.headers["cache-control"]) == (404, "no-cache")
    assert "etag" not in server.post("/subjects/s", json=SCHEMA).headers


@pytest.mark.parametrize("path", ["/schemas/ids/2", "/subjects/long/versions/1", "/schemas/ids/2?fetchMaxId=true"])
def test_long_answers_are_compressed(server: httpx.Client, path: str) -> None:
    """From 1 KiB on a body has the coding that the client prefers; short ones and unknown codings stay plain."""
    plain = server.get(path, headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    for accept_encoding, coding in {
        "gzip": "gzip",
        "gzip, deflate, br, zstd": "zstd",
        "zstd;q=0.5, gzip": "gzip",
        "*": "zstd",
        "gzip;q=0, zstd;q=0": None,
        "br": None,
        "gzip;q=none": None,
    }.items():
        for _ in range(2):
            answer = server.get(path, headers={"accept-encoding": accept_encoding})
            assert answer.headers.get("content-encoding") == coding
            assert answer.headers["etag"] == plain.headers["etag"]
            assert "accept-encoding" in answer.headers["vary"]
        assert answer.content == plain.content
        assert (int(answer.headers["content-length"]) < len(plain.content)) is (coding is not None)
    assert "content-encoding" not in server.get("/schemas/ids/1", headers={"accept-encoding": "gzip"}).headers


def test_other_origins_read_where_they_are_named(server: httpx.Client) -> None:
    """Named origins get CORS headers on every response, errors and preflights included; other origins get none."""
    named = {"origin": "https://ui.example.org"}
    for path in ("/schemas/ids/1", "/subjects", "/schemas/ids/77"):
        answer = server.get(path, headers=named)
        assert answer.headers["access-control-allow-origin"] == named["origin"]
        assert "origin" in answer.headers["vary"].replace(" ", "").split(",")
        other = server.get(path, headers={"origin": "https://evil.example.org"})
        assert "access-control-allow-origin" not in other.headers
        assert "access-control-allow-origin" not in server.get(path).headers
    asking = {"access-control-request-method": "PUT", "access-control-request-headers": "content-type"}
    preflight = server.options("/config", headers={**named, **asking})
    assert preflight.status_code == 204
    assert "PUT" in preflight.headers["access-control-allow-methods"]
    refused = server.options("/config", headers={"origin": "https://ui.example.org.evil", **asking})
    assert not any(name.startswith("access-control-allow") for name in refused.headers)


def test_no_origin_is_named_by_default() -> None:
    """Without the setting no response has CORS headers."""
    running = InProcessServer(ServerSettings(store="memory:"))
    with httpx.Client(transport=InProcessTransport(running), base_url="http://stele") as client:
        answer = client.get("/subjects", headers={"origin": "https://ui.example.org"})
    running.stop()
    assert not any(name.startswith("access-control") for name in answer.headers)


def test_the_settings_decide() -> None:
    """With 0 seconds caches always revalidate, 0 bytes turns compression off, and an invalid origin is refused."""
    always = AnswerOptions(cache_seconds=0, compression_bytes=0)
    assert (b"cache-control", b"no-cache") in always.caching_headers(b"x", immutable=True)
    assert always.choose_encoding(b"gzip", 1_000_000) == ""
    assert load_settings({}, environ={"STELE_CORS_ORIGINS": "*, http://[::1]:3000"}).cors_origins
    with pytest.raises(InvalidRequest, match="cors_origins"):
        load_settings({"cors_origins": "https://ui.example.org/path"}, environ={})


@pytest.mark.parametrize("path", ["/subjects/s/versions", "/api/infer", "/api/check"])
def test_a_body_of_very_many_values_is_refused(server: httpx.Client, path: str) -> None:
    """A body of 13 MB of empty lists is refused, since decoding it would block the server for seconds."""
    body = b'{"to":"avro","format":"avro","schema":"x","samples":[' + b",".join([b"[]"] * 4_000_000) + b"]}"
    with limit_time(5, time.monotonic):
        answer = server.post(path, content=body, headers={"content-type": "application/json"})
        assert answer.status_code in {413, 422}
        assert "values" in answer.text
