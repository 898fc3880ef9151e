"""Encryption by rules: keys are created, found, rotated and shared; and the bytes on the wire."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import scale_examples
from tests.unit.client.rules.registry import RuledRegistry
from tink import aead, core, daead
from tink.proto import tink_pb2

from stele.client import Rule, RuleSet, SchemaSnapshot
from stele.client.serdes import AvroDeserializer, AvroSerializer, RuleFailed, Rules
from stele.client.serdes.rules import ciphers, encrypt
from stele.errors import DecodeError
from stele.wire import kms

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "s", "type": ["null", "string"], "confluent:tags": ["PII"], "default": None},
            {"name": "b", "type": "bytes", "confluent:tags": ["PII"], "default": ""},
            {"name": "n", "type": "int", "default": 0, "confluent:tags": ["NUMBER"]},
        ],
    }
)
VALUE = {"s": "secret ü", "b": b"\0\xff", "n": 3}
PARAMS = {"encrypt.kek.name": "kek", "encrypt.kms.type": "local-kms", "encrypt.kms.key.id": "key"}
CONFIG = {"secret": "open sesame"}
DAY = 24 * 60 * 60 * 1000


def registry_with(phase: str = "domain_rules", params: dict[str, str] | None = None, **more: Any) -> RuledRegistry:
    """Return a registry with a version that encrypts."""
    kind = "ENCRYPT" if phase == "domain_rules" else "ENCRYPT_PAYLOAD"
    rule = Rule(**{"name": "r", "type": kind, "tags": ["PII"], "params": PARAMS | (params or {}), **more})
    registry = RuledRegistry()
    registry.add("t-value", SCHEMA, ruleSet=msgspec.to_builtins(RuleSet(**{phase: [rule]})))
    return registry


def write(registry: RuledRegistry, value: Any = VALUE, rules: Rules | None = None, topic: str = "t") -> bytes:
    """Return one record as bytes."""
    serialize = AvroSerializer(registry.client(), use_latest=True, rules=rules or Rules(CONFIG))
    return cast("bytes", serialize(value, topic=topic))


def read(registry: RuledRegistry, data: bytes, rules: Rules | None = None, topic: str = "t") -> Any:
    """Return the value of a record."""
    return AvroDeserializer(registry.client(), rules=rules or Rules(CONFIG))(data, topic=topic)


def bare(registry: RuledRegistry, data: bytes) -> Any:
    """Return the value of a record as it is on the wire, without decryption."""
    return read(registry, data, Rules(enabled=False))


@pytest.mark.parametrize("algorithm", kms.ALGORITHMS)
def test_fields(algorithm: str) -> None:
    """The first writer creates both keys. Text is base64 on the wire, null stays null, and readers get the original."""
    registry = registry_with(params={"encrypt.dek.algorithm": algorithm})
    data = write(registry)
    wire_value = bare(registry, data)
    assert wire_value["n"] == 3
    assert wire_value["b"] != VALUE["b"]
    overhead = 16 if algorithm == "AES256_SIV" else 28
    assert len(b64decode(wire_value["s"], validate=True)) == len("secret ü".encode()) + overhead
    assert read(registry, data) == VALUE
    assert write(registry, {**VALUE, "s": None})[5:6] == b"\0"
    assert (write(registry) == data) is (algorithm == "AES256_SIV")
    assert list(registry.deks) == [("kek", "t-value", algorithm)]
    (kek,) = registry.keks.values()
    assert (kek["kmsType"], kek["kmsKeyId"], kek.get("shared", False)) == ("local-kms", "key", False)


def test_payloads() -> None:
    """The whole payload after the id is encrypted."""
    registry = registry_with("encoding_rules")
    data = write(registry)
    plain = write(registry, rules=Rules(enabled=False))
    assert data[:5] == plain[:5]
    assert len(data) == len(plain) + 28
    assert read(registry, data) == VALUE


def test_only_text_and_bytes() -> None:
    """Encrypting a number raises an error. Readers leave numbers unchanged."""
    registry = registry_with(tags=["NUMBER"])
    with pytest.raises(RuleFailed, match=r"R\.n: only text and bytes"):
        write(registry)
    data = write(registry, rules=Rules(enabled=False))
    assert read(registry, data) == VALUE


def test_rotation() -> None:
    """The next record replaces an expired data key. Old records name the version of their key."""
    registry = registry_with(params={"encrypt.dek.expiry.days": "1"})
    clock = [0]
    rules = Rules(CONFIG, now=lambda: clock[0])
    old = write(registry, rules=rules)
    clock[0] = registry.now = DAY
    assert b64decode(bare(registry, write(registry, rules=rules))["s"])[:5] == b"\0\0\0\0\1"
    clock[0] = registry.now = DAY + 1
    new = write(registry, rules=rules)
    assert b64decode(bare(registry, new)["s"])[:5] == b"\0\0\0\0\2"
    assert read(registry, old) == read(registry, new) == VALUE
    assert len(registry.deks["kek", "t-value", "AES256_GCM"]) == 2


def test_an_old_key_is_better_than_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a new data key cannot be created, the expired one is used."""
    registry = registry_with(params={"encrypt.dek.expiry.days": "1"})
    write(registry, rules=Rules(CONFIG, now=lambda: 0))

    def refuse(*_: object) -> bytes:
        raise kms.KmsError("closed today")

    monkeypatch.setattr(kms, "wrap", refuse)
    data = write(registry, rules=Rules(CONFIG, now=lambda: 9 * DAY))
    assert b64decode(bare(registry, data)["s"])[:5] == b"\0\0\0\0\1"


