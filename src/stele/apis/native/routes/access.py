"""Access rules and API keys: the rules in force, explanations of decisions, and the keys of programs.

Only rules in the log can be changed. A key is shown only in the response that creates it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from litestar import Request, Response, delete, get, post
from litestar.datastructures import ResponseHeader
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import PathParameter, QueryParameter

from stele.apis.http.access import Place, access
from stele.apis.http.application import openapi_body
from stele.apis.http.requests import decode_segment, read_body
from stele.apis.native.errors import ERRORS, NativeError
from stele.apis.native.params import InjectedRegistry
from stele.core.access import REGISTRY_RESOURCE, Operation
from stele.core.access_rule_text import parse_resource, parse_rule, print_rule
from stele.service import access_rules, api_keys
from stele.service.access import CALLER
from stele.service.access_rules import COLLECTION, AccessExplanation, AccessRuleInfo, RuleList

RuleText = Annotated[str, QueryParameter(name="rule", description="`allow user:ann writer subject orders-*`")]
PrincipalName = Annotated[str, QueryParameter(name="principal", description="`user:ann`; `*` is an anonymous caller")]
GroupNames = Annotated[list[str] | None, QueryParameter(name="group", description="groups of the user: `dev`")]
OperationName = Annotated[str, QueryParameter(name="operation", description="`read`, `register` …")]
ResourceText = Annotated[str, QueryParameter(name="resource", description="`subject orders in team`, `registry` …")]
Host = Annotated[str, QueryParameter(description="address that the request comes from")]

_WRITING = ERRORS | {
    403: ResponseSpec(NativeError, description="The registry is read-only", generate_examples=False),
    409: ResponseSpec(
        NativeError,
        description="The rule is in a file, or the caller would lose the right to manage access",
        generate_examples=False,
    ),
}
_MISSING = {404: ResponseSpec(NativeError, description="There is no such rule", generate_examples=False)}
_REFUSED = {number: ERRORS[number] for number in (400, 422)}
_ADDED = {201: ResponseSpec(AccessRuleInfo, description="The rule was added", generate_examples=False)}
_MANAGE = access(Operation.MANAGE_ACCESS, Place.REGISTRY)


class NewRule(msgspec.Struct, frozen=True):
    """A rule as a line of text: `allow user:ann writer subject orders-*`."""

    rule: str


@get("/api/access/rules", opt=_MANAGE)
async def list_access_rules(registry: InjectedRegistry) -> RuleList:
    # GET /api/access/rules
    """List the rules in force, the source of each, and the decision if no rule matches."""
    return await access_rules.list_rules(registry)


@post(
    "/api/access/rules",
    status_code=200,
    operation_class=openapi_body(NewRule),
    responses=_WRITING | _ADDED,
    opt=_MANAGE,
)
async def add_access_rule(request: Request[Any, Any, Any], registry: InjectedRegistry) -> Response[AccessRuleInfo]:
    # POST /api/access/rules
    """Add a rule; status 201 if it is new, else 200."""
    rule = parse_rule((await read_body(request, NewRule)).rule)
    is_new = await access_rules.add_rule(registry, rule, via="native")
    return Response(AccessRuleInfo(print_rule(rule), COLLECTION), status_code=201 if is_new else 200)


@delete("/api/access/rules", status_code=200, responses=_WRITING | _MISSING, opt=_MANAGE)
async def remove_access_rule(registry: InjectedRegistry, rule: RuleText) -> AccessRuleInfo:
    # DELETE /api/access/rules?rule
    """Remove a rule from the log and return it."""
    parsed = parse_rule(rule)
    await access_rules.remove_rule(registry, parsed, via="native")
    return AccessRuleInfo(print_rule(parsed), COLLECTION)


@get("/api/access/explain", responses=_REFUSED, opt=_MANAGE)
async def explain_access(
    registry: InjectedRegistry,
    principal: PrincipalName,
    operation: OperationName,
    resource: ResourceText,
    group: GroupNames = None,
    host: Host = "",
) -> AccessExplanation:
    # GET /api/access/explain?principal&group&operation&resource&host
    """Show whether a principal may do something, and which rule decides it."""
    principals = frozenset({principal, *(f"group:{name}" for name in group or ())})
    return await access_rules.explain_access(registry, principals, operation, parse_resource(resource), host)


KeyId = Annotated[str, PathParameter(name="id", description="id of a key: the part of the key after `stele_`")]

_NO_STORE = ResponseHeader(name="Cache-Control", value="no-store", description="The key is shown once")
_NO_KEY = {404: ResponseSpec(NativeError, description="No key has this id", generate_examples=False)}


class ApiKeyRequest(msgspec.Struct, frozen=True):
    """An API key to create: the user that it authenticates, the user's groups, and when it expires (null: never)."""

    name: str
    groups: list[str] = []
    expires: datetime | None = None


@get("/api/access/keys", opt=access(Operation.MANAGE_ACCESS, Place.LIST))
async def list_keys(registry: InjectedRegistry) -> api_keys.ApiKeysOut:
    # GET /api/access/keys
    """List all keys. A caller without the right to manage access gets only their own keys and those they created."""
    keys = await api_keys.list_api_keys(registry)
    is_manager = registry.access.allows(Operation.MANAGE_ACCESS, REGISTRY_RESOURCE)
    caller = CALLER.get().principal.name
    visible = {
        key_id: stored
        for key_id, stored in keys.items()
        if is_manager or (caller and caller in {stored.name, stored.created_by})
    }
    return api_keys.ApiKeysOut([api_keys.ApiKeyOut(key_id, **_describe(stored)) for key_id, stored in visible.items()])


@post(
    "/api/access/keys",
    opt=_MANAGE,
    operation_class=openapi_body(ApiKeyRequest),
    responses=ERRORS,
    response_headers=[_NO_STORE],
)
async def create_key(request: Request[Any, Any, Any], registry: InjectedRegistry) -> api_keys.CreatedApiKey:
    # POST /api/access/keys
    """Create a key. Only this response shows it."""
    wanted = await read_body(request, ApiKeyRequest)
    key_id, stored, key = await api_keys.create_api_key(
        registry, wanted.name, wanted.groups, wanted.expires, via="native"
    )
    return api_keys.CreatedApiKey(key_id, **_describe(stored), key=key)


@delete("/api/access/keys/{id:str}", status_code=200, opt=_MANAGE, responses=_NO_KEY)
async def revoke_key(registry: InjectedRegistry, key_id: KeyId) -> api_keys.ApiKeyOut:
    # DELETE /api/access/keys/{id}
    """Revoke a key, which is invalid from now on, and return its description."""
    key_id = decode_segment(key_id)
    stored = await api_keys.revoke_api_key(registry, key_id, via="native")
    return api_keys.ApiKeyOut(key_id, **_describe(stored))


def _describe(stored: api_keys.StoredApiKey) -> dict[str, Any]:
    return {
        "name": stored.name,
        "groups": list(stored.groups),
        "created": stored.created,
        "created_by": stored.created_by,
        "expires": stored.expires,
    }


ROUTES: Final = (
    list_access_rules,
    add_access_rule,
    remove_access_rule,
    explain_access,
    list_keys,
    create_key,
    revoke_key,
)
"""Endpoints of access to the registry and of API keys."""
