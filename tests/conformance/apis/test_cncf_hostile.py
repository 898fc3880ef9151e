"""The CNCF dialect answers invalid requests with its own errors, in bounded time, and changes nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conformance.apis.in_process import client_of
from tests.support.examples import scale_examples
from tests.support.time_limit import limit_time

from stele.apis.cncf import CncfOptions, application
from stele.server.dispatch import Dispatcher, MountedDialect
from stele.server.metrics import Metrics
from stele.service.registry import Registry
from stele.storage import open_log

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECONDS = 20.0
WITH_BODY = [
    ("PUT", "/schemagroups/g"),
    ("POST", "/subscriptions"),
    ("PUT", "/subscriptions/x"),
    ("PUT", "/$schemaGroups/g"),
]
BODIES = [
    b"",
    b"null",
    b"[]",
    b"1",
    b'"text"',
    b"{",
    b"\xff",
    b'{"format":"\xff"}',
    b'{"format":1,"schemaType":1}',
    b'{"sink":1,"protocol":"HTTP"}',
    b'{"format":"a\\u0000b","schemaType":"a\\u0000b"}',
    b'{"format":"\\ud800","schemaType":"\\ud800"}',
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b'{"sink":"https://a/b","protocol":"HTTP","filters":[' + b'{"not":' * 20_000,
    b'{"sink":"https://a/b","protocol":"HTTP","config":{"a":"' + b"x" * 100_000 + b'"}}',
    b'{"sink":"https://a/b","protocol":"HTTP","protocolsettings":{"headers":[]}}',
    b'{"description":"' + b"x" * 10_000 + b'","schemaType":""}',
    b'{"groupProperties":{"a":1},"schemaType":"Avro"}',
]
AVRO = b'{"type":"record","name":"R","fields":[]}'


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def registry(brief_logging: None) -> AsyncIterator[Registry]:
    """One node with a group and a schema."""
    node = await Registry.open(await open_log("memory:"))
    yield node
    await node.close()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def client(registry: Registry) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the dialect. It limits requests to a million bytes."""
    app = Dispatcher(
        {}, MountedDialect("cncf", application(registry, CncfOptions(max_request_bytes=1_000_000))), Metrics()
    )
    async with client_of(app) as client:
        assert (await client.put("/schemagroups/there", json={"format": "avro"})).status_code == 201
        assert (await client.post("/schemagroups/there/schemas/s", content=AVRO)).status_code == 200
        yield client


def is_refusal(answer: httpx.Response) -> bool:
    """Return whether a response is a client error in the shape of its flavour."""
    assert 400 <= answer.status_code < 500, f"{answer.status_code} {answer.text[:300]}"
    body = answer.json()
    if answer.request.url.path.lower().startswith("/$schemagroups"):
        return bool(body["error"]["code"] and body["error"]["message"])
    return bool(body["status"] == answer.status_code and body["title"] and body["detail"])


@pytest.mark.parametrize(("method", "path"), WITH_BODY)
async def test_bodies_that_are_none(method: str, path: str, registry: Registry, client: httpx.AsyncClient) -> None:
    """Invalid JSON, deep nesting, wrong shapes, invalid text and long bodies are refused, and nothing is stored."""
    seq = registry.state.seq
    # A group has only optional attributes, and unknown ones are accepted.
    bodies = [body for body in BODIES if body and b"sink" not in body] if path == "/schemagroups/g" else BODIES
    for body in bodies:
        with limit_time(SECONDS, time.monotonic):
            answer = await client.request(method, path, content=body)
            assert is_refusal(answer), body[:80]
    assert registry.state.seq == seq


async def test_bodies_that_are_too_long(registry: Registry, client: httpx.AsyncClient) -> None:
    """A body over the limit is 413 in both flavours."""
    for method, path in (
        *WITH_BODY,
        ("POST", "/schemagroups/there/schemas/s"),
        ("PUT", "/$schemaGroups/there/schemas/s"),
    ):
        answer = await client.request(method, path, content=b"x" * 1_000_001)
        assert answer.status_code == 413
        assert is_refusal(answer)


@pytest.mark.parametrize(
    "document",
    [
        b"\x00",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"type":' * 100_000,
        b"{}",
        b'{"type":"record","name":"\xff","fields":[]}',
    ],
)
async def test_documents_that_are_no_schemas(document: bytes, registry: Registry, client: httpx.AsyncClient) -> None:
    """A document that is no schema of the group's format is refused in bounded time."""
    seq = registry.state.seq
    for method, path in (("POST", "/schemagroups/there/schemas/s"), ("PUT", "/$schemaGroups/there/schemas/s")):
        with limit_time(SECONDS, time.monotonic):
            answer = await client.request(method, path, content=document)
            assert is_refusal(answer)
    assert registry.state.seq == seq


async def test_content_types_that_cannot_be_sent_back(registry: Registry, client: httpx.AsyncClient) -> None:
    """Too long content types, and those with control characters, are refused, because responses repeat them."""
    for content_type in ("x" * 501, "text/plain\tx", "\x01"):
        headers = {"content-type": content_type}
        answer = await client.post("/schemagroups/there/schemas/s", content=AVRO, headers=headers)
        assert is_refusal(answer)


_segments = st.one_of(
    st.sampled_from(["there", "s", "schemas", "versions", "1", "$schemas", "..", "", "%00", "%FF", "%2F", "a:get-id"]),
    st.text(st.sampled_from("ab/:%$.\u00e9\U0001f600?#&=\\ "), min_size=1, max_size=5).map(
        lambda text: "".join(f"%{byte:02X}" for byte in text.encode())
    ),
)
_roots = st.sampled_from(["/schemagroups", "/$schemaGroups", "/$SCHEMAGROUPS", "/subscriptions", "/schema"])
_queries = st.sampled_from(
    [
        "",
        "?uri=",
        "?uri=%FF",
        "?uri=a&uri=b",
        "?limit=x",
        "?limit=1&after=%FF",
        "?format=%00",
        "?authority=a",
        "?id=%20",
    ]
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=scale_examples(150)
)
@given(
    st.sampled_from(["GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS"]),
    _roots,
    st.lists(_segments, max_size=5),
    _queries,
    st.sampled_from([b"", b"{}", b"\xff", AVRO]),
)
async def test_any_request_gets_an_answer(
    client: httpx.AsyncClient, method: str, root: str, segments: list[str], query: str, body: bytes
) -> None:
    """No path, query and body causes a server error, and errors have their shape."""
    target = "/".join((root, *segments)) + query
    answer = await asyncio.wait_for(client.request(method, target, content=body), 120)
    assert answer.status_code < 500, f"{method} {target}: {answer.text}"
    if answer.status_code >= 400 and method not in {"HEAD", "OPTIONS"}:
        assert is_refusal(answer), f"{method} {target}: {answer.text}"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), st.binary(max_size=40))
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=scale_examples(60)
)
async def test_any_description_and_bytes_come_back_or_are_refused(
    client: httpx.AsyncClient, description: str, body: bytes
) -> None:
    """A description and a document of an unknown format are returned exactly, or refused."""
    params = {"description": description, "format": "bytes"}
    await client.put("/schemagroups/any")
    path = "/schemagroups/any/schemas/s"
    answer = await client.post(path, content=body, params=params, headers={"content-type": "a/b"})
    if answer.status_code != 200:
        assert is_refusal(answer)
        assert not body or any(ord(char) < 32 or char == "\ufffd" for char in description)
        return
    document = await client.get(answer.headers["location"])
    assert (document.content, document.headers["content-type"]) == (body, "a/b")
