"""Schemas: registering, reading by id and by version, deleting."""

from __future__ import annotations

from typing import Any

from litestar import Request, delete, get, post

from stele.apis.http.bodies import read_body
from stele.apis.http.openapi import openapi_body
from stele.apis.http.paths import decode_segment
from stele.apis.openschema import entities as api
from stele.apis.openschema import translate
from stele.apis.openschema.conventions import MEDIA_TYPE
from stele.apis.openschema.desk import live_version
from stele.apis.openschema.judging import require_consistent_without
from stele.apis.openschema.parameters import READ, AtDesk, SchemaId, SubjectName, VersionName
from stele.apis.openschema.places import schema_id
from stele.apis.openschema.translate import DIALECT
from stele.core import queries
from stele.core.commands import DeleteVersion, Equality, RegisterSchema, Registration, SubjectDefaults
from stele.core.model import Numbering
from stele.core.policy import BACKWARD

_VERSIONS = "/subjects/{subject:str}/versions"
_VERSION = f"{_VERSIONS}/{{version:str}}"
_EQUAL_BY = "normalized"
"""Kind of the digest that says whether two definitions are the same."""


@get("/schemas/{schema_id:str}", **READ)
async def get_schema(desk: AtDesk, schema_id: SchemaId) -> api.SchemaOut:
    # GET /schemas/{id}
    """The schema of an id, also when its versions were deleted: data may have been written with it."""
    return translate.schema_out(*await desk.by_id(decode_segment(schema_id)))


@get("/schemas/{schema_id:str}/subject", **READ)
async def get_place(desk: AtDesk, schema_id: SchemaId) -> api.SubjectVersion:
    # GET /schemas/{id}/subject
    """The subject and version of an id, the first ones where there are several."""
    _, version = await desk.by_id(decode_segment(schema_id))
    return api.SubjectVersion(version.subject.key.name, version.version_number)


@get(_VERSIONS, **READ)
async def list_versions(desk: AtDesk, subject: SubjectName) -> api.Versions:
    # GET /subjects/{subject}/versions
    """The versions of a subject."""
    _, found = await desk.subject(decode_segment(subject))
    return api.Versions([row.version_number for row in queries.list_versions(found)])


@get(f"{_VERSION}/schema", **READ)
async def get_version(desk: AtDesk, subject: SubjectName, version: VersionName) -> api.SubjectWithSchema:
    # GET /subjects/{subject}/versions/{version}/schema
    """A subject with the schema of one version."""
    state, found = await desk.version(decode_segment(subject), translate.version_in(decode_segment(version)))
    described = translate.subject_out(state, found.subject)
    return translate.with_schema(described, found, translate.schema_out(state, found))


@post(_VERSIONS, operation_class=openapi_body(api.SchemaDocument, MEDIA_TYPE), **READ)
async def register(desk: AtDesk, request: Request[Any, Any, Any], subject: SubjectName) -> api.Id:
    # POST /subjects/{subject}/versions
    """Register a schema, with its subject where that is new; the same definition again has the id it had."""
    given = await read_body(request, api.SchemaIn)
    state = await desk.registry.fresh_state()
    key = desk.key(state, decode_segment(subject))
    newest = queries.latest_version(state.find_subject(key))
    draft = desk.draft(given, newest)
    prepared = await desk.prepared(state, draft, newest)
    outcome = await desk.execute(
        RegisterSchema(
            key,
            prepared.document,
            prepared.references,
            equality=Equality.DIGEST,
            equality_digest=_EQUAL_BY,
            defaults=SubjectDefaults(Numbering.NEVER_REUSE, policy=BACKWARD),
            description=given.comment or "",
            dialect_data={DIALECT: translate.kept_of(given, draft)},
        )
    )
    assert isinstance(outcome, Registration)
    return api.Id(schema_id(key.namespace, outcome.schema_id))


@delete(_VERSION, **READ)
async def delete_version(desk: AtDesk, subject: SubjectName, version: VersionName) -> api.OneVersion:
    # DELETE /subjects/{subject}/versions/{version}
    """Delete one version, if those before and after it agree without it."""
    number = translate.version_in(decode_segment(version))
    state, found = await desk.subject(decode_segment(subject))
    row = live_version(state, found, number)
    await require_consistent_without(desk.registry, state, row)
    await desk.execute(DeleteVersion(found.key, row.version_number))
    return api.OneVersion(row.version_number)


ROUTES = [get_schema, get_place, list_versions, get_version, register, delete_version]
