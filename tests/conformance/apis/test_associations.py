"""Associations beyond the transcripts: limits, concurrency, and invalid bodies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from tests.conformance.apis.in_process import client_of

from stele.apis.confluent import application
from stele.service.limits import Limits
from stele.service.registry import Registry
from stele.storage import open_log

pytestmark = pytest.mark.asyncio(loop_scope="module")

INT = {"schema": '"int"'}


@pytest_asyncio.fixture(loop_scope="module")
async def client() -> AsyncIterator[httpx.AsyncClient]:
    """A client of a new node that is limited to three associations."""
    node = await Registry.open(await open_log("memory:"), Limits(associations=3))
    async with client_of(application(node)) as client:
        yield client
    await node.close()


def association_request(topic: str, subject: str, lifecycle: str = "WEAK", **more: Any) -> dict[str, Any]:
    """Return a request to associate a topic's values with a subject."""
    info = {"subject": subject, "lifecycle": lifecycle, **more}
    return {"resourceName": topic, "resourceNamespace": "c", "resourceId": f"id-{topic}", "associations": [info]}


async def test_too_many_associations(client: httpx.AsyncClient) -> None:
    """A registry at its limit refuses new associations; existing ones can still change."""
    await client.post("/subjects/s/versions", json=INT)
    for topic in ("a", "b", "c"):
        assert (await client.post("/associations", json=association_request(topic, "s"))).status_code == 200
    answer = await client.post("/associations", json=association_request("d", "s"))
    assert answer.status_code == 409
    assert answer.json() == {
        "error_code": 40902,
        "message": "A maximum of 3 associations already exist (max_associations)",
    }
    assert (await client.post("/associations", json=association_request("a", "s"))).status_code == 200


async def test_too_large_batches(client: httpx.AsyncClient) -> None:
    """A batch with too many requests is refused."""
    for kind in ("batchMutate", "batchGet"):
        answer = await client.post(f"/associations:{kind}", json={"requests": [{}] * 1001})
        assert answer.status_code == 422
        assert answer.json()["error_code"] == 42213


async def test_racing_owners(client: httpx.AsyncClient) -> None:
    """Of several topics that claim a subject with a strong association at once, one gets it."""
    requests = [association_request(f"t{n}", "s", "STRONG", schema=INT) for n in range(6)]
    answers = await asyncio.gather(*(client.post("/associations", json=request) for request in requests))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409, 409]
    assert {answer.json().get("error_code") for answer in answers} == {None, 40904}
    assert len((await client.get("/associations/subjects/s")).json()) == 1


async def test_racing_deletion(client: httpx.AsyncClient) -> None:
    """A subject that is associated and deleted at once is either associated or deleted afterwards."""
    for _ in range(10):
        await client.post("/subjects/s/versions", json=INT)
        creation, deletion = await asyncio.gather(
            client.post("/associations", json=association_request("t", "s")), client.delete("/subjects/s")
        )
        assert sorted([creation.status_code, deletion.status_code]) == [200, 409], (creation.text, deletion.text)
        there = (await client.get("/associations/subjects/s")).json()
        assert bool(there) == (creation.status_code == 200)
        await client.delete("/associations/resources/id-t")


async def test_associations_survive_a_restart_and_a_snapshot() -> None:
    """Associations are restored completely from the log and from a snapshot."""
    log = await open_log("memory:")
    node = await Registry.open(log)
    async with client_of(application(node)) as client:
        await client.post("/associations", json=association_request("t", "s", "STRONG", schema=INT))
        before = (await client.get("/associations/resources/id-t")).json()
    again = await Registry.open(log)
    async with client_of(application(again)) as client:
        assert (await client.get("/associations/resources/id-t")).json() == before
    await again.close()


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"17", b"\xff", b'{"resourceName":"\xff"}', b"[" * 100_000, b'{"associations":', b'{"requests":[[]]}'],
    ids=lambda body: repr(body[:12]),
)
async def test_hostile_bodies(body: bytes, client: httpx.AsyncClient) -> None:
    """Bodies that are no object of the expected shape are refused by all endpoints."""
    for method, path in (
        ("POST", "/associations"),
        ("PUT", "/associations/resources/r"),
        ("POST", "/associations:batchMutate"),
        ("POST", "/associations:batchGet"),
    ):
        answer = await client.request(method, path, content=body, headers={"content-type": "application/json"})
        assert 400 <= answer.status_code < 500, (method, path, answer.text)


async def test_names_of_megabytes(client: httpx.AsyncClient) -> None:
    """Names longer than the limit are refused."""
    much = "x" * 2_000_000
    for member in ("resourceName", "resourceNamespace", "resourceId"):
        answer = await client.post(
            "/associations", json={**association_request("t", "s", "STRONG", schema=INT), member: much}
        )
        assert answer.status_code == 422, answer.text[:200]
        assert answer.json()["error_code"] == 42212
