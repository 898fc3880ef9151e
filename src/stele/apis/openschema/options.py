"""How one deployment speaks the dialect."""

from __future__ import annotations

import msgspec


class OpenSchemaOptions(msgspec.Struct, frozen=True):
    """Settings of the dialect.

    max_request_bytes  longest request body
    max_pairs          versions compared when the compatibility of a subject is changed, in pairs
    """

    max_request_bytes: int = 16 * 1024 * 1024
    max_pairs: int = 10_000
