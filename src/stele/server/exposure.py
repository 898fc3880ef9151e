"""Checks before serving whether other machines can reach a server without authentication."""

from __future__ import annotations

from collections.abc import Iterable

from stele.errors import InvalidRequest
from stele.server.addresses import is_loopback
from stele.server.authentication import parse_methods
from stele.server.settings import ServerSettings


def check_exposure(settings: ServerSettings, places: Iterable[tuple[str, str]]) -> None:
    """Raise `InvalidRequest` where other machines can use the server without authentication and `insecure` is not set.

    Args:
        settings: Settings of the server.
        places: What it listens on: an address, or '' for a Unix socket; and the dialect that the port belongs to, ''
            for a port of all dialects.
    """
    places = list(places)
    methods = parse_methods(settings.authentication, {dialect for _, dialect in places if dialect})
    for address, dialect in places:
        if address and not is_loopback(address) and not methods.get(dialect, methods[""]) and not settings.insecure:
            where = f" ({dialect})" if dialect else ""
            raise InvalidRequest(
                f"{address}{where} can be reached from other machines without authentication: set"
                " `authentication`, or `insecure` if something else protects it"
            )
