"""Endpoints of the dialect: tenants of a cluster; subjects, schemas and records of a tenant; explicit bindings.

RIP-42 requires a store to find schemas by name and by id, whether or not a subject is bound to them, and to bind
subjects explicitly. The original has no paths for these; the paths here are extensions.
"""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, delete, get, post, put
from litestar.di import NamedDependency
from litestar.params import PathParameter

from stele.apis.http.access import Place, access
from stele.apis.http.application import openapi_body
from stele.apis.http.requests import decode_segment, read_body, read_bytes
from stele.apis.rocketmq import translate
from stele.apis.rocketmq.errors import ERROR_RESPONSES
from stele.apis.rocketmq.operations import Operations
from stele.apis.rocketmq.translate import parse_type, parse_version, record_id
from stele.core import queries
from stele.core.access import Operation
from stele.core.model import Version
from stele.core.policy import find_policy
from stele.core.state import State
from stele.protocol import rocketmq as api

_INTEGER = {"type": "integer", "format": "int64"}

InjectedOperations = NamedDependency[Operations]

SubjectName = Annotated[str, PathParameter(description="name of a subject, usually that of a topic")]
SchemaName = Annotated[str, PathParameter(description="name of a schema, unique in its tenant")]
VersionNumber = Annotated[str, PathParameter(schema_extra=_INTEGER, description="version of a schema, from 1")]
RecordId = Annotated[
    str,
    PathParameter(
        schema_extra=_INTEGER, description="id of a record: the id of its schema, with the version in the low 14 bits"
    ),
]

READ: dict[str, Any] = {"responses": ERROR_RESPONSES, "status_code": 200}
"""Options of all endpoints. The original's client accepts no other status for success."""


def cluster_paths(path: str) -> list[str]:
    """Return a path in two forms: with cluster and tenant, and the short one for the default cluster and tenant."""
    return [f"/cluster/{{cluster:str}}/tenant/{{tenant:str}}{path}", path]


def tenant_paths(path: str) -> list[str]:
    """Return a path in two forms, with and without a cluster: a tenant's schemas are the same in all clusters."""
    return [f"/cluster/{{cluster:str}}/tenant/{{tenant:str}}{path}", f"/tenant/{{tenant:str}}{path}"]


@get("/cluster/{cluster:str}/tenants", **READ, opt=access(Operation.LIST, Place.LIST))
async def list_tenants(operations: InjectedOperations) -> list[str]:
    # GET /schema-registry/v1/cluster/{cluster}/tenants
    """Return the sorted tenants with subjects in a cluster; schemas of other dialects are in every cluster."""
    state = await operations.registry.fresh_state()
    namespaces = {row.role for row in operations.list_bindings(state)}
    is_listed = operations.registry.access.make_filter()
    async for namespace in operations.registry.time_slices.iterate(queries.visible_namespaces(state)):
        subjects = namespace.subjects.values()
        if any(translate.is_foreign(subject) and is_listed(subject.key) for subject in subjects):
            namespaces.add(namespace.name)
    return sorted(translate.tenant_of(namespace) for namespace in namespaces)


@get("/cluster/{cluster:str}/tenant/{tenant:str}/subjects", **READ, opt=access(Operation.LIST, Place.LIST))
async def list_subjects(operations: InjectedOperations) -> list[str]:
    # GET /schema-registry/v1/cluster/{cluster}/tenant/{tenant}/subjects
    """Return the sorted subjects of a tenant in a cluster; schemas of other dialects are in every cluster."""
    state = await operations.registry.fresh_state()
    names = {row.resource for row in operations.list_bindings(state) if row.role == operations.address.namespace}
    namespace = state.find_namespace(operations.address.namespace)
    subjects = namespace.subjects.values() if namespace is not None else ()
    is_listed = operations.registry.access.make_filter()
    async for subject in operations.registry.time_slices.iterate(subjects):
        if translate.is_foreign(subject) and is_listed(subject.key):
            names.add(subject.key.name)
    return sorted(names)


@get(tenant_paths("/schemas"), **READ, opt=access(Operation.LIST, Place.LIST))
async def list_schemas(operations: InjectedOperations) -> list[str]:
    # GET /schema-registry/v1/tenant/{tenant}/schemas
    """Return the sorted schemas of a tenant: an extension, the store's `list` of RIP-42."""
    state = await operations.registry.fresh_state()
    namespace = state.find_namespace(operations.address.namespace)
    subjects = namespace.subjects.values() if namespace is not None else ()
    is_listed = operations.registry.access.make_filter()
    return sorted(
        [
            subject.key.name
            async for subject in operations.registry.time_slices.iterate(subjects)
            if queries.latest_version(subject) is not None and is_listed(subject.key)
        ]
    )


@get(tenant_paths("/schema/{schema_name:str}"), **READ, opt=access(Operation.READ))
async def describe_schema(operations: InjectedOperations, schema_name: SchemaName) -> api.SchemaDescription:
    # GET /schema-registry/v1/tenant/{tenant}/schema/{schema}
    """Return a schema with its policy, records and their subjects: an extension, the store's `get` of RIP-42."""
    state, rows = await operations.list_live_versions(decode_segment(schema_name))
    bound = operations.bindings_by_version(state, rows[0].subject)
    records = [
        translate.build_schema_record(state, row, bound.get(row.version_number, []))
        async for row in operations.registry.time_slices.iterate(rows)
    ]
    return translate.schema_body(state, rows, records)


