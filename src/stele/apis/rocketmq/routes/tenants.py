"""Tenants of a cluster, and subjects, schemas and records of a tenant.

RIP-42 asks a store for schemas by name and by id, whether or not a subject is bound to them.
"""

from __future__ import annotations

from litestar import delete, get

from stele.apis.http.paths import decode_segment
from stele.apis.rocketmq import translate
from stele.apis.rocketmq.params import READ, InjectedOperations, RecordId, SchemaName, tenant_paths
from stele.core import queries
from stele.protocol import rocketmq as api


@get("/cluster/{cluster:str}/tenants", **READ)
async def list_tenants(operations: InjectedOperations) -> list[str]:
    # GET /schema-registry/v1/cluster/{cluster}/tenants
    """Return the sorted tenants with subjects in a cluster; schemas of other dialects are in every cluster."""
    state = await operations.registry.fresh_state()
    namespaces = {row.role for row in operations.list_bindings(state)}
    namespaces |= {
        namespace.name
        for namespace in queries.visible_namespaces(state)
        if any(map(translate.is_foreign, namespace.subjects.values()))
    }
    return sorted(translate.tenant_of(namespace) for namespace in namespaces)


@get("/cluster/{cluster:str}/tenant/{tenant:str}/subjects", **READ)
async def list_subjects(operations: InjectedOperations) -> list[str]:
    # GET /schema-registry/v1/cluster/{cluster}/tenant/{tenant}/subjects
    """Return the sorted subjects of a tenant in a cluster; schemas of other dialects are in every cluster."""
    state = await operations.registry.fresh_state()
    names = {row.resource for row in operations.list_bindings(state) if row.role == operations.address.namespace}
    namespace = state.find_namespace(operations.address.namespace)
    subjects = namespace.subjects.values() if namespace is not None else ()
    return sorted(names | {subject.key.name for subject in subjects if translate.is_foreign(subject)})


@get(tenant_paths("/schemas"), **READ)
async def list_schemas(operations: InjectedOperations) -> list[str]:
    # GET /schema-registry/v1/tenant/{tenant}/schemas
    """Return the sorted schemas of a tenant: an extension, the store's `list` of RIP-42."""
    state = await operations.registry.fresh_state()
    namespace = state.find_namespace(operations.address.namespace)
    subjects = namespace.subjects.values() if namespace is not None else ()
    return sorted(subject.key.name for subject in subjects if queries.latest_version(subject) is not None)


@get(tenant_paths("/schema/{schema_name:str}"), **READ)
async def describe_schema(operations: InjectedOperations, schema_name: SchemaName) -> api.SchemaDescription:
    # GET /schema-registry/v1/tenant/{tenant}/schema/{schema}
    """Return a schema with its policy, records and their subjects: an extension, the store's `get` of RIP-42."""
    state, rows = await operations.list_live_versions(decode_segment(schema_name))
    bound = operations.bindings_by_version(state, rows[0].subject)
    records = [translate.build_schema_record(state, row, bound.get(row.version_number, [])) for row in rows]
    return translate.schema_body(state, rows, records)


@delete(tenant_paths("/schema/{schema_name:str}"), **READ)
async def delete_schema_by_name(operations: InjectedOperations, schema_name: SchemaName) -> api.DeletedRecord:
    # DELETE /schema-registry/v1/tenant/{tenant}/schema/{schema}
    """Delete a schema by its name, with its versions and bindings: an extension, the store's `delete` of RIP-42."""
    _, rows = await operations.list_live_versions(decode_segment(schema_name))
    await operations.delete_schema_by_key(rows[-1].subject.key)
    return api.DeletedRecord(translate.record_id(rows[-1]))


@get(tenant_paths("/record/{record_id:str}"), **READ)
async def get_record(operations: InjectedOperations, record_id: RecordId) -> api.RecordWithSubjects:
    # GET /schema-registry/v1/tenant/{tenant}/record/{record}
    """Return a record by its id, also a deleted one, or the newest of a schema's id: the store's `get` of RIP-42."""
    state, version = await operations.get_record(translate.parse_record_id(record_id))
    bound = operations.bindings_by_version(state, version.subject)
    return translate.build_schema_record(state, version, bound.get(version.version_number, []))


ROUTES = [list_tenants, list_subjects, list_schemas, describe_schema, delete_schema_by_name, get_record]
