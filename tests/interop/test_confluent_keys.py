"""confluent-kafka's client of the DEK registry against the server, unmodified."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.rules.encryption.dek_registry.dek_registry_client import (
    DekAlgorithm,
    DekRegistryClient,
)


@pytest.fixture
def keys(registry_url: str) -> Iterator[DekRegistryClient]:
    """The client. It caches what it has read."""
    with DekRegistryClient({"url": registry_url}) as client:
        yield client


@pytest.fixture
def forgetful(registry_url: str) -> Iterator[DekRegistryClient]:
    """A second client with an empty cache."""
    with DekRegistryClient({"url": registry_url}) as client:
        yield client


def test_keys_of_a_client(keys: DekRegistryClient, forgetful: DekRegistryClient, registry_url: str, topic: str) -> None:
    """A KEK and wrapped DEKs are registered and read back. A missing one is a 404, an existing one a 409."""
    with pytest.raises(SchemaRegistryError) as missing:
        keys.get_kek(topic)
    assert (missing.value.http_status_code, missing.value.error_code) == (404, 40470)
    kek = keys.register_kek(topic, "aws-kms", "arn:aws:kms:1", kms_props={"region": "eu"}, doc="mine")
    stored_kek = forgetful.get_kek(topic)
    assert stored_kek == kek
    assert (stored_kek.kms_type, stored_kek.kms_key_id, stored_kek.doc, stored_kek.shared) == (
        "aws-kms",
        "arn:aws:kms:1",
        "mine",
        False,
    )
    assert stored_kek.kms_props is not None
    assert stored_kek.kms_props.properties == {"region": "eu"}
    with DekRegistryClient({"url": registry_url}) as late, pytest.raises(SchemaRegistryError) as taken:
        late.register_kek(topic, "aws-kms", "arn:aws:kms:2")
    assert (taken.value.http_status_code, taken.value.error_code) == (409, 40971)
    for version in (1, 2):
        keys.register_dek(topic, f"{topic}-value", f"AAA{version}", DekAlgorithm.AES256_SIV, version)
    latest = forgetful.get_dek(topic, f"{topic}-value", DekAlgorithm.AES256_SIV, -1)
    assert (latest.version, latest.encrypted_key_material, latest.key_material) == (2, "AAA2", None)
    assert latest.ts is not None
    with pytest.raises(SchemaRegistryError):
        forgetful.get_dek(topic, f"{topic}-value", DekAlgorithm.AES128_GCM, 1, deleted=True)


@pytest.mark.parametrize(
    ("algorithm", "size"), [(DekAlgorithm.AES128_GCM, 16), (DekAlgorithm.AES256_GCM, 32), (DekAlgorithm.AES256_SIV, 64)]
)
def test_keys_the_server_makes(
    keys: DekRegistryClient, forgetful: DekRegistryClient, topic: str, algorithm: DekAlgorithm, size: int
) -> None:
    """With a shared KEK the client gets a data key in plain, the same one every time."""
    kek = keys.register_kek(topic, "local-kms", "here", shared=True, kms_props={"secret": "s3cret"})
    assert kek.kms_props is not None
    assert kek.kms_props.properties == {}
    dek = keys.register_dek(topic, f"{topic}-value", None, algorithm)  # type: ignore[arg-type]  # as its executor does
    material = dek.get_key_material_bytes()
    assert material is not None
    assert len(material) == size + 2
    again = forgetful.get_dek(topic, f"{topic}-value", algorithm)
    assert again.get_key_material_bytes() == material


def test_keys_of_a_context(keys: DekRegistryClient, forgetful: DekRegistryClient, topic: str) -> None:
    """A KEK registered in a context is found there, and wraps the DEKs of its subjects."""
    keys.register_kek(topic, "local-kms", "here", shared=True, kms_props={"secret": "s3cret"}, context=".team")
    assert forgetful.get_kek(topic, context=".team").shared
    with pytest.raises(SchemaRegistryError):
        forgetful.get_kek(topic)
    dek = keys.register_dek(topic, f":.team:{topic}", None)  # type: ignore[arg-type]  # as its executor does
    assert dek.subject == f":.team:{topic}"
    assert forgetful.get_dek(topic, f":.team:{topic}").key_material == dek.key_material
