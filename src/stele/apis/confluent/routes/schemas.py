"""Schemas by id and GUID, and the list of everything."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from litestar import Response, get
from msgspec.structs import replace

from stele.apis.confluent import lists
from stele.apis.confluent import models as api
from stele.apis.confluent.models import ExtendedSchema
from stele.apis.confluent.names import (
    Asked,
    NoSuchResource,
    context_of,
    integer_of,
    is_true,
    page,
    prefix_of,
    qualified,
    subject_of,
)
from stele.apis.confluent.operations.schemas import Desk, schema_by_id
from stele.apis.confluent.params import (
    READ,
    AssociationTypes,
    AtDesk,
    Context,
    FetchMaxId,
    FindTags,
    Flag,
    Guid,
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
    everywhere,
    raw,
)
from stele.apis.confluent.translate import SCHEMA_TYPES, schema_out, text_of, version_out
from stele.core.model import SchemaEntry, Version
from stele.core.state import State
from stele.errors import ContentNotFound


@get(everywhere("/schemas"), **READ)
async def list_schemas(
    desk: AtDesk,
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
    """Versions with their schemas, by subject and number; with associations when they are asked about."""
    state = await desk.registry.fresh_state()
    rows = lists.all_versions(
        state,
        prefix_of(subject_prefix, context),
        deleted=is_true(deleted),
        latest_only=is_true(latest_only),
        rule_type=rule_type,
    )
    wanted = lists.association_filter(resource_type, association_types, lifecycles)
    known = lists.aliases(state) if is_true(aliases) else {}
    style = desk.style()
    return [
        lists.extended(
            version_out(state, row, style, await desk.rendered(state, row, "")), known.get(row.subject.key, []), bound
        )
        for row, bound in page(lists.associated(state, rows, wanted), offset, limit, desk.options.max_schemas)
    ]


@get(everywhere("/schemas/types"), **READ)
async def list_types() -> list[str]:
    # GET /schemas/types
    """The schema types that can be registered."""
    return list(SCHEMA_TYPES)


@get(everywhere("/schemas/ids/{id:str}"), **READ)
async def get_schema(
    desk: AtDesk,
    gid: SchemaId,
    context: Context = "",
    subject: Text = "",
    format: Shape = "",  # noqa: A002 - the parameter's name in the API
    reference_format: References = "",
    find_tags: FindTags = None,
    fetch_max_id: FetchMaxId = "",
) -> api.SchemaString:
    # GET /schemas/ids/{id}
    """A schema by its id."""
    state, schema, version = await _find(desk, gid, subject, context)
    text = await desk.rendered_schema(state, schema, format)
    style = desk.style(reference_format=reference_format, find_tags=find_tags)
    shown = schema_out(state, schema, style, text=text, version=version)
    return (
        replace(shown, max_id=state.namespaces[schema.namespace].highest_schema_id) if is_true(fetch_max_id) else shown
    )


@get(everywhere("/schemas/ids/{id:str}/schema"), **READ)
async def get_schema_text(
    desk: AtDesk,
    gid: SchemaId,
    context: Context = "",
    subject: Text = "",
    format: Shape = "",  # noqa: A002 - the parameter's name in the API
) -> Response[Any]:
    # GET /schemas/ids/{id}/schema
    """A schema's text by its id."""
    state, schema, _ = await _find(desk, gid, subject, context)
    return raw(await desk.rendered_schema(state, schema, format) or text_of(state, schema))


@get(everywhere("/schemas/ids/{id:str}/subjects"), **READ)
async def list_subjects_of_id(
    desk: AtDesk,
    gid: SchemaId,
    context: Context = "",
    subject: Text = "",
    deleted: Flag = "",
    offset: Offset = "",
    limit: Limit = "",
) -> list[str]:
    # GET /schemas/ids/{id}/subjects
    """Subjects that have the schema."""
    rows = await _uses(desk, gid, subject, context, deleted)
    names = dict.fromkeys(qualified(row.subject.key) for row in rows)
    return page(names, offset, limit, desk.options.max_items)


@get(everywhere("/schemas/ids/{id:str}/versions"), **READ)
async def list_versions_of_id(
    desk: AtDesk,
    gid: SchemaId,
    context: Context = "",
    subject: Text = "",
    deleted: Flag = "",
    offset: Offset = "",
    limit: Limit = "",
) -> list[api.SubjectVersion]:
    # GET /schemas/ids/{id}/versions
    """Versions that have the schema."""
    rows = await _uses(desk, gid, subject, context, deleted)
    shown = page(rows, offset, limit, desk.options.max_items)
    return [api.SubjectVersion(qualified(row.subject.key), row.version_number) for row in shown]


@get("/schemas/guids/{guid:str}", **READ)
async def get_schema_by_guid(
    desk: AtDesk,
    guid: Guid,
    format: Shape = "",  # noqa: A002 - the parameter's name in the API
) -> api.SchemaString:
    # GET /schemas/guids/{guid}
    """A schema by the name its content gives it."""

    def look(state: State) -> tuple[State, SchemaEntry]:
        found = desk.guids.find(state, _guid(guid))
        if not found:
            raise ContentNotFound(guid)
        return state, found[0]

    state, schema = await desk.registry.read_or_catch_up(look)
    return schema_out(state, schema, desk.style(), text=await desk.rendered_schema(state, schema, format))


@get("/schemas/guids/{guid:str}/ids", **READ)
async def list_ids_of_guid(desk: AtDesk, guid: Guid) -> list[api.ContextId]:
    # GET /schemas/guids/{guid}/ids
    """The ids of a schema in every context that has it."""
    found = desk.guids.find(await desk.registry.fresh_state(), _guid(guid))
    return [api.ContextId(context_of(schema.namespace), schema.schema_id) for schema in found]


def _gid(text: str) -> int:
    if not text:
        raise NoSuchResource
    return integer_of(text)


def _guid(text: str) -> UUID:
    """The GUID; one that cannot be has no schema."""
    try:
        return UUID(text)
    except ValueError:
        raise ContentNotFound(text) from None


def _asked(subject: str, context: str) -> Asked | None:
    """The subject, or just the context, that an id is looked up in."""
    return subject_of(subject, context) if subject or context else None


async def _find(desk: Desk, gid: str, subject: str, context: str) -> tuple[State, SchemaEntry, Version | None]:
    number, asked = _gid(gid), _asked(subject, context)
    return await desk.registry.read_or_catch_up(lambda state: (state, *schema_by_id(state, number, asked)))


async def _uses(desk: Desk, gid: str, subject: str, context: str, deleted: str) -> list[Version]:
    state = await desk.registry.fresh_state()
    try:
        schema, _ = schema_by_id(state, _gid(gid), _asked(subject, context))
    except ContentNotFound:
        raise ContentNotFound from None
    return lists.uses(schema, deleted=is_true(deleted))


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
