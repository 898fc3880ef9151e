"""Schemas of a group, and the groups a schema was added to."""

from __future__ import annotations

from typing import Any

from litestar import Request, delete, get, post

from stele.apis.http.bodies import read_body
from stele.apis.http.openapi import openapi_body
from stele.apis.http.paths import decode_segment
from stele.apis.pravega import access, translate
from stele.apis.pravega import models as api
from stele.apis.pravega.access import ResourcePermission
from stele.apis.pravega.operations import EQUALITY_DIGEST, Operations
from stele.apis.pravega.params import (
    DELETE,
    READ,
    STATUS_200,
    STATUS_201,
    FormatName,
    Group,
    InjectedOperations,
    OfType,
    SchemaId,
    TypeName,
    VersionNumber,
    namespaced_paths,
    parse_number,
)
from stele.core import queries
from stele.core.commands import DeleteMode, DeleteVersion, Equality, RegisterSchema, Registration, SubjectDefaults
from stele.core.model import NO_ATTACHMENTS, SchemaFormat, SubjectKey, Version
from stele.errors import AlreadySoftDeleted, ContentNotFound

_SCHEMAS = "/groups/{group:str}/schemas"
_BY_ID = f"{_SCHEMAS}/schema/{{schema_id:str}}"
_BY_VERSION = f"{_SCHEMAS}/format/{{format_name:str}}/type/{{type_name:str}}/versions/{{version:str}}"
_SCHEMA_BODY = openapi_body(api.SchemaInfo)
_EXISTING = SubjectDefaults(create=False)


@get(namespaced_paths(_SCHEMAS), **READ)
async def get_schemas(operations: InjectedOperations, group: Group, of_type: OfType = None) -> api.SchemaVersionsList:
    # GET /v1/groups/{groupName}/schemas
    """Return the latest schema of every type."""
    state, subject = await operations.get_group(operations.authorize_read(group))
    latest = {translate.type_name_of(row): row for row in queries.list_versions(subject)}
    rows = [row for name, row in latest.items() if of_type in (None, name)]
    return await operations.build_versions_list(state, sorted(rows, key=lambda row: row.version_number))


@post(namespaced_paths(_SCHEMAS), operation_class=_SCHEMA_BODY, **STATUS_201)
async def add_schema(operations: InjectedOperations, request: Request[Any, Any, Any], group: Group) -> api.VersionInfo:
    # POST /v1/groups/{groupName}/schemas
    """Add a schema, or find it if the group has it."""
    body = await read_body(request, api.SchemaInfo)
    key = operations.authorize_group(group, access.schemas_resource, ResourcePermission.READ_UPDATE)
    state, subject = await operations.get_group(key)
    document = await operations.parse_document(state, body, subject)
    if operations.find_same_schema(state, key, document) is None:
        schema_format = SchemaFormat(document.format, document.custom_format)
        await operations.require_comparable(schema_format, queries.policy_for(state, key))
    outcome = await operations.execute(
        RegisterSchema(
            key,
            document,
            equality=Equality.DIGEST,
            equality_digest=EQUALITY_DIGEST,
            defaults=_EXISTING,
            labels=body.properties or None,
        )
    )
    assert isinstance(outcome, Registration)
    return translate.build_version_info(
        queries.get_version(operations.registry.state, key, outcome.version_number, queries.ACTIVE_OR_SOFT_DELETED)
    )


@get(namespaced_paths(f"{_SCHEMAS}/versions"), **READ)
async def get_schema_versions(
    operations: InjectedOperations, group: Group, of_type: OfType = None
) -> api.SchemaVersionsList:
    # GET /v1/groups/{groupName}/schemas/versions
    """Return all schemas that are not deleted."""
    state, subject = await operations.get_group(operations.authorize_read(group))
    rows = [row for row in queries.list_versions(subject) if of_type in (None, translate.type_name_of(row))]
    return await operations.build_versions_list(state, rows)


@post(namespaced_paths(f"{_SCHEMAS}/versions/find"), operation_class=_SCHEMA_BODY, **STATUS_200)
async def get_schema_version(
    operations: InjectedOperations, request: Request[Any, Any, Any], group: Group
) -> api.VersionInfo:
    # POST /v1/groups/{groupName}/schemas/versions/find
    """Return the version that a schema is in a group."""
    body = await read_body(request, api.SchemaInfo)
    key = operations.authorize_read(group)
    state, _ = await operations.get_group(key)
    found = operations.find_same_schema(state, key, await operations.parse_document(state, body, name=key.name))
    if found is None:
        raise ContentNotFound
    return translate.build_version_info(found)


