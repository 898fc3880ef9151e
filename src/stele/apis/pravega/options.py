"""Options of one deployment of the dialect."""

from __future__ import annotations

import msgspec


class PravegaOptions(msgspec.Struct, frozen=True):
    """Options of the dialect.

    Attributes:
        max_request_bytes: Longest request body.
    """

    max_request_bytes: int = 16 * 1024 * 1024
