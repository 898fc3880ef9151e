"""Exporters and access control entries beyond the transcripts: limits, concurrency, and invalid bodies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio
from structlog.testing import capture_logs
from tests.conformance.apis.in_process import client_of

from stele.apis.confluent import application
from stele.apis.confluent.routes import server
from stele.service.delivery import exporter_definitions
from stele.service.registry import Registry
from stele.storage import open_log

pytestmark = pytest.mark.asyncio(loop_scope="module")

ALICE = {
    "principal": "User:alice",
    "resource": "s",
    "resource_type": "SUBJECT",
    "operation": "READ",
    "permission": "ALLOW",
}


@pytest_asyncio.fixture(loop_scope="module")
async def client() -> AsyncIterator[httpx.AsyncClient]:
    """A client of a new node."""
    node = await Registry.open(await open_log("memory:"))
    async with client_of(application(node)) as client:
        yield client
    await node.close()


async def test_too_many(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exporters and entries beyond the limits are refused."""
    monkeypatch.setattr(exporter_definitions, "_MOST", 2)
    monkeypatch.setattr(server, "_MOST", 2)
    for name in ("a", "b"):
        assert (await client.post("/exporters", json={"name": name})).status_code == 200
    answer = await client.post("/exporters", json={"name": "c"})
    assert answer.status_code == 409
    assert answer.json() == {"error_code": 40964, "message": "A maximum of 2 exporters already exist"}
    entries = [{**ALICE, "resource": name} for name in "stu"]
    assert (await client.post("/security/acls", json=entries)).json()["error_code"] == 42209
    assert (await client.get("/security/acls")).json() == []
    assert (await client.post("/security/acls", json=entries[:2])).status_code == 201


async def test_racing_definitions(client: httpx.AsyncClient) -> None:
    """Of several clients that create the same exporter at once, one succeeds."""
    answers = await asyncio.gather(*(client.post("/exporters", json={"name": "e"}) for _ in range(6)))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 5


async def test_credentials_stay_out_of_logs(client: httpx.AsyncClient) -> None:
    """Neither responses nor logs show the credentials of an exporter."""
    with capture_logs() as logs:
        request = {"name": "e", "config": {"basic.auth.user.info": "me:s3cret"}}
        answers = [await client.post("/exporters", json=request) for _ in range(2)]
        answers += [await client.get(f"/exporters/e{part}") for part in ("", "/config", "/status")]
    assert "s3cret" not in repr(logs) + "".join(answer.text for answer in answers)


@pytest.mark.parametrize(
    "body",
    [b"", b"17", b"\xff", b'{"name":"\xff"}', b"[" * 100_000, b'{"name":', b'[{"principal":1}]', b'["e"]'],
    ids=lambda body: repr(body[:12]),
)
async def test_hostile_bodies(body: bytes, client: httpx.AsyncClient) -> None:
    """Bodies of the wrong shape are refused by all endpoints."""
    for method, path in (
        ("POST", "/exporters"),
        ("PUT", "/exporters/e"),
        ("PUT", "/exporters/e/config"),
        ("POST", "/security/acls"),
        ("DELETE", "/security/acls"),
    ):
        answer = await client.request(method, path, content=body, headers={"content-type": "application/json"})
        assert 400 <= answer.status_code < 500, (method, path, answer.text)


async def test_giants(client: httpx.AsyncClient) -> None:
    """Definitions and entries of megabytes are refused as too large."""
    much = "x" * 2_000_000
    for path, body in (
        ("/exporters", {"name": "e", "subjects": [much]}),
        ("/security/acls", [{**ALICE, "host": f"h{n}"} for n in range(20_000)]),
    ):
        answer = await client.post(path, json=body)
        assert answer.json()["error_code"] == 42209
