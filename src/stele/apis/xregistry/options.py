"""Options of one deployment of the dialect."""

from __future__ import annotations

import msgspec


class XregistryOptions(msgspec.Struct, frozen=True):
    """Options of the dialect.

    Attributes:
        max_request_bytes: Longest request body.
        base_url: URL of the registry's root as clients see it, without the prefix `/xregistry`; '' is the address of
            each request.
        known_registries: URLs of other xRegistry servers that the API lists.
    """

    max_request_bytes: int = 16 * 1024 * 1024
    base_url: str = ""
    known_registries: tuple[str, ...] = ()
