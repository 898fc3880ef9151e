"""Key management: the local KMS is compatible with Tink's clients, and errors contain no secrets."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from importlib.metadata import EntryPoint

import pytest

from stele.wire import kms

RAW = base64.b64decode("GiAAAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHw==")
WRAPPED = base64.b64decode("2wlV0ZNIS7z9+b4wKXpE0sx5UUqJ42+7WVuPHVOYbbYy39NYo6xSo4SweHjSKpd7/UphtOYYa7F2B99+UXc=")
"""A data key as wrapped by Tink 1.16 with the secret below."""
SECRET = {"secret": "s3cret"}


def test_local_kms_unwraps_what_tink_wrapped() -> None:
    """The derivation of the key, and the layout of nonce, ciphertext and tag, are those of Tink."""
    assert kms.unwrap("local-kms", "any", SECRET, WRAPPED) == RAW


def test_local_kms_wraps_anew_each_time() -> None:
    """Wrapping uses a new nonce each time, and unwrapping gives the original bytes."""
    first, second = (kms.wrap("local-kms", "any", SECRET, RAW) for _ in range(2))
    assert first != second
    assert len(first) == len(WRAPPED)
    assert kms.unwrap("local-kms", "any", SECRET, first) == RAW


def test_secret_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """LOCAL_SECRET is used if the KEK has no secret; without any secret it is an error."""
    monkeypatch.setenv("LOCAL_SECRET", "s3cret")
    assert kms.unwrap("local-kms", "any", {}, WRAPPED) == RAW
    monkeypatch.delenv("LOCAL_SECRET")
    with pytest.raises(kms.KmsError, match="cannot load secret"):
        kms.unwrap("local-kms", "any", {}, WRAPPED)


@pytest.mark.parametrize("wrapped", [b"", b"\0", WRAPPED[:-1], bytes(len(WRAPPED))])
def test_what_is_no_wrapped_key(wrapped: bytes) -> None:
    """Damaged material and a wrong secret raise errors that contain neither secret nor key."""
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
    """An unknown algorithm or KMS type raises an error that lists the known ones."""
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
    """Further key ids are tried in order; if none works, the error of the first one is raised."""
    point = EntryPoint("many-kms", f"{__name__}:OneOfMany", kms.GROUP)
    monkeypatch.setattr(kms, "_drivers_by_name", lambda: {"many-kms": point})
    properties = {"known": "c", kms.ALTERNATES: " b, c ,"}
    assert kms.wrap("many-kms", "a", properties, b"xyz") == b"zyx"
    with pytest.raises(kms.KmsDenied, match="no key a"):
        kms.unwrap("many-kms", "a", properties | {"known": "d"}, b"zyx")


def test_driver_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken driver raises an error for its KMS, and does not affect the server."""
    monkeypatch.setattr(kms, "_drivers_by_name", lambda: {"x": EntryPoint("x", "no.such.module:x", kms.GROUP)})
    with pytest.raises(kms.KmsError, match="cannot be loaded"):
        kms.open_key("x", "1", {})
