"""Policies of subjects, namespaces and the registry in full: the policy in force, its source, and changes of it."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final

import msgspec
from litestar import Request, delete, get, post, put
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import PathParameter

from stele.apis.http.access import NO_RIGHT_NEEDED, Place, access
from stele.apis.http.application import openapi_body
from stele.apis.http.requests import decode_segment, read_body
from stele.apis.native.errors import ERRORS, NativeError
from stele.apis.native.params import InjectedRegistry
from stele.core.access import Operation
from stele.core.rulesets import join_ruleset
from stele.service import ruleset_adoption
from stele.service import rulesets as service
from stele.service.policies import PolicyAnswer, PolicyChange, change_policy, get_policy, parse_level_name
from stele.service.ruleset_impact import ReportPage, ReportRequest, make_report
from stele.service.rulesets import RulesetInfo

Name = Annotated[
    str,
    PathParameter(
        schema_extra={"minLength": 1}, description="`subject`, `:.namespace:subject`, or `:.namespace:` alone"
    ),
]

_PATHS = ["/api/policies", "/api/policies/{name:str}"]
_READING = {number: ERRORS[number] for number in (400, 422)}
_WRITING = ERRORS | {
    403: ResponseSpec(NativeError, description="The level is read-only", generate_examples=False),
    412: ResponseSpec(NativeError, description="Another policy is in force than expected", generate_examples=False),
}


@get(_PATHS, responses=_READING, opt=access(Operation.READ))
async def show_policy(registry: InjectedRegistry, name: Name = "") -> PolicyAnswer:
    # GET /api/policies/{name}
    """Show the policy in force at a level, where it comes from, and the level's own policy."""
    return await get_policy(registry, parse_level_name(decode_segment(name)))


@put(_PATHS, operation_class=openapi_body(PolicyChange), responses=_WRITING, opt=access(Operation.CHANGE_POLICY))
async def set_policy(request: Request[Any, Any, Any], registry: InjectedRegistry, name: Name = "") -> PolicyAnswer:
    # PUT /api/policies/{name}
    """Replace the own policy and ruleset of a level; other settings stay as they are."""
    wanted = await read_body(request, PolicyChange)
    return await change_policy(registry, parse_level_name(decode_segment(name)), wanted, via="native")


@delete(_PATHS, status_code=200, responses=_WRITING, opt=access(Operation.CHANGE_POLICY))
async def clear_policy(request: Request[Any, Any, Any], registry: InjectedRegistry, name: Name = "") -> PolicyAnswer:
    # DELETE /api/policies/{name}
    """Remove the own policy and ruleset of a level. Return what is in force then, from the level above."""
    return await change_policy(registry, parse_level_name(decode_segment(name)), PolicyChange(), via="native")


FormatName = Annotated[str, PathParameter(name="format", description="name of a format, `avro`")]
RulesetName = Annotated[str, PathParameter(name="ruleset", description="bare name of a ruleset, `confluent`")]

_REFUSED = ERRORS | {403: ResponseSpec(NativeError, description="The registry is read-only", generate_examples=False)}


class RulesetsOut(msgspec.Struct, frozen=True):
    """The rulesets of all installed formats, and which version of each is in force in this registry."""

    rulesets: list[RulesetInfo]


class Adoption(msgspec.Struct, frozen=True):
    """The version of a ruleset to adopt; null takes the newest one installed."""

    version: int | None = None


@get("/api/rulesets", opt=NO_RIGHT_NEEDED)
async def list_rulesets(registry: InjectedRegistry) -> RulesetsOut:
    # GET /api/rulesets
    """List the rulesets of every format with their versions, and which version is in force."""
    return RulesetsOut(
        await asyncio.to_thread(service.list_rulesets, await ruleset_adoption.adopted_versions(registry))
    )


@post(
    "/api/rulesets/report",
    status_code=200,
    operation_class=openapi_body(ReportRequest),
    responses=ERRORS,
    opt=access(Operation.READ, Place.LIST),
)
async def report_differences(request: Request[Any, Any, Any], registry: InjectedRegistry) -> ReportPage:
    # POST /api/rulesets/report
    """Report which registered versions another ruleset or version would judge differently, page by page."""
    return await make_report(registry, await read_body(request, ReportRequest))


@put(
    "/api/rulesets/{format:str}/{ruleset:str}",
    operation_class=openapi_body(Adoption),
    responses=_REFUSED,
    opt=access(Operation.CHANGE_POLICY, Place.REGISTRY),
)
async def adopt_ruleset(
    request: Request[Any, Any, Any], registry: InjectedRegistry, format_name: FormatName, name: RulesetName
) -> RulesetInfo:
    # PUT /api/rulesets/{format}/{ruleset}
    """Adopt a version of a ruleset: schemas of its format are judged by this version from now on."""
    version = (await read_body(request, Adoption)).version
    wanted = name if version is None else join_ruleset(name, version)
    await ruleset_adoption.adopt_ruleset(registry, format_name, wanted, via="native")
    return service.get_ruleset(format_name, name, await ruleset_adoption.adopted_versions(registry))


ROUTES: Final = (
    show_policy,
    set_policy,
    clear_policy,
    list_rulesets,
    report_differences,
    adopt_ruleset,
)
"""Endpoints of policies and rulesets."""
