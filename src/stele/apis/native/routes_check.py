"""The stateless check: would this schema be accepted after those?"""

from __future__ import annotations

import asyncio
from typing import Any

from litestar import Request, post
from litestar.handlers import HTTPRouteHandler

from stele.apis.native.faults import ERRORS
from stele.apis.native.translate import CheckOut, check_out
from stele.apis.web import documented, read_body
from stele.service.check import CheckRequest, check
from stele.service.limits import Limits


def checking(limits: Limits) -> HTTPRouteHandler:
    """The endpoint, within those limits."""

    @post("/api/check", status_code=200, operation_class=documented(CheckRequest), responses=ERRORS)
    async def check_schema(request: Request[Any, Any, Any]) -> CheckOut:
        # POST /api/check
        """Check a schema against others under a policy, without registering anything."""
        asked = await read_body(request, CheckRequest)
        return check_out(await asyncio.to_thread(check, asked, limits))

    return check_schema
