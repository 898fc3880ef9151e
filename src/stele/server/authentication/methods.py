"""The authentication methods, and the ports at which they are on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Final

from stele.core.suggestions import suggest_name
from stele.errors import InvalidRequest

NONE: Final = "none"
"""The word that turns authentication off, for one port or for all."""

Methods = frozenset["Method"]


class Method(StrEnum):
    """An authentication method."""

    BASIC = "basic"
    """User name and password, compared with a file."""
    KEYS = "keys"
    """An API key of this registry."""
    OIDC = "oidc"
    """A token that another server has signed."""
    MTLS = "mtls"
    """The certificate of the client's TLS connection."""


def parse_methods(items: Iterable[str], dialects: Collection[str]) -> Mapping[str, Methods]:
    """Return the methods by dialect; '' is for all ports that no item names.

    Args:
        items: `basic`, or `pravega:basic` for the port that belongs to one dialect; `none` stands for no method.
        dialects: Dialects that have their own port.

    Raises:
        InvalidRequest: An item names no method, or a dialect without a port of its own.
    """
    known = [NONE, *(method.value for method in Method)]
    words: dict[str, list[str]] = {"": []}
    for item in items:
        dialect, colon, word = item.rpartition(":")
        if colon and dialect not in dialects:
            raise InvalidRequest(f"authentication: {item!r} names {dialect!r}, which has no port of its own (listen)")
        if word not in known:
            raise InvalidRequest(
                f"authentication: {word!r} is not one of {', '.join(known)}{suggest_name(word, known)}"
            )
        words.setdefault(dialect, []).append(word)
    for dialect, chosen in words.items():
        if NONE in chosen and len(chosen) > 1:
            where = f" of {dialect}" if dialect else ""
            raise InvalidRequest(f"authentication{where}: none excludes every other method")
    return {dialect: frozenset(Method(word) for word in chosen if word != NONE) for dialect, chosen in words.items()}
