"""Subjects: listing them; looking up, registering, deleting, checking and importing versions."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, Response, delete, get, post
from litestar.params import QueryParameter
from msgspec.structs import replace

from stele.apis.confluent import lists, metadata
from stele.apis.confluent import models as api
from stele.apis.confluent.errors import malformed_schema_message
from stele.apis.confluent.names import (
    WILDCARD,
    is_true,
    parse_prefix,
    parse_subject,
    parse_version,
    qualify_subject,
    slice_page,
)
from stele.apis.confluent.operations import versions
from stele.apis.confluent.operations.bulk_import import apply_import
from stele.apis.confluent.operations.schemas import (
    Operations,
    read_first_value,
    read_schema_body,
    require_visible,
)
from stele.apis.confluent.params import (
    READ,
    WRITE,
    AsNegative,
    Context,
    DeletedOnly,
    FindTags,
    Flag,
    InjectedOperations,
    Limit,
    Offset,
    Options,
    References,
    Shape,
    Subject,
    SubjectPrefix,
    Version,
    text_response,
    with_context_prefix,
)
from stele.apis.confluent.profiles import EmptySubject, Registered
from stele.apis.confluent.translate import (
    SERIALIZED,
    is_as_sent,
    is_descriptor,
    registration_out,
    text_out,
    version_out,
)
from stele.apis.http.access import Place, access
from stele.apis.http.application import openapi_body
from stele.apis.http.dependencies import REPEATABLE
from stele.apis.http.plain_endpoints import PLAIN
from stele.core import model, queries
from stele.core.access import Operation
from stele.core.commands import DeleteMode, RegisterSchema
from stele.core.decide.register import make_document
from stele.core.model import SubjectKey
from stele.core.state import State
from stele.errors import MalformedSchema, SubjectNotFound, VersionNotFound
from stele.protocol.confluent import ImportRequest, ImportResponse

_SCHEMA_BODY = openapi_body(api.RegisterSchemaRequest)
_ASKED_MOST: Options = {REPEATABLE: True, PLAIN: True}


@get(with_context_prefix("/subjects"), **READ, opt=access(Operation.LIST, Place.LIST))
async def list_subjects(
    operations: InjectedOperations,
    context: Context = "",
    subject_prefix: SubjectPrefix = WILDCARD,
    deleted: Flag = "",
    deleted_only: DeletedOnly = "",
    offset: Offset = "",
    limit: Limit = "",
) -> list[str]:
    # GET /subjects
    """Return the names of subjects. Those outside the default context are qualified."""
    state = await operations.registry.fresh_state()
    operations.note_names()
    prefix = parse_prefix(subject_prefix, context)
    with_deleted, only = is_true(deleted), is_true(deleted_only)
    access = operations.registry.access
    is_shown = access.make_filter()

    async def make_list() -> list[str]:
        slices = operations.registry.time_slices
        subjects = await lists.list_subjects(slices, state, prefix, by_age=operations.profile.by_age)
        return [
            qualify_subject(subject.key)
            async for subject in slices.iterate(subjects)
            if lists.has_versions(subject, deleted=with_deleted, deleted_only=only) and is_shown(subject.key)
        ]

    names = await operations.lists.find_subjects(state, (prefix, with_deleted, only, access.view_key), make_list)
    return slice_page(names, offset, limit, operations.options.max_items)


@post(
    with_context_prefix("/subjects/{subject:str}"),
    operation_class=_SCHEMA_BODY,
    **WRITE,
    opt=access(Operation.READ) | _ASKED_MOST,
)
async def look_up_schema(
    operations: InjectedOperations,
    request: Request[Any, Any, Any],
    subject: Subject,
    context: Context = "",
    normalize: Flag = "",
    deleted: Flag = "",
    format: Shape = "",  # noqa: A002 - the parameter's name in the API
) -> api.SubjectVersionBody:
    # POST /subjects/{subject}
    """Return the version of a subject that has the schema in the body."""
    body = await read_schema_body(operations, request)
    state, subject_ref = await operations.resolve_subject(subject, context)
    lives = queries.ACTIVE_OR_SOFT_DELETED if is_true(deleted) else queries.ACTIVE_ONLY
    key = operations.resolve_across_contexts(state, subject_ref, lives)
    operations.note_dependency(subject_ref, key, body)
    version = await operations.look_up(state, key, body, normalize=is_true(normalize), deleted=is_true(deleted))
    return version_out(
        state, version, operations.rendering_options(), await operations.render_version(state, version, format)
    )


@delete(with_context_prefix("/subjects/{subject:str}"), **WRITE, opt=access(Operation.DELETE))
async def delete_subject(
    operations: InjectedOperations, subject: Subject, context: Context = "", permanent: Flag = ""
) -> Response[list[int]]:
    # DELETE /subjects/{subject}
    """Delete all versions: first softly, then permanently.

    The header Stele-Warning shows where their records were seen.
    """
    _, subject_ref = await operations.resolve_subject(subject, context, Operation.DELETE)
    mode = DeleteMode.HARD if is_true(permanent) else DeleteMode.SOFT
    numbers, headers = await versions.delete_subject(operations, subject_ref.key, mode)
    return Response(list(numbers), headers=headers)


@get(with_context_prefix("/subjects/{subject:str}/versions"), **READ, opt=access(Operation.READ))
async def list_versions(
    operations: InjectedOperations,
    subject: Subject,
    context: Context = "",
    deleted: Flag = "",
    deleted_only: DeletedOnly = "",
    deleted_as_negative: AsNegative = "",
    offset: Offset = "",
    limit: Limit = "",
) -> list[int]:
    # GET /subjects/{subject}/versions
    """Return the version numbers, ascending."""
    state, subject_ref = await operations.resolve_subject(subject, context)
    only, negative = is_true(deleted_only), is_true(deleted_as_negative)
    lives = queries.ACTIVE_OR_SOFT_DELETED if is_true(deleted) or only or negative else queries.ACTIVE_ONLY
    rows = require_visible(state, subject_ref.key, lives)
    numbers = lists.list_version_numbers(rows, deleted_only=only, as_negative=negative)
    return slice_page(numbers, offset, limit, operations.options.max_items)


@post(
    with_context_prefix("/subjects/{subject:str}/versions"),
    operation_class=_SCHEMA_BODY,
    **WRITE,
    opt=access(Operation.REGISTER) | _ASKED_MOST,
)
async def register_schema(
    operations: InjectedOperations,
    request: Request[Any, Any, Any],
    subject: Subject,
    context: Context = "",
    normalize: Flag = "",
    force: Flag = "",
    format: Shape = "",  # noqa: A002 - the parameter's name in the API
) -> api.RegisterSchemaResponse:
    # POST /subjects/{subject}/versions
    """Register the schema in the body. A schema that is registered already is returned as it is."""
    body = await read_schema_body(operations, request)
    initial_state, subject_ref = await operations.resolve_subject(subject, context, Operation.REGISTER)
    operations.note_dependency(subject_ref, subject_ref.key, body)
    members = operations.profile.registered

    def make_answer(state: State, version: model.Version) -> tuple[api.RegisterSchemaResponse, model.Version | None]:
        if members is Registered.ID or (members is Registered.ID_UNLESS_CHANGED and is_as_sent(body, version)):
            return api.RegisterSchemaResponse(version.schema.schema_id), None
        return registration_out(state, version, operations.rendering_options()), version

    response, whole = await versions.register_schema(
        operations,
        subject_ref.key,
        body,
        make_answer,
        normalize=is_true(normalize),
        force=is_true(force),
        state=initial_state,
    )
    if whole is None:
        return response
    state = operations.registry.state
    # A descriptor is answered with a descriptor: clients cache this response, and may be unable to read source text.
    text = await operations.render_version(state, whole, format or (SERIALIZED if is_descriptor(body) else ""))
    return response if text is None else replace(response, schema=text)


@get(with_context_prefix("/subjects/{subject:str}/metadata"), **READ, opt=access(Operation.READ))
async def find_by_metadata(
    operations: InjectedOperations,
    subject: Subject,
    context: Context = "",
    keys: Annotated[list[str] | None, QueryParameter(name="key", description="names of properties")] = None,
    values: Annotated[
        list[str] | None, QueryParameter(name="value", description="values of the properties, in the same order")
    ] = None,
    deleted: Flag = "",
    format: Shape = "",  # noqa: A002 - the parameter's name in the API
) -> api.SubjectVersionBody:
    # GET /subjects/{subject}/metadata
    """Return the newest version with all these metadata properties."""
    state, subject_ref = await operations.resolve_subject(subject, context)
    lives = queries.ACTIVE_OR_SOFT_DELETED if is_true(deleted) else queries.ACTIVE_ONLY
    rows = require_visible(state, operations.resolve_across_contexts(state, subject_ref, lives), lives)
    version = lists.find_version_with_properties(rows, list(zip(keys or (), values or (), strict=False)))
    return version_out(
        state, version, operations.rendering_options(), await operations.render_version(state, version, format)
    )


_SCHEMA_BODY = openapi_body(api.RegisterSchemaRequest)
_TAGS_BODY = openapi_body(api.TagSchemaRequest)
_VERSION = "/subjects/{subject:str}/versions/{version:str}"


@get(with_context_prefix(_VERSION), **READ, opt=access(Operation.READ))
async def get_version(
    operations: InjectedOperations,
    subject: Subject,
    version: Version,
    context: Context = "",
    format: Shape = "",  # noqa: A002 - the parameter's name in the API
    reference_format: References = "",
    find_tags: FindTags = None,
    deleted: Flag = "",
) -> api.SubjectVersionBody:
    # GET /subjects/{subject}/versions/{version}
    """Return one version, or the latest."""
    state, row = await operations.find_version(subject, version, context, deleted=is_true(deleted))
    operations.note_dependency(parse_subject(subject, context), row.subject.key)
    style = operations.rendering_options(reference_format=reference_format, find_tags=find_tags)
    return version_out(state, row, style, await operations.render_version(state, row, format))


@get(with_context_prefix(f"{_VERSION}/schema"), **READ, opt=access(Operation.READ))
async def get_version_text(
    operations: InjectedOperations,
    subject: Subject,
    version: Version,
    context: Context = "",
    format: Shape = "",  # noqa: A002 - the parameter's name in the API
    deleted: Flag = "",
) -> Response[Any]:
    # GET /subjects/{subject}/versions/{version}/schema
    """Return the text of one version."""
    state, row = await operations.find_version(subject, version, context, deleted=is_true(deleted))
    operations.note_dependency(parse_subject(subject, context), row.subject.key)
    return text_response(await operations.render_version(state, row, format) or text_out(state, row.schema))


@get(
    [*with_context_prefix(f"{_VERSION}/referencedby"), *with_context_prefix(f"{_VERSION}/referencedBy")],
    **READ,
    opt=access(Operation.READ),
)
async def list_referrers(
    operations: InjectedOperations,
    subject: Subject,
    version: Version,
    context: Context = "",
    deleted: Flag = "",
    offset: Offset = "",
    limit: Limit = "",
) -> list[int]:
    # GET /subjects/{subject}/versions/{version}/referencedby
    """Return the ids of schemas that refer to a version, ascending."""
    await operations.registry.fresh_state()
    lives = queries.ACTIVE_OR_SOFT_DELETED if is_true(deleted) else queries.ACTIVE_ONLY
    state, target = await operations.find_version(subject, version, context, deleted=is_true(deleted))
    rows = queries.list_referrers(state, target.subject.key, target.version_number, lives)
    is_shown = operations.registry.access.make_filter()
    ids = {row.schema.schema_id for row in rows if is_shown(row.subject.key)}
    return slice_page(sorted(ids), offset, limit, operations.options.max_items)


@delete(with_context_prefix(_VERSION), **WRITE, opt=access(Operation.DELETE))
async def delete_version(
    operations: InjectedOperations, subject: Subject, version: Version, context: Context = "", permanent: Flag = ""
) -> Response[int]:
    # DELETE /subjects/{subject}/versions/{version}
    """Delete one version: first softly, then permanently.

    The header Stele-Warning shows where its records were seen.
    """
    ordinal = parse_version(version)
    _, subject_ref = await operations.resolve_subject(subject, context, Operation.DELETE)
    mode = DeleteMode.HARD if is_true(permanent) else DeleteMode.SOFT
    numbers, headers = await versions.delete_version(operations, subject_ref.key, ordinal, mode)
    return Response(numbers[0], headers=headers)


@post(with_context_prefix(f"{_VERSION}/tags"), operation_class=_TAGS_BODY, **WRITE, opt=access(Operation.REGISTER))
async def tag_version(
    operations: InjectedOperations,
    request: Request[Any, Any, Any],
    subject: Subject,
    version: Version,
    context: Context = "",
) -> api.RegisterSchemaResponse:
    # POST /subjects/{subject}/versions/{version}/tags
    """Register a version's text again with other tags, metadata or rules."""
    body = await read_first_value(request, api.TagSchemaRequest)
    state, row = await operations.find_version(subject, version, context, deleted=False)
    attachments = metadata.tag_attachments(row.schema.attachments, body)
    command = RegisterSchema(
        key=row.subject.key,
        document=make_document(state.get_text(row.content), row.kind.format, row.kind.type),
        references=attachments.references,
        metadata=attachments.metadata,
        rule_set=attachments.rule_set,
        version_number=body.new_version if (body.new_version or 0) > 0 else None,
    )
    return await versions.register_with_retry(
        operations,
        lambda state: versions.with_version_number(state, command),
        lambda state, version: registration_out(state, version, operations.rendering_options()),
    )


