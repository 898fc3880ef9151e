"""Options of one deployment of the dialect."""

from __future__ import annotations

import msgspec


class CncfOptions(msgspec.Struct, frozen=True):
    """Options of the dialect.

    Attributes:
        max_request_bytes: Longest request body.
        base_url: Base URI of version URIs as clients see it; '' is the address of each request.
    """

    max_request_bytes: int = 16 * 1024 * 1024
    base_url: str = ""
