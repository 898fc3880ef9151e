"""Encrypts the content of session cookies. Only servers with the key can read or create one."""

from __future__ import annotations

import binascii
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

from stele.wire.sealing import KEY_BYTES, BrokenSeal, SealingKey

_PLACE: Final = b"stele browser session\0"


def make_session_key() -> bytes:
    """Return a new key."""
    return os.urandom(KEY_BYTES)


class SessionSeal:
    """Encrypts and decrypts values of cookies.

    Args:
        key: 32 bytes.

    Raises:
        InvalidRequest: The key has another length.
        NotInstalled: The encryption library is missing.
    """

    def __init__(self, key: bytes) -> None:
        self._key = SealingKey(key)

    def seal(self, data: bytes) -> str:
        """Return the value of a cookie that holds some bytes; no two are the same."""
        return urlsafe_b64encode(self._key.seal(data, _PLACE)).rstrip(b"=").decode("ascii")

    def unseal(self, cookie: bytes) -> bytes | None:
        """Return the content of a cookie; None if it was changed, or was not sealed with this key."""
        try:
            return self._key.unseal(urlsafe_b64decode(cookie + b"=" * (-len(cookie) % 4)), _PLACE)
        except (BrokenSeal, binascii.Error, ValueError):
            return None
