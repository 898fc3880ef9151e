"""Sealing of secrets: AES-256-GCM with a random nonce, bound to the place of the sealed bytes.

A key has 32 bytes. Its id is derived from a digest of it, so that a server with several keys finds the right one. No
message contains a secret or a key.
"""

from __future__ import annotations

import base64
import binascii
import os
from hashlib import sha256
from typing import Final

from stele.errors import InvalidRequest, NotInstalled, SteleError

KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_ID_BYTES: Final = 6


class BrokenSeal(SteleError):
    """Sealed bytes were changed, are at another place than they were sealed for, or were sealed with another key."""


class SealingKey:
    """A key that seals secrets.

    Args:
        material: Its 32 bytes.

    Raises:
        InvalidRequest: The material has another length.
        NotInstalled: The encryption library is missing.
    """

    def __init__(self, material: bytes) -> None:
        if len(material) != KEY_BYTES:
            raise InvalidRequest(f"a key that seals secrets must have {KEY_BYTES} bytes, not {len(material)}")
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError:
            raise NotInstalled("cryptography", "access") from None
        self._cipher = AESGCM(material)
        self.id = sha256(b"stele sealing key id\0" + material).hexdigest()[: 2 * _ID_BYTES]

    def seal(self, secret: bytes, place: bytes) -> bytes:
        """Return nonce, ciphertext and tag of a secret. `place` identifies where they are stored."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, secret, place)

    def unseal(self, sealed: bytes, place: bytes) -> bytes:
        """Return the secret that was sealed for a place. Raises `BrokenSeal`."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], place)
        except (InvalidTag, ValueError):
            raise BrokenSeal("a sealed secret was changed or moved, or another key sealed it") from None


def parse_key_text(data: bytes) -> bytes:
    """Return the material of a key in a file or variable: 32 raw bytes, or those in base64 or hexadecimal digits.

    Raises `InvalidRequest` for anything else.
    """
    if len(data) == KEY_BYTES:
        return data
    text = data.strip()
    try:
        if len(text) == 2 * KEY_BYTES:
            return bytes.fromhex(text.decode("ascii"))
        material = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError, UnicodeDecodeError):
        material = b""
    if len(material) != KEY_BYTES:
        raise InvalidRequest(f"a key must be {KEY_BYTES} bytes in base64, as `stele secrets create-key` prints them")
    return material