def test_shared_keys() -> None:
    """With a shared KEK the registry creates the data key and returns it in plain, so a client needs no secret."""
    registry = registry_with()
    material = b64encode(kms.new_material("AES256_GCM")).decode()
    registry.keks["kek"] = {"name": "kek", "kmsType": "local-kms", "kmsKeyId": "key", "shared": True}
    dek = {
        "kekName": "kek",
        "subject": "t-value",
        "version": 1,
        "encryptedKeyMaterial": "eA==",
        "keyMaterial": material,
    }
    registry.deks["kek", "t-value", "AES256_GCM"] = [dek]
    assert read(registry, write(registry, rules=Rules()), Rules()) == VALUE


def test_another_writer_was_faster() -> None:
    """A key that another writer creates between lookup and creation is used."""
    registry = registry_with()
    write(registry)
    kek, deks = registry.keks.pop("kek"), registry.deks.pop(("kek", "t-value", "AES256_GCM"))
    handle = registry.handle

    def late(request: Any) -> Any:
        if request.method == "POST":
            registry.keks["kek"] = kek
            registry.deks["kek", "t-value", "AES256_GCM"] = deks
        return handle(request)

    registry.handle = late  # type: ignore[method-assign]
    data = write(registry)
    assert read(registry, data) == VALUE
    assert len(deks) == 1


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"encrypt.kek.name": ""}, "names a KEK"),
        ({"encrypt.dek.algorithm": "ROT13"}, "must be one of"),
        ({"encrypt.dek.expiry.days": "-1"}, "must be a number of days"),
        ({"encrypt.dek.expiry.days": "²"}, "must be a number of days"),
        ({"encrypt.kms.key.id": ""}, "to create it"),
        ({"encrypt.kms.type": "no-kms"}, "no driver for the KMS type 'no-kms'"),
    ],
)
def test_parameters_that_make_no_sense(params: dict[str, str], why: str) -> None:
    """Invalid parameters of a rule are reported."""
    with pytest.raises(RuleFailed, match=why):
        write(registry_with(params=params))