# --- compatibility --------------------------------------------------------------------------------------------------

_CHECKS = "/compatibility/subjects/{subject:str}/versions"


@post(with_context_prefix(_CHECKS), operation_class=_SCHEMA_BODY, **WRITE, opt=access(Operation.READ) | _ASKED_MOST)
async def check_against_all(
    operations: InjectedOperations,
    request: Request[Any, Any, Any],
    subject: Subject,
    context: Context = "",
    normalize: Flag = "",
    verbose: Flag = "",
) -> api.CompatibilityCheckResponse:
    # POST /compatibility/subjects/{subject}/versions
    """Return whether the schema in the body could be registered now."""
    body = await read_schema_body(operations, request)
    _, subject_ref = await operations.resolve_subject(subject, context)
    operations.note_dependency(subject_ref, subject_ref.key, body)
    return await _check_schema(operations, subject_ref.key, body, None, normalize, verbose)


@post(
    with_context_prefix(f"{_CHECKS}/{{version:str}}"),
    operation_class=_SCHEMA_BODY,
    **WRITE,
    opt=access(Operation.READ) | _ASKED_MOST,
)
async def check_against_version(
    operations: InjectedOperations,
    request: Request[Any, Any, Any],
    subject: Subject,
    version: Version,
    context: Context = "",
    normalize: Flag = "",
    verbose: Flag = "",
) -> api.CompatibilityCheckResponse:
    # POST /compatibility/subjects/{subject}/versions/{version}
    """Return whether the schema in the body is compatible with one version.

    If the latest version is meant and there is none, the answer depends on the profile: compatible, or 404.
    """
    body = await read_schema_body(operations, request)
    ordinal = parse_version(version)
    state, subject_ref = await operations.resolve_subject(subject, context)
    operations.note_dependency(subject_ref, subject_ref.key, body)
    if ordinal is not None:
        return await _check_schema(operations, subject_ref.key, body, ordinal, normalize, verbose)
    while True:
        latest = _latest_number(state, subject_ref.key)
        if latest is None and operations.profile.empty_subject is EmptySubject.NO_SUBJECT:
            raise SubjectNotFound(qualify_subject(subject_ref.key))
        if latest is None and operations.profile.empty_subject is EmptySubject.NO_VERSION:
            raise VersionNotFound("latest")
        try:
            return await _check_schema(operations, subject_ref.key, body, latest, normalize, verbose)
        except VersionNotFound:
            # It was deleted in the meantime: another version is the latest one now, or there is none.
            state = await operations.registry.fresh_state()
            if _latest_number(state, subject_ref.key) == latest:
                raise


