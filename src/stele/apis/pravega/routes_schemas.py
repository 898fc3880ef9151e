"""Schemas of a group: adding, reading, finding, trying, deleting; and where a schema was added to."""

from __future__ import annotations

from typing import Any

from litestar import Request, delete, get, post

from stele.apis.http.bodies import read_body
from stele.apis.http.openapi import openapi_body
from stele.apis.http.paths import decode_segment
from stele.apis.pravega import access, translate
from stele.apis.pravega import entities as api
from stele.apis.pravega.access import Permission
from stele.apis.pravega.desk import EQUAL_BY, Desk
from stele.apis.pravega.parameters import (
    ASK,
    CREATE,
    DELETE,
    READ,
    AtDesk,
    FormatName,
    Group,
    OfType,
    SchemaId,
    TypeName,
    VersionNumber,
    everywhere,
    number_of,
)
from stele.apis.pravega.reading import can_read
from stele.core import queries
from stele.core.commands import DeleteMode, DeleteVersion, Equality, RegisterSchema, Registration, SubjectDefaults
from stele.core.model import NO_ATTACHMENTS, SubjectKey, Version
from stele.errors import AlreadySoftDeleted, ContentNotFound

_SCHEMAS = "/groups/{group:str}/schemas"
_BY_ID = f"{_SCHEMAS}/schema/{{schema_id:str}}"
_BY_VERSION = f"{_SCHEMAS}/format/{{format_name:str}}/type/{{type_name:str}}/versions/{{version:str}}"
_SCHEMA_BODY = openapi_body(api.SchemaInfo)
_EXISTING = SubjectDefaults(create=False)


@get(everywhere(_SCHEMAS), **READ)
async def get_schemas(desk: AtDesk, group: Group, of_type: OfType = None) -> api.SchemaVersionsList:
    # GET /v1/groups/{groupName}/schemas
    """The latest schema of every type."""
    state, subject = await desk.group(desk.readable(group))
    latest = {translate.type_out(row): row for row in queries.list_versions(subject)}
    rows = [row for name, row in latest.items() if of_type in (None, name)]
    return await desk.with_versions(state, sorted(rows, key=lambda row: row.version_number))


@post(everywhere(_SCHEMAS), operation_class=_SCHEMA_BODY, **CREATE)
async def add_schema(desk: AtDesk, request: Request[Any, Any, Any], group: Group) -> api.VersionInfo:
    # POST /v1/groups/{groupName}/schemas
    """Add a schema, or find that it is there already."""
    body = await read_body(request, api.SchemaInfo)
    key = desk.allowed(group, access.schemas_resource, Permission.READ_UPDATE)
    state, subject = await desk.group(key)
    document = await desk.draft(state, body, subject)
    if desk.same(state, key, document) is None:
        language = translate.Language(document.format, document.custom_format)
        await desk.require_comparable(language, queries.policy_for(state, key))
    outcome = await desk.execute(
        RegisterSchema(
            key,
            document,
            equality=Equality.DIGEST,
            equality_digest=EQUAL_BY,
            defaults=_EXISTING,
            labels=body.properties or None,
        )
    )
    assert isinstance(outcome, Registration)
    return translate.version_out(
        queries.get_version(desk.registry.state, key, outcome.version_number, queries.ACTIVE_OR_SOFT_DELETED)
    )


@get(everywhere(f"{_SCHEMAS}/versions"), **READ)
async def get_schema_versions(desk: AtDesk, group: Group, of_type: OfType = None) -> api.SchemaVersionsList:
    # GET /v1/groups/{groupName}/schemas/versions
    """All schemas that are not deleted."""
    state, subject = await desk.group(desk.readable(group))
    rows = [row for row in queries.list_versions(subject) if of_type in (None, translate.type_out(row))]
    return await desk.with_versions(state, rows)


@post(everywhere(f"{_SCHEMAS}/versions/find"), operation_class=_SCHEMA_BODY, **ASK)
async def get_schema_version(desk: AtDesk, request: Request[Any, Any, Any], group: Group) -> api.VersionInfo:
    # POST /v1/groups/{groupName}/schemas/versions/find
    """Where a schema stands in a group."""
    body = await read_body(request, api.SchemaInfo)
    key = desk.readable(group)
    state, _ = await desk.group(key)
    found = desk.same(state, key, await desk.draft(state, body, name=key.name))
    if found is None:
        raise ContentNotFound
    return translate.version_out(found)


