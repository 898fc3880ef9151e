"""A cache of verified credentials: the next request with them costs only a hash and a look-up.

The cache key is a keyed hash with a random key for each process. The credentials themselves are not stored.
"""

from __future__ import annotations

import time
from hashlib import blake2b
from secrets import token_bytes
from typing import Any, Final, NamedTuple

from stele.server.authentication.credentials import CREDENTIAL_HEADERS
from stele.server.authentication.methods import Method
from stele.service.access import Principal

_MOST_KNOWN: Final = 10_000
_KNOWN_SECONDS: Final = 300.0
"""Seconds after which a password or token is verified again."""


class VerifiedCredentials(NamedTuple):
    """The result of verifying credentials.

    principal  the principal they belong to
    method     the method that verified them
    expires    time when they expire, in seconds since 1970
    name       the user of the password, or the id of the API key; '' for a token
    proof      what must still be in force: the user as in the files, the document of the key in the log, the keys
               of the issuer of tokens
    """

    principal: Principal
    method: Method
    expires: float
    name: str = ""
    proof: Any = None


class KnownCredentials:
    """Verified credentials by the hash of their header. When the cache is full, the oldest ones are deleted."""

    def __init__(self) -> None:
        key = token_bytes(32)
        self._hashers = {name: blake2b(key=key, person=name, digest_size=16) for name in CREDENTIAL_HEADERS}
        self._known: dict[bytes, tuple[VerifiedCredentials, float]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def digest_header(self, header: tuple[bytes, bytes]) -> bytes:
        """Return the cache key of the credentials in a header (name, value)."""
        hasher = self._hashers[header[0]].copy()
        hasher.update(header[1])
        return hasher.digest()

    def find_verified(self, digest: bytes) -> VerifiedCredentials | None:
        """Return cached credentials that have not expired. The caller checks whether their proof is in force."""
        known = self._known.get(digest)
        if known is None:
            return None
        if time.time() >= known[1]:
            del self._known[digest]
            return None
        return known[0]

    def remember(self, digest: bytes, verified: VerifiedCredentials) -> None:
        """Store verified credentials until they expire, but for a limited time."""
        self._known.pop(digest, None)
        while len(self._known) >= _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        self._known[digest] = verified, min(verified.expires, time.time() + _KNOWN_SECONDS)
