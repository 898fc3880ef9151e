"""The flavour Azure's clients speak, below `/$schemaGroups` in any case."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, delete, get, post, put
from litestar.openapi.datastructures import ResponseSpec

from stele.apis.cncf import documents, translate
from stele.apis.cncf import entities as api
from stele.apis.cncf.access import Permission
from stele.apis.cncf.desk import AtDesk
from stele.apis.cncf.faults import AZURE_ERRORS
from stele.apis.cncf.names import group_of, id_in, ordinal_of
from stele.apis.cncf.parameters import (
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
from stele.apis.cncf.registering import find, register
from stele.apis.http.bodies import read_body
from stele.apis.http.openapi import openapi_body
from stele.core.commands import Equality
from stele.errors import Forbidden, NotFound

_GROUPS = "/$schemaGroups"
_GROUP = f"{_GROUPS}/{{group:str}}"
_SCHEMAS = f"{_GROUP}/schemas"
_SCHEMA = f"{_SCHEMAS}/{{schema:str}}"
_VERSIONS = f"{_SCHEMA}/versions"
_VERSION = f"{_VERSIONS}/{{version:str}}"
_GET_ID = ":get-id"


@get(_GROUPS, **AZURE_READ)
async def azure_list_groups(desk: AtDesk) -> api.AzureList:
    # GET /$schemaGroups
    """Names of all groups."""
    return api.AzureList(await desk.groups())


@get(_GROUP, **AZURE_READ)
async def azure_get_group(desk: AtDesk, group: Group) -> Response[api.AzureGroup]:
    # GET /$schemaGroups/{group}
    """A group."""
    shown = translate.azure_group_out(*await desk.space(desk.allowed(group)))
    return Response(shown, headers={"ETag": shown.e_tag})


_CHANGED = ResponseSpec(api.AzureGroup, description="The group was there", generate_examples=False)


@put(
    _GROUP,
    operation_class=openapi_body(api.AzureGroupAttributes),
    responses={**AZURE_ERRORS, 200: _CHANGED},
    status_code=201,
)
async def azure_put_group(desk: AtDesk, request: Request[Any, Any, Any], group: Group) -> Response[api.AzureGroup]:
    # PUT /$schemaGroups/{group}
    """Create a group (201), or change the one there is (200); `If-Match` with its ETag does so only to that one."""
    name = desk.allowed(group, Permission.WRITE)
    given = await read_body(request, api.AzureGroupAttributes)
    wish = translate.azure_group_in(given, desk.registry.parser.list_format_names())
    anew = request.headers.get("if-none-match", "").strip() == "*"
    condition = request.headers.get("if-match", "").strip()
    created = await desk.put(name, wish, anew=anew, condition="" if condition == "*" else condition)
    shown = translate.azure_group_out(*await desk.space(name))
    return Response(shown, status_code=201 if created else 200, headers={"ETag": shown.e_tag})


@delete(_GROUP, **AZURE_DELETE)
async def azure_delete_group(desk: AtDesk, group: Group) -> None:
    # DELETE /$schemaGroups/{group}
    """Delete a group with all that is in it."""
    await desk.delete_group(desk.allowed(group, Permission.WRITE))


@get(_SCHEMAS, **AZURE_READ)
async def azure_list_schemas(desk: AtDesk, group: Group) -> api.AzureList:
    # GET /$schemaGroups/{group}/schemas
    """Names of the schemas of a group."""
    return api.AzureList(await desk.schemas(desk.allowed(group)))


@put(_SCHEMA, operation_class=AnyDocument, **AZURE_IDENTIFY)
async def azure_register(
    desk: AtDesk, request: Request[Any, Any, Any], group: Group, schema: SchemaName
) -> Response[None]:
    # PUT /$schemaGroups/{group}/schemas/{schema}
    """Register a document; the answer is in the headers."""
    place = desk.allowed(group, Permission.WRITE), id_in(schema)
    _, version = await register(desk, *place, await read_document(request), equality=Equality.TEXT)
    return Response(None, status_code=204, headers=documents.azure_identified(desk, version))


@post(_SCHEMA, operation_class=AnyDocument, **AZURE_IDENTIFY)
async def azure_get_id(
    desk: AtDesk, request: Request[Any, Any, Any], group: Group, schema: SchemaName
) -> Response[None]:
    # POST /$schemaGroups/{group}/schemas/{schema}:get-id
    """Which version of a schema a document is; the answer is in the headers."""
    if not schema.endswith(_GET_ID):
        raise NotFound(f"a schema can be asked for by POST to its path with '{_GET_ID}' at the end")
    place = desk.allowed(group), id_in(schema.removesuffix(_GET_ID))
    _, version = await find(desk, *place, await read_document(request))
    return Response(None, status_code=204, headers=documents.azure_identified(desk, version))


@get(_SCHEMA, **AZURE_DOCUMENT)
async def azure_get_latest(desk: AtDesk, group: Group, schema: SchemaName) -> Response[bytes]:
    # GET /$schemaGroups/{group}/schemas/{schema}
    """The document of the latest version."""
    return documents.azure_document(desk, *await desk.version(desk.allowed(group), id_in(schema)))


@delete(_SCHEMA, **AZURE_DELETE)
async def azure_delete_schema(desk: AtDesk, group: Group, schema: SchemaName) -> None:
    # DELETE /$schemaGroups/{group}/schemas/{schema}
    """Delete a schema with all its versions; data that have its id can still be read."""
    await desk.delete_schema(desk.allowed(group, Permission.WRITE), id_in(schema))


@get(_VERSIONS, **AZURE_READ)
async def azure_list_versions(desk: AtDesk, group: Group, schema: SchemaName) -> api.AzureVersions:
    # GET /$schemaGroups/{group}/schemas/{schema}/versions
    """Numbers of the versions of a schema."""
    return api.AzureVersions(await desk.ordinals(desk.allowed(group), id_in(schema)))


@get(_VERSION, **AZURE_DOCUMENT)
async def azure_get_version(desk: AtDesk, group: Group, schema: SchemaName, version: VersionNumber) -> Response[bytes]:
    # GET /$schemaGroups/{group}/schemas/{schema}/versions/{version}
    """The document of a version."""
    place = desk.allowed(group), id_in(schema), ordinal_of(version)
    return documents.azure_document(desk, *await desk.version(*place))


@delete(_VERSION, **AZURE_DELETE)
async def azure_delete_version(desk: AtDesk, group: Group, schema: SchemaName, version: VersionNumber) -> None:
    # DELETE /$schemaGroups/{group}/schemas/{schema}/versions/{version}
    """Delete a version; with its last one goes the schema."""
    await desk.delete_version(desk.allowed(group, Permission.WRITE), id_in(schema), ordinal_of(version))


@get(f"{_GROUPS}/$schemas/{{schema_id:str}}", **AZURE_DOCUMENT)
async def azure_get_by_id(desk: AtDesk, schema_id: SchemaId) -> Response[bytes]:
    # GET /$schemaGroups/$schemas/{id}
    """The document with that id, one of a deleted schema too."""
    state, version = await desk.by_id(id_in(schema_id))
    if not desk.may(group_of(version.subject.key.namespace)):
        raise Forbidden("the group this schema is in may not be read")
    return documents.azure_document(desk, state, version)


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
