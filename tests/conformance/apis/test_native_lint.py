"""The native API gives advice on schemas."""

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

GOOD = {"type": "record", "name": "Order", "namespace": "shop", "doc": "An order.", "fields": []}
BAD = json.dumps({**GOOD, "fields": [{"name": "Note", "type": "string", "doc": "A note."}]})


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def client() -> AsyncIterator[httpx.AsyncClient]:
    """A client of the native API of an empty node."""
    node = await Registry.open(await open_log("memory:"))
    async with client_of(application(node)) as client:
        yield client
    await node.close()


async def lint(client: httpx.AsyncClient, **request: Any) -> httpx.Response:
    """Send POST /api/lint, with Avro as the format, and return the response."""
    return await client.post("/api/lint", json={"format": "avro", **request})


async def test_advice(client: httpx.AsyncClient) -> None:
    """A finding has rule, path, reason, fix and severity; a good schema has none."""
    answer = await lint(client, schema=BAD)
    assert answer.status_code == 200
    (finding,) = answer.json()["findings"]
    assert (finding["rule"], finding["path"], finding["level"]) == ("NAMING", "/fields/0", "warning")
    assert finding["fix"] == "Call it note."
    assert (await lint(client, schema=json.dumps(GOOD))).json() == {"findings": []}


async def test_choices(client: httpx.AsyncClient) -> None:
    """Rules can be selected or excluded, and a previous version adds the rules about changes."""
    assert (await lint(client, schema=BAD, rules=["DOC_REQUIRED"])).json() == {"findings": []}
    assert (await lint(client, schema=BAD, ignore=["NAMING"])).json() == {"findings": []}
    body = (await lint(client, schema=BAD, before={"schema": json.dumps(GOOD)})).json()
    assert [finding["rule"] for finding in body["findings"]] == ["NAMING", "FIELD_DEFAULT"]


@pytest.mark.parametrize(
    ("change", "status", "kind"),
    [
        ({"rules": ["NO_SUCH"]}, 422, "unknown_rule"),
        ({"ignore": ["NO_SUCH"]}, 422, "unknown_rule"),
        ({"format": "cobol"}, 422, "unknown_format"),
        ({"schema": "{"}, 422, "malformed_schema"),
        ({"before": {"schema": "{"}}, 422, "malformed_schema"),
        ({"schema": 5}, 422, "invalid_request"),
        ({"schema": "x" * 2_000_000}, 413, "too_large"),
    ],
)
async def test_wrong_requests(change: dict[str, Any], status: int, kind: str, client: httpx.AsyncClient) -> None:
    """Every invalid request has its own kind and status."""
    answer = await lint(client, **{"schema": BAD, **change})
    assert (answer.status_code, answer.json()["error"]["kind"]) == (status, kind)


async def test_the_description_has_it(client: httpx.AsyncClient) -> None:
    """The OpenAPI document has the body of the request."""
    operation = (await client.get("/_docs/native/openapi.json")).json()["paths"]["/api/lint"]["post"]
    assert "ignore" in json.dumps(operation["requestBody"])
