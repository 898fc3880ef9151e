"""Response without a body."""

from __future__ import annotations

from collections.abc import Mapping

from litestar.response.base import ASGIResponse


class EmptyResponse(ASGIResponse):
    """A response without a body, and so without a content type, because an empty body is no JSON document.

    The OpenAPI document of an endpoint that is annotated with this class shows no body either.
    """

    def __init__(self, status_code: int, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status_code=status_code, headers=dict(headers or {}))
        del self.headers["content-type"]
