"""Data keys, and how key management services wrap them, byte for byte compatible with Confluent's clients.

A data key encrypts fields. It is stored only in wrapped form, encrypted by a key that never leaves its key management
service (KMS). `open_key` finds the driver of a KMS by its type in the entry point group `stele.kms`. The built-in one,
`local-kms`, derives its key from a secret and is meant for tests and small set-ups.

No message contains a secret or a data key.

Source: docs/protocols/data-rules.md#encryption.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final, Protocol

from stele.errors import NotInstalled, SteleError

GROUP: Final = "stele.kms"
"""Entry point group of drivers: the name is a KMS type, the value a `Driver`."""

ALTERNATES: Final = "encrypt.alternate.kms.key.ids"
"""Property with ids of further keys, separated by commas, that are tried when the first one fails."""

HARMLESS: Final = frozenset(
    {
        ALTERNATES,
        "access.key.id",
        "account.type",
        "approle.role.id",
        "client.email",
        "client.id",
        "encrypt.azure.key.version.save",
        "endpoint",
        "namespace",
        "private.key.id",
        "profile",
        "region",
        "role.arn",
        "role.session.name",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.key.location",
        "tenant.id",
        "token.uri",
    }
)
"""Properties, in lower case, that hold no credentials. All others are never shown after they are stored."""

ALGORITHMS: Final = ("AES128_GCM", "AES256_GCM", "AES256_SIV")
"""Algorithms of data keys."""

_NONCE_BYTES = 12


class KmsError(SteleError):
    """The KMS did not wrap or unwrap a key, or there is no driver for it."""


class UnknownKms(KmsError):
    """No driver supports the KMS type."""


class KmsDenied(KmsError):
    """The KMS denies this server the use of its key."""


class KeyManager(Protocol):
    """One key of a KMS. Both methods may wait for the network; they raise `KmsError`, `KmsDenied`."""

    def wrap(self, material: bytes) -> bytes:
        """Encrypt a data key."""
        ...

    def unwrap(self, wrapped: bytes) -> bytes:
        """Decrypt a data key that `wrap` encrypted."""
        ...


Driver = Callable[[str, Mapping[str, str]], KeyManager]
"""Opens a key by its id and the properties of its KEK. Raises `KmsError`, `NotInstalled`."""


# --- finding keys ---------------------------------------------------------------------------------------------------


def wrap(kms_type: str, key_id: str, properties: Mapping[str, str], material: bytes) -> bytes:
    """Encrypt a data key with a key of a KMS, or its alternates. Raises `KmsError`, `NotInstalled`."""
    return _use_first_key(kms_type, key_id, properties, lambda key: key.wrap(material))


def unwrap(kms_type: str, key_id: str, properties: Mapping[str, str], wrapped: bytes) -> bytes:
    """Decrypt a data key with a key of a KMS, or its alternates. Raises `KmsError`, `NotInstalled`."""
    return _use_first_key(kms_type, key_id, properties, lambda key: key.unwrap(wrapped))


def _use_first_key(
    kms_type: str, key_id: str, properties: Mapping[str, str], use: Callable[[KeyManager], bytes]
) -> bytes:
    """Return the result of the first key that works. If none does, raise the error of the first one."""
    failed: KmsError | None = None
    others = (name.strip() for name in properties.get(ALTERNATES, "").split(","))
    for name in (key_id, *filter(None, others)):
        try:
            return use(open_key(kms_type, name, properties))
        except KmsError as error:
            failed = failed or error
    assert failed is not None
    raise failed


def open_key(kms_type: str, key_id: str, properties: Mapping[str, str]) -> KeyManager:
    """Return a key of a KMS. Raises `UnknownKms`, and what the driver raises."""
    point = _drivers_by_name().get(kms_type)
    if point is None:
        raise UnknownKms(
            f"no driver for the KMS type '{kms_type}' is installed; there are {', '.join(sorted(_drivers_by_name()))}"
        )
    try:
        driver: Driver = point.load()
    except (ImportError, AttributeError) as error:
        raise KmsError(f"the driver for the KMS type '{kms_type}' cannot be loaded: {error}") from None
    return driver(key_id, properties)


@cache
def _drivers_by_name() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


# --- data keys ------------------------------------------------------------------------------------------------------


def new_material(algorithm: str) -> bytes:
    """Return a new data key in the form that clients store: the Tink message of its algorithm.

    The message has a field number and a length before the bytes. Raises `KmsError` for an algorithm that is not one of
    `ALGORITHMS`.
    """
    match algorithm:
        case "AES128_GCM":
            return b"\x1a\x10" + os.urandom(16)
        case "AES256_GCM":
            return b"\x1a\x20" + os.urandom(32)
        case "AES256_SIV":
            return b"\x12\x40" + os.urandom(64)
    raise KmsError(f"'{algorithm}' is not an algorithm of data keys; there are {', '.join(ALGORITHMS)}")


# --- the local KMS --------------------------------------------------------------------------------------------------


class LocalKey:
    """A key derived from a secret: HKDF-SHA256 without salt gives 16 bytes, AES-GCM wraps as nonce, ciphertext, tag."""

    def __init__(self, secret: str) -> None:
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
            from cryptography.hazmat.primitives.hashes import SHA256
            from cryptography.hazmat.primitives.kdf.hkdf import HKDF
        except ImportError:
            raise NotInstalled("cryptography", "rules") from None
        self._cipher = AESGCM(HKDF(SHA256(), 16, None, b"").derive(secret.encode("utf-8")))

    def wrap(self, material: bytes) -> bytes:
        """Encrypt a data key."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, material, b"")

    def unwrap(self, wrapped: bytes) -> bytes:
        """Decrypt a data key that `wrap` encrypted. Raises `KmsError` for anything else, also for another secret."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:], b"")
        except (InvalidTag, ValueError):
            raise KmsError("the key was wrapped with another secret, or is not a wrapped key") from None


def local_kms(key_id: str, properties: Mapping[str, str]) -> LocalKey:
    """Return the key of `local-kms`. Its secret is the property `secret`, else the environment's LOCAL_SECRET.

    Raises `KmsError` when there is none.
    """
    secret = properties.get("secret") or os.environ.get("LOCAL_SECRET")
    if not secret:
        raise KmsError("cannot load secret: neither the property 'secret' nor LOCAL_SECRET is set")
    return LocalKey(secret)
