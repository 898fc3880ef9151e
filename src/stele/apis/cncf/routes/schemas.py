"""Groups of schemas, their schemas and versions, and the lookup by version URI."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, delete, get, post, put
from litestar.openapi.datastructures import ResponseSpec

from stele.apis.cncf import models as api
from stele.apis.cncf import responses, translate
from stele.apis.cncf.errors import ERROR_RESPONSES
from stele.apis.cncf.operations import InjectedOperations, parse_place
from stele.apis.cncf.params import (
    DELETE,
    DOCUMENT,
    READ,
    STATUS_200,
    After,
    AnyDocument,
    Group,
    Limit,
    SchemaName,
    Uri,
    VersionNumber,
    WithAttributes,
    build_page,
    read_document,
)
from stele.apis.cncf.translate import decode_id, format_uid, parse_version_number
from stele.apis.http.access import Place, access
from stele.apis.http.application import openapi_body
from stele.apis.http.requests import read_body
from stele.core.access import Operation
from stele.core.model import Version
from stele.core.state import State
from stele.errors import InvalidRequest

_GROUP = "/schemagroups/{group:str}"


@get("/schemagroups", **READ, opt=access(Operation.LIST, Place.LIST))
async def get_groups(operations: InjectedOperations, limit: Limit = None, after: After = "") -> Response[list[str]]:
    # GET /schemagroups
    """Return the ids of all groups, including groups that the caller may not read, because their ids are taken."""
    return build_page(await operations.list_group_ids(), limit, after, f"{operations.base}/schemagroups")


@get(_GROUP, **READ, opt=access(Operation.LIST, Place.INSIDE))
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
    opt=access(Operation.REGISTER),
)
async def create_group(
    operations: InjectedOperations, request: Request[Any, Any, Any], group: Group
) -> Response[api.SchemaGroup]:
    # PUT /schemagroups/{group-id}
    """Create a group (201) or replace its attributes (200). `If-None-Match: *` only creates."""
    name = decode_id(group)
    attributes = await read_body(request, api.GroupAttributes) if await request.body() else api.GroupAttributes()
    if attributes.id not in ("", name):
        raise InvalidRequest(f"the path names the group '{name}', the body '{attributes.id[:200]}'")
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


@delete(_GROUP, **DELETE, opt=access(Operation.DELETE))
async def delete_group(operations: InjectedOperations, group: Group) -> None:
    # DELETE /schemagroups/{group-id}
    """Delete a group with its schemas."""
    await operations.delete_group(decode_id(group))


_SCHEMAS = "/schemagroups/{group:str}/schemas"
_SCHEMA = f"{_SCHEMAS}/{{schema:str}}"
_VERSIONS = f"{_SCHEMA}/versions"
_VERSION = f"{_VERSIONS}/{{version:str}}"


@get(_SCHEMAS, **READ, opt=access(Operation.READ, Place.INSIDE))
async def get_schemas_by_group(
    operations: InjectedOperations, group: Group, limit: Limit = None, after: After = ""
) -> Response[list[str]]:
    # GET /schemagroups/{group-id}/schemas
    """Return the ids of the schemas of a group."""
    names = await operations.list_schema_ids(decode_id(group))
    return build_page(names, limit, after, operations.build_link("schemagroups", group, "schemas"))


@delete(_SCHEMAS, **DELETE, opt=access(Operation.DELETE))
async def delete_schemas_by_group(operations: InjectedOperations, group: Group) -> None:
    # DELETE /schemagroups/{group-id}/schemas
    """Delete all schemas of a group, or none if one is in use; the group stays."""
    await operations.delete_schemas(decode_id(group))


@post(_SCHEMA, operation_class=AnyDocument, **STATUS_200, opt=access(Operation.REGISTER))
async def create_schema(
    operations: InjectedOperations,
    request: Request[Any, Any, Any],
    group: Group,
    schema: SchemaName,
    attributes: WithAttributes,
) -> Response[api.SchemaIdentifier]:
    # POST /schemagroups/{group-id}/schemas/{schema-id}
    """Register a document as the next version of a schema, or find the version that is equal to it."""
    place = parse_place(group, schema)

    def make_answer(state: State, version: Version) -> Response[api.SchemaIdentifier]:
        headers = responses.version_headers(operations, state, version)
        return Response(api.SchemaIdentifier(format_uid(version)), headers=headers)

    return await operations.register_document(*place, await read_document(request), make_answer, attributes)


@get(_SCHEMA, **DOCUMENT, opt=access(Operation.READ))
async def get_latest_schema(operations: InjectedOperations, group: Group, schema: SchemaName) -> Response[bytes]:
    # GET /schemagroups/{group-id}/schemas/{schema-id}
    """Return the document of the latest version as it was posted, with its attributes in headers."""
    return responses.document_response(operations, *await operations.get_version(*parse_place(group, schema)))


@delete(_SCHEMA, **DELETE, opt=access(Operation.DELETE))
async def delete_schema(operations: InjectedOperations, group: Group, schema: SchemaName) -> None:
    # DELETE /schemagroups/{group-id}/schemas/{schema-id}
    """Delete a schema with all its versions."""
    await operations.delete_schema(*parse_place(group, schema))


@get(_VERSIONS, **READ, opt=access(Operation.READ))
async def get_schema_versions(
    operations: InjectedOperations,
    group: Group,
    schema: SchemaName,
    limit: Limit = None,
    after: After = "",
) -> Response[list[int]]:
    # GET /schemagroups/{group-id}/schemas/{schema-id}/versions
    """Return the version numbers of a schema, ascending."""
    numbers = await operations.list_version_numbers(*parse_place(group, schema))
    return build_page(
        numbers, limit, after, operations.build_link("schemagroups", group, "schemas", schema, "versions")
    )


@get(_VERSION, **DOCUMENT, opt=access(Operation.READ))
async def get_schema_version(
    operations: InjectedOperations, group: Group, schema: SchemaName, version: VersionNumber
) -> Response[bytes]:
    # GET /schemagroups/{group-id}/schemas/{schema-id}/versions/{version-number}
    """Return the document of a version as it was posted, with its attributes in headers."""
    return responses.document_response(
        operations,
        *await operations.get_version(*parse_place(group, schema), parse_version_number(version)),
    )


@delete(_VERSION, **DELETE, opt=access(Operation.DELETE))
async def delete_schema_version(
    operations: InjectedOperations, group: Group, schema: SchemaName, version: VersionNumber
) -> None:
    # DELETE /schemagroups/{group-id}/schemas/{schema-id}/versions/{version-number}
    """Delete a version, and its schema when it is the last one."""
    await operations.delete_version(*parse_place(group, schema), parse_version_number(version))


@get("/schema", **DOCUMENT, opt=access(Operation.READ, Place.INSIDE))
async def get_schema_version_by_uri(operations: InjectedOperations, uri: Uri = None) -> Response[bytes]:
    # GET /schema?uri={uri}
    """Return the document of the version with a URI. The version may come from another registry."""
    if not uri:
        raise InvalidRequest("the parameter uri is missing: give the URI of a version")
    return responses.document_response(operations, *await operations.get_version_by_uri(uri))


ROUTES = [
    get_groups,
    get_group,
    create_group,
    delete_group,
    get_schemas_by_group,
    delete_schemas_by_group,
    create_schema,
    get_latest_schema,
    delete_schema,
    get_schema_versions,
    get_schema_version,
    delete_schema_version,
    get_schema_version_by_uri,
]
