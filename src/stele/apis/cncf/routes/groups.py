"""Groups of schemas."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, delete, get, put
from litestar.openapi.datastructures import ResponseSpec

from stele.apis.cncf import models as api
from stele.apis.cncf import translate
from stele.apis.cncf.errors import ERROR_RESPONSES
from stele.apis.cncf.operations import InjectedOperations
from stele.apis.cncf.options import GroupPermission
from stele.apis.cncf.params import DELETE, READ, After, Group, Limit, build_page
from stele.apis.http.bodies import read_body
from stele.apis.http.openapi import openapi_body
from stele.errors import InvalidRequest

_GROUP = "/schemagroups/{group:str}"


@get("/schemagroups", **READ)
async def get_groups(operations: InjectedOperations, limit: Limit = None, after: After = "") -> Response[list[str]]:
    # GET /schemagroups
    """Return the ids of all groups, also of those the caller may not read: they are taken."""
    return build_page(await operations.list_group_ids(), limit, after, f"{operations.base}/schemagroups")


@get(_GROUP, **READ)
async def get_group(operations: InjectedOperations, group: Group) -> api.SchemaGroup:
    # GET /schemagroups/{group-id}
    """Return the attributes of a group; only its id to callers who may not read it."""
    return await operations.describe_group(group)


_CREATED = ResponseSpec(api.SchemaGroup, description="The group is new", generate_examples=False)


@put(
    _GROUP,
    operation_class=openapi_body(api.GroupAttributes),
    responses={**ERROR_RESPONSES, 201: _CREATED},
    status_code=200,
)
async def create_group(
    operations: InjectedOperations, request: Request[Any, Any, Any], group: Group
) -> Response[api.SchemaGroup]:
    # PUT /schemagroups/{group-id}
    """Create a group (201) or replace its attributes (200). `If-None-Match: *` only creates."""
    name = operations.authorize_group(group, GroupPermission.WRITE)
    attributes = await read_body(request, api.GroupAttributes) if await request.body() else api.GroupAttributes()
    if attributes.id not in ("", name):
        raise InvalidRequest(f"the path says the group is '{name}', the body '{attributes.id[:200]}'")
    update = translate.parse_group(attributes, operations.registry.parser.list_format_names())
    created = await operations.put_group(
        name, update, only_create=request.headers.get("if-none-match", "").strip() == "*"
    )
    location = operations.build_link("schemagroups", group)
    return Response(
        await operations.describe_group(group),
        status_code=201 if created else 200,
        headers={"Location": location} if created else {},
    )


@delete(_GROUP, **DELETE)
async def delete_group(operations: InjectedOperations, group: Group) -> None:
    # DELETE /schemagroups/{group-id}
    """Delete a group with its schemas."""
    await operations.delete_group(operations.authorize_group(group, GroupPermission.WRITE))


ROUTES = [get_groups, get_group, create_group, delete_group]
