"""Credentials that were verified, so that the next request with them costs a hash and a look-up.

They are kept under a keyed hash; the key is made by chance for each process. What a client sent is not kept.
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
"""After so long, a password or token is verified again."""


class VerifiedCredentials(NamedTuple):
    """What credentials have proved.

    principal  who sends them
    method     how that was proved
    expires    from when on they prove nothing, in seconds since 1970
    name       the user whose password it is, or the id of the API key; '' for a token
    proof      what must still be in force: the user as the files have it, the document of the key in the log, the keys
               of the issuer of tokens
    """

    principal: Principal
    method: Method
    expires: float
    name: str = ""
    proof: Any = None


class KnownCredentials:
    """Verified credentials by the hash of the header that has them; beyond so many, the oldest ones are forgotten."""

    def __init__(self) -> None:
        key = token_bytes(32)
        self._hashers = {name: blake2b(key=key, person=name, digest_size=16) for name in CREDENTIAL_HEADERS}
        self._known: dict[bytes, tuple[VerifiedCredentials, float]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def digest_header(self, header: tuple[bytes, bytes]) -> bytes:
        """Return what the credentials in a header (name, value) are kept under."""
        hasher = self._hashers[header[0]].copy()
        hasher.update(header[1])
        return hasher.digest()

    def find_verified(self, digest: bytes) -> VerifiedCredentials | None:
        """Return what is known of credentials that have not expired; the caller looks whether their proof holds."""
        known = self._known.get(digest)
        if known is None:
            return None
        if time.time() >= known[1]:
            del self._known[digest]
            return None
        return known[0]

    def remember(self, digest: bytes, verified: VerifiedCredentials) -> None:
        """Keep verified credentials until they expire, and not for long."""
        self._known.pop(digest, None)
        while len(self._known) >= _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        self._known[digest] = verified, min(verified.expires, time.time() + _KNOWN_SECONDS)
