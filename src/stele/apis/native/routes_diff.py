"""The semantic diff: what changed between two schemas, and what follows for data of either?"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from litestar import Request, post
from litestar.handlers import HTTPRouteHandler

from stele.apis.http.bodies import read_body
from stele.apis.http.openapi import openapi_body
from stele.apis.native.faults import ERRORS
from stele.service import diff as service
from stele.service.diff import DiffAnswer, DiffRequest
from stele.service.registry import Registry
from stele.service.rulesets import adopted_versions


def comparing(registry: Registry) -> HTTPRouteHandler:
    """The endpoint: within the registry's limits, by the versions of rulesets and the treatment of doubt it has."""

    @post("/api/diff", status_code=200, operation_class=openapi_body(DiffRequest), responses=ERRORS)
    async def diff_schemas(request: Request[Any, Any, Any]) -> DiffAnswer:
        # POST /api/diff
        """List what changed between two schemas, each change with its verdict both ways, without registering any."""
        asked = await read_body(request, DiffRequest)
        versions = await adopted_versions(registry)
        compare = partial(
            service.diff_schemas, asked, registry.limits, undecided=registry.compatibility.undecided, adopted=versions
        )
        return await asyncio.to_thread(compare)

    return diff_schemas
