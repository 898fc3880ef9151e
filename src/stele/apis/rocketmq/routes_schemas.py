"""Schemas: registering, updating and deleting them. `schema` and `versions` may be names of schemas, too."""

from __future__ import annotations

from typing import Any

from litestar import Request, delete, post, put

from stele.apis.http.bodies import read_body
from stele.apis.http.openapi import openapi_body
from stele.apis.http.paths import decode_segment
from stele.apis.rocketmq import entities as api
from stele.apis.rocketmq.parameters import READ, AtDesk, SchemaName, SubjectName, VersionNumber, everywhere
from stele.apis.rocketmq.translate import language_in, record_id, version_in
from stele.core.model import Version
from stele.core.policy import find_policy

_SUBJECT = "/subject/{subject:str}/schema"
_NAMED = everywhere(f"{_SUBJECT}/{{schema_name:str}}")
_VERSIONS = everywhere(f"{_SUBJECT}/versions")


@post([*_NAMED, *_VERSIONS], operation_class=openapi_body(api.RegisterSchema), **READ)
async def register_schema(
    desk: AtDesk, request: Request[Any, Any, Any], subject: SubjectName, schema_name: SchemaName = "versions"
) -> api.Written:
    # POST /schema-registry/v1/cluster/{cluster}/tenant/{tenant}/subject/{subject}/schema/{schema}
    """Register a schema as version 1, and bind the subject to it."""
    body = await read_body(request, api.RegisterSchema)
    version = await desk.register(
        decode_segment(subject),
        decode_segment(schema_name),
        body.schema_idl.encode(),
        language_in(body.schema_type),
        None if not body.compatibility else find_policy(body.compatibility),
        body.desc or "",
        body.owner or "",
    )
    return _written(version)


@put(
    [*_NAMED, *_VERSIONS, *everywhere(f"{_SUBJECT}/schema")],
    operation_class=openapi_body(api.UpdateSchema),
    **READ,
)
async def update_schema(
    desk: AtDesk, request: Request[Any, Any, Any], subject: SubjectName, schema_name: SchemaName = ""
) -> api.Written:
    # PUT /schema-registry/v1/cluster/{cluster}/tenant/{tenant}/subject/{subject}/schema/{schema}
    """Register the next version of a schema, and bind the subject to it."""
    body = await read_body(request, api.UpdateSchema)
    name = decode_segment(schema_name) or request.scope["path"].rpartition("/")[2]
    version = await desk.update(
        decode_segment(subject), name, body.schema_idl.encode(), body.desc or "", body.owner or ""
    )
    return _written(version)


@delete(everywhere(_SUBJECT), **READ)
async def delete_schema(desk: AtDesk, subject: SubjectName) -> api.Removed:
    # DELETE /schema-registry/v1/cluster/{cluster}/tenant/{tenant}/subject/{subject}/schema
    """Delete the schema a subject is bound to, with all its versions and bindings."""
    return api.Removed(record_id(await desk.delete(decode_segment(subject))))


@delete(everywhere(f"{_SUBJECT}/versions/{{version:str}}"), **READ)
async def delete_version(desk: AtDesk, subject: SubjectName, version: VersionNumber) -> api.Removed:
    # DELETE /schema-registry/v1/cluster/{cluster}/tenant/{tenant}/subject/{subject}/schema/versions/{version}
    """Delete one version; subjects bound to it are bound to the newest one left, and none left is no schema."""
    return api.Removed(record_id(await desk.delete_version(decode_segment(subject), version_in(version))))


def _written(version: Version) -> api.Written:
    return api.Written(version.record_id, version.version_number)


ROUTES = [register_schema, update_schema, delete_schema, delete_version]
