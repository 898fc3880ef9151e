"""Schemas and versions: documents in and out, lists, deletion; and the look-up by version URI."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, delete, get, post

from stele.apis.cncf import documents
from stele.apis.cncf import entities as api
from stele.apis.cncf.access import Permission
from stele.apis.cncf.desk import AtDesk
from stele.apis.cncf.names import group_of, id_in, ordinal_of
from stele.apis.cncf.parameters import (
    ASK,
    DELETE,
    DOCUMENT,
    READ,
    After,
    AnyDocument,
    Group,
    Limit,
    SchemaName,
    Uri,
    VersionNumber,
    WithAttributes,
    page_of,
    read_document,
)
from stele.apis.cncf.registering import register
from stele.apis.cncf.translate import uid_out
from stele.errors import Forbidden, InvalidRequest

_SCHEMAS = "/schemagroups/{group:str}/schemas"
_SCHEMA = f"{_SCHEMAS}/{{schema:str}}"
_VERSIONS = f"{_SCHEMA}/versions"
_VERSION = f"{_VERSIONS}/{{version:str}}"


@get(_SCHEMAS, **READ)
async def get_schemas_by_group(
    desk: AtDesk, group: Group, limit: Limit = None, after: After = ""
) -> Response[list[str]]:
    # GET /schemagroups/{group-id}/schemas
    """Ids of the schemas of a group."""
    names = await desk.schemas(desk.allowed(group))
    return page_of(names, limit, after, desk.link("schemagroups", group, "schemas"))


@delete(_SCHEMAS, **DELETE)
async def delete_schemas_by_group(desk: AtDesk, group: Group) -> None:
    # DELETE /schemagroups/{group-id}/schemas
    """Delete all schemas of a group, or none where one is in use; the group stays."""
    await desk.delete_schemas(desk.allowed(group, Permission.WRITE))


@post(_SCHEMA, operation_class=AnyDocument, **ASK)
async def create_schema(
    desk: AtDesk, request: Request[Any, Any, Any], group: Group, schema: SchemaName, attributes: WithAttributes
) -> Response[api.SchemaIdentifier]:
    # POST /schemagroups/{group-id}/schemas/{schema-id}
    """Register a document as the next version of a schema; the same one again is the version it was."""
    place = desk.allowed(group, Permission.WRITE), id_in(schema)
    state, version = await register(desk, *place, await read_document(request), attributes)
    return Response(api.SchemaIdentifier(uid_out(version)), headers=documents.described(desk, state, version))


@get(_SCHEMA, **DOCUMENT)
async def get_latest_schema(desk: AtDesk, group: Group, schema: SchemaName) -> Response[bytes]:
    # GET /schemagroups/{group-id}/schemas/{schema-id}
    """The document of the latest version, as it was posted; its attributes in headers."""
    return documents.document(desk, *await desk.version(desk.allowed(group), id_in(schema)))


@delete(_SCHEMA, **DELETE)
async def delete_schema(desk: AtDesk, group: Group, schema: SchemaName) -> None:
    # DELETE /schemagroups/{group-id}/schemas/{schema-id}
    """Delete a schema with all its versions."""
    await desk.delete_schema(desk.allowed(group, Permission.WRITE), id_in(schema))


@get(_VERSIONS, **READ)
async def get_schema_versions(
    desk: AtDesk,
    group: Group,
    schema: SchemaName,
    limit: Limit = None,
    after: After = "",
) -> Response[list[int]]:
    # GET /schemagroups/{group-id}/schemas/{schema-id}/versions
    """Numbers of the versions of a schema, ascending."""
    numbers = await desk.ordinals(desk.allowed(group), id_in(schema))
    return page_of(numbers, limit, after, desk.link("schemagroups", group, "schemas", schema, "versions"))


@get(_VERSION, **DOCUMENT)
async def get_schema_version(desk: AtDesk, group: Group, schema: SchemaName, version: VersionNumber) -> Response[bytes]:
    # GET /schemagroups/{group-id}/schemas/{schema-id}/versions/{version-number}
    """The document of a version, as it was posted; its attributes in headers."""
    return documents.document(desk, *await desk.version(desk.allowed(group), id_in(schema), ordinal_of(version)))


@delete(_VERSION, **DELETE)
async def delete_schema_version(desk: AtDesk, group: Group, schema: SchemaName, version: VersionNumber) -> None:
    # DELETE /schemagroups/{group-id}/schemas/{schema-id}/versions/{version-number}
    """Delete a version; with its last one goes the schema."""
    await desk.delete_version(desk.allowed(group, Permission.WRITE), id_in(schema), ordinal_of(version))


@get("/schema", **DOCUMENT)
async def get_schema_version_by_uri(desk: AtDesk, uri: Uri = None) -> Response[bytes]:
    # GET /schema?uri={uri}
    """The document of the version with that URI, wherever it comes from."""
    if not uri:
        raise InvalidRequest("the parameter uri is missing: which version?")
    state, version = await desk.by_uri(uri)
    if not desk.may(group_of(version.subject.key.namespace)):
        raise Forbidden("the group this version is in may not be read")
    return documents.document(desk, state, version)


ROUTES = [
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
