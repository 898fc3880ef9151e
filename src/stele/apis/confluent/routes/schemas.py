"""Schemas by id and GUID, and the list of all schemas."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from litestar import Response, get
from msgspec.structs import replace

from stele.apis.confluent import lists
from stele.apis.confluent import models as api
from stele.apis.confluent.models import ExtendedSchema
from stele.apis.confluent.names import (
    NoSuchResource,
    SubjectRef,
    context_name,
    is_true,
    parse_integer,
    parse_page,
    parse_prefix,
    parse_subject,
    qualify_subject,
    slice_page,
)
from stele.apis.confluent.operations.schemas import Operations, find_schema_by_id
from stele.apis.confluent.params import (
    READ,
    AssociationTypes,
    Context,
    FetchMaxId,
    FindTags,
    Flag,
    Guid,
    IncludeSubjects,
    InjectedOperations,
    LatestOnly,
    Lifecycles,
    Limit,
    Offset,
    References,
    ResourceType,
    RuleType,
    SchemaId,
    Shape,
    SubjectPrefix,
    Text,
    text_response,
    with_context_prefix,
)
from stele.apis.confluent.translate import SCHEMA_TYPES, schema_out, text_out, version_out
from stele.apis.http.access import NO_RIGHT_NEEDED, Place, access
from stele.core.access import Operation
from stele.core.model import Binding, SchemaEntry, SubjectKey, Version
from stele.core.state import State
from stele.errors import ContentNotFound


@get(with_context_prefix("/schemas"), **READ, opt=access(Operation.READ, Place.LIST))
async def list_schemas(
    operations: InjectedOperations,
    context: Context = "",
    subject_prefix: SubjectPrefix = "",
    aliases: Flag = "",
    deleted: Flag = "",
    latest_only: LatestOnly = "",
    rule_type: RuleType = "",
    resource_type: ResourceType = "",
    association_types: AssociationTypes = None,
    lifecycles: Lifecycles = None,
    offset: Offset = "",
    limit: Limit = "",
) -> list[ExtendedSchema]:
    # GET /schemas
    """Return versions with their schemas, by subject and number; with associations if the query filters by them."""
    state = await operations.registry.fresh_state()
    slices = operations.registry.time_slices
    access = operations.registry.access
    can_read = access.make_filter(Operation.READ)
    prefix = parse_prefix(subject_prefix, context)
    wanted = lists.parse_association_filter(resource_type, association_types, lifecycles)
    known = lists.list_aliases(state, access.make_filter()) if is_true(aliases) else {}
    bindings = lists.list_bindings_by_subject(state) if wanted is not None else {}
    page = parse_page(offset, limit, operations.options.max_schemas)
    version_filter = lists.VersionFilter(is_true(deleted), is_true(latest_only), rule_type)

    def select_bindings(subject: SubjectKey) -> list[Binding] | None:
        return [] if wanted is None else wanted.select_bindings(bindings.get(subject, []))

    async def make_list() -> list[Version]:
        return [
            row
            async for one in slices.iterate(await lists.list_subjects(slices, state, prefix))
            if can_read(one.key) and select_bindings(one.key) is not None
            for row in lists.list_versions_of_subject(one, version_filter)
        ]

    associated = (resource_type, tuple(association_types or ()), tuple(lifecycles or ()))
    rows = await operations.lists.find_versions(state, (prefix, version_filter, associated, access.view_key), make_list)
    style = operations.rendering_options()
    return [
        lists.extend_schema(
            version_out(state, row, style, await operations.render_version(state, row, "")),
            known.get(row.subject.key, []),
            select_bindings(row.subject.key) or [],
        )
        async for row in slices.iterate(rows[page])
    ]


@get(with_context_prefix("/schemas/types"), **READ, opt=NO_RIGHT_NEEDED)
async def list_types() -> list[str]:
    # GET /schemas/types
    """Return the schema types that can be registered."""
    return list(SCHEMA_TYPES)


@get(with_context_prefix("/schemas/ids/{id:str}"), **READ, opt=access(Operation.READ, Place.INSIDE))
async def get_schema(
    operations: InjectedOperations,
    gid: SchemaId,
    context: Context = "",
    subject: Text = "",
    format: Shape = "",  # noqa: A002 - the parameter's name in the API
    reference_format: References = "",
    find_tags: FindTags = None,
    fetch_max_id: FetchMaxId = "",
    include_subjects: IncludeSubjects = "",
) -> api.SchemaString:
    # GET /schemas/ids/{id}
    """Return a schema by its id."""
    state, schema, version = await _find_schema(operations, gid, subject, context)
    text = await operations.render_schema(state, schema, format)
    style = operations.rendering_options(reference_format=reference_format, find_tags=find_tags)
    response = schema_out(state, schema, style, text=text, version=version)
    if is_true(fetch_max_id):
        response = replace(response, max_id=state.namespaces[schema.namespace].highest_schema_id)
    if is_true(include_subjects) and operations.profile.lists_subjects_of_id:
        response = replace(response, subjects=lists.list_users_of_schema(state, schema, operations.registry.access))
    return response


@get(with_context_prefix("/schemas/ids/{id:str}/schema"), **READ, opt=access(Operation.READ, Place.INSIDE))
async def get_schema_text(
    operations: InjectedOperations,
    gid: SchemaId,
    context: Context = "",
    subject: Text = "",
    format: Shape = "",  # noqa: A002 - the parameter's name in the API
) -> Response[Any]:
    # GET /schemas/ids/{id}/schema
    """Return a schema's text by its id."""
    state, schema, _ = await _find_schema(operations, gid, subject, context)
    return text_response(await operations.render_schema(state, schema, format) or text_out(state, schema))


