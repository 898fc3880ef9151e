"""Azure's flavour of the API, below `/$schemaGroups` in any case."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, delete, get, post, put
from litestar.openapi.datastructures import ResponseSpec

from stele.apis.cncf import models as api
from stele.apis.cncf import responses, translate
from stele.apis.cncf.errors import AZURE_ERROR_RESPONSES
from stele.apis.cncf.operations import InjectedOperations, parse_place
from stele.apis.cncf.params import (
    AZURE_DELETE,
    AZURE_DOCUMENT,
    AZURE_IDENTIFY,
    AZURE_READ,
    AnyDocument,
    Group,
    SchemaId,
    SchemaName,
    VersionNumber,
    read_document,
)
from stele.apis.cncf.translate import decode_id, parse_version_number
from stele.apis.http.access import Place, access
from stele.apis.http.application import openapi_body
from stele.apis.http.requests import read_body
from stele.core.access import Operation, subject_resource
from stele.core.commands import Equality
from stele.core.model import SubjectKey
from stele.errors import NotFound
from stele.protocol.cncf import namespace_of

_GROUPS = "/$schemaGroups"
_GROUP = f"{_GROUPS}/{{group:str}}"
_SCHEMAS = f"{_GROUP}/schemas"
_SCHEMA = f"{_SCHEMAS}/{{schema:str}}"
_VERSIONS = f"{_SCHEMA}/versions"
_VERSION = f"{_VERSIONS}/{{version:str}}"
_GET_ID = ":get-id"


@get(_GROUPS, **AZURE_READ, opt=access(Operation.LIST, Place.LIST))
async def azure_list_groups(operations: InjectedOperations) -> api.AzureList:
    # GET /$schemaGroups
    """Return the names of all groups."""
    return api.AzureList(await operations.list_group_ids())


@get(_GROUP, **AZURE_READ, opt=access(Operation.READ))
async def azure_get_group(operations: InjectedOperations, group: Group) -> Response[api.AzureGroup]:
    # GET /$schemaGroups/{group}
    """Return a group."""
    body = translate.azure_group_body(*await operations.get_group(decode_id(group)))
    return Response(body, headers={"ETag": body.e_tag})


_CHANGED = ResponseSpec(api.AzureGroup, description="The group existed", generate_examples=False)


@put(
    _GROUP,
    operation_class=openapi_body(api.AzureGroupAttributes),
    responses={**AZURE_ERROR_RESPONSES, 200: _CHANGED},
    status_code=201,
    opt=access(Operation.REGISTER),
)
async def azure_put_group(
    operations: InjectedOperations, request: Request[Any, Any, Any], group: Group
) -> Response[api.AzureGroup]:
    # PUT /$schemaGroups/{group}
    """Create a group (201) or change it (200); with `If-Match` only the one with that ETag."""
    name = decode_id(group)
    attributes = await read_body(request, api.AzureGroupAttributes)
    update = translate.parse_azure_group(attributes, operations.registry.parser.list_format_names())
    only_create = request.headers.get("if-none-match", "").strip() == "*"
    expected_etag = request.headers.get("if-match", "").strip()
    created = await operations.put_group(
        name, update, only_create=only_create, expected_etag="" if expected_etag == "*" else expected_etag
    )
    body = translate.azure_group_body(*await operations.get_group(name))
    return Response(body, status_code=201 if created else 200, headers={"ETag": body.e_tag})


@delete(_GROUP, **AZURE_DELETE, opt=access(Operation.DELETE))
async def azure_delete_group(operations: InjectedOperations, group: Group) -> None:
    # DELETE /$schemaGroups/{group}
    """Delete a group with its schemas."""
    await operations.delete_group(decode_id(group))


@get(_SCHEMAS, **AZURE_READ, opt=access(Operation.READ, Place.INSIDE))
async def azure_list_schemas(operations: InjectedOperations, group: Group) -> api.AzureList:
    # GET /$schemaGroups/{group}/schemas
    """Return the names of the schemas of a group."""
    return api.AzureList(await operations.list_schema_ids(decode_id(group)))


@put(_SCHEMA, operation_class=AnyDocument, **AZURE_IDENTIFY, opt=access(Operation.REGISTER))
async def azure_register(
    operations: InjectedOperations, request: Request[Any, Any, Any], group: Group, schema: SchemaName
) -> Response[None]:
    # PUT /$schemaGroups/{group}/schemas/{schema}
    """Register a document; the answer is in the headers."""
    place = parse_place(group, schema)
    headers = await operations.register_document(
        *place,
        await read_document(request),
        lambda _, version: responses.azure_identity_headers(operations, version),
        equality=Equality.TEXT,
    )
    return Response(None, status_code=204, headers=headers)


@post(_SCHEMA, operation_class=AnyDocument, **AZURE_IDENTIFY, opt=access(Operation.READ, Place.INSIDE))
async def azure_get_id(
    operations: InjectedOperations, request: Request[Any, Any, Any], group: Group, schema: SchemaName
) -> Response[None]:
    # POST /$schemaGroups/{group}/schemas/{schema}:get-id
    """Find the version of a schema whose text equals a document; the answer is in the headers."""
    if not schema.endswith(_GET_ID):
        raise NotFound(f"to look up a schema, send a POST to its path with '{_GET_ID}' at the end")
    place = parse_place(group, schema.removesuffix(_GET_ID))
    key = SubjectKey(namespace_of(place[0]), place[1])
    operations.registry.access.require(Operation.READ, subject_resource(key))
    _, version = await operations.find_document(*place, await read_document(request))
    return Response(None, status_code=204, headers=responses.azure_identity_headers(operations, version))


@get(_SCHEMA, **AZURE_DOCUMENT, opt=access(Operation.READ))
async def azure_get_latest(operations: InjectedOperations, group: Group, schema: SchemaName) -> Response[bytes]:
    # GET /$schemaGroups/{group}/schemas/{schema}
    """Return the document of the latest version."""
    return responses.azure_document_response(operations, *await operations.get_version(*parse_place(group, schema)))


@delete(_SCHEMA, **AZURE_DELETE, opt=access(Operation.DELETE))
async def azure_delete_schema(operations: InjectedOperations, group: Group, schema: SchemaName) -> None:
    # DELETE /$schemaGroups/{group}/schemas/{schema}
    """Delete a schema with all its versions. Data with its id can still be decoded."""
    await operations.delete_schema(*parse_place(group, schema))


@get(_VERSIONS, **AZURE_READ, opt=access(Operation.READ))
async def azure_list_versions(operations: InjectedOperations, group: Group, schema: SchemaName) -> api.AzureVersions:
    # GET /$schemaGroups/{group}/schemas/{schema}/versions
    """Return the version numbers of a schema."""
    return api.AzureVersions(await operations.list_version_numbers(*parse_place(group, schema)))


@get(_VERSION, **AZURE_DOCUMENT, opt=access(Operation.READ))
async def azure_get_version(
    operations: InjectedOperations, group: Group, schema: SchemaName, version: VersionNumber
) -> Response[bytes]:
    # GET /$schemaGroups/{group}/schemas/{schema}/versions/{version}
    """Return the document of a version."""
    place = *parse_place(group, schema), parse_version_number(version)
    return responses.azure_document_response(operations, *await operations.get_version(*place))


@delete(_VERSION, **AZURE_DELETE, opt=access(Operation.DELETE))
async def azure_delete_version(
    operations: InjectedOperations, group: Group, schema: SchemaName, version: VersionNumber
) -> None:
    # DELETE /$schemaGroups/{group}/schemas/{schema}/versions/{version}
    """Delete a version, and its schema when it is the last one."""
    await operations.delete_version(*parse_place(group, schema), parse_version_number(version))


@get(f"{_GROUPS}/$schemas/{{schema_id:str}}", **AZURE_DOCUMENT, opt=access(Operation.READ, Place.INSIDE))
async def azure_get_by_id(operations: InjectedOperations, schema_id: SchemaId) -> Response[bytes]:
    # GET /$schemaGroups/$schemas/{id}
    """Return the document with an id, also of a deleted schema."""
    return responses.azure_document_response(operations, *await operations.get_version_by_uid(decode_id(schema_id)))


ROUTES = [
    azure_list_groups,
    azure_get_group,
    azure_put_group,
    azure_delete_group,
    azure_list_schemas,
    azure_register,
    azure_get_id,
    azure_get_latest,
    azure_delete_schema,
    azure_list_versions,
    azure_get_version,
    azure_delete_version,
    azure_get_by_id,
]
