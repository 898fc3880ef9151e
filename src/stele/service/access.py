"""Who is asking. The hook every request passes; access control proper builds on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec


class Principal(msgspec.Struct, frozen=True):
    """A caller that proved who it is; the empty name is nobody in particular."""

    name: str = ""


ANONYMOUS = Principal()


class Authenticator(Protocol):
    """Turns the headers of a request (lower-case names, latin-1 bytes) into a principal; called on every request."""

    def __call__(self, headers: Mapping[bytes, bytes]) -> Principal:
        """The caller. Raises `Unauthenticated`."""
        ...


def anyone(headers: Mapping[bytes, bytes]) -> Principal:
    """The default: every caller is anonymous and may do everything."""
    return ANONYMOUS
