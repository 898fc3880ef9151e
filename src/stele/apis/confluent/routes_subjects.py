"""Subjects: listing, looking up, registering, deleting."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, Response, delete, get, post
from litestar.params import QueryParameter
from msgspec.structs import replace

from stele.apis.confluent import entities as api
from stele.apis.confluent import lists, registering
from stele.apis.confluent.associating import delete_subject as delete_associated
from stele.apis.confluent.desk import require_visible, visible_elsewhere
from stele.apis.confluent.in_use import Doomed
from stele.apis.confluent.names import WILDCARD, is_true, page, prefix_of
from stele.apis.confluent.options import OLD
from stele.apis.confluent.parameters import (
    READ,
    WRITE,
    AsNegative,
    AtDesk,
    Context,
    DeletedOnly,
    Flag,
    Limit,
    Offset,
    Shape,
    Subject,
    SubjectPrefix,
    everywhere,
)
from stele.apis.confluent.translate import SERIALIZED, as_sent, is_descriptor, registration_out, version_out
from stele.apis.http.bodies import read_body
from stele.apis.http.openapi import openapi_body
from stele.core import queries
from stele.core.commands import DeletedVersions, DeleteMode
from stele.errors import ContentNotFound

_SCHEMA_BODY = openapi_body(api.RegisterSchemaRequest)


@get(everywhere("/subjects"), **READ)
async def list_subjects(
    desk: AtDesk,
    context: Context = "",
    subject_prefix: SubjectPrefix = WILDCARD,
    deleted: Flag = "",
    deleted_only: DeletedOnly = "",
    offset: Offset = "",
    limit: Limit = "",
) -> list[str]:
    # GET /subjects
    """Names of subjects, those outside the default context qualified."""
    state = await desk.registry.fresh_state()
    names = lists.subject_names(
        state, prefix_of(subject_prefix, context), deleted=is_true(deleted), deleted_only=is_true(deleted_only)
    )
    return page(names, offset, limit, desk.options.max_items)


@post(everywhere("/subjects/{subject:str}"), operation_class=_SCHEMA_BODY, **WRITE)
async def look_up(
    desk: AtDesk,
    request: Request[Any, Any, Any],
    subject: Subject,
    context: Context = "",
    normalize: Flag = "",
    deleted: Flag = "",
    format: Shape = "",  # noqa: A002 - the parameter's name in the API
) -> api.Schema:
    # POST /subjects/{subject}
    """The version of a subject that has the schema in the body."""
    body = await read_body(request, api.RegisterSchemaRequest)
    state, asked = await desk.asked(subject, context)
    lives = queries.ACTIVE_OR_SOFT_DELETED if is_true(deleted) else queries.ACTIVE_ONLY
    key = visible_elsewhere(state, asked, lives)
    draft = await desk.draft(state, key, body, normalize=is_true(normalize))
    require_visible(state, key, lives)
    found = await desk.equivalent(state, key, draft, deleted=is_true(deleted))
    if found is None:
        raise ContentNotFound
    return version_out(state, found, desk.style(), await desk.rendered(state, found, format))


@delete(everywhere("/subjects/{subject:str}"), **WRITE)
async def delete_subject(
    desk: AtDesk, subject: Subject, context: Context = "", permanent: Flag = ""
) -> Response[list[int]]:
    # DELETE /subjects/{subject}
    """Delete all versions: first softly, then for good. The header Stele-Warning says where their records were seen."""
    state, asked = await desk.asked(subject, context)
    doomed = Doomed(state, asked.key)
    removal = DeleteMode.HARD if is_true(permanent) else DeleteMode.SOFT
    outcome = await delete_associated(desk, asked.key, removal)
    assert isinstance(outcome, DeletedVersions)
    return Response(list(outcome.version_numbers), headers=doomed.headers(desk, outcome.version_numbers))


@get(everywhere("/subjects/{subject:str}/versions"), **READ)
async def list_versions(
    desk: AtDesk,
    subject: Subject,
    context: Context = "",
    deleted: Flag = "",
    deleted_only: DeletedOnly = "",
    deleted_as_negative: AsNegative = "",
    offset: Offset = "",
    limit: Limit = "",
) -> list[int]:
    # GET /subjects/{subject}/versions
    """Version numbers, ascending."""
    state, asked = await desk.asked(subject, context)
    only, negative = is_true(deleted_only), is_true(deleted_as_negative)
    lives = queries.ACTIVE_OR_SOFT_DELETED if is_true(deleted) or only or negative else queries.ACTIVE_ONLY
    rows = require_visible(state, asked.key, lives)
    numbers = lists.numbers(rows, deleted_only=only, as_negative=negative)
    return page(numbers, offset, limit, desk.options.max_items)


@post(everywhere("/subjects/{subject:str}/versions"), operation_class=_SCHEMA_BODY, **WRITE)
async def register(
    desk: AtDesk,
    request: Request[Any, Any, Any],
    subject: Subject,
    context: Context = "",
    normalize: Flag = "",
    force: Flag = "",
    format: Shape = "",  # noqa: A002 - the parameter's name in the API
) -> api.RegisterSchemaResponse:
    # POST /subjects/{subject}/versions
    """Register the schema in the body; the same schema again answers what is there."""
    body = await read_body(request, api.RegisterSchemaRequest)
    _, asked = await desk.asked(subject, context)
    state, version = await registering.register(
        desk, asked.key, body, normalize=is_true(normalize), force=is_true(force)
    )
    if desk.options.profile == OLD and as_sent(body, version):
        return api.RegisterSchemaResponse(version.schema.schema_id)
    shown = registration_out(state, version, desk.style())
    # Who sends a descriptor gets one back: clients keep this answer, and cannot read source where they wrote none.
    text = await desk.rendered(state, version, format or (SERIALIZED if is_descriptor(body) else ""))
    return shown if text is None else replace(shown, schema=text)


@get(everywhere("/subjects/{subject:str}/metadata"), **READ)
async def find_by_metadata(
    desk: AtDesk,
    subject: Subject,
    context: Context = "",
    keys: Annotated[list[str] | None, QueryParameter(name="key", description="names of properties")] = None,
    values: Annotated[list[str] | None, QueryParameter(name="value", description="their values in that order")] = None,
    deleted: Flag = "",
    format: Shape = "",  # noqa: A002 - the parameter's name in the API
) -> api.Schema:
    # GET /subjects/{subject}/metadata
    """The newest version with all those metadata properties."""
    state, asked = await desk.asked(subject, context)
    lives = queries.ACTIVE_OR_SOFT_DELETED if is_true(deleted) else queries.ACTIVE_ONLY
    rows = require_visible(state, visible_elsewhere(state, asked, lives), lives)
    found = lists.with_properties(rows, list(zip(keys or (), values or (), strict=False)))
    return version_out(state, found, desk.style(), await desk.rendered(state, found, format))


ROUTES = [list_subjects, look_up, delete_subject, list_versions, register, find_by_metadata]
