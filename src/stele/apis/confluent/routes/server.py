"""The root, facts about the server, contexts, and Redpanda's access control entries."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Request, delete, get, post, route
from litestar.params import QueryParameter

from stele.apis.confluent import lists
from stele.apis.confluent import models as api
from stele.apis.confluent.acls import COLLECTION, Acl, make_rule
from stele.apis.confluent.names import parse_context, slice_page
from stele.apis.confluent.operations.schemas import read_stored_body
from stele.apis.confluent.params import (
    READ,
    WRITE,
    Context,
    ContextPrefix,
    InjectedOperations,
    Limit,
    Offset,
)
from stele.apis.http.access import NO_RIGHT_NEEDED, Place, access
from stele.apis.http.application import openapi_body
from stele.apis.http.empty_response import EmptyResponse
from stele.core.access import Operation
from stele.core.commands import DeleteNamespace
from stele.errors import TooLarge
from stele.service.access_rules import require_way_back
from stele.service.collections import Changes, Items


@route(
    "/",
    http_method=["GET", "POST"],
    status_code=200,
    **{k: v for k, v in READ.items() if k != "responses"},
    opt=NO_RIGHT_NEEDED,
)
async def get_root() -> dict[str, str]:
    # GET|POST /
    """Return an empty object, to show that the server responds."""
    return {}


@get("/status/ready", **READ, opt=NO_RIGHT_NEEDED)
async def get_readiness(operations: InjectedOperations) -> dict[str, str]:
    # GET /status/ready
    """Return an empty object if the log can be read (Redpanda); otherwise the error of the store is raised."""
    await operations.registry.fresh_state()
    return {}


@get("/v1/metadata/id", **READ, opt=NO_RIGHT_NEEDED)
async def get_cluster_id(operations: InjectedOperations) -> api.ServerClusterId:
    # GET /v1/metadata/id
    """Return the names of the clusters."""
    options = operations.options
    return api.ServerClusterId("", api.ServerScope([], api.Clusters(options.kafka, options.cluster)))


@get("/v1/metadata/version", **READ, opt=NO_RIGHT_NEEDED)
async def get_server_version(operations: InjectedOperations) -> api.ServerVersion:
    # GET /v1/metadata/version
    """Return the release whose behaviour this API has."""
    return api.ServerVersion(operations.options.release, operations.options.commit)


@get("/v1/metadata/deployment", **READ, opt=NO_RIGHT_NEEDED)
async def get_deployment(operations: InjectedOperations) -> api.Deployment:
    # GET /v1/metadata/deployment
    """Return the attributes of the deployment."""
    return api.Deployment(list(operations.options.deployment))


@get("/contexts", **READ, opt=access(Operation.LIST, Place.LIST))
async def list_contexts(
    operations: InjectedOperations, context_prefix: ContextPrefix = "", offset: Offset = "", limit: Limit = ""
) -> list[str]:
    # GET /contexts
    """Return the names of the contexts."""
    state = await operations.registry.fresh_state()
    return slice_page(
        lists.list_contexts(state, context_prefix, operations.registry.access),
        offset,
        limit,
        operations.options.max_items,
    )


@delete("/contexts/{context:str}", status_code=204, responses=READ["responses"], opt=access(Operation.DELETE))
async def delete_context(operations: InjectedOperations, context: Context) -> None:
    # DELETE /contexts/{context}
    """Delete an empty context."""
    await operations.execute(DeleteNamespace(parse_context(context)))


_MOST = 10_000
"""Most access control entries."""

_Word = Annotated[str, QueryParameter(description="only entries with this value")]
_BODY = openapi_body(list[Acl])


@get("/security/acls", **READ, opt=access(Operation.MANAGE_ACCESS, Place.REGISTRY))
async def list_acls(
    operations: InjectedOperations,
    principal: _Word = "",
    principal_type: _Word = "",
    resource: _Word = "",
    resource_type: _Word = "",
    pattern_type: _Word = "",
    host: _Word = "",
    operation: _Word = "",
    permission: _Word = "",
) -> list[Acl]:
    # GET /security/acls
    """Return the access control entries, all or those with the given values."""
    wanted = {
        "principal": principal,
        "principal_type": principal_type,
        "resource": resource,
        "resource_type": resource_type,
        "pattern_type": pattern_type,
        "host": host,
        "operation": operation,
        "permission": permission,
    }
    items = await operations.read_items(COLLECTION)
    rows = [msgspec.json.decode(items[key], type=Acl) for key in sorted(items)]
    return [row for row in rows if all(not value or getattr(row, name) == value for name, value in wanted.items())]


@post(
    "/security/acls",
    operation_class=_BODY,
    **{**WRITE, "status_code": 201},
    opt=access(Operation.MANAGE_ACCESS, Place.REGISTRY),
)
async def create_acls(operations: InjectedOperations, request: Request[Any, Any, Any]) -> EmptyResponse:
    # POST /security/acls
    """Add access control entries. Existing ones stay."""
    entries = await read_stored_body(operations, request, list[Acl])
    for entry in entries:
        make_rule(entry)

    def change(items: Items) -> tuple[Changes, None]:
        fresh = {entry.key: msgspec.json.encode(entry) for entry in entries if entry.key not in items}
        if len(items) + len(fresh) > _MOST:
            raise TooLarge(f"there are {_MOST} access control entries at most")
        require_way_back(operations.registry, COLLECTION, items, fresh)
        return fresh, None

    await operations.edit_items(COLLECTION, change)
    return EmptyResponse(201)


@delete("/security/acls", operation_class=_BODY, **WRITE, opt=access(Operation.MANAGE_ACCESS, Place.REGISTRY))
async def delete_acls(operations: InjectedOperations, request: Request[Any, Any, Any]) -> list[Acl]:
    # DELETE /security/acls
    """Delete access control entries, and return those that existed."""
    entries = await read_stored_body(operations, request, list[Acl])

    def change(items: Items) -> tuple[Changes, list[Acl]]:
        deleted_entries = [entry for entry in entries if entry.key in items]
        changes: Changes = {entry.key: None for entry in deleted_entries}
        require_way_back(operations.registry, COLLECTION, items, changes)
        return changes, deleted_entries

    return await operations.edit_items(COLLECTION, change)


ROUTES = [
    get_root,
    get_readiness,
    get_cluster_id,
    get_server_version,
    get_deployment,
    list_contexts,
    delete_context,
    list_acls,
    create_acls,
    delete_acls,
]
