"""Groups: creating, listing, describing, deleting, their policy and their history."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, delete, get, post, put

from stele.apis.http.bodies import read_body
from stele.apis.http.openapi import openapi_body
from stele.apis.pravega import access, translate
from stele.apis.pravega import entities as api
from stele.apis.pravega.access import Permission
from stele.apis.pravega.desk import check_properties
from stele.apis.pravega.parameters import (
    ASK,
    CREATE,
    DELETE,
    READ,
    AtDesk,
    Group,
    Limit,
    Token,
    everywhere,
    limit_of,
    name_in,
    nothing,
    token_of,
)
from stele.core import queries
from stele.core.commands import ChangeSettings, CreateSubject, DeleteMode, DeleteSubject, SubjectDefaults
from stele.core.model import Numbering, SettingsLevel, SubjectKey
from stele.errors import InvalidName, SubjectNotFound

_GROUP = "/groups/{group:str}"


@get("/ping", status_code=200, media_type="text/plain")
async def ping() -> Response[bytes]:
    # GET /ping
    """Whether anybody is there."""
    return Response(b"", status_code=200, media_type="text/plain")


@get(everywhere("/groups"), **READ)
async def list_groups(desk: AtDesk, token: Token = "", limit: Limit = "100") -> api.ListGroupsResponse:
    # GET /v1/groups
    """A page of the groups the caller may read; one without groups is the last."""
    size = limit_of(limit)
    state = await desk.registry.fresh_state()
    space = state.find_namespace(desk.namespace)
    after = name_in(token) if token else None
    names = sorted(name for name in (space.subjects if space else {}) if after is None or name > after)
    groups: dict[str, api.GroupProperties] = {}
    for name in names:
        if len(groups) == size:
            break
        subject = state.find_subject(SubjectKey(desk.namespace, name))
        if subject is not None and desk.may(access.group_resource(desk.namespace, name)):
            groups[name] = desk.properties_out(state, subject)
    return api.ListGroupsResponse(groups, token_of(next(reversed(groups))) if groups else token)


@post(everywhere("/groups"), operation_class=openapi_body(api.CreateGroupRequest), **CREATE)
async def create_group(desk: AtDesk, request: Request[Any, Any, Any]) -> Response[bytes]:
    # POST /v1/groups
    """Create a group."""
    body = await read_body(request, api.CreateGroupRequest)
    desk.require(access.namespace_resource(desk.namespace), Permission.READ_UPDATE)
    if not body.group_name:
        raise InvalidName(body.group_name)
    given = body.group_properties
    check_properties(given.properties)
    language = desk.language(given.serialization_format)
    policy = translate.compatibility_in(given.compatibility)
    await desk.require_comparable(language, policy)
    defaults = SubjectDefaults(
        Numbering.NEVER_REUSE,
        translate.scope_in(given.allow_multiple_types),
        policy,
        language.format,
        custom_format=language.custom_format,
    )
    kept = translate.kept(given.compatibility)
    await desk.execute(
        CreateSubject(
            SubjectKey(desk.namespace, body.group_name),
            defaults,
            labels=given.properties or None,
            dialect_data={translate.DIALECT: {"compatibility": kept}} if kept is not None else None,
        )
    )
    return nothing(201)


@get(everywhere(_GROUP), **READ)
async def get_group_properties(desk: AtDesk, group: Group) -> api.GroupProperties:
    # GET /v1/groups/{groupName}
    """What describes a group."""
    state, subject = await desk.group(desk.readable(group))
    return desk.properties_out(state, subject)


@delete(everywhere(_GROUP), **DELETE)
async def delete_group(desk: AtDesk, group: Group) -> None:
    # DELETE /v1/groups/{groupName}
    """Delete a group with all that is in it; one of the same name starts anew."""
    key = desk.allowed(group, access.group_resource, Permission.READ_UPDATE)
    try:
        await desk.execute(DeleteSubject(key, DeleteMode.END_INCARNATION))
    except SubjectNotFound:
        return


@get(everywhere(f"{_GROUP}/history"), **READ)
async def get_group_history(desk: AtDesk, group: Group) -> api.GroupHistory:
    # GET /v1/groups/{groupName}/history
    """All schemas of a group that are not deleted, with the policies they were added under."""
    state, subject = await desk.group(desk.readable(group))
    return api.GroupHistory([await desk.history_record(state, row) for row in queries.list_versions(subject)])


@put(everywhere(f"{_GROUP}/compatibility"), operation_class=openapi_body(api.UpdateCompatibilityRequest), **ASK)
async def update_compatibility(desk: AtDesk, request: Request[Any, Any, Any], group: Group) -> Response[bytes]:
    # PUT /v1/groups/{groupName}/compatibility
    """Set the policy of a group, if it is the one expected."""
    body = await read_body(request, api.UpdateCompatibilityRequest)
    key = desk.allowed(group, access.group_resource, Permission.READ_UPDATE)
    _, subject = await desk.group(key)
    policy = translate.compatibility_in(body.compatibility)
    await desk.require_comparable(translate.Language(subject.format), policy)
    previous = body.previous_compatibility
    own = {translate.DIALECT: {"compatibility": translate.kept(body.compatibility)}}
    await desk.execute(
        ChangeSettings(
            SettingsLevel(*key),
            {"policy": policy, "dialect_data": own},
            expected=translate.compatibility_in(previous) if previous is not None else None,
        )
    )
    return nothing(200)


ROUTES = [
    ping,
    list_groups,
    create_group,
    get_group_properties,
    delete_group,
    get_group_history,
    update_compatibility,
]
