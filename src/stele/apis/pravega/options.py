"""How one deployment speaks the dialect."""

from __future__ import annotations

import msgspec

from stele.apis.pravega.access import Authorizer, allow_everyone


class PravegaOptions(msgspec.Struct, frozen=True):
    """Settings of the dialect.

    max_request_bytes  longest request body
    authorize          decides what callers may do
    """

    max_request_bytes: int = 16 * 1024 * 1024
    authorize: Authorizer = allow_everyone