@get(with_context_prefix("/schemas/ids/{id:str}/subjects"), **READ, opt=access(Operation.READ, Place.INSIDE))
async def list_subjects_of_id(
    operations: InjectedOperations,
    gid: SchemaId,
    context: Context = "",
    subject: Text = "",
    deleted: Flag = "",
    offset: Offset = "",
    limit: Limit = "",
) -> list[str]:
    # GET /schemas/ids/{id}/subjects
    """Return the subjects that have the schema."""
    rows = await _list_versions_of_schema(operations, gid, subject, context, deleted)
    names = dict.fromkeys(qualify_subject(row.subject.key) for row in rows)
    return slice_page(names, offset, limit, operations.options.max_items)


@get(with_context_prefix("/schemas/ids/{id:str}/versions"), **READ, opt=access(Operation.READ, Place.INSIDE))
async def list_versions_of_id(
    operations: InjectedOperations,
    gid: SchemaId,
    context: Context = "",
    subject: Text = "",
    deleted: Flag = "",
    offset: Offset = "",
    limit: Limit = "",
) -> list[api.SubjectVersion]:
    # GET /schemas/ids/{id}/versions
    """Return the versions that have the schema."""
    rows = await _list_versions_of_schema(operations, gid, subject, context, deleted)
    page = slice_page(rows, offset, limit, operations.options.max_items)
    return [api.SubjectVersion(qualify_subject(row.subject.key), row.version_number) for row in page]


@get("/schemas/guids/{guid:str}", **READ, opt=access(Operation.READ, Place.INSIDE))
async def get_schema_by_guid(
    operations: InjectedOperations,
    guid: Guid,
    format: Shape = "",  # noqa: A002 - the parameter's name in the API
) -> api.SchemaString:
    # GET /schemas/guids/{guid}
    """Return a schema by its GUID, which depends on its content only."""
    registry = operations.registry
    await operations.guids.hash_new_entries(await registry.fresh_state(), registry.time_slices)

    def look(state: State) -> tuple[State, SchemaEntry]:
        rows = operations.guids.find_schemas(state, _parse_guid(guid))
        schema = next(filter(registry.access.can_read_entry, rows), None)
        if schema is None:
            raise ContentNotFound(guid)
        return state, schema

    state, schema = await registry.read_or_catch_up(look)
    return schema_out(
        state, schema, operations.rendering_options(), text=await operations.render_schema(state, schema, format)
    )


@get("/schemas/guids/{guid:str}/ids", **READ, opt=access(Operation.READ, Place.LIST))
async def list_ids_of_guid(operations: InjectedOperations, guid: Guid) -> list[api.ContextId]:
    # GET /schemas/guids/{guid}/ids
    """Return the ids of a schema in all contexts that have it."""
    registry = operations.registry
    await operations.guids.hash_new_entries(await registry.fresh_state(), registry.time_slices)
    schemas = operations.guids.find_schemas(await registry.fresh_state(), _parse_guid(guid))
    return [
        api.ContextId(context_name(schema.namespace), schema.schema_id)
        for schema in schemas
        if registry.access.can_read_entry(schema)
    ]


def _parse_schema_id(text: str) -> int:
    if not text:
        raise NoSuchResource
    return parse_integer(text)


def _parse_guid(text: str) -> UUID:
    """Return a GUID. Raises `ContentNotFound` for a text that is no UUID."""
    try:
        return UUID(text)
    except ValueError:
        raise ContentNotFound(text) from None


def _parse_scope(subject: str, context: str) -> SubjectRef | None:
    """Return the subject, or the context alone, in which an id is looked up; None if the request names neither."""
    return parse_subject(subject, context) if subject or context else None


async def _find_schema(
    operations: Operations, gid: str, subject: str, context: str
) -> tuple[State, SchemaEntry, Version | None]:
    number, subject_ref = _parse_schema_id(gid), _parse_scope(subject, context)
    return await operations.registry.read_or_catch_up(
        lambda state: (state, *find_schema_by_id(state, number, subject_ref, operations.registry.access))
    )


async def _list_versions_of_schema(
    operations: Operations, gid: str, subject: str, context: str, deleted: str
) -> list[Version]:
    state = await operations.registry.fresh_state()
    number = _parse_schema_id(gid)
    access = operations.registry.access
    try:
        schema, _ = find_schema_by_id(state, number, _parse_scope(subject, context), access)
        is_shown = access.make_filter()
        rows = lists.list_versions_of_schema(schema, deleted=is_true(deleted))
        return [row for row in rows if is_shown(row.subject.key)]
    except ContentNotFound:
        raise (ContentNotFound(number) if operations.profile.names_missing_id else ContentNotFound) from None


BY_GUID = [get_schema_by_guid, list_ids_of_guid]
ROUTES = [
    list_schemas,
    list_types,
    get_schema,
    get_schema_text,
    list_subjects_of_id,
    list_versions_of_id,
    *BY_GUID,
]
