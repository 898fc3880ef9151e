"""Options of one deployment of the dialect."""

from __future__ import annotations

import msgspec

from stele.apis.pravega.access import Authorizer, allow_everyone


class PravegaOptions(msgspec.Struct, frozen=True):
    """Options of the dialect.

    Attributes:
        max_request_bytes: Longest request body.
        authorize: Decides what callers may do.
    """

    max_request_bytes: int = 16 * 1024 * 1024
    authorize: Authorizer = allow_everyone