@delete(tenant_paths("/schema/{schema_name:str}"), **READ, opt=access(Operation.DELETE))
async def delete_schema_by_name(operations: InjectedOperations, schema_name: SchemaName) -> api.DeletedRecord:
    # DELETE /schema-registry/v1/tenant/{tenant}/schema/{schema}
    """Delete a schema by its name, with its versions and bindings: an extension, the store's `delete` of RIP-42."""
    _, rows = await operations.list_live_versions(decode_segment(schema_name))
    await operations.delete_schema_by_key(rows[-1].subject.key)
    return api.DeletedRecord(translate.record_id(rows[-1]))


@get(tenant_paths("/record/{record_id:str}"), **READ, opt=access(Operation.READ, Place.INSIDE))
async def get_record(operations: InjectedOperations, record_id: RecordId) -> api.RecordWithSubjects:
    # GET /schema-registry/v1/tenant/{tenant}/record/{record}
    """Return a record by its id, also a deleted one, or the newest of a schema by the schema's id.

    An extension, the store's `get` of RIP-42.
    """
    state, version = await operations.get_record(translate.parse_record_id(record_id))
    bound = operations.bindings_by_version(state, version.subject)
    return translate.build_schema_record(state, version, bound.get(version.version_number, []))


_SUBJECT = "/subject/{subject:str}"
_SCHEMA = f"{_SUBJECT}/schema"
_NAMED = cluster_paths(f"{_SCHEMA}/{{schema_name:str}}")
"""Paths with the name of a schema, which may also be `schema` or `versions`."""
_VERSIONS = cluster_paths(f"{_SCHEMA}/versions")
_BINDING = cluster_paths(f"{_SUBJECT}/binding/{{record_id:str}}")

# --- registering and deleting schemas ---------------------------------------------------------------------------------


@post(
    [*_NAMED, *_VERSIONS],
    operation_class=openapi_body(api.NewSchema),
    **READ,
    opt=access(Operation.REGISTER, Place.INSIDE),
)
async def register_schema(
    operations: InjectedOperations,
    request: Request[Any, Any, Any],
    subject: SubjectName,
    schema_name: SchemaName = "versions",
) -> api.RecordVersion:
    # POST /schema-registry/v1/cluster/{cluster}/tenant/{tenant}/subject/{subject}/schema/{schema}
    """Register a schema as version 1 and bind the subject to it."""
    body = await read_body(request, api.NewSchema)
    version = await operations.register_schema(
        decode_segment(subject),
        decode_segment(schema_name),
        body.schema_idl.encode(),
        parse_type(body.schema_type),
        None if not body.compatibility else find_policy(body.compatibility),
        body.desc or "",
        body.owner or "",
    )
    return _record_version(version)


@put(
    [*_NAMED, *_VERSIONS, *cluster_paths(f"{_SCHEMA}/schema")],
    operation_class=openapi_body(api.SchemaUpdate),
    **READ,
    opt=access(Operation.REGISTER, Place.INSIDE),
)
async def update_schema(
    operations: InjectedOperations, request: Request[Any, Any, Any], subject: SubjectName, schema_name: SchemaName = ""
) -> api.RecordVersion:
    # PUT /schema-registry/v1/cluster/{cluster}/tenant/{tenant}/subject/{subject}/schema/{schema}
    """Register the next version of a schema and bind the subject to it."""
    body = await read_body(request, api.SchemaUpdate)
    name = decode_segment(schema_name) or request.scope["path"].rpartition("/")[2]
    version = await operations.update_schema(
        decode_segment(subject), name, body.schema_idl.encode(), body.desc or "", body.owner or ""
    )
    return _record_version(version)


@delete(cluster_paths(_SCHEMA), **READ, opt=access(Operation.DELETE, Place.INSIDE))
async def delete_schema(operations: InjectedOperations, subject: SubjectName) -> api.DeletedRecord:
    # DELETE /schema-registry/v1/cluster/{cluster}/tenant/{tenant}/subject/{subject}/schema
    """Delete the schema a subject is bound to, with all its versions and bindings."""
    return api.DeletedRecord(record_id(await operations.delete_schema(decode_segment(subject))))


@delete(cluster_paths(f"{_SCHEMA}/versions/{{version:str}}"), **READ, opt=access(Operation.DELETE, Place.INSIDE))
async def delete_version(
    operations: InjectedOperations, subject: SubjectName, version: VersionNumber
) -> api.DeletedRecord:
    # DELETE /schema-registry/v1/cluster/{cluster}/tenant/{tenant}/subject/{subject}/schema/versions/{version}
    """Delete one version. The schema is deleted with its last version.

    Subjects bound to the version are bound to the newest remaining one.
    """
    return api.DeletedRecord(
        record_id(await operations.delete_version(decode_segment(subject), parse_version(version)))
    )


