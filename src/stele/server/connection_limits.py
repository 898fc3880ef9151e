"""Limits of the connections of one process."""

from __future__ import annotations

import msgspec


class ConnectionLimits(msgspec.Struct, frozen=True):
    """Limits of the connections of one process.

    connections             number of open connections
    address_connections     number of open connections of one client address
    header_bytes            length of a request's head
    headers                 number of header fields of a request
    header_seconds          time from the first byte of a request, or from connecting, to the end of its head
    body_seconds            time from there to the end of its body
    idle_seconds            time from the end of a response to the next request
    """

    connections: int = 2048
    address_connections: int = 1024
    header_bytes: int = 64 * 1024
    headers: int = 100
    header_seconds: float = 10
    body_seconds: float = 60
    idle_seconds: float = 60