def test_what_cannot_be_read() -> None:
    """Reading fails without the secret, the key or the subject, with another secret, and for unencrypted data."""
    registry = registry_with(on_failure="ERROR,ERROR")
    data = write(registry)
    plain = write(registry, rules=Rules(enabled=False))
    with pytest.raises(RuleFailed, match="secret"):
        read(registry, data, Rules())
    with pytest.raises(RuleFailed, match="another secret"):
        read(registry, data, Rules({"secret": "other"}))
    with pytest.raises(RuleFailed, match="without a topic"):
        read(registry, data, topic="")
    with pytest.raises(RuleFailed, match="there is no"):
        read(registry, data, topic="other")
    for broken in (plain, bytes([*data[:-2], data[-2] ^ 1, data[-1]])):
        with pytest.raises(RuleFailed):
            read(registry, broken)
    kek = registry.keks["kek"]
    registry.keks["kek"] = {**kek, "kmsKeyId": "moved"}
    with pytest.raises(RuleFailed, match="not 'key' as in the rule"):
        read(registry, data)
    snapshot = SchemaSnapshot(registry.client().snapshot(ids=[1]).schemas)
    with pytest.raises(RuleFailed, match="need a registry"):
        AvroDeserializer(snapshot, rules=Rules(CONFIG))(data, topic="t")
    registry.keks["kek"] = kek
    assert AvroDeserializer(snapshot, rules=Rules(CONFIG, client=registry.client()))(data, topic="t") == VALUE


def test_readers_without_access_may_see_the_cipher() -> None:
    """With actions `ERROR,NONE`, writers must encrypt, and readers that cannot decrypt get the encrypted text."""
    registry = registry_with(on_failure="ERROR,NONE")
    data = write(registry)
    assert read(registry, data, Rules()) == bare(registry, data)
    registry.down = True
    assert read(registry, data) == bare(registry, data)
    with pytest.raises(RuleFailed):
        write(registry)


def test_secrets_are_not_told() -> None:
    """Neither errors nor representations show keys or secrets."""
    registry = registry_with()
    with pytest.raises(RuleFailed) as caught:
        read(registry, write(registry), Rules({"secret": "other words"}))
    assert "other words" not in str(caught.value)
    dek = registry.client().dek("kek", "t-value")
    assert (dek.encrypted_key_material or "?") not in repr(dek)


# --- ciphers ----------------------------------------------------------------------------------------------------------

aead.register()
daead.register()


def tink(algorithm: str, material: bytes) -> Any:
    """Return Tink's cipher for a key."""
    template = (
        daead.deterministic_aead_key_templates.AES256_SIV
        if algorithm == "AES256_SIV"
        else aead.aead_key_templates.AES256_GCM_RAW
    )
    data = tink_pb2.KeyData(type_url=template.type_url, value=material, key_material_type=tink_pb2.KeyData.SYMMETRIC)
    kind: Any = daead.DeterministicAead if algorithm == "AES256_SIV" else aead.Aead
    return core.Registry.primitive(data, kind)


@pytest.mark.parametrize("algorithm", kms.ALGORITHMS)
@given(text=st.binary(max_size=100))
@settings(max_examples=scale_examples(30))
def test_ciphers_agree_with_tink(algorithm: str, text: bytes) -> None:
    """Tink and Stele decrypt each other's ciphertexts."""
    material = kms.new_material(algorithm)
    ours, theirs = ciphers.make_cipher(algorithm, material), tink(algorithm, material)
    if algorithm == "AES256_SIV":
        assert ours.encrypt(text) == theirs.encrypt_deterministically(text, b"")
        assert ours.decrypt(theirs.encrypt_deterministically(text, b"")) == text
    else:
        assert theirs.decrypt(ours.encrypt(text), b"") == text
        assert ours.decrypt(theirs.encrypt(text, b"")) == text


@given(material=st.binary(max_size=80), data=st.binary(max_size=40))
@settings(max_examples=scale_examples(100))
def test_keys_and_texts_that_are_none(material: bytes, data: bytes) -> None:
    """Arbitrary bytes as key or ciphertext raise `DecodeError`."""
    for algorithm in kms.ALGORITHMS:
        try:
            cipher = ciphers.make_cipher(algorithm, material)
        except DecodeError:
            cipher = ciphers.make_cipher(algorithm, kms.new_material(algorithm))
        with pytest.raises(DecodeError):
            cipher.decrypt(data)


def test_keys_may_have_more_fields() -> None:
    """A version or parameters before the key in Tink's key message are skipped."""
    material = kms.new_material("AES128_GCM")
    assert (
        ciphers.make_cipher("AES128_GCM", b"\x08\x00" + material).decrypt(
            ciphers.make_cipher("AES128_GCM", material).encrypt(b"x")
        )
        == b"x"
    )
    assert encrypt.KEK_NAME == "encrypt.kek.name"
