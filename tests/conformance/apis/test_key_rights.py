"""Rights in the DEK registry: no known way leads to a plain data key that the caller has no right to."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import pytest_asyncio
from tests.conformance.apis.in_process import client_of

from stele.apis.confluent import application
from stele.core.access import AccessRule, AccessRules, Operation, ResourceType
from stele.service.access import CALLER, AccessControl, Caller, Principal
from stele.service.registry import Registry
from stele.storage import open_log
from stele.wire.kms import LocalKey

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEKS = "/dek-registry/v1/keks"
MATERIAL = b"\x1a\x20" + bytes(range(32))
PLAIN = base64.b64encode(MATERIAL).decode()
WRAPPED = base64.b64encode(LocalKey("of the server").wrap(MATERIAL)).decode()
ALL_KEY_RIGHTS = (Operation.MANAGE_KEYS, Operation.UNWRAP_KEYS)


def rule(principal: str, *operations: Operation, name: str) -> AccessRule:
    """Return a rule that allows these operations on a key."""
    return AccessRule(f"user:{principal}", tuple(operations), resource_type=ResourceType.KEY, namespace="*", name=name)


RULES = AccessRules(
    [
        AccessRule("*", ("writer",)),
        rule("owner", *ALL_KEY_RIGHTS, name="patients"),
        rule("thief", *ALL_KEY_RIGHTS, name="mine"),
        rule("both", *ALL_KEY_RIGHTS, name="*"),
    ],
    default_allow=False,
)


@contextmanager
def acting_as(name: str) -> Iterator[None]:
    """Send the requests in this block as that caller."""
    token = CALLER.set(Caller(Principal(name)))
    try:
        yield
    finally:
        CALLER.reset(token)


@pytest_asyncio.fixture(loop_scope="module")
async def node() -> AsyncIterator[Registry]:
    """A node with these rules."""
    node = await Registry.open(await open_log("memory:"))
    node.access = AccessControl(RULES)
    yield node
    await node.close()


@pytest_asyncio.fixture(loop_scope="module")
async def client(node: Registry, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a node in which `owner` has a KEK that is not shared, `patients`, with a DEK."""
    monkeypatch.setenv("LOCAL_SECRET", "of the server")
    async with client_of(application(node)) as client:
        with acting_as("owner"):
            kek = {"name": "patients", "kmsType": "local-kms", "kmsKeyId": "1"}
            assert (await client.post(KEKS, json=kek)).status_code == 200
            dek = {"subject": "s", "encryptedKeyMaterial": WRAPPED}
            assert (await client.post(f"{KEKS}/patients/deks", json=dek)).status_code == 200
        yield client


async def make_kek(client: httpx.AsyncClient, **members: Any) -> httpx.Response:
    """Create the KEK `mine`."""
    return await client.post(KEKS, json={"name": "mine", "kmsType": "local-kms", "kmsKeyId": "2", **members})


async def test_sharing_a_key_of_others_is_refused(client: httpx.AsyncClient) -> None:
    """A caller with only the right to read a KEK can neither share it, nor change its properties, nor delete it."""
    with acting_as("thief"):
        for body in ({"shared": True}, {"kmsProps": {"secret": "x"}}, {"doc": "y"}):
            assert (await client.put(f"{KEKS}/patients", json=body)).status_code == 403
        assert (await client.put(f"{KEKS}/patients?testSharing=true", json={"shared": True})).status_code == 403
        assert (await client.delete(f"{KEKS}/patients")).status_code in {403, 409, 422}
    with acting_as("owner"):
        assert (await client.get(f"{KEKS}/patients")).json()["shared"] is False


async def test_the_same_name_in_another_context_is_the_same_key(client: httpx.AsyncClient) -> None:
    """Creating a KEK of the same name in another context requires the same right."""
    body = {"name": "patients", "kmsType": "local-kms", "kmsKeyId": "1", "shared": True}
    with acting_as("thief"):
        assert (await client.post(f"/contexts/.evil{KEKS}", json=body)).status_code == 403


async def test_a_shared_kek_with_the_kms_key_of_another_one_is_refused(client: httpx.AsyncClient) -> None:
    """Sharing a KEK that uses the KMS key of another KEK requires the right to both, at creation and at changes."""
    with acting_as("thief"):
        assert (await make_kek(client, shared=True)).status_code == 403
        assert (await make_kek(client)).status_code == 200
        assert (await client.put(f"{KEKS}/mine", json={"shared": True})).status_code == 403
        update = await client.put(f"{KEKS}/mine", json={"shared": True, "kmsProps": {"secret": "my own"}})
        assert update.status_code == 200
        assert (await client.put(f"{KEKS}/mine", json={"kmsProps": None})).status_code == 403
    with acting_as("both"):
        assert (await client.put(f"{KEKS}/mine", json={"kmsProps": None})).status_code == 200


