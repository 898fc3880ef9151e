"""Groups of schemas: listing, describing, creating, deleting."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, delete, get, put
from litestar.openapi.datastructures import ResponseSpec

from stele.apis.cncf import entities as api
from stele.apis.cncf import translate
from stele.apis.cncf.access import Permission
from stele.apis.cncf.desk import AtDesk
from stele.apis.cncf.faults import ERRORS
from stele.apis.cncf.parameters import DELETE, READ, After, Group, Limit, page_of
from stele.apis.http.bodies import read_body
from stele.apis.http.openapi import openapi_body
from stele.errors import InvalidRequest

_GROUP = "/schemagroups/{group:str}"


@get("/schemagroups", **READ)
async def get_groups(desk: AtDesk, limit: Limit = None, after: After = "") -> Response[list[str]]:
    # GET /schemagroups
    """Ids of all groups, also of those the caller may not read: they are taken."""
    return page_of(await desk.groups(), limit, after, f"{desk.base}/schemagroups")


@get(_GROUP, **READ)
async def get_group(desk: AtDesk, group: Group) -> api.SchemaGroup:
    # GET /schemagroups/{group-id}
    """The attributes of a group; its id alone for callers who may not read it."""
    return await desk.describe(group)


_CREATED = ResponseSpec(api.SchemaGroup, description="The group is new", generate_examples=False)


@put(_GROUP, operation_class=openapi_body(api.GroupAttributes), responses={**ERRORS, 201: _CREATED}, status_code=200)
async def create_group(desk: AtDesk, request: Request[Any, Any, Any], group: Group) -> Response[api.SchemaGroup]:
    # PUT /schemagroups/{group-id}
    """Create a group (201), or give the one there is these attributes (200). `If-None-Match: *` only creates."""
    name = desk.allowed(group, Permission.WRITE)
    given = await read_body(request, api.GroupAttributes) if await request.body() else api.GroupAttributes()
    if given.id not in ("", name):
        raise InvalidRequest(f"the path says the group is '{name}', the body '{given.id[:200]}'")
    wish = translate.group_in(given, desk.registry.parser.list_format_names())
    created = await desk.put(name, wish, anew=request.headers.get("if-none-match", "").strip() == "*")
    location = desk.link("schemagroups", group)
    return Response(
        await desk.describe(group),
        status_code=201 if created else 200,
        headers={"Location": location} if created else {},
    )


@delete(_GROUP, **DELETE)
async def delete_group(desk: AtDesk, group: Group) -> None:
    # DELETE /schemagroups/{group-id}
    """Delete a group with all that is in it."""
    await desk.delete_group(desk.allowed(group, Permission.WRITE))


ROUTES = [get_groups, get_group, create_group, delete_group]
