"""The profiles `redpanda` and `karapace` of the Confluent dialect answer as their transcripts require."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from tests.conformance.apis.in_process import client_of
from tests.conformance.apis.transcripts import Rule, play, read_rules

from stele.apis.confluent import ConfluentOptions, application
from stele.server.dispatch import Dispatcher, MountedDialect
from stele.server.metrics import Metrics
from stele.service.registry import Registry
from stele.storage import open_log

FOLDER = Path(__file__).parent
MAKERS = ("redpanda", "karapace")
PLAYED = [(maker, rule) for maker in MAKERS for rule in read_rules(*sorted((FOLDER / maker).glob("*.txt")))]
WHERE = "/subjects/s/versions"


async def open_client(maker: Any) -> tuple[Registry, httpx.AsyncClient]:
    """Return an empty registry, and a client of the dialect in a maker's profile."""
    registry = await Registry.open(await open_log("memory:"))
    dialect = application(registry, ConfluentOptions(profile=maker))
    return registry, client_of(Dispatcher({}, MountedDialect("confluent", dialect), Metrics()))


@pytest_asyncio.fixture
async def karapace() -> AsyncIterator[httpx.AsyncClient]:
    """A client in the profile `karapace`."""
    registry, client = await open_client("karapace")
    async with client:
        yield client
    await registry.close()


@pytest.mark.asyncio
@pytest.mark.parametrize(("maker", "rule"), PLAYED, ids=[f"{maker}: {rule.sentence}" for maker, rule in PLAYED])
async def test_rule(maker: str, rule: Rule) -> None:
    """Every request of a transcript gets the response in it."""
    registry, client = await open_client(maker)
    async with client:
        await play(client, rule)
    await registry.close()


@pytest.mark.asyncio
async def test_protobuf_text_is_kept_verbatim_by_redpanda() -> None:
    """Comments, blank lines and order are kept; the same text is the same version."""
    text = 'syntax = "proto3";\n\n\n// A note.\nmessage M { oneof o { string b = 2; }  int32 a = 1; }\n'
    registry, client = await open_client("redpanda")
    async with client:
        body = {"schemaType": "PROTOBUF", "schema": text}
        for _ in range(2):
            assert (await client.post(WHERE, json=body)).json() == {"id": 1}
        assert (await client.get("/schemas/ids/1")).json() == body
        assert (await client.post("/subjects/s", json=body)).json()["schema"] == text
    await registry.close()


MISSING = "Field required"
OBJECT = "Input should be a valid dictionary or object to extract fields from"
TYPES = "'AVRO', 'JSON' or 'PROTOBUF'"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("body", "findings"),
    [
        ({}, [{"type": "missing", "loc": ["body", "schema"], "msg": MISSING, "input": {}}]),
        (
            {"nonsense": 1},
            [
                {"type": "missing", "loc": ["body", "schema"], "msg": MISSING, "input": {"nonsense": 1}},
                {
                    "type": "extra_forbidden",
                    "loc": ["body", "nonsense"],
                    "msg": "Extra inputs are not permitted",
                    "input": 1,
                },
            ],
        ),
        (
            {"schema": 1},
            [{"type": "string_type", "loc": ["body", "schema"], "msg": "Input should be a valid string", "input": 1}],
        ),
        (
            {"schema": "1", "schemaType": "XML"},
            [
                {
                    "type": "enum",
                    "loc": ["body", "schemaType"],
                    "msg": f"Input should be {TYPES}",
                    "input": "XML",
                    "ctx": {"expected": TYPES},
                }
            ],
        ),
        (
            {"schema": "1", "references": [{"name": "a", "subject": "b"}]},
            [
                {
                    "type": "missing",
                    "loc": ["body", "references", 0, "version"],
                    "msg": MISSING,
                    "input": {"name": "a", "subject": "b"},
                }
            ],
        ),
        ("text", [{"type": "model_attributes_type", "loc": ["body"], "msg": OBJECT, "input": "text"}]),
    ],
)
async def test_a_body_is_refused_as_the_list_of_its_findings(
    karapace: httpx.AsyncClient, body: Any, findings: list[dict[str, Any]]
) -> None:
    """Registrations, look-ups and checks answer an invalid body with 422 and all its defects."""
    for path in (WHERE, "/subjects/s", "/compatibility/subjects/s/versions/latest"):
        answer = await karapace.post(path, json=body)
        assert (answer.status_code, answer.json()) == (422, {"error_code": 422, "message": findings}), path


@pytest.mark.asyncio
async def test_a_level_is_demanded(karapace: httpx.AsyncClient) -> None:
    """Settings without a level, and bodies that are no JSON, are refused in the same way."""
    answer = (await karapace.put("/config", json={})).json()
    assert answer["error_code"] == 422
    assert [finding["loc"] for finding in answer["message"]] == [["body", "compatibility"]]
    answer = (await karapace.put("/config", content=b"{", headers={"content-type": "application/json"})).json()
    assert answer["message"][0]["type"] == "json_invalid"
    assert (await karapace.put("/config", json={"compatibility": "odd"})).json()["error_code"] == 42203


@pytest.mark.asyncio
async def test_what_a_schema_may_bring_is_taken(karapace: httpx.AsyncClient) -> None:
    """References may be null or empty; metadata and rule set are accepted members."""
    body = {"schema": json.dumps("int"), "schemaType": "AVRO", "references": None, "metadata": None, "ruleSet": None}
    assert (await karapace.post(WHERE, json=body)).json() == {"id": 1}
    assert (await karapace.post(WHERE, json={**body, "references": []})).json() == {"id": 1}