async def test_an_alternate_key_counts_as_well() -> None:
    """Alternate ids of KMS keys count as keys that a KEK uses."""
    node = await Registry.open(await open_log("memory:"))
    node.access = AccessControl(RULES)
    async with client_of(application(node)) as client:
        with acting_as("owner"):
            kek = {"name": "patients", "kmsType": "aws-kms", "kmsKeyId": "arn:1"}
            assert (await client.post(KEKS, json=kek)).status_code == 200
        with acting_as("thief"):
            alternates = {"encrypt.alternate.kms.key.ids": "arn:3, arn:1"}
            answer = await make_kek(client, kmsType="aws-kms", shared=True, kmsProps=alternates)
            assert answer.status_code == 403
    await node.close()


async def test_material_of_another_kek_is_refused(client: httpx.AsyncClient) -> None:
    """Storing the material of a DEK under another KEK requires the right to unwrap, in any spelling of base64."""
    with acting_as("thief"):
        assert (await make_kek(client, shared=True, kmsProps={"secret": "my own"})).status_code == 200
        for material in (WRAPPED, _rewrite_base64(WRAPPED)):
            body = {"subject": "t", "encryptedKeyMaterial": material}
            answer = await client.post(f"{KEKS}/mine/deks", json=body)
            assert answer.status_code in {403, 500}, answer.text
            assert PLAIN not in answer.text
            assert (await client.get(f"{KEKS}/mine/deks/t")).status_code == 404


async def test_only_the_right_to_unwrap_gives_the_plain_key(client: httpx.AsyncClient) -> None:
    """Of a shared KEK, callers who may read keys get encrypted material; only its users get the plain key."""
    with acting_as("owner"):
        assert (await client.put(f"{KEKS}/patients", json={"shared": True})).status_code == 200
        assert (await client.get(f"{KEKS}/patients/deks/s")).json()["keyMaterial"] == PLAIN
    with acting_as("thief"):
        answer = (await client.get(f"{KEKS}/patients/deks/s/versions/1")).json()
        assert answer["encryptedKeyMaterial"] == WRAPPED
        assert "keyMaterial" not in answer
        fresh = await client.post(f"{KEKS}/patients/deks", json={"subject": "fresh"})
        assert "keyMaterial" not in fresh.json()
        again = await client.post(f"{KEKS}/patients/deks/s?rewrap=true", json={})
        assert "keyMaterial" not in again.json()


async def test_unwrapping_is_noted(client: httpx.AsyncClient, node: Registry) -> None:
    """Each plain data key in a response is recorded in the audit trail, without the key."""
    with acting_as("owner"):
        await client.put(f"{KEKS}/patients", json={"shared": True})
        node.audit.is_on = True
        await client.get(f"{KEKS}/patients/deks/s")
        await client.get(f"{KEKS}/patients/deks/s")
        await client.post(f"{KEKS}/patients/deks", json={"subject": "fresh"})
    with acting_as("thief"):
        await client.get(f"{KEKS}/patients/deks/s")
    notes = node.audit.take_notes()
    assert [(row.kind, row.actor, row.subject, row.details["kek"]) for row in notes] == [
        ("key_unwrapped", "owner", "s", "patients"),
        ("key_unwrapped", "owner", "s", "patients"),
        ("key_unwrapped", "owner", "fresh", "patients"),
    ]
    assert PLAIN not in repr(notes)


async def test_what_may_be_secret_is_not_shown_and_not_lost(client: httpx.AsyncClient) -> None:
    """Only harmless properties are shown; a shown KEK that is sent back keeps the others."""
    secret = {"secret": "s3cret", "sasl.jaas.config": "s3cret", "api.key": "s3cret", "endpoint": "http://u:s3cret@h"}
    with acting_as("both"):
        kek = await make_kek(client, kmsProps={"region": "eu", **secret}, shared=True)
        assert kek.json()["kmsProps"] == {"region": "eu"}
        changed = await client.put(f"{KEKS}/mine", json={"kmsProps": {"region": "us"}, "doc": "d"})
        assert changed.json()["kmsProps"] == {"region": "us"}
        assert (await client.post(f"{KEKS}/mine/test")).status_code == 200, "the secret is there"


async def test_user_info_in_a_key_id_is_not_shown(client: httpx.AsyncClient) -> None:
    """User name and password in a URL are hidden; sent back in this form, the URL means the stored one."""
    with acting_as("both"):
        kek = await make_kek(client, kmsType="local-kms", kmsKeyId="https://me:s3cret@vault.example/transit/keys/a")
        key_id = kek.json()["kmsKeyId"]
        assert key_id == "https://[hidden]@vault.example/transit/keys/a"
        answers = [await client.get(path) for path in (f"{KEKS}/mine", KEKS, f"{KEKS}?subjectPrefix=")]
        assert "s3cret" not in "".join(answer.text for answer in answers)
        assert (await make_kek(client, kmsType="local-kms", kmsKeyId=key_id)).status_code == 409, "it is there already"
        assert (await make_kek(client, name="both", kmsType="local-kms", kmsKeyId=key_id)).status_code == 422


def _rewrite_base64(text: str) -> str:
    """Return another base64 text for the same bytes, in which bits that padding leaves unused are set."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    body = text.rstrip("=")
    assert body != text, "it has padding"
    return body[:-1] + alphabet[alphabet.index(body[-1]) | 1] + text[len(body) :]
