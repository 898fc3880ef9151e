"""What there is: tenants of a cluster, subjects of a tenant; and schemas by name and by id, whether or not a subject is
bound to them, which RIP-42 asks of a store.
"""

from __future__ import annotations

from litestar import delete, get

from stele.apis.http.paths import decode_segment
from stele.apis.rocketmq import entities as api
from stele.apis.rocketmq import translate
from stele.apis.rocketmq.parameters import READ, AtDesk, RecordId, SchemaName, of_tenant
from stele.core import queries


@get("/cluster/{cluster:str}/tenants", **READ)
async def list_tenants(desk: AtDesk) -> list[str]:
    # GET /schema-registry/v1/cluster/{cluster}/tenants
    """The tenants with subjects in a cluster, sorted; what other dialects registered is in every cluster."""
    state = await desk.registry.fresh_state()
    spaces = {row.role for row in desk.bindings_in(state)}
    spaces |= {
        space.name
        for space in queries.visible_namespaces(state)
        if any(map(translate.is_foreign, space.subjects.values()))
    }
    return sorted(translate.tenant_of(space) for space in spaces)


@get("/cluster/{cluster:str}/tenant/{tenant:str}/subjects", **READ)
async def list_subjects(desk: AtDesk) -> list[str]:
    # GET /schema-registry/v1/cluster/{cluster}/tenant/{tenant}/subjects
    """The subjects of a tenant in a cluster, sorted; what other dialects registered is in every cluster."""
    state = await desk.registry.fresh_state()
    names = {row.resource for row in desk.bindings_in(state) if row.role == desk.place.space}
    space = state.find_namespace(desk.place.space)
    subjects = space.subjects.values() if space is not None else ()
    return sorted(names | {subject.key.name for subject in subjects if translate.is_foreign(subject)})


@get(of_tenant("/schemas"), **READ)
async def list_schemas(desk: AtDesk) -> list[str]:
    # GET /schema-registry/v1/tenant/{tenant}/schemas
    """The schemas of a tenant, sorted: an extension, the store's `list` of RIP-42."""
    state = await desk.registry.fresh_state()
    space = state.find_namespace(desk.place.space)
    subjects = space.subjects.values() if space is not None else ()
    return sorted(subject.key.name for subject in subjects if queries.latest_version(subject) is not None)


@get(of_tenant("/schema/{schema_name:str}"), **READ)
async def describe_schema(desk: AtDesk, schema_name: SchemaName) -> api.Schema:
    # GET /schema-registry/v1/tenant/{tenant}/schema/{schema}
    """A schema with its policy, its records and their subjects: an extension, the store's `get` of RIP-42."""
    state, rows = await desk.rows(decode_segment(schema_name))
    bound = desk.bindings_of(state, rows[0].subject)
    records = [translate.schema_record(state, row, bound.get(row.version_number, [])) for row in rows]
    return translate.schema_out(state, rows, records)


@delete(of_tenant("/schema/{schema_name:str}"), **READ)
async def delete_named(desk: AtDesk, schema_name: SchemaName) -> api.Removed:
    # DELETE /schema-registry/v1/tenant/{tenant}/schema/{schema}
    """Delete a schema by its name, with all its versions and bindings: an extension, the store's `delete` of RIP-42."""
    _, rows = await desk.rows(decode_segment(schema_name))
    await desk.close(rows[-1].subject.key)
    return api.Removed(translate.record_id(rows[-1]))


@get(of_tenant("/record/{record_id:str}"), **READ)
async def get_record(desk: AtDesk, record_id: RecordId) -> api.SchemaRecord:
    # GET /schema-registry/v1/tenant/{tenant}/record/{record}
    """A record by its id, a deleted one too, or by a schema's id its newest record: the store's `get` of RIP-42."""
    state, version = await desk.by_id(translate.record_id_in(record_id))
    bound = desk.bindings_of(state, version.subject)
    return translate.schema_record(state, version, bound.get(version.version_number, []))


ROUTES = [list_tenants, list_subjects, list_schemas, describe_schema, delete_named, get_record]
