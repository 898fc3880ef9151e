"""Options of one deployment of the API."""

from __future__ import annotations

import msgspec


class NativeOptions(msgspec.Struct, frozen=True):
    """Options of the API.

    Attributes:
        max_request_bytes: Longest request body.
        public_url: Base URI of the registry as clients see it, the source of its events; '' is that of each request.
    """

    max_request_bytes: int = 16 * 1024 * 1024
    public_url: str = ""
