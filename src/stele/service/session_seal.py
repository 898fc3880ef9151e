"""Seals what the cookie of a session holds, so that nobody but the servers with the key can read or make one."""

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
    """Seals and opens values of cookies.

    Args:
        key: 32 bytes.

    Raises:
        InvalidRequest: The key has another length.
        NotInstalled: The library that encrypts is missing.
    """

    def __init__(self, key: bytes) -> None:
        self._key = SealingKey(key)

    def seal(self, data: bytes) -> str:
        """Return the value of a cookie that holds some bytes; no two are the same."""
        return urlsafe_b64encode(self._key.seal(data, _PLACE)).rstrip(b"=").decode("ascii")

    def unseal(self, cookie: bytes) -> bytes | None:
        """Return what a cookie holds; None for one that was changed, or that another key or nobody sealed."""
        try:
            return self._key.unseal(urlsafe_b64decode(cookie + b"=" * (-len(cookie) % 4)), _PLACE)
        except (BrokenSeal, binascii.Error, ValueError):
            return None
