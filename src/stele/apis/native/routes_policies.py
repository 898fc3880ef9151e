"""Policies of subjects, spaces and the registry, exactly: what is in force, why, and what it is to be."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, delete, get, put
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import PathParameter

from stele.apis.http.bodies import read_body
from stele.apis.http.openapi import openapi_body
from stele.apis.http.paths import decode_segment
from stele.apis.http.requests import caller_name
from stele.apis.native.faults import ERRORS, ErrorOut
from stele.service.policies import PolicyAnswer, PolicyChange, change_policy, get_policy, parse_level_name
from stele.service.registry import Registry

Name = Annotated[
    str,
    PathParameter(schema_extra={"minLength": 1}, description="`subject`, `:.space:subject`, or `:.space:` for a space"),
]

_PATHS = ["/api/policies", "/api/policies/{name:str}"]
_READING = {422: ERRORS[422]}
_WRITING = ERRORS | {
    403: ResponseSpec(ErrorOut, description="The level is read-only", generate_examples=False),
    412: ResponseSpec(ErrorOut, description="Another policy is in force than expected", generate_examples=False),
}


def routes(registry: Registry) -> list[HTTPRouteHandler]:
    """The endpoints about policies of one registry."""

    @get(_PATHS, responses=_READING)
    async def show_policy(name: Name = "") -> PolicyAnswer:
        # GET /api/policies/{name}
        """Show the policy in force at a level, where it comes from, and what the level has of its own."""
        return await get_policy(registry, parse_level_name(decode_segment(name)))

    @put(_PATHS, operation_class=openapi_body(PolicyChange), responses=_WRITING)
    async def set_policy(request: Request[Any, Any, Any], name: Name = "") -> PolicyAnswer:
        # PUT /api/policies/{name}
        """Replace the policy and ruleset a level has of its own; other settings stay as they are."""
        wanted = await read_body(request, PolicyChange)
        return await change_policy(
            registry, parse_level_name(decode_segment(name)), wanted, actor=caller_name(request), via="native"
        )

    @delete(_PATHS, status_code=200, responses=_WRITING)
    async def clear_policy(request: Request[Any, Any, Any], name: Name = "") -> PolicyAnswer:
        # DELETE /api/policies/{name}
        """Leave policy and ruleset of a level to the level above; answers what is in force then."""
        return await change_policy(
            registry, parse_level_name(decode_segment(name)), PolicyChange(), actor=caller_name(request), via="native"
        )

    return [show_policy, set_policy, clear_policy]
