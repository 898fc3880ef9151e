"""Key management: what the local KMS wraps is what Tink's clients wrap, and failures tell no secrets."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from importlib.metadata import EntryPoint

import pytest

from stele.wire import kms

RAW = base64.b64decode("GiAAAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHw==")
WRAPPED = base64.b64decode("2wlV0ZNIS7z9+b4wKXpE0sx5UUqJ42+7WVuPHVOYbbYy39NYo6xSo4SweHjSKpd7/UphtOYYa7F2B99+UXc=")
"""A data key, and it as Tink 1.16 wrapped it with the secret below."""
SECRET = {"secret": "s3cret"}


def test_local_kms_unwraps_what_tink_wrapped() -> None:
    """The key made from a secret, and the layout of nonce, ciphertext and tag, are Tink's."""
    assert kms.unwrap("local-kms", "any", SECRET, WRAPPED) == RAW


def test_local_kms_wraps_anew_each_time() -> None:
    """Wrapping uses a fresh nonce, and what it gives unwraps to what it was given."""
    first, second = (kms.wrap("local-kms", "any", SECRET, RAW) for _ in range(2))
    assert first != second
    assert len(first) == len(WRAPPED)
    assert kms.unwrap("local-kms", "any", SECRET, first) == RAW


def test_secret_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """LOCAL_SECRET serves where the KEK has no secret, and none at all is an error."""
    monkeypatch.setenv("LOCAL_SECRET", "s3cret")
    assert kms.unwrap("local-kms", "any", {}, WRAPPED) == RAW
    monkeypatch.delenv("LOCAL_SECRET")
    with pytest.raises(kms.KmsError, match="cannot load secret"):
        kms.unwrap("local-kms", "any", {}, WRAPPED)


@pytest.mark.parametrize("wrapped", [b"", b"\0", WRAPPED[:-1], bytes(len(WRAPPED))])
def test_what_is_no_wrapped_key(wrapped: bytes) -> None:
    """Damaged material and another secret are errors that show neither secret nor key."""
    for properties, data in ((SECRET, wrapped), ({"secret": "another one"}, WRAPPED)):
        with pytest.raises(kms.KmsError) as failed:
            kms.unwrap("local-kms", "any", properties, data)
        assert not any(secret in str(failed.value) for secret in properties.values())


@pytest.mark.parametrize(
    ("algorithm", "head", "size"),
    [("AES128_GCM", b"\x1a\x10", 16), ("AES256_GCM", b"\x1a\x20", 32), ("AES256_SIV", b"\x12\x40", 64)],
)
def test_fresh_data_keys(algorithm: str, head: bytes, size: int) -> None:
    """A data key is the Tink message of its algorithm: tag, length and random bytes."""
    key = kms.new_material(algorithm)
    assert key[:2] == head
    assert len(key) == 2 + size
    assert key != kms.new_material(algorithm)
    assert RAW[:2] == b"\x1a\x20"


def test_unknown_algorithm_and_type() -> None:
    """What nobody knows is an error that says what there is."""
    with pytest.raises(kms.KmsError, match="AES256_GCM"):
        kms.new_material("DES")
    with pytest.raises(kms.UnknownKms, match=r"'own-kms' is installed; there are .*local-kms"):
        kms.wrap("own-kms", "1", {}, RAW)


class OneOfMany:
    """A KMS that knows one key."""

    def __init__(self, key_id: str, properties: Mapping[str, str]) -> None:
        self._known = key_id == properties["known"]
        self._name = key_id

    def wrap(self, material: bytes) -> bytes:
        """Reverse the bytes."""
        if not self._known:
            raise kms.KmsDenied(f"no key {self._name}")
        return material[::-1]

    unwrap = wrap


def test_alternate_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Further key ids are tried in order, and when none works the first error counts."""
    point = EntryPoint("many-kms", f"{__name__}:OneOfMany", kms.GROUP)
    monkeypatch.setattr(kms, "_drivers_by_name", lambda: {"many-kms": point})
    properties = {"known": "c", kms.ALTERNATES: " b, c ,"}
    assert kms.wrap("many-kms", "a", properties, b"xyz") == b"zyx"
    with pytest.raises(kms.KmsDenied, match="no key a"):
        kms.unwrap("many-kms", "a", properties | {"known": "d"}, b"zyx")


def test_driver_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken driver is an error of that KMS, not of the server."""
    monkeypatch.setattr(kms, "_drivers_by_name", lambda: {"x": EntryPoint("x", "no.such.module:x", kms.GROUP)})
    with pytest.raises(kms.KmsError, match="cannot be loaded"):
        kms.open_key("x", "1", {})
