"""Advice on a schema: what would a careful reviewer object to?"""

from __future__ import annotations

import asyncio
from typing import Any

from litestar import Request, post
from litestar.handlers import HTTPRouteHandler

from stele.apis.http.bodies import read_body
from stele.apis.http.openapi import openapi_body
from stele.apis.native.faults import ERRORS
from stele.service import lint as service
from stele.service.lint import LintAnswer, LintRequest
from stele.service.registry import Registry


def linting(registry: Registry) -> HTTPRouteHandler:
    """The endpoint, within the registry's limits."""

    @post("/api/lint", status_code=200, operation_class=openapi_body(LintRequest), responses=ERRORS)
    async def lint_schema(request: Request[Any, Any, Any]) -> LintAnswer:
        # POST /api/lint
        """Advice on a schema that is valid, without registering anything."""
        asked = await read_body(request, LintRequest)
        return await asyncio.to_thread(service.lint_schema, asked, registry.limits)

    return lint_schema
