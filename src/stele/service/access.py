"""Who is asking. The hook every request passes; access control proper builds on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

Headers = Sequence[tuple[bytes, bytes]]


class Principal(msgspec.Struct, frozen=True):
    """A caller that proved who it is; the empty name is nobody in particular."""

    name: str = ""


ANONYMOUS = Principal()


class Authenticator(Protocol):
    """Turns the headers of a request (lower-case name, value pairs) into a principal; called on every request."""

    def __call__(self, headers: Headers) -> Principal:
        """The caller. Raises `Unauthenticated`."""
        ...


def authenticate_anyone(headers: Headers) -> Principal:
    """Return the default: every caller is anonymous and may do everything."""
    return ANONYMOUS
