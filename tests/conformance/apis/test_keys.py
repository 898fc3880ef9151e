"""The DEK registry beyond the transcripts: limits, refusals of a KMS, concurrency, and secrets in logs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from importlib.metadata import EntryPoint
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from structlog.testing import capture_logs
from tests.conformance.apis.in_process import client_of

from stele.apis.confluent import application
from stele.service.limits import Limits
from stele.service.registry import Registry
from stele.storage import open_log
from stele.wire import kms

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEKS = "/dek-registry/v1/keks"
LOCAL = {"kmsType": "local-kms", "kmsKeyId": "1", "kmsProps": {"secret": "top-s3cret"}, "shared": True}


@pytest_asyncio.fixture(loop_scope="module")
async def client() -> AsyncIterator[httpx.AsyncClient]:
    """A client of a new node that is limited to two keys of each kind."""
    node = await Registry.open(await open_log("memory:"), Limits(keys=2))
    async with client_of(application(node)) as client:
        yield client
    await node.close()


async def test_too_many_keys(client: httpx.AsyncClient) -> None:
    """The limit applies to KEKs and DEKs separately, and counts soft-deleted ones."""
    for name in ("a", "b"):
        assert (await client.post(KEKS, json={"name": name, **LOCAL})).status_code == 200
        assert (await client.post(f"{KEKS}/a/deks", json={"subject": name})).status_code == 200
    await client.delete(f"{KEKS}/b")
    for path, body in ((KEKS, {"name": "c", **LOCAL}), (f"{KEKS}/a/deks", {"subject": "c"})):
        answer = await client.post(path, json=body)
        assert answer.status_code == 409
        assert answer.json() == {"error_code": 40972, "message": "A maximum of 2 keys already exist (max_keys)"}
    rewrapped = await client.post(f"{KEKS}/a/deks/a?rewrap=true", json={})
    assert rewrapped.status_code == 200


class Denying:
    """A KMS that denies the server its key."""

    def __init__(self, key_id: str, properties: Mapping[str, str]) -> None:
        self.key_id = key_id

    def wrap(self, material: bytes) -> bytes:
        """Raise `KmsDenied`."""
        raise kms.KmsDenied("access denied")

    unwrap = wrap


async def test_kms_that_denies(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A KMS that does not let the server use its key is answered with 40370."""
    point = EntryPoint("denying", f"{__name__}:Denying", kms.GROUP)
    monkeypatch.setattr(kms, "_drivers_by_name", lambda: {"denying": point})
    await client.post(KEKS, json={"name": "a", "kmsType": "denying", "kmsKeyId": "1", "shared": True})
    answer = await client.post(f"{KEKS}/a/deks", json={"subject": "s"})
    assert answer.status_code == 403
    assert answer.json() == {
        "error_code": 40370,
        "message": "Could not generate encrypted dek for s: access denied",
    }


async def test_racing_creations(client: httpx.AsyncClient) -> None:
    """Of several clients that create the same key at once, one succeeds, and all see the same key afterwards."""
    answers = await asyncio.gather(*(client.post(KEKS, json={"name": "a", **LOCAL}) for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
    answers = await asyncio.gather(*(client.post(f"{KEKS}/a/deks", json={"subject": "s"}) for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
    winner = next(answer for answer in answers if answer.status_code == 200)
    assert (await client.get(f"{KEKS}/a/deks/s")).json() == winner.json()


async def test_nodes_that_share_a_log(tmp_path: Path) -> None:
    """Of several nodes that create the same data key at once, one succeeds, and the others return that key."""
    store = f"sqlite:///{tmp_path}/registry.db"
    nodes = [await Registry.open(await open_log(store)) for _ in range(2)]
    async with client_of(application(nodes[0])) as first, client_of(application(nodes[1])) as second:
        assert (await first.post(KEKS, json={"name": "a", **LOCAL})).status_code == 200
        answers = await asyncio.gather(
            *(client.post(f"{KEKS}/a/deks", json={"subject": "s"}) for client in (first, second) for _ in range(4))
        )
        assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
        winner = next(answer for answer in answers if answer.status_code == 200).json()
        for client in (first, second):
            assert (await client.get(f"{KEKS}/a/deks/s")).json() == winner
        rewrapped = await asyncio.gather(
            *(client.post(f"{KEKS}/a/deks/s?rewrap=true", json={}) for client in (first, second))
        )
        assert {answer.json()["keyMaterial"] for answer in rewrapped} == {winner["keyMaterial"]}
    for node in nodes:
        await node.close()


async def test_secrets_stay_out_of_answers_and_logs(client: httpx.AsyncClient) -> None:
    """Neither refusals nor failures, nor their log lines, show a secret or a data key."""
    with capture_logs() as logs:
        answers = [
            await client.post(KEKS, json={"name": "a", **LOCAL}),
            await client.post(KEKS, json={"name": "a", **LOCAL}),
            await client.post(f"{KEKS}/a/deks", json={"subject": "s", "encryptedKeyMaterial": "AAAA"}),
            await client.post(f"{KEKS}/a/deks", json={"subject": "s"}),
            await client.put(f"{KEKS}/a", json={"kmsProps": {"secret": "other-s3cret"}}),
            await client.get(f"{KEKS}/a/deks/s"),
        ]
    assert [answer.status_code for answer in answers] == [200, 409, 500, 200, 200, 500]
    material = answers[3].json()["keyMaterial"]
    texts = [answer.text for answer in answers if answer is not answers[3]] + [repr(logs)]
    assert not any(secret in text for secret in ("s3cret", material) for text in texts)


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"17", b"\xff", b'{"name":"\xff"}', b"[" * 100_000, b'{"name":"a"', b'{"name":"\\ud800"}', b"x" * 9],
    ids=lambda body: repr(body[:12]),
)
async def test_hostile_bodies(body: bytes, client: httpx.AsyncClient) -> None:
    """Bodies that are no object of the expected shape are refused by all endpoints."""
    await client.post(KEKS, json={"name": "k", **LOCAL})
    for method, path in (
        ("POST", KEKS),
        ("PUT", f"{KEKS}/k"),
        ("POST", f"{KEKS}/k/deks"),
        ("POST", f"{KEKS}/k/deks/s"),
    ):
        answer = await client.request(method, path, content=body, headers={"content-type": "application/json"})
        assert 400 <= answer.status_code < 500, (method, path, answer.text)


async def test_giant_keys(client: httpx.AsyncClient) -> None:
    """Descriptions, properties and material of megabytes are refused as too large."""
    much = "x" * 2_000_000
    await client.post(KEKS, json={"name": "k", **LOCAL})
    for path, body in (
        (KEKS, {"name": "l", **LOCAL, "doc": much}),
        (KEKS, {"name": "l", **LOCAL, "kmsProps": {much: much}}),
        (f"{KEKS}/k/deks", {"subject": "s", "encryptedKeyMaterial": much}),
    ):
        answer = await client.post(path, json=body)
        assert answer.json()["error_code"] == 42209
