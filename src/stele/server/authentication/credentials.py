"""Reads the credentials in the headers of a request, without verifying them."""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import Final, NamedTuple

from stele.errors import Unauthenticated
from stele.service.access import Headers

_LONGEST: Final = 16_384
"""Highest number of bytes of credentials that are read."""
_LONGEST_NAME: Final = 256
CREDENTIAL_HEADERS: Final = frozenset({b"authorization", b"x-api-key"})
LONGEST_PASSWORD: Final = 1024
"""Highest number of bytes of a password. Longer ones are not hashed, to save work."""

REFUSED: Final = "the user name or the password is wrong"
"""Message for every wrong pair. It does not reveal which user names exist."""


class UserPassword(NamedTuple):
    """A name and a password, as HTTP's Basic scheme sends them."""

    user: str
    password: bytes


class Token(NamedTuple):
    """A key or a signed token, as text of ASCII."""

    text: str


def find_credentials(headers: Headers) -> tuple[bytes, bytes] | None:
    """Return the header with credentials, None if there is none. Raises `Unauthenticated` for more than one."""
    header = None
    for pair in headers:
        if pair[0] in CREDENTIAL_HEADERS:
            if header is not None:
                raise Unauthenticated("the request has credentials twice")
            header = pair
    return header


def parse_credentials(name: bytes, value: bytes) -> UserPassword | Token:
    """Return the credentials in a header of `find_credentials`. Raises `Unauthenticated` for a malformed one."""
    if len(value) > _LONGEST:
        raise Unauthenticated(f"credentials may have {_LONGEST} bytes at most")
    if name == b"x-api-key":
        return _parse_token(value)
    scheme, _, rest = value.strip().partition(b" ")
    match scheme.lower():
        case b"basic":
            return _parse_basic(rest.strip())
        case b"bearer":
            return _parse_token(rest.strip())
        case _:
            raise Unauthenticated("the scheme of the header Authorization is neither Basic nor Bearer")


def _parse_basic(encoded: bytes) -> UserPassword:
    """Parse the Base64 of `user:password` in UTF-8 (RFC 7617). The name has no colon, the password may have some."""
    try:
        user, colon, password = b64decode(encoded, validate=True).partition(b":")
        name = user.decode("utf-8")
    except (binascii.Error, ValueError):
        raise Unauthenticated("the header Authorization must hold user name and password as Base64 of UTF-8") from None
    if not colon or not name or len(user) > _LONGEST_NAME or len(password) > LONGEST_PASSWORD:
        raise Unauthenticated(REFUSED)
    return UserPassword(name, password)


def _parse_token(value: bytes) -> Token:
    if not value or not value.isascii() or b" " in value:
        raise Unauthenticated("the token in the headers must be ASCII text without blanks")
    return Token(value.decode("ascii"))