def _latest_number(state: State, key: SubjectKey) -> int | None:
    newest = queries.latest_version(state.find_subject(key))
    return None if newest is None else newest.version_number


async def _check_schema(
    operations: Operations,
    key: SubjectKey,
    body: api.RegisterSchemaRequest,
    ordinal: int | None,
    normalize: str,
    verbose: str,
) -> api.CompatibilityCheckResponse:
    try:
        messages = await operations.check_compatibility(key, body, ordinal, normalize=is_true(normalize))
    except MalformedSchema as error:
        if not is_true(verbose) or operations.profile.is_karapace:
            raise
        messages = [malformed_schema_message(error)]
    is_verbose = is_true(verbose) or (operations.profile.is_karapace and messages)
    return api.CompatibilityCheckResponse(not messages, messages if is_verbose else None)


@post(
    "/subjects:import", operation_class=openapi_body(ImportRequest), **WRITE, opt=access(Operation.IMPORT, Place.INSIDE)
)
async def import_all(operations: InjectedOperations, request: Request[Any, Any, Any]) -> ImportResponse:
    # POST /subjects:import
    """Import versions, keys, associations and exporters of another registry, with their ids and times."""
    return await apply_import(operations, await read_first_value(request, ImportRequest))


ROUTES = [
    list_subjects,
    look_up_schema,
    delete_subject,
    list_versions,
    register_schema,
    find_by_metadata,
    get_version,
    get_version_text,
    list_referrers,
    delete_version,
    tag_version,
    check_against_all,
    check_against_version,
    import_all,
]
