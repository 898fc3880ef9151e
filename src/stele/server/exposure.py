"""Who reaches a server, and whether they are asked who they are: checked before it serves."""

from __future__ import annotations

from collections.abc import Iterable

from stele.errors import InvalidRequest
from stele.server.addresses import is_loopback
from stele.server.authentication import parse_methods
from stele.server.settings import ServerSettings


def check_exposure(settings: ServerSettings, places: Iterable[tuple[str, str]]) -> None:
    """Raise `InvalidRequest` where everybody on other machines could do everything, and nobody has said so.

    Args:
        settings: Those of the server.
        places: What it listens on: an address, or '' for a socket in the file system; and the dialect whose own port
            that is, '' for all of them.
    """
    places = list(places)
    methods = parse_methods(settings.authentication, {dialect for _, dialect in places if dialect})
    for address, dialect in places:
        if address and not is_loopback(address) and not methods.get(dialect, methods[""]) and not settings.insecure:
            where = f" ({dialect})" if dialect else ""
            raise InvalidRequest(
                f"{address}{where} can be reached from other machines without authentication: set"
                " `authentication`, or `insecure` if something else keeps strangers out"
            )
