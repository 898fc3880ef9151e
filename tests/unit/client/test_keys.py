"""Calls of the DEK registry: their requests, their answers, and a life cycle of keys on a Stele server."""

from __future__ import annotations

from base64 import b64encode

import pytest
from tests.support.server_process import serving

from stele.client import AsyncSchemaRegistryClient, Dek, Kek, SchemaRegistryClient, UpdateKekRequest, keys
from stele.client.request import CachePolicy, Effect
from stele.errors import Conflict, DecodeError, NotFound, SteleError


def test_requests() -> None:
    """Names are escaped in URLs, contexts and flags are parameters, and only stable answers are cached."""
    request = keys.kek("a/b", context=".c", deleted=True)
    assert request.target == "/dek-registry/v1/keks/a%2Fb?context=.c&deleted=true"
    assert request.cache_policy is CachePolicy.TTL
    assert keys.keks(subject_prefixes=("a b", "c"), limit=3).target == (
        "/dek-registry/v1/keks?subjectPrefix=a%20b&subjectPrefix=c&limit=3"
    )
    assert keys.dek("k", ":.c:s", "latest").target == (
        "/dek-registry/v1/keks/k/deks/%3A.c%3As/versions/-1?algorithm=AES256_GCM"
    )
    creation = keys.create_dek("k", "s", b"\0", version=2, algorithm="AES256_SIV")
    assert creation.body == b'{"subject":"s","version":2,"algorithm":"AES256_SIV","encryptedKeyMaterial":"AA=="}'
    assert creation.effect is Effect.WRITE
    assert b"Material" not in (keys.create_dek("k", "s").body or b"")
    assert keys.delete_dek("k", "s", permanent=True).effect is Effect.DELETE
    assert keys.update_kek("k", UpdateKekRequest(doc=None)).body == b'{"doc":null}'


def test_material() -> None:
    """Keys are sent in base64, other text is an error, and no representation shows a key."""
    dek = Dek("k", "s", 1, "AES256_GCM", encrypted_key_material=b64encode(b"wrapped").decode(), key_material="AA==")
    assert (dek.wrapped_key(), dek.plain_key(), Dek().plain_key()) == (b"wrapped", b"\0", None)
    assert "AA==" not in repr(dek)
    with pytest.raises(DecodeError):
        Dek(key_material="é").plain_key()


def test_a_life_of_keys(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keys are created, found, changed, soft-deleted, restored and deleted for good on a Stele server."""
    with (
        serving("--store", "memory:", folder=tmp_path_factory.mktemp("keys")) as server,
        SchemaRegistryClient(server.url) as client,
    ):
        kek = client.create_kek(Kek("k", "local-kms", "key", {"secret": "s"}, "why", shared=True), test=True)
        assert (kek.kms_type, kek.doc, kek.shared) == ("local-kms", "why", True)
        assert (kek.ts or 0) > 0
        with pytest.raises(Conflict):
            client.create_kek(Kek("k", "local-kms", "key"))
        assert client.test_kek("k").name == "k"
        assert client.update_kek("k", UpdateKekRequest(doc="because"), test=True).doc == "because"
        assert client.keks() == ["k"]
        dek = client.create_dek("k", "s-value")
        assert (dek.version, dek.subject) == (1, "s-value")
        assert client.dek("k", "s-value").plain_key()
        assert client.create_dek("k", "s-value", version=2).version == 2
        assert client.dek("k", "s-value", "latest").version == 2
        assert (client.dek_subjects("k"), client.dek_versions("k", "s-value")) == (["s-value"], [1, 2])
        client.delete_dek("k", "s-value", 2)
        assert client.dek_versions("k", "s-value") == [1]
        client.undelete_dek("k", "s-value", 2)
        client.delete_dek("k", "s-value")
        client.undelete_dek("k", "s-value")
        with pytest.raises(SteleError):
            client.delete_kek("k")
        for permanent in (False, True):
            client.delete_dek("k", "s-value", permanent=permanent)
        client.delete_kek("k")
        with pytest.raises(NotFound):
            client.kek("k")
        client.undelete_kek("k")
        for permanent in (False, True):
            client.delete_kek("k", permanent=permanent)
        assert client.keks(deleted=True) == []


async def test_awaited() -> None:
    """The same calls are methods of the async client."""
    async with AsyncSchemaRegistryClient("http://nowhere.invalid") as client:
        assert client.create_dek.__doc__ == client.create_dek.__wrapped__.__doc__  # type: ignore[attr-defined]
        assert AsyncSchemaRegistryClient.kek.__doc__ == keys.kek.__doc__
