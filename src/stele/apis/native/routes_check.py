"""The stateless check: would this schema be accepted after those?"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from litestar import Request, Response, post
from litestar.handlers import HTTPRouteHandler

from stele.apis.http.bodies import read_body
from stele.apis.http.openapi import openapi_body
from stele.apis.native.faults import ERRORS
from stele.service.check import CheckAnswer, CheckRequest, check_compatibility
from stele.service.registry import Registry
from stele.service.rulesets import adopted_versions

RULESET_HEADER = "Stele-Ruleset"
"""Header that names the ruleset which decided, with its version; absent where nothing was compared."""


def checking(registry: Registry) -> HTTPRouteHandler:
    """The endpoint: within the registry's limits, by the versions of rulesets and the treatment of doubt it has."""

    @post("/api/check", status_code=200, operation_class=openapi_body(CheckRequest), responses=ERRORS)
    async def check_schema(request: Request[Any, Any, Any]) -> Response[CheckAnswer]:
        # POST /api/check
        """Check a schema against others under a policy, without registering anything."""
        asked = await read_body(request, CheckRequest)
        versions = await adopted_versions(registry)
        decide = partial(
            check_compatibility, asked, registry.limits, undecided=registry.compatibility.undecided, adopted=versions
        )
        answer = await asyncio.to_thread(decide)
        headers = {RULESET_HEADER: answer.ruleset} if answer.ruleset else {}
        return Response(answer, headers=headers)

    return check_schema