@post(
    namespaced_paths(f"{_SCHEMAS}/versions/validate"), operation_class=openapi_body(api.ValidateRequest), **STATUS_200
)
async def validate_schema(operations: InjectedOperations, request: Request[Any, Any, Any], group: Group) -> api.Valid:
    # POST /v1/groups/{groupName}/schemas/versions/validate
    """Return whether a schema could be added under the policy of the group or another one."""
    body = await read_body(request, api.ValidateRequest)
    key = operations.authorize_read(group)
    state, subject = await operations.get_group(key)
    document = await operations.parse_document(state, body.schema_info, subject)
    if body.compatibility is None:
        if operations.find_same_schema(state, key, document) is not None:
            return api.Valid(True)
        policy = queries.policy_for(state, key)
    else:
        policy = translate.parse_compatibility(body.compatibility)
    await operations.require_comparable(SchemaFormat(document.format, document.custom_format), policy)
    findings, _ = await operations.registry.find_incompatibilities(key, document, NO_ATTACHMENTS, policy=policy)
    return api.Valid(not findings)


@post(namespaced_paths(f"{_SCHEMAS}/versions/canRead"), operation_class=_SCHEMA_BODY, **STATUS_200)
async def can_read_using(operations: InjectedOperations, request: Request[Any, Any, Any], group: Group) -> api.CanRead:
    # POST /v1/groups/{groupName}/schemas/versions/canRead
    """Return whether a schema can read the data of a group, as far as its policy requires."""
    body = await read_body(request, api.SchemaInfo)
    key = operations.authorize_read(group)
    state, subject = await operations.get_group(key)
    document = await operations.parse_document(state, body, subject)
    return api.CanRead(await operations.can_read(subject, document, queries.policy_for(state, key)))


@get(namespaced_paths(_BY_ID), **READ)
async def get_schema_for_id(operations: InjectedOperations, group: Group, schema_id: SchemaId) -> api.SchemaInfo:
    # GET /v1/groups/{groupName}/schemas/schema/{schemaId}
    """Return the schema with an id, also a deleted one."""
    return await operations.build_schema_info(
        *await operations.get_version_by_id(operations.authorize_read(group), parse_number(schema_id))
    )


@delete(namespaced_paths(_BY_ID), **DELETE)
async def delete_schema_for_id(operations: InjectedOperations, group: Group, schema_id: SchemaId) -> None:
    # DELETE /v1/groups/{groupName}/schemas/schema/{schemaId}
    """Delete a schema; it stays readable for data that have its id, and counts for nothing else."""
    key = operations.authorize_group(group, access.group_resource, ResourcePermission.READ_UPDATE)
    await _delete_version(operations, key, (await operations.get_version_by_id(key, parse_number(schema_id)))[1])


@get(namespaced_paths(_BY_VERSION), **READ)
async def get_schema_from_version(
    operations: InjectedOperations, group: Group, format_name: FormatName, type_name: TypeName, version: VersionNumber
) -> api.SchemaInfo:
    # GET /v1/groups/{groupName}/schemas/format/{serializationFormat}/type/{type}/versions/{version}
    """Return the schema with a version, also a deleted one."""
    place = decode_segment(format_name), decode_segment(type_name), parse_number(version)
    return await operations.build_schema_info(
        *await operations.get_version_by_number(operations.authorize_read(group), *place)
    )


@delete(namespaced_paths(_BY_VERSION), **DELETE)
async def delete_schema_version(
    operations: InjectedOperations, group: Group, format_name: FormatName, type_name: TypeName, version: VersionNumber
) -> None:
    # DELETE /v1/groups/{groupName}/schemas/format/{serializationFormat}/type/{type}/versions/{version}
    """Delete a schema by its version, like `delete_schema_for_id`."""
    key = operations.authorize_group(group, access.schemas_resource, ResourcePermission.READ_UPDATE)
    place = decode_segment(format_name), decode_segment(type_name), parse_number(version)
    await _delete_version(operations, key, (await operations.get_version_by_number(key, *place))[1])


async def _delete_version(operations: Operations, key: SubjectKey, version: Version) -> None:
    try:
        await operations.execute(DeleteVersion(key, version.version_number, DeleteMode.SOFT))
    except AlreadySoftDeleted:
        return


@post(namespaced_paths("/schemas/addedTo"), operation_class=_SCHEMA_BODY, **STATUS_200)
async def get_schema_references(operations: InjectedOperations, request: Request[Any, Any, Any]) -> api.AddedTo:
    # POST /v1/schemas/addedTo
    """Return every group of the namespace that has a schema."""
    body = await read_body(request, api.SchemaInfo)
    operations.require_permission(access.namespace_resource(operations.namespace))
    state = await operations.registry.fresh_state()
    document = await operations.parse_document(state, body)
    return api.AddedTo(
        {
            row.subject.key.name: translate.build_version_info(row)
            for row in operations.find_same_in_groups(state, document)
        }
    )


ROUTES = [
    get_schemas,
    add_schema,
    get_schema_versions,
    get_schema_version,
    validate_schema,
    can_read_using,
    get_schema_for_id,
    delete_schema_for_id,
    get_schema_from_version,
    delete_schema_version,
    get_schema_references,
]
