"""The native API checks schemas, independently of registered ones."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from tests.conformance.apis.in_process import client_of

from stele.apis.native import application
from stele.service.registry import Registry
from stele.storage import open_log

pytestmark = pytest.mark.asyncio(loop_scope="module")

OLD = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
NEW = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"string"}]}'
SYMBOLS = '{"type":"enum","name":"E","symbols":["X"]}'
USES = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"e","type":"E","default":"X"}]}'


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def registry(brief_logging: None) -> AsyncIterator[Registry]:
    """An empty node: the check does not use its state."""
    node = await Registry.open(await open_log("memory:"))
    yield node
    await node.close()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def client(registry: Registry) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the native API."""
    async with client_of(application(registry)) as client:
        yield client


async def check(client: httpx.AsyncClient, **request: Any) -> httpx.Response:
    """Send POST /api/check, with Avro as the format, and return the response."""
    return await client.post("/api/check", json={"format": "avro", **request})


async def test_compatible(client: httpx.AsyncClient) -> None:
    """A check without findings is compatible."""
    answer = await check(client, schema=OLD, against=[{"schema": NEW}])
    assert answer.status_code == 200
    assert answer.json() == {"compatible": True, "findings": [], "ruleset": "avro@1", "omitted": 0}


async def test_incompatible(client: httpx.AsyncClient) -> None:
    """A finding has rule, path, reason and fix, and the old schema that it is about."""
    answer = await check(
        client, schema=NEW, against=[{"schema": NEW}, {"schema": OLD}], policy="BACKWARD", ruleset=None
    )
    assert answer.status_code == 200
    body = answer.json()
    assert body["compatible"] is False
    (finding,) = body["findings"]
    assert finding["rule"] == "READER_FIELD_MISSING_DEFAULT_VALUE"
    assert finding["path"] == "/fields/1"
    assert finding["against"] == 2
    assert all(finding[member] for member in ("reader", "writer", "why", "fix"))


@pytest.mark.parametrize(
    ("policy", "compatible"),
    [("NONE", True), ("BACKWARD", False), ("FORWARD", True), ("FULL", False), ("backward_transitive", False)],
)
async def test_policies(policy: str, compatible: bool, client: httpx.AsyncClient) -> None:
    """The policy decides which schema must read whose data."""
    answer = await check(client, schema=NEW, policy=policy, against=[{"schema": OLD}])
    assert answer.json()["compatible"] is compatible


async def test_transitive_policies_look_at_all(client: httpx.AsyncClient) -> None:
    """A plain policy compares with the last old schema only, a transitive one with each."""
    against = [{"schema": OLD}, {"schema": NEW}]
    assert (await check(client, schema=NEW, policy="BACKWARD", against=against)).json()["compatible"] is True
    findings = (await check(client, schema=NEW, policy="BACKWARD_TRANSITIVE", against=against)).json()["findings"]
    assert [finding["against"] for finding in findings] == [1]


async def test_references(client: httpx.AsyncClient) -> None:
    """The new schema and every old one have their own references."""
    references = [{"name": "E", "schema": SYMBOLS}]
    answer = await check(
        client,
        schema=USES,
        references=references,
        against=[{"schema": OLD}, {"schema": USES, "references": references}],
    )
    assert answer.json() == {"compatible": True, "findings": [], "ruleset": "avro@1", "omitted": 0}


async def test_other_formats(client: httpx.AsyncClient) -> None:
    """JSON Schema and Protobuf are checked by their own rulesets."""
    answer = await check(client, format="json", schema='{"type":"string"}', against=[{"schema": '{"type":"integer"}'}])
    assert answer.json()["compatible"] is False
    proto = 'syntax = "proto3"; message M {{ {} a = 1; }}'
    answer = await check(
        client,
        format="protobuf",
        ruleset="confluent",
        schema=proto.format("string"),
        against=[{"schema": proto.format("int32")}],
    )
    assert answer.json()["compatible"] is False


async def test_valid_alone(client: httpx.AsyncClient) -> None:
    """A schema without old schemas to compare with is compatible."""
    assert (await check(client, schema=OLD)).json() == {"compatible": True, "findings": [], "ruleset": "", "omitted": 0}
    assert (await check(client, schema=OLD, against=[], name="r.avsc")).json()["compatible"] is True


async def test_malformed_schemas_have_a_place(client: httpx.AsyncClient) -> None:
    """The error about invalid JSON has line and column, that about a wrong type has a path."""
    answer = await check(client, schema='{\n  "type": }')
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert set(error) == {"kind", "message", "line", "column", "path", "expected"}
    assert (error["kind"], error["line"]) == ("malformed_schema", 2)
    assert error["column"] > 0
    wrong = (await check(client, schema='{"type":"record","name":"R","fields":[{"name":"a","type":"nothing"}]}')).json()
    assert wrong["error"]["kind"] in {"malformed_schema", "unresolved_reference"}
    assert wrong["error"]["path"]
    old = await check(client, schema=OLD, against=[{"schema": "{"}])
    assert old.status_code == 422


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"format": "cobol"}, "unknown_format"),
        ({"ruleset": "mine"}, "unknown_ruleset"),
        ({"policy": "SIDEWAYS"}, "unknown_policy"),
        ({"schema": 5}, "invalid_request"),
        ({"against": "x"}, "invalid_request"),
        ({"references": [{"name": "x"}]}, "invalid_request"),
        ({"against": [{"schema": OLD}] * 1001}, "invalid_request"),
    ],
)
async def test_wrong_requests(change: dict[str, Any], kind: str, client: httpx.AsyncClient) -> None:
    """Unknown words and wrong shapes are answered with 422, each with its own kind."""
    answer = await check(client, **{"schema": OLD, **change})
    assert answer.status_code == 422, answer.text
    assert answer.json()["error"]["kind"] == kind


async def test_other_errors_have_the_same_shape(client: httpx.AsyncClient) -> None:
    """Invalid JSON, wrong methods, unknown paths and too long bodies are answered in one shape."""
    giant = json.dumps({"format": "avro", "schema": "x" * 2_000_000}).encode()
    answers = [
        (await client.post("/api/check", content=b"{"), 400, "invalid_request"),
        (await client.post("/api/check", content=b'{"x":"\xff"}'), 400, "invalid_request"),
        (await client.post("/api/check"), 422, "invalid_request"),
        (await client.get("/api/check"), 405, "method_not_allowed"),
        (await client.get("/api/nothing"), 404, "not_found"),
        (await client.post("/api/check", content=giant), 413, "too_large"),
        (await client.post("/api/check", content=b"x" * 20_000_000), 413, "request_entity_too_large"),
    ]
    for answer, status, kind in answers:
        assert answer.status_code == status, answer.text
        assert answer.json()["error"]["kind"] == kind


async def test_description_of_the_api(client: httpx.AsyncClient) -> None:
    """The OpenAPI document has the request and the responses of the check."""
    operation = (await client.get("/_docs/native/openapi.json")).json()["paths"]["/api/check"]["post"]
    assert "against" in json.dumps(operation["requestBody"])
    assert {"200", "400", "413", "422"} <= set(operation["responses"])


async def test_other_methods(client: httpx.AsyncClient) -> None:
    """A method that a path does not take is refused, and the response names those it takes."""
    answer = await client.get("/api/check")
    assert (answer.status_code, answer.headers["allow"]) == (405, "OPTIONS, POST")