@post(everywhere(f"{_SCHEMAS}/versions/validate"), operation_class=openapi_body(api.ValidateRequest), **ASK)
async def validate(desk: AtDesk, request: Request[Any, Any, Any], group: Group) -> api.Valid:
    # POST /v1/groups/{groupName}/schemas/versions/validate
    """Whether a schema could be added, under the policy of the group or another one."""
    body = await read_body(request, api.ValidateRequest)
    key = desk.readable(group)
    state, subject = await desk.group(key)
    document = await desk.draft(state, body.schema_info, subject)
    if body.compatibility is None:
        if desk.same(state, key, document) is not None:
            return api.Valid(True)
        policy = queries.policy_for(state, key)
    else:
        policy = translate.compatibility_in(body.compatibility)
    await desk.require_comparable(translate.Language(document.format, document.custom_format), policy)
    findings, _ = await desk.registry.find_incompatibilities(key, document, NO_ATTACHMENTS, policy=policy)
    return api.Valid(not findings)


@post(everywhere(f"{_SCHEMAS}/versions/canRead"), operation_class=_SCHEMA_BODY, **ASK)
async def can_read_using(desk: AtDesk, request: Request[Any, Any, Any], group: Group) -> api.CanRead:
    # POST /v1/groups/{groupName}/schemas/versions/canRead
    """Whether a schema can read the data of a group, as far as its policy asks."""
    body = await read_body(request, api.SchemaInfo)
    key = desk.readable(group)
    state, subject = await desk.group(key)
    document = await desk.draft(state, body, subject)
    return api.CanRead(await can_read(desk.registry, subject, document, queries.policy_for(state, key)))


@get(everywhere(_BY_ID), **READ)
async def get_schema_for_id(desk: AtDesk, group: Group, schema_id: SchemaId) -> api.SchemaInfo:
    # GET /v1/groups/{groupName}/schemas/schema/{schemaId}
    """A schema by its id, a deleted one too."""
    return await desk.schema_out(*await desk.by_id(desk.readable(group), number_of(schema_id)))


@delete(everywhere(_BY_ID), **DELETE)
async def delete_schema_for_id(desk: AtDesk, group: Group, schema_id: SchemaId) -> None:
    # DELETE /v1/groups/{groupName}/schemas/schema/{schemaId}
    """Delete a schema: it stays readable for data that have its id, and counts for nothing else."""
    key = desk.allowed(group, access.group_resource, Permission.READ_UPDATE)
    await _deleted(desk, key, (await desk.by_id(key, number_of(schema_id)))[1])


@get(everywhere(_BY_VERSION), **READ)
async def get_schema_from_version(
    desk: AtDesk, group: Group, format_name: FormatName, type_name: TypeName, version: VersionNumber
) -> api.SchemaInfo:
    # GET /v1/groups/{groupName}/schemas/format/{serializationFormat}/type/{type}/versions/{version}
    """A schema by its version, a deleted one too."""
    place = decode_segment(format_name), decode_segment(type_name), number_of(version)
    return await desk.schema_out(*await desk.by_version(desk.readable(group), *place))


@delete(everywhere(_BY_VERSION), **DELETE)
async def delete_schema_version(
    desk: AtDesk, group: Group, format_name: FormatName, type_name: TypeName, version: VersionNumber
) -> None:
    # DELETE /v1/groups/{groupName}/schemas/format/{serializationFormat}/type/{type}/versions/{version}
    """As `delete_schema_for_id`, by version."""
    key = desk.allowed(group, access.schemas_resource, Permission.READ_UPDATE)
    place = decode_segment(format_name), decode_segment(type_name), number_of(version)
    await _deleted(desk, key, (await desk.by_version(key, *place))[1])


async def _deleted(desk: Desk, key: SubjectKey, version: Version) -> None:
    try:
        await desk.execute(DeleteVersion(key, version.version_number, DeleteMode.SOFT))
    except AlreadySoftDeleted:
        return


@post(everywhere("/schemas/addedTo"), operation_class=_SCHEMA_BODY, **ASK)
async def get_schema_references(desk: AtDesk, request: Request[Any, Any, Any]) -> api.AddedTo:
    # POST /v1/schemas/addedTo
    """Every group of the namespace that has a schema."""
    body = await read_body(request, api.SchemaInfo)
    desk.require(access.namespace_resource(desk.namespace))
    state = await desk.registry.fresh_state()
    document = await desk.draft(state, body)
    return api.AddedTo(
        {row.subject.key.name: translate.version_out(row) for row in desk.same_everywhere(state, document)}
    )


ROUTES = [
    get_schemas,
    add_schema,
    get_schema_versions,
    get_schema_version,
    validate,
    can_read_using,
    get_schema_for_id,
    delete_schema_for_id,
    get_schema_from_version,
    delete_schema_version,
    get_schema_references,
]
