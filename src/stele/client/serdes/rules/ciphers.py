"""Encryption with data keys, byte for byte as the vendor's clients do it with Tink.

A key is stored as the Tink message of its algorithm (see `stele.wire.kms.new_material`). AES-GCM writes a nonce of
12 bytes before the ciphertext and the tag after it. AES-SIV is deterministic: equal texts have equal ciphertexts. It
writes its 16 bytes before the ciphertext. There is no additional authenticated data.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, NamedTuple

from stele.errors import DecodeError, NotInstalled

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV
except ImportError:
    raise NotInstalled("cryptography", "rules") from None

_NONCE: Final = 12
_NOTHING: Final = b""
_VARINT: Final = 0
_BYTES: Final = 2


class Cipher(NamedTuple):
    """Both directions of one key. `decrypt` raises `DecodeError` for bytes that were not encrypted with it."""

    encrypt: Callable[[bytes], bytes]
    decrypt: Callable[[bytes], bytes]


def make_cipher(algorithm: str, material: bytes) -> Cipher:
    """Return the cipher of a data key. Raises `DecodeError` for material that does not fit the algorithm."""
    key = _decode_key(material, 2 if algorithm == "AES256_SIV" else 3)
    try:
        return _make_siv(AESSIV(key)) if algorithm == "AES256_SIV" else _make_gcm(AESGCM(key))
    except ValueError as error:
        raise DecodeError(f"the data key is not one of {algorithm}: {error}") from None


def _make_gcm(own: AESGCM) -> Cipher:
    def encrypt(text: bytes) -> bytes:
        nonce = os.urandom(_NONCE)
        return nonce + own.encrypt(nonce, text, _NOTHING)

    return Cipher(encrypt, _with_decode_errors(lambda data: own.decrypt(data[:_NONCE], data[_NONCE:], _NOTHING)))


def _make_siv(own: AESSIV) -> Cipher:
    return Cipher(
        lambda text: own.encrypt(text, [_NOTHING]), _with_decode_errors(lambda data: own.decrypt(data, [_NOTHING]))
    )


def _with_decode_errors(decrypt: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    def decrypt_checked(data: bytes) -> bytes:
        try:
            return decrypt(data)
        except (InvalidTag, ValueError):
            raise DecodeError("not encrypted with this data key") from None

    return decrypt_checked


def _decode_key(material: bytes, number: int) -> bytes:
    """Return the field of a Tink key message that holds the key: 3 for AES-GCM, 2 for AES-SIV. Skip other fields."""
    at = 0
    while at < len(material):
        tag, at = _decode_varint(material, at)
        size, at = _decode_varint(material, at)
        if tag & 7 == _VARINT:
            continue
        if tag & 7 != _BYTES:
            break
        if tag >> 3 == number:
            return material[at : at + size]
        at += size
    raise DecodeError("the data key is not a Tink key")


def _decode_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    for byte in data[at : at + 10]:
        value |= (byte & 127) << shift
        shift, at = shift + 7, at + 1
        if byte < 128:
            return value, at
    raise DecodeError("the data key is not a Tink key")
