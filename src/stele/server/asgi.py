"""The types of ASGI, as far as the server uses them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from typing import Any, NamedTuple

from stele.service.access import PeerCertificate

AsgiScope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[AsgiScope, Receive, Send], Awaitable[None]]
HeaderPairs = Iterable[tuple[bytes, bytes]]


class ReceivedRequest(NamedTuple):
    """A request as a connection received it: everything that a cached response depends on.

    method      GET, or POST
    target      path and query, as they were sent
    headers     all of them, their names in lower case
    body        b'' for GET
    place       scheme and port it came to
    address     of this server, to which the connection goes
    client      address that the connection comes from
    certificate of the client; None: the client sent none
    """

    method: str
    target: bytes
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes
    place: tuple[str, int]
    address: str
    client: str
    certificate: PeerCertificate | None = None
