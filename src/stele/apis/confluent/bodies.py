"""Bodies of requests that are stored as they are, beside the schemas."""

from __future__ import annotations

from typing import Any, TypeVar

from litestar import Request

from stele.apis.confluent.desk import Desk
from stele.apis.http.bodies import read_body
from stele.errors import TooLarge

T = TypeVar("T")


async def read_kept(desk: Desk, request: Request[Any, Any, Any], shape: type[T]) -> T:
    """As `read_body`. Raises `TooLarge` for one longer than a schema may be: it is going to be stored."""
    body = await read_body(request, shape)
    if (size := len(await request.body())) > desk.registry.limits.schema_bytes:
        raise TooLarge(f"the request has {size} bytes, more than a schema may have")
    return body