def _record_version(version: Version) -> api.RecordVersion:
    return api.RecordVersion(version.record_id, version.version_number)


# --- looking up records -----------------------------------------------------------------------------------------------


@get(cluster_paths(f"{_SUBJECT}/schema"), **READ, opt=access(Operation.READ, Place.INSIDE))
async def get_schema(operations: InjectedOperations, subject: SubjectName) -> api.SubjectRecord:
    # GET /schema-registry/v1/cluster/{cluster}/tenant/{tenant}/subject/{subject}/schema
    """Return the record a subject is bound to."""
    return _respond(operations, subject, await operations.get_bound_record(decode_segment(subject)))


@get(cluster_paths(f"{_SUBJECT}/schema/versions/{{version:str}}"), **READ, opt=access(Operation.READ, Place.INSIDE))
async def get_version(
    operations: InjectedOperations, subject: SubjectName, version: VersionNumber
) -> api.SubjectRecord:
    # GET /schema-registry/v1/cluster/{cluster}/tenant/{tenant}/subject/{subject}/schema/versions/{version}
    """Return a version of the schema a subject is bound to."""
    number = translate.parse_version(version)
    return _respond(operations, subject, await operations.get_version(decode_segment(subject), number))


@get(cluster_paths(f"{_SUBJECT}/recordId/{{record_id:str}}/schema"), **READ, opt=access(Operation.READ, Place.INSIDE))
async def get_record_of_subject(
    operations: InjectedOperations, subject: SubjectName, record_id: RecordId
) -> api.SubjectRecord:
    # GET /schema-registry/v1/cluster/{cluster}/tenant/{tenant}/subject/{subject}/recordId/{record}/schema
    """Return the record with an id, also of a deleted version: data may have been written with it."""
    number = translate.parse_record_id(record_id)
    return _respond(operations, subject, await operations.get_record_of_subject(decode_segment(subject), number))


@get(cluster_paths(f"{_SUBJECT}/schema/versions"), **READ, opt=access(Operation.READ, Place.INSIDE))
async def list_records(operations: InjectedOperations, subject: SubjectName) -> list[api.RecordWithSubjects]:
    # GET /schema-registry/v1/cluster/{cluster}/tenant/{tenant}/subject/{subject}/schema/versions
    """Return all records of the schema a subject is bound to, oldest first, each with its subjects."""
    state, version = await operations.get_bound_record(decode_segment(subject))
    bound = operations.bindings_by_version(state, version.subject)
    rows = queries.list_versions(version.subject)
    return [
        translate.build_schema_record(state, row, bound.get(row.version_number, []))
        async for row in operations.registry.time_slices.iterate(rows)
    ]


@post(
    cluster_paths(f"{_SUBJECT}/schema/schema"),
    operation_class=openapi_body(str),
    **READ,
    opt=access(Operation.READ, Place.INSIDE),
)
async def find_schema(
    operations: InjectedOperations, request: Request[Any, Any, Any], subject: SubjectName
) -> api.SubjectRecord:
    # POST /schema-registry/v1/cluster/{cluster}/tenant/{tenant}/subject/{subject}/schema/schema
    """Return the version of a subject's schema that has the schema in the body, which is plain text."""
    return _respond(
        operations, subject, await operations.find_version_by_text(decode_segment(subject), await read_bytes(request))
    )


def _respond(operations: Operations, subject: str, state_and_version: tuple[State, Version]) -> api.SubjectRecord:
    state, version = state_and_version
    return translate.build_subject_record(state, operations.address, decode_segment(subject), version)


# --- bindings ---------------------------------------------------------------------------------------------------------


@put(_BINDING, **READ, opt=access(Operation.BIND, Place.INSIDE))
async def bind_subject(operations: InjectedOperations, subject: SubjectName, record_id: RecordId) -> api.SubjectRecord:
    # PUT /schema-registry/v1/cluster/{cluster}/tenant/{tenant}/subject/{subject}/binding/{record}
    """Bind a subject to a record, or by a schema's id to its newest record. It can be repeated."""
    state, version = await operations.bind_subject(decode_segment(subject), translate.parse_record_id(record_id))
    return translate.build_subject_record(state, operations.address, decode_segment(subject), version)


@delete(_BINDING, **READ, opt=access(Operation.BIND, Place.INSIDE))
async def unbind_subject(
    operations: InjectedOperations, subject: SubjectName, record_id: RecordId
) -> api.DeletedRecord:
    # DELETE /schema-registry/v1/cluster/{cluster}/tenant/{tenant}/subject/{subject}/binding/{record}
    """Remove the binding of a subject to this record. Other bindings stay."""
    number = translate.parse_record_id(record_id)
    await operations.unbind_subject(decode_segment(subject), number)
    return api.DeletedRecord(number)


ROUTES = [
    list_tenants,
    list_subjects,
    list_schemas,
    describe_schema,
    delete_schema_by_name,
    get_record,
    register_schema,
    update_schema,
    delete_schema,
    delete_version,
    get_schema,
    get_version,
    get_record_of_subject,
    list_records,
    find_schema,
    bind_subject,
    unbind_subject,
]
