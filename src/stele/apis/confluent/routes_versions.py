"""One version of a subject: reading, deleting, tagging; and checks against versions."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, delete, get, post

from stele.apis.confluent import entities as api
from stele.apis.confluent import registering, tags
from stele.apis.confluent.associating import delete_version as delete_associated
from stele.apis.confluent.desk import Desk
from stele.apis.confluent.faults import sentence
from stele.apis.confluent.in_use import Doomed
from stele.apis.confluent.names import is_true, page, version_of
from stele.apis.confluent.parameters import (
    READ,
    WRITE,
    AtDesk,
    Context,
    FindTags,
    Flag,
    Limit,
    Offset,
    References,
    Shape,
    Subject,
    Version,
    everywhere,
    raw,
)
from stele.apis.confluent.translate import registration_out, text_of, version_out
from stele.apis.http.bodies import read_body
from stele.apis.http.openapi import openapi_body
from stele.core import queries
from stele.core.commands import DeletedVersions, DeleteMode, RegisterSchema
from stele.core.decide.register import make_document
from stele.core.model import SubjectKey
from stele.core.state import State
from stele.errors import MalformedSchema

_SCHEMA_BODY = openapi_body(api.RegisterSchemaRequest)
_TAGS_BODY = openapi_body(api.TagSchemaRequest)
_VERSION = "/subjects/{subject:str}/versions/{version:str}"


@get(everywhere(_VERSION), **READ)
async def get_version(
    desk: AtDesk,
    subject: Subject,
    version: Version,
    context: Context = "",
    format: Shape = "",  # noqa: A002 - the parameter's name in the API
    reference_format: References = "",
    find_tags: FindTags = None,
    deleted: Flag = "",
) -> api.Schema:
    # GET /subjects/{subject}/versions/{version}
    """One version, or the latest."""
    state, found = await desk.version(subject, version, context, deleted=is_true(deleted))
    style = desk.style(reference_format=reference_format, find_tags=find_tags)
    return version_out(state, found, style, await desk.rendered(state, found, format))


@get(everywhere(f"{_VERSION}/schema"), **READ)
async def get_version_text(
    desk: AtDesk,
    subject: Subject,
    version: Version,
    context: Context = "",
    format: Shape = "",  # noqa: A002 - the parameter's name in the API
    deleted: Flag = "",
) -> Response[Any]:
    # GET /subjects/{subject}/versions/{version}/schema
    """The text of one version."""
    state, found = await desk.version(subject, version, context, deleted=is_true(deleted))
    return raw(await desk.rendered(state, found, format) or text_of(state, found.schema))


@get([*everywhere(f"{_VERSION}/referencedby"), *everywhere(f"{_VERSION}/referencedBy")], **READ)
async def list_referrers(
    desk: AtDesk,
    subject: Subject,
    version: Version,
    context: Context = "",
    deleted: Flag = "",
    offset: Offset = "",
    limit: Limit = "",
) -> list[int]:
    # GET /subjects/{subject}/versions/{version}/referencedby
    """Ids of schemas that refer to a version, ascending."""
    await desk.registry.fresh_state()
    lives = queries.ACTIVE_OR_SOFT_DELETED if is_true(deleted) else queries.ACTIVE_ONLY
    state, found = await desk.version(subject, version, context, deleted=is_true(deleted))
    rows = queries.list_referrers(state, found.subject.key, found.version_number, lives)
    return page(sorted({row.schema.schema_id for row in rows}), offset, limit, desk.options.max_items)


@delete(everywhere(_VERSION), **WRITE)
async def delete_version(
    desk: AtDesk, subject: Subject, version: Version, context: Context = "", permanent: Flag = ""
) -> Response[int]:
    # DELETE /subjects/{subject}/versions/{version}
    """Delete one version: first softly, then for good. The header Stele-Warning says where its records were seen."""
    ordinal = version_of(version)
    state, asked = await desk.asked(subject, context)
    doomed = Doomed(state, asked.key)
    removal = DeleteMode.HARD if is_true(permanent) else DeleteMode.SOFT
    outcome = await delete_associated(desk, asked.key, ordinal, removal)
    assert isinstance(outcome, DeletedVersions)
    return Response(outcome.version_numbers[0], headers=doomed.headers(desk, outcome.version_numbers))


@post(everywhere(f"{_VERSION}/tags"), operation_class=_TAGS_BODY, **WRITE)
async def tag_version(
    desk: AtDesk, request: Request[Any, Any, Any], subject: Subject, version: Version, context: Context = ""
) -> api.RegisterSchemaResponse:
    # POST /subjects/{subject}/versions/{version}/tags
    """Register a version's text again with other tags, metadata or rules."""
    body = await read_body(request, api.TagSchemaRequest)
    state, found = await desk.version(subject, version, context, deleted=False)
    attachments = tags.changed(found.schema.attachments, body)
    command = RegisterSchema(
        key=found.subject.key,
        document=make_document(state.get_text(found.content), found.kind.format, found.kind.type),
        references=attachments.references,
        metadata=attachments.metadata,
        rule_set=attachments.rule_set,
        version_number=body.new_version if (body.new_version or 0) > 0 else None,
    )
    state, made = await registering.settled(desk, lambda state: registering.numbered(state, command))
    return registration_out(state, made, desk.style())


# --- compatibility --------------------------------------------------------------------------------------------------

_CHECKS = "/compatibility/subjects/{subject:str}/versions"


@post(everywhere(_CHECKS), operation_class=_SCHEMA_BODY, **WRITE)
async def check_against_all(
    desk: AtDesk,
    request: Request[Any, Any, Any],
    subject: Subject,
    context: Context = "",
    normalize: Flag = "",
    verbose: Flag = "",
) -> api.CompatibilityCheckResponse:
    # POST /compatibility/subjects/{subject}/versions
    """Whether the schema in the body could be registered now."""
    body = await read_body(request, api.RegisterSchemaRequest)
    _, asked = await desk.asked(subject, context)
    return await _checked(desk, asked.key, body, None, normalize, verbose)


@post(everywhere(f"{_CHECKS}/{{version:str}}"), operation_class=_SCHEMA_BODY, **WRITE)
async def check_against_version(
    desk: AtDesk,
    request: Request[Any, Any, Any],
    subject: Subject,
    version: Version,
    context: Context = "",
    normalize: Flag = "",
    verbose: Flag = "",
) -> api.CompatibilityCheckResponse:
    # POST /compatibility/subjects/{subject}/versions/{version}
    """Whether the schema in the body is compatible with one version; a subject without versions takes anything."""
    body = await read_body(request, api.RegisterSchemaRequest)
    ordinal = version_of(version)
    state, asked = await desk.asked(subject, context)
    ordinal = ordinal if ordinal is not None else _latest(state, asked.key)
    return await _checked(desk, asked.key, body, ordinal, normalize, verbose)


def _latest(state: State, key: SubjectKey) -> int | None:
    newest = queries.latest_version(state.find_subject(key))
    return None if newest is None else newest.version_number


async def _checked(
    desk: Desk,
    key: SubjectKey,
    body: api.RegisterSchemaRequest,
    ordinal: int | None,
    normalize: str,
    verbose: str,
) -> api.CompatibilityCheckResponse:
    try:
        found = await desk.check(key, body, ordinal, normalize=is_true(normalize))
    except MalformedSchema as error:
        if not is_true(verbose):
            raise
        found = [sentence(error)]
    return api.CompatibilityCheckResponse(not found, found if is_true(verbose) else None)


ROUTES = [
    get_version,
    get_version_text,
    list_referrers,
    delete_version,
    tag_version,
    check_against_all,
    check_against_version,
]
