"""Schemas, their meta entities and their versions: documents, and their metadata under `$details`."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, delete, get, patch, post, put

from stele.apis.http.access import access
from stele.apis.http.requests import read_bytes
from stele.apis.xregistry.attributes import check_id, parse_value, require_epoch
from stele.apis.xregistry.bodies import read_headers, read_members, read_object, read_optional_map
from stele.apis.xregistry.errors import RegistryError
from stele.apis.xregistry.operations import InjectedOperations
from stele.apis.xregistry.params import DELETE, READ, WRITE, Group, Level, Schema, VersionId, split_details
from stele.apis.xregistry.responses import json_response, schema_document, version_document, version_url
from stele.apis.xregistry.routes.collections import check_deleted, list_query, read_group_id
from stele.apis.xregistry.updates import REQUEST, RequestUpdate, require_own_versions
from stele.core.access import Operation

_SCHEMA = "/schemagroups/{group:str}/schemas/{schema:str}"
_META = f"{_SCHEMA}/meta"
_VERSIONS = f"{_SCHEMA}/versions"
_VERSION = f"{_VERSIONS}/{{version:str}}"


def _read_plain_id(segment: str) -> str:
    """Return the id of a schema in a path without `$details`. Raises `RegistryError` (`bad_details`)."""
    identifier, has_details = split_details(segment)
    if has_details:
        raise RegistryError("bad_details")
    return identifier


def _require_known_default(operations: InjectedOperations, *, takes_request: bool = False) -> str | None:
    """Return the version that the flag `setdefaultversionid` names. Raises `RegistryError`."""
    version_id = operations.flags.set_default
    if version_id == "":
        raise RegistryError("bad_defaultversionid", value="", error_detail="it names no version")
    if version_id == REQUEST and not takes_request:
        raise RegistryError("bad_flag", flag="setdefaultversionid", detail="Only a POST to a schema makes one version.")
    return version_id


# --- schemas


@get(_SCHEMA, **READ, opt=access(Operation.READ))
async def get_schema(operations: InjectedOperations, group: Group, schema: Schema) -> Response[Any]:
    # GET /schemagroups/{group}/schemas/{schema}
    """Return the document of the default version, or with `$details` the metadata of the schema."""
    place = read_group_id(group)
    identifier, has_details = split_details(schema)
    if not has_details and not operations.flags.doc:
        operations.require_single()
        return await schema_document(operations, place, identifier)
    body = await operations.describe_schema(place, identifier)
    return json_response(body, headers=await _find_default_url(operations, place, identifier))


async def _find_default_url(operations: InjectedOperations, group: str, identifier: str) -> dict[str, str]:
    _, view, schema = await operations.get_schema(group, identifier)
    target = view.resolve_reference(schema)
    return {} if target is None else {"Content-Location": version_url(view, target, target.default_id)}


@put(_SCHEMA, **WRITE, opt=access(Operation.REGISTER))
async def put_schema(
    operations: InjectedOperations, request: Request[Any, Any, Any], group: Group, schema: Schema
) -> Response[Any]:
    # PUT /schemagroups/{group}/schemas/{schema}
    """Create a schema or replace its default version: its document, or with `$details` the metadata."""
    place = read_group_id(group)
    identifier, has_details = split_details(schema)
    if has_details:
        return await _change_schema(operations, request, place, identifier, patch=False)
    chosen = _require_known_default(operations)
    attributes, document = read_headers(request.scope["headers"]), await read_bytes(request)

    def change(update: RequestUpdate) -> tuple[bool, list[str]]:
        entity = update.make_schema(place, identifier)
        version_id = entity.default_id or attributes.get("versionid") or update.generate_version_id(entity)
        update.put_version(entity, version_id, attributes, patch=False, document=document, set_default=chosen)
        return entity.is_new, [version_id]

    is_new, versions = await operations.write(change, Level.SCHEMA)
    if operations.flags.doc:
        return await _describe_written_schema(operations, place, identifier, versions, is_new=is_new)
    return await schema_document(operations, place, identifier, status=201 if is_new else 200, is_new=is_new)


@patch(_SCHEMA, **WRITE, opt=access(Operation.REGISTER))
async def patch_schema(
    operations: InjectedOperations, request: Request[Any, Any, Any], group: Group, schema: Schema
) -> Response[Any]:
    # PATCH /schemagroups/{group}/schemas/{schema}$details
    """Create a schema or change its metadata."""
    place = read_group_id(group)
    identifier, has_details = split_details(schema)
    if not has_details:
        raise RegistryError("details_required", f"/schemagroups/{place}/schemas/{identifier}")
    return await _change_schema(operations, request, place, identifier, patch=True)


async def _change_schema(
    operations: InjectedOperations, request: Request[Any, Any, Any], group: str, identifier: str, *, patch: bool
) -> Response[Any]:
    chosen = _require_known_default(operations)
    body = await read_object(request)

    def change(update: RequestUpdate) -> tuple[bool, list[str]]:
        entity = update.put_schema(group, identifier, body, patch=patch, is_root=True, set_default=chosen)
        return entity.is_new, [version.id for version in entity.versions.values() if version.is_new]

    is_new, versions = await operations.write(change, Level.SCHEMA)
    return await _describe_written_schema(operations, group, identifier, versions, is_new=is_new)


async def _describe_written_schema(
    operations: InjectedOperations, group: str, identifier: str, versions: list[str], *, is_new: bool
) -> Response[Any]:
    """Return the metadata of a schema after a request that wrote these versions of it."""
    answer = await operations.describe_schema(group, identifier)
    _, view, entity = await operations.get_schema(group, identifier)
    headers = {"Content-Location": version_url(view, entity, versions[-1])} if versions else {}
    if is_new:
        headers["Location"] = view.link(entity.xid) + "$details"
    return json_response(answer, 201 if is_new else 200, headers)


@post(_SCHEMA, **WRITE, opt=access(Operation.REGISTER))
async def post_version(
    operations: InjectedOperations, request: Request[Any, Any, Any], group: Group, schema: Schema
) -> Response[Any]:
    # POST /schemagroups/{group}/schemas/{schema}
    """Add a version, or replace the one that the request names: its document, or with `$details` its metadata."""
    place = read_group_id(group)
    identifier, has_details = split_details(schema)
    chosen = _require_known_default(operations, takes_request=True)
    attributes: Any
    document: bytes | None = None
    if has_details:
        attributes = await read_object(request)
        requested_id = parse_value(attributes["versionid"]) if "versionid" in attributes else None
    else:
        attributes, document = read_headers(request.scope["headers"]), await read_bytes(request)
        requested_id = attributes.get("versionid")

    def change(update: RequestUpdate) -> tuple[str, bool]:
        entity = update.make_schema(place, identifier)
        version_id = requested_id if requested_id is not None else update.generate_version_id(entity)
        check_id(version_id, entity.xid, of_version=True)
        version = update.put_version(entity, version_id, attributes, patch=False, document=document, set_default=chosen)
        return version_id, version.is_new

    version_id, is_new = await operations.write(change, Level.VERSION)
    status = 201 if is_new else 200
    if not has_details and not operations.flags.doc:
        return await version_document(operations, place, identifier, version_id, status=status, is_new=is_new)
    return await _describe_written_version(operations, place, identifier, version_id, is_new=is_new)


async def _describe_written_version(
    operations: InjectedOperations, group: str, identifier: str, version_id: str, *, is_new: bool
) -> Response[Any]:
    answer = await operations.describe_version(group, identifier, version_id)
    _, view, entity, _ = await operations.get_version(group, identifier, version_id)
    url = version_url(view, entity, version_id)
    headers = {"Content-Location": url, **({"Location": url} if is_new else {})}
    return json_response(answer, 201 if is_new else 200, headers)


@delete(_SCHEMA, **DELETE, opt=access(Operation.DELETE))
async def delete_schema(operations: InjectedOperations, group: Group, schema: Schema) -> None:
    # DELETE /schemagroups/{group}/schemas/{schema}
    """Delete a schema with its versions."""
    operations.require_no_default()
    place, identifier = read_group_id(group), split_details(schema)[0]

    def change(update: RequestUpdate) -> None:
        entity = update.get_schema(place, identifier)
        require_epoch(operations.flags.epoch, entity.epoch, entity.xid)
        update.delete_schema(entity)

    await operations.write(change)


# --- meta entities


@get(_META, **READ, opt=access(Operation.READ))
async def get_meta(operations: InjectedOperations, group: Group, schema: Schema) -> Response[Any]:
    # GET /schemagroups/{group}/schemas/{schema}/meta
    """Return the meta entity of a schema."""
    return json_response(await operations.describe_meta(read_group_id(group), _read_plain_id(schema)))


@put(_META, **WRITE, opt=access(Operation.REGISTER))
async def put_meta(
    operations: InjectedOperations, request: Request[Any, Any, Any], group: Group, schema: Schema
) -> Response[Any]:
    # PUT /schemagroups/{group}/schemas/{schema}/meta
    """Replace the meta entity of a schema."""
    return await _change_meta(operations, request, group, schema, patch=False)


@patch(_META, **WRITE, opt=access(Operation.REGISTER))
async def patch_meta(
    operations: InjectedOperations, request: Request[Any, Any, Any], group: Group, schema: Schema
) -> Response[Any]:
    # PATCH /schemagroups/{group}/schemas/{schema}/meta
    """Change the meta entity of a schema."""
    return await _change_meta(operations, request, group, schema, patch=True)


async def _change_meta(
    operations: InjectedOperations, request: Request[Any, Any, Any], group: str, schema: str, *, patch: bool
) -> Response[Any]:
    place, identifier = read_group_id(group), _read_plain_id(schema)
    chosen = _require_known_default(operations)
    body = await read_object(request)

    def change(update: RequestUpdate) -> None:
        update.put_meta(update.get_schema(place, identifier), body, patch=patch, set_default=chosen)

    await operations.write(change, Level.META)
    return json_response(await operations.describe_meta(place, identifier))


# --- versions


@get(_VERSIONS, **READ, opt=access(Operation.READ))
async def get_versions(
    operations: InjectedOperations, request: Request[Any, Any, Any], group: Group, schema: Schema
) -> Response[Any]:
    # GET /schemagroups/{group}/schemas/{schema}/versions
    """Return the versions of a schema by id."""
    place, identifier = read_group_id(group), _read_plain_id(schema)
    versions = await operations.describe_versions(place, identifier)
    path = f"/schemagroups/{place}/schemas/{identifier}/versions"
    page, headers = operations.build_page(versions, Level.VERSION, path, list_query(request))
    return json_response(page, headers=headers)


@post(_VERSIONS, **WRITE, opt=access(Operation.REGISTER))
async def post_versions(
    operations: InjectedOperations, request: Request[Any, Any, Any], group: Group, schema: Schema
) -> Response[Any]:
    # POST /schemagroups/{group}/schemas/{schema}/versions
    """Create or replace versions of a schema by id."""
    return await _change_versions(operations, request, group, schema, patch=False)


@patch(_VERSIONS, **WRITE, opt=access(Operation.REGISTER))
async def patch_versions(
    operations: InjectedOperations, request: Request[Any, Any, Any], group: Group, schema: Schema
) -> Response[Any]:
    # PATCH /schemagroups/{group}/schemas/{schema}/versions
    """Create or change versions of a schema by id."""
    return await _change_versions(operations, request, group, schema, patch=True)


async def _change_versions(
    operations: InjectedOperations, request: Request[Any, Any, Any], group: str, schema: str, *, patch: bool
) -> Response[Any]:
    place, identifier = read_group_id(group), _read_plain_id(schema)
    xid = f"/schemagroups/{place}/schemas/{identifier}"
    body = await read_object(request)
    if operations.flags.set_default == REQUEST and len(body) > 1:
        raise RegistryError("too_many_versions")
    chosen = _require_known_default(operations)
    versions = {name: read_members(raw, name, f"{xid}/versions/{name}") for name, raw in body.items()}

    def change(update: RequestUpdate) -> list[str]:
        if not versions and update.find_schema(place, identifier) is None:
            raise RegistryError("missing_versions")
        entity = update.make_schema(place, identifier)
        return update.put_versions(entity, versions, patch=patch, set_default=chosen)

    written = await operations.write(change, Level.VERSION, is_collection=True)
    entities = await operations.describe_versions(place, identifier, written)
    return json_response(dict(operations.sort_collection(entities, Level.VERSION)))


@delete(_VERSIONS, **DELETE, opt=access(Operation.DELETE))
async def delete_versions(
    operations: InjectedOperations, request: Request[Any, Any, Any], group: Group, schema: Schema
) -> None:
    # DELETE /schemagroups/{group}/schemas/{schema}/versions
    """Delete the versions in the request; without a body, all. The schema is deleted with its last version."""
    place, identifier = read_group_id(group), _read_plain_id(schema)
    chosen = _require_known_default(operations)
    if operations.flags.epoch is not None:
        raise RegistryError("bad_flag", flag="epoch", detail="Give the epochs of several entities in the body.")
    body = await read_optional_map(request)

    def change(update: RequestUpdate) -> None:
        entity = update.get_schema(place, identifier)
        require_own_versions(entity)
        versions = [
            entity.versions[name] for name in (entity.versions if body is None else body) if name in entity.versions
        ]
        for version in list(versions):
            if body is not None:
                xid = f"{entity.xid}/versions/{version.id}"
                check_deleted(update, body[version.id], "version", version.id, version.epoch, xid)
            update.delete_version(entity, version)
        if versions or chosen is not None:
            update.finish_deletion(entity, chosen)

    await operations.write(change)


@get(_VERSION, **READ, opt=access(Operation.READ))
async def get_version(
    operations: InjectedOperations, group: Group, schema: Schema, version: VersionId
) -> Response[Any]:
    # GET /schemagroups/{group}/schemas/{schema}/versions/{version}
    """Return the document of a version, or with `$details` its metadata."""
    place, identifier = read_group_id(group), _read_plain_id(schema)
    version_id, has_details = split_details(version)
    if not has_details and not operations.flags.doc:
        operations.require_single()
        return await version_document(operations, place, identifier, version_id)
    return json_response(await operations.describe_version(place, identifier, version_id))


@put(_VERSION, **WRITE, opt=access(Operation.REGISTER))
async def put_version(
    operations: InjectedOperations, request: Request[Any, Any, Any], group: Group, schema: Schema, version: VersionId
) -> Response[Any]:
    # PUT /schemagroups/{group}/schemas/{schema}/versions/{version}
    """Create or replace a version: its document, or with `$details` its metadata."""
    return await _change_version(operations, request, group, schema, version, patch=False)


@patch(_VERSION, **WRITE, opt=access(Operation.REGISTER))
async def patch_version(
    operations: InjectedOperations, request: Request[Any, Any, Any], group: Group, schema: Schema, version: VersionId
) -> Response[Any]:
    # PATCH /schemagroups/{group}/schemas/{schema}/versions/{version}$details
    """Create a version or change its metadata."""
    return await _change_version(operations, request, group, schema, version, patch=True)


async def _change_version(
    operations: InjectedOperations,
    request: Request[Any, Any, Any],
    group: str,
    schema: str,
    version: str,
    *,
    patch: bool,
) -> Response[Any]:
    place, identifier = read_group_id(group), _read_plain_id(schema)
    version_id, has_details = split_details(version)
    if patch and not has_details:
        raise RegistryError("details_required", f"/schemagroups/{place}/schemas/{identifier}/versions/{version_id}")
    chosen = _require_known_default(operations)
    attributes: Any
    document: bytes | None = None
    if has_details:
        attributes = await read_object(request)
    else:
        attributes, document = read_headers(request.scope["headers"]), await read_bytes(request)

    def change(update: RequestUpdate) -> bool:
        entity = update.make_schema(place, identifier)
        written = update.put_version(entity, version_id, attributes, patch=patch, document=document, set_default=chosen)
        return written.is_new

    is_new = await operations.write(change, Level.VERSION)
    if has_details or operations.flags.doc:
        return await _describe_written_version(operations, place, identifier, version_id, is_new=is_new)
    status = 201 if is_new else 200
    return await version_document(operations, place, identifier, version_id, status=status, is_new=is_new)


@delete(_VERSION, **DELETE, opt=access(Operation.DELETE))
async def delete_version(operations: InjectedOperations, group: Group, schema: Schema, version: VersionId) -> None:
    # DELETE /schemagroups/{group}/schemas/{schema}/versions/{version}
    """Delete a version. The schema is deleted with its last version."""
    place, identifier = read_group_id(group), _read_plain_id(schema)
    version_id = split_details(version)[0]
    chosen = _require_known_default(operations)

    def change(update: RequestUpdate) -> None:
        entity = update.get_schema(place, identifier)
        require_own_versions(entity)
        version = entity.versions.get(version_id)
        if version is None:
            raise RegistryError("not_found", f"{entity.xid}/versions/{version_id}")
        require_epoch(operations.flags.epoch, version.epoch, f"{entity.xid}/versions/{version_id}")
        update.delete_version(entity, version)
        update.finish_deletion(entity, chosen)

    await operations.write(change)


ROUTES = [
    get_schema,
    put_schema,
    patch_schema,
    post_version,
    delete_schema,
    get_meta,
    put_meta,
    patch_meta,
    get_versions,
    post_versions,
    patch_versions,
    delete_versions,
    get_version,
    put_version,
    patch_version,
    delete_version,
]
