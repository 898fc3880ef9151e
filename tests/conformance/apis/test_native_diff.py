"""The native API compares schemas without registering them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from tests.conformance.apis.in_process import client_of

from stele.apis.native import application
from stele.service.limits import Limits
from stele.service.registry import Registry
from stele.storage import open_log

pytestmark = pytest.mark.asyncio(loop_scope="module")

OLD = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
NEW = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"string"}]}'


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def client() -> AsyncIterator[httpx.AsyncClient]:
    """A client of the native API of an empty node that accepts only small schemas."""
    node = await Registry.open(await open_log("memory:"), limits=Limits(schema_bytes=2_000))
    async with client_of(application(node)) as client:
        yield client
    await node.close()


async def compare(client: httpx.AsyncClient, old: str, new: str, **request: Any) -> httpx.Response:
    """Send POST /api/diff, with Avro as the format, and return the response."""
    body = {"format": "avro", "old": {"schema": old}, "new": {"schema": new}, **request}
    return await client.post("/api/diff", json=body)


async def test_changes(client: httpx.AsyncClient) -> None:
    """Each change has its verdict in both directions, and its findings with their direction."""
    answer = await compare(client, OLD, NEW)
    assert answer.status_code == 200
    body = answer.json()
    (change,) = body.pop("changes")
    (finding,) = change.pop("findings")
    assert change == {
        "kind": "added",
        "path": "R.b",
        "was": None,
        "what": "field",
        "before": "",
        "after": "string",
        "annotation": False,
        "backward": False,
        "forward": True,
    }
    assert (finding["direction"], finding["rule"]) == ("backward", "READER_FIELD_MISSING_DEFAULT_VALUE")
    text = body.pop("text")
    assert text.startswith("--- old\n+++ new\n")
    assert '+      "name": "b",' in text
    assert body == {"backward": False, "forward": True, "ruleset": "avro@1", "complete": True}


async def test_no_change(client: httpx.AsyncClient) -> None:
    """Equal schemas have no changes and an empty text."""
    body = (await compare(client, OLD, OLD)).json()
    assert body == {
        "changes": [],
        "backward": True,
        "forward": True,
        "ruleset": "avro@1",
        "text": "",
        "complete": True,
    }


async def test_ruleset(client: httpx.AsyncClient) -> None:
    """The requested ruleset is applied, and named with its version."""
    proto = 'syntax = "proto3"; message M {{ int32 {} = 1; }}'
    texts = proto.format("a"), proto.format("b")
    lenient = (await compare(client, *texts, format="protobuf", ruleset="buf:WIRE")).json()
    strict = (await compare(client, *texts, format="protobuf", ruleset="buf:FILE@1")).json()
    assert (lenient["backward"], lenient["ruleset"]) == (True, "buf:WIRE@1")
    assert (strict["backward"], strict["ruleset"]) == (False, "buf:FILE@1")
    assert [change["kind"] for change in strict["changes"]] == ["renamed"]


async def test_nothing_to_say(client: httpx.AsyncClient) -> None:
    """A format without comparison has changes, but no verdict."""
    body = (await compare(client, "one", "two", format="opaque")).json()
    assert (body["backward"], body["forward"], body["ruleset"]) == (None, None, "")
    assert [change["what"] for change in body["changes"]] == ["text"]


@pytest.mark.parametrize(
    ("request_body", "status", "kind"),
    [
        ({"old": {"schema": "{"}}, 422, "malformed_schema"),
        ({"ruleset": "nonsense"}, 422, "unknown_ruleset"),
        ({"format": "nonsense"}, 422, "unknown_format"),
        ({"new": {"schema": " " * 3_000}}, 413, "too_large"),
        ({"new": 3}, 422, "invalid_request"),
    ],
)
async def test_errors(request_body: dict[str, Any], status: int, kind: str, client: httpx.AsyncClient) -> None:
    """Errors about a request have the shape of all errors."""
    body = {"format": "avro", "old": {"schema": OLD}, "new": {"schema": NEW}, **request_body}
    answer = await client.post("/api/diff", json=body)
    assert (answer.status_code, answer.json()["error"]["kind"]) == (status, kind)


async def test_documented(client: httpx.AsyncClient) -> None:
    """The OpenAPI document has the request and the response."""
    page = (await client.get("/_docs/native/openapi.json")).json()
    operation = page["paths"]["/api/diff"]["post"]
    assert "requestBody" in operation
    assert "200" in operation["responses"]
