"""Groups, and the collections of groups and of schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from litestar import Request, Response, delete, get, patch, post, put

from stele.apis.http.access import Place, access
from stele.apis.http.requests import decode_segment
from stele.apis.xregistry.attributes import GROUP_ATTRIBUTES, parse_value, require_epoch, require_same_id
from stele.apis.xregistry.bodies import Members, read_map, read_members, read_object, read_optional_map
from stele.apis.xregistry.errors import RegistryError
from stele.apis.xregistry.operations import InjectedOperations
from stele.apis.xregistry.params import DELETE, DETAILS, READ, WRITE, Group, Level
from stele.apis.xregistry.responses import json_response
from stele.apis.xregistry.updates import RequestUpdate
from stele.core.access import Operation

_GROUP = "/schemagroups/{group:str}"
_SCHEMAS = f"{_GROUP}/schemas"


def read_group_id(segment: str) -> str:
    """Return the id of a group in a path. Raises `RegistryError` (`bad_details`)."""
    identifier = decode_segment(segment)
    if identifier.endswith(DETAILS):
        raise RegistryError("bad_details")
    return identifier


def list_query(request: Request[Any, Any, Any]) -> list[tuple[str, str]]:
    """Return the parameters of a request, in their order."""
    return list(request.query_params.multi_items())


@get("/schemagroups", **READ, opt=access(Operation.LIST, Place.LIST))
async def get_groups(operations: InjectedOperations, request: Request[Any, Any, Any]) -> Response[Any]:
    # GET /schemagroups
    """Return the groups by id."""
    operations.require_whole()
    groups = await operations.describe_groups()
    page, headers = operations.build_page(groups, Level.GROUP, "/schemagroups", list_query(request))
    return json_response(page, headers=headers)


@post("/schemagroups", **WRITE, opt=access(Operation.REGISTER, Place.INSIDE))
async def post_groups(operations: InjectedOperations, request: Request[Any, Any, Any]) -> Response[Any]:
    # POST /schemagroups
    """Create or replace groups by id."""
    return await _change_groups(operations, request, patch=False)


@patch("/schemagroups", **WRITE, opt=access(Operation.REGISTER, Place.INSIDE))
async def patch_groups(operations: InjectedOperations, request: Request[Any, Any, Any]) -> Response[Any]:
    # PATCH /schemagroups
    """Create or change groups by id."""
    return await _change_groups(operations, request, patch=True)


async def _change_groups(
    operations: InjectedOperations, request: Request[Any, Any, Any], *, patch: bool
) -> Response[Any]:
    operations.require_no_default()
    operations.require_whole()
    body = await read_object(request)
    groups = {name: read_members(raw, name, f"/schemagroups/{name}") for name, raw in body.items()}
    written = await operations.write(
        lambda update: update.put_groups(groups, patch=patch), Level.GROUP, is_collection=True
    )
    entities = await operations.describe_groups(written)
    return json_response(dict(operations.sort_collection(entities, Level.GROUP)))


@delete("/schemagroups", **DELETE, opt=access(Operation.DELETE, Place.INSIDE))
async def delete_groups(operations: InjectedOperations, request: Request[Any, Any, Any]) -> None:
    # DELETE /schemagroups
    """Delete the groups in the request with their schemas; without a body, all groups."""
    _require_no_epoch(operations)
    body = await read_optional_map(request)

    def change(update: RequestUpdate) -> None:
        names = (
            body
            if body is not None
            else [
                update.loader.load_group(each).id
                for each in update.loader.state.namespaces.values()
                if update.loader.has_group(each) and operations.registry.access.can_list_namespace(each)
            ]
        )
        for name in names:
            group = update.find_group(name)
            if group is None:
                continue
            if body is not None:
                check_deleted(update, body[name], "schemagroup", name, group.epoch, group.xid)
            update.delete_group(group)

    await operations.write(change)


def _require_no_epoch(operations: InjectedOperations) -> None:
    operations.require_no_default()
    if operations.flags.epoch is not None:
        raise RegistryError("bad_flag", flag="epoch", detail="Give the epochs of several entities in the body.")


def check_deleted(update: RequestUpdate, body: Members, singular: str, name: str, epoch: int, xid: str) -> None:
    """Raise `RegistryError` unless id and epoch of an entity to delete match those in the request."""
    if f"{singular}id" in body:
        require_same_id(singular, parse_value(body[f"{singular}id"]), name, xid)
    update.check_epoch(body, epoch, xid)


@get(_GROUP, **READ, opt=access(Operation.LIST, Place.INSIDE))
async def get_group(operations: InjectedOperations, group: Group) -> Response[Any]:
    # GET /schemagroups/{group}
    """Return a group."""
    return json_response(await operations.describe_group(read_group_id(group)))


@put(_GROUP, **WRITE, opt=access(Operation.REGISTER))
async def put_group(operations: InjectedOperations, request: Request[Any, Any, Any], group: Group) -> Response[Any]:
    # PUT /schemagroups/{group}
    """Create or replace a group, and create or replace the schemas in the request."""
    return await _change_group(operations, request, group, patch=False)


@patch(_GROUP, **WRITE, opt=access(Operation.REGISTER))
async def patch_group(operations: InjectedOperations, request: Request[Any, Any, Any], group: Group) -> Response[Any]:
    # PATCH /schemagroups/{group}
    """Create or change a group, and create or change the schemas in the request."""
    return await _change_group(operations, request, group, patch=True)


async def _change_group(
    operations: InjectedOperations, request: Request[Any, Any, Any], segment: str, *, patch: bool
) -> Response[Any]:
    operations.require_no_default()
    identifier = read_group_id(segment)
    body = await read_object(request)
    group = await operations.write(
        lambda update: update.put_group(identifier, body, patch=patch, is_root=True), Level.GROUP
    )
    answer = await operations.describe_group(identifier)
    if not group.is_new:
        return json_response(answer)
    location = (await operations.open_view())[1].link(group.xid)
    return json_response(answer, 201, {"Location": location})


@post(_GROUP, **WRITE, opt=access(Operation.REGISTER, Place.INSIDE))
async def post_schemas_by_type(
    operations: InjectedOperations, request: Request[Any, Any, Any], group: Group
) -> Response[Any]:
    # POST /schemagroups/{group}
    """Create or replace the schemas in the request; the group itself stays as it is."""
    operations.require_no_default()
    identifier = read_group_id(group)
    body = await read_object(request)
    for name in body:
        if name != "schemas":
            is_known = name in GROUP_ATTRIBUTES or name == "$schema"
            if is_known:
                raise RegistryError("resources_only", f"/schemagroups/{identifier}", name=name)
            raise RegistryError("unknown_resource_type", f"/schemagroups/{identifier}", name=name, group="schemagroups")
    schemas = read_map(body.get("schemas"), "schemas", f"/schemagroups/{identifier}")
    written = await operations.write(
        lambda update: _put_schemas(update, identifier, schemas, patch=False), Level.SCHEMA, owner=Level.GROUP
    )
    return json_response({"schemas": dict(await operations.describe_schemas(identifier, written))})


def _put_schemas(update: RequestUpdate, group: str, schemas: Mapping[str, Members], *, patch: bool) -> list[str]:
    if not schemas:
        update.get_group(group)
    return update.put_schemas(group, schemas, patch=patch)


@delete(_GROUP, **DELETE, opt=access(Operation.DELETE))
async def delete_group(operations: InjectedOperations, group: Group) -> None:
    # DELETE /schemagroups/{group}
    """Delete a group with its schemas."""
    operations.require_no_default()
    identifier = read_group_id(group)

    def change(update: RequestUpdate) -> None:
        entity = update.get_group(identifier)
        require_epoch(operations.flags.epoch, entity.epoch, entity.xid)
        update.delete_group(entity)

    await operations.write(change)


# --- schemas


@get(_SCHEMAS, **READ, opt=access(Operation.READ, Place.INSIDE))
async def get_schemas(operations: InjectedOperations, request: Request[Any, Any, Any], group: Group) -> Response[Any]:
    # GET /schemagroups/{group}/schemas
    """Return the schemas of a group by id."""
    operations.require_whole()
    identifier = read_group_id(group)
    schemas = await operations.describe_schemas(identifier)
    path = f"/schemagroups/{identifier}/schemas"
    page, headers = operations.build_page(schemas, Level.SCHEMA, path, list_query(request))
    return json_response(page, headers=headers)


@post(_SCHEMAS, **WRITE, opt=access(Operation.REGISTER, Place.INSIDE))
async def post_schemas(operations: InjectedOperations, request: Request[Any, Any, Any], group: Group) -> Response[Any]:
    # POST /schemagroups/{group}/schemas
    """Create or replace schemas of a group by id."""
    return await _change_schemas(operations, request, group, patch=False)


@patch(_SCHEMAS, **WRITE, opt=access(Operation.REGISTER, Place.INSIDE))
async def patch_schemas(operations: InjectedOperations, request: Request[Any, Any, Any], group: Group) -> Response[Any]:
    # PATCH /schemagroups/{group}/schemas
    """Create or change schemas of a group by id."""
    return await _change_schemas(operations, request, group, patch=True)


async def _change_schemas(
    operations: InjectedOperations, request: Request[Any, Any, Any], segment: str, *, patch: bool
) -> Response[Any]:
    operations.require_no_default()
    identifier = read_group_id(segment)
    body = await read_object(request)
    path = f"/schemagroups/{identifier}/schemas"
    schemas = {name: read_members(raw, name, f"{path}/{name}") for name, raw in body.items()}
    written = await operations.write(
        lambda update: _put_schemas(update, identifier, schemas, patch=patch), Level.SCHEMA, is_collection=True
    )
    entities = await operations.describe_schemas(identifier, written)
    return json_response(dict(operations.sort_collection(entities, Level.SCHEMA)))


@delete(_SCHEMAS, **DELETE, opt=access(Operation.DELETE, Place.INSIDE))
async def delete_schemas(operations: InjectedOperations, request: Request[Any, Any, Any], group: Group) -> None:
    # DELETE /schemagroups/{group}/schemas
    """Delete the schemas in the request with their versions; without a body, all schemas of the group."""
    _require_no_epoch(operations)
    identifier = read_group_id(group)
    body = await read_optional_map(request)

    def change(update: RequestUpdate) -> None:
        entity = update.get_group(identifier)
        if body is None:
            update.delete_schemas(entity)
            return
        for name, members in body.items():
            schema = update.find_schema(identifier, name)
            if schema is None or (schema.is_read_only and "readonly" in operations.flags.ignores):
                continue
            meta = _read_meta(members, schema.xid)
            if "epoch" in members and "epoch" not in meta:
                raise RegistryError("misplaced_epoch", schema.xid)
            named = {**meta, **{k: v for k, v in members.items() if k == "schemaid"}}
            check_deleted(update, named, "schema", name, schema.epoch, schema.xid)
            update.delete_schema(schema)

    await operations.write(change)


def _read_meta(members: Members, xid: str) -> Members:
    """Return the meta entity in a request that deletes a schema; {} if it is no object."""
    try:
        return read_members(members.get("meta", b"{}"), "meta", xid)
    except RegistryError:
        return {}


ROUTES = [
    get_groups,
    post_groups,
    patch_groups,
    delete_groups,
    get_group,
    put_group,
    patch_group,
    post_schemas_by_type,
    delete_group,
    get_schemas,
    post_schemas,
    patch_schemas,
    delete_schemas,
]
