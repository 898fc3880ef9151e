"""How one deployment speaks the dialect."""

from __future__ import annotations

import msgspec

from stele.apis.cncf.access import Authorizer, everyone


class CncfOptions(msgspec.Struct, frozen=True):
    """Settings of the dialect.

    max_request_bytes  longest request body
    base_url           base URI of version URIs, as clients see it; '': the address each request names
    authorize          decides what callers may do with a group
    """

    max_request_bytes: int = 16 * 1024 * 1024
    base_url: str = ""
    authorize: Authorizer = everyone
