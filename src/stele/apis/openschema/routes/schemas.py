"""Schemas by id and by version."""

from __future__ import annotations

from typing import Any

from litestar import Request, delete, get, post

from stele.apis.http.bodies import read_body
from stele.apis.http.openapi import openapi_body
from stele.apis.http.paths import decode_segment
from stele.apis.openschema import models as api
from stele.apis.openschema import translate
from stele.apis.openschema.consistency import require_consistent_without
from stele.apis.openschema.models import MEDIA_TYPE
from stele.apis.openschema.operations import get_live_version
from stele.apis.openschema.params import READ, InjectedOperations, SchemaId, SubjectName, VersionName
from stele.apis.openschema.tenancy import format_schema_id
from stele.apis.openschema.translate import DIALECT
from stele.core import queries
from stele.core.commands import DeleteVersion, Equality, RegisterSchema, Registration, SubjectDefaults
from stele.core.model import Numbering
from stele.core.policy import BACKWARD

_VERSIONS = "/subjects/{subject:str}/versions"
_VERSION = f"{_VERSIONS}/{{version:str}}"
_EQUALITY_DIGEST = "normalized"
"""Kind of the digest that makes two definitions equal."""


@get("/schemas/{schema_id:str}", **READ)
async def get_schema(operations: InjectedOperations, schema_id: SchemaId) -> api.SchemaBody:
    # GET /schemas/{id}
    """Return the schema with an id, also of deleted versions: data may have been written with it."""
    return translate.schema_body(*await operations.get_version_by_id(decode_segment(schema_id)))


@get("/schemas/{schema_id:str}/subject", **READ)
async def get_subject_of_schema(operations: InjectedOperations, schema_id: SchemaId) -> api.SchemaLocation:
    # GET /schemas/{id}/subject
    """Return subject and version of a schema id, the first ones if there are several."""
    _, version = await operations.get_version_by_id(decode_segment(schema_id))
    return api.SchemaLocation(version.subject.key.name, version.version_number)


@get(_VERSIONS, **READ)
async def list_versions(operations: InjectedOperations, subject: SubjectName) -> api.VersionNumbers:
    # GET /subjects/{subject}/versions
    """Return the version numbers of a subject."""
    _, found = await operations.get_subject(decode_segment(subject))
    return api.VersionNumbers([row.version_number for row in queries.list_versions(found)])


@get(f"{_VERSION}/schema", **READ)
async def get_version(
    operations: InjectedOperations, subject: SubjectName, version: VersionName
) -> api.SubjectWithSchema:
    # GET /subjects/{subject}/versions/{version}/schema
    """Return a subject with the schema of one version."""
    state, found = await operations.get_version(
        decode_segment(subject), translate.parse_version(decode_segment(version))
    )
    subject_body = translate.subject_body(state, found.subject)
    return translate.with_schema(subject_body, found, translate.schema_body(state, found))


@post(_VERSIONS, operation_class=openapi_body(api.SchemaInputDoc, MEDIA_TYPE), **READ)
async def register_schema(
    operations: InjectedOperations, request: Request[Any, Any, Any], subject: SubjectName
) -> api.SchemaIdBody:
    # POST /subjects/{subject}/versions
    """Register a schema, with its subject if that is new; an equal definition keeps its id."""
    given = await read_body(request, api.SchemaInput)
    state = await operations.registry.fresh_state()
    key = operations.resolve_key(state, decode_segment(subject))
    newest = queries.latest_version(state.find_subject(key))
    submitted = operations.parse_schema(given, newest)
    prepared = await operations.prepare_schema(state, submitted, newest)
    outcome = await operations.execute(
        RegisterSchema(
            key,
            prepared.document,
            prepared.references,
            equality=Equality.DIGEST,
            equality_digest=_EQUALITY_DIGEST,
            defaults=SubjectDefaults(Numbering.NEVER_REUSE, policy=BACKWARD),
            description=given.comment or "",
            dialect_data={DIALECT: translate.schema_data(given, submitted)},
        )
    )
    assert isinstance(outcome, Registration)
    return api.SchemaIdBody(format_schema_id(key.namespace, outcome.schema_id))


@delete(_VERSION, **READ)
async def delete_version(
    operations: InjectedOperations, subject: SubjectName, version: VersionName
) -> api.SingleVersion:
    # DELETE /subjects/{subject}/versions/{version}
    """Delete a version, if those before and after it agree without it."""
    number = translate.parse_version(decode_segment(version))
    state, found = await operations.get_subject(decode_segment(subject))
    row = get_live_version(state, found, number)
    await require_consistent_without(operations.registry, state, row)
    await operations.execute(DeleteVersion(found.key, row.version_number))
    return api.SingleVersion(row.version_number)


ROUTES = [get_schema, get_subject_of_schema, list_versions, get_version, register_schema, delete_version]
