"""How one deployment speaks the dialect."""

from __future__ import annotations

import msgspec


class RocketmqOptions(msgspec.Struct, frozen=True):
    """Settings of the dialect.

    max_request_bytes  longest request body
    """

    max_request_bytes: int = 16 * 1024 * 1024
