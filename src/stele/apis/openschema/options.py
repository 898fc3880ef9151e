"""Options of one deployment of the dialect."""

from __future__ import annotations

import msgspec


class OpenSchemaOptions(msgspec.Struct, frozen=True):
    """Options of the dialect.

    Attributes:
        max_request_bytes: Longest request body.
        max_pairs: Pairs of versions compared when the compatibility of a subject changes, at most.
    """

    max_request_bytes: int = 16 * 1024 * 1024
    max_pairs: int = 10_000
