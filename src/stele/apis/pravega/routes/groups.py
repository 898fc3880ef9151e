"""Groups, their policy and their history."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, delete, get, post, put

from stele.apis.http.bodies import read_body
from stele.apis.http.openapi import openapi_body
from stele.apis.pravega import access, translate
from stele.apis.pravega import models as api
from stele.apis.pravega.access import ResourcePermission
from stele.apis.pravega.operations import check_properties
from stele.apis.pravega.params import (
    DELETE,
    READ,
    STATUS_200,
    STATUS_201,
    Group,
    InjectedOperations,
    Limit,
    Token,
    decode_token,
    empty_response,
    encode_token,
    namespaced_paths,
    parse_limit,
)
from stele.core import queries
from stele.core.commands import ChangeSettings, CreateSubject, DeleteMode, DeleteSubject, SubjectDefaults
from stele.core.model import Numbering, SchemaFormat, SettingsLevel, SubjectKey
from stele.errors import InvalidName, SubjectNotFound

_GROUP = "/groups/{group:str}"


@get("/ping", status_code=200, media_type="text/plain")
async def ping() -> Response[bytes]:
    # GET /ping
    """Answer that the server is there."""
    return Response(b"", status_code=200, media_type="text/plain")


@get(namespaced_paths("/groups"), **READ)
async def list_groups(
    operations: InjectedOperations, token: Token = "", limit: Limit = "100"
) -> api.ListGroupsResponse:
    # GET /v1/groups
    """Return a page of the groups the caller may read; the last page is empty."""
    size = parse_limit(limit)
    state = await operations.registry.fresh_state()
    namespace = state.find_namespace(operations.namespace)
    after = decode_token(token) if token else None
    names = sorted(name for name in (namespace.subjects if namespace else {}) if after is None or name > after)
    groups: dict[str, api.GroupProperties] = {}
    for name in names:
        if len(groups) == size:
            break
        subject = state.find_subject(SubjectKey(operations.namespace, name))
        if subject is not None and operations.has_permission(access.group_resource(operations.namespace, name)):
            groups[name] = operations.build_group_properties(state, subject)
    return api.ListGroupsResponse(groups, encode_token(next(reversed(groups))) if groups else token)


@post(namespaced_paths("/groups"), operation_class=openapi_body(api.CreateGroupRequest), **STATUS_201)
async def create_group(operations: InjectedOperations, request: Request[Any, Any, Any]) -> Response[bytes]:
    # POST /v1/groups
    """Create a group."""
    body = await read_body(request, api.CreateGroupRequest)
    operations.require_permission(access.namespace_resource(operations.namespace), ResourcePermission.READ_UPDATE)
    if not body.group_name:
        raise InvalidName(body.group_name)
    given = body.group_properties
    check_properties(given.properties)
    schema_format = operations.read_format(given.serialization_format)
    policy = translate.parse_compatibility(given.compatibility)
    await operations.require_comparable(schema_format, policy)
    defaults = SubjectDefaults(
        Numbering.NEVER_REUSE,
        translate.comparison_scope(given.allow_multiple_types),
        policy,
        schema_format.format,
        custom_format=schema_format.custom_format,
    )
    stored = translate.compatibility_data(given.compatibility)
    await operations.execute(
        CreateSubject(
            SubjectKey(operations.namespace, body.group_name),
            defaults,
            labels=given.properties or None,
            dialect_data={translate.DIALECT: {"compatibility": stored}} if stored is not None else None,
        )
    )
    return empty_response(201)


@get(namespaced_paths(_GROUP), **READ)
async def get_group_properties(operations: InjectedOperations, group: Group) -> api.GroupProperties:
    # GET /v1/groups/{groupName}
    """Return the properties of a group."""
    state, subject = await operations.get_group(operations.authorize_read(group))
    return operations.build_group_properties(state, subject)


@delete(namespaced_paths(_GROUP), **DELETE)
async def delete_group(operations: InjectedOperations, group: Group) -> None:
    # DELETE /v1/groups/{groupName}
    """Delete a group with all its schemas; a later group of the same name starts anew."""
    key = operations.authorize_group(group, access.group_resource, ResourcePermission.READ_UPDATE)
    try:
        await operations.execute(DeleteSubject(key, DeleteMode.END_INCARNATION))
    except SubjectNotFound:
        return


@get(namespaced_paths(f"{_GROUP}/history"), **READ)
async def get_group_history(operations: InjectedOperations, group: Group) -> api.GroupHistory:
    # GET /v1/groups/{groupName}/history
    """Return all schemas of a group that are not deleted, with the policies they were added under."""
    state, subject = await operations.get_group(operations.authorize_read(group))
    return api.GroupHistory(
        [await operations.build_history_record(state, row) for row in queries.list_versions(subject)]
    )


@put(
    namespaced_paths(f"{_GROUP}/compatibility"),
    operation_class=openapi_body(api.UpdateCompatibilityRequest),
    **STATUS_200,
)
async def update_compatibility(
    operations: InjectedOperations, request: Request[Any, Any, Any], group: Group
) -> Response[bytes]:
    # PUT /v1/groups/{groupName}/compatibility
    """Set the policy of a group, if its policy is the expected one."""
    body = await read_body(request, api.UpdateCompatibilityRequest)
    key = operations.authorize_group(group, access.group_resource, ResourcePermission.READ_UPDATE)
    _, subject = await operations.get_group(key)
    policy = translate.parse_compatibility(body.compatibility)
    await operations.require_comparable(SchemaFormat(subject.format), policy)
    previous = body.previous_compatibility
    own = {translate.DIALECT: {"compatibility": translate.compatibility_data(body.compatibility)}}
    await operations.execute(
        ChangeSettings(
            SettingsLevel(*key),
            {"policy": policy, "dialect_data": own},
            expected=translate.parse_compatibility(previous) if previous is not None else None,
        )
    )
    return empty_response(200)


ROUTES = [
    ping,
    list_groups,
    create_group,
    get_group_properties,
    delete_group,
    get_group_history,
    update_compatibility,
]
