"""Associations of subjects with the resources they describe (`/associations`)."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, delete, get, post, put
from litestar.params import PathParameter, QueryParameter
from msgspec.structs import replace

from stele.apis.confluent import models as api
from stele.apis.confluent.errors import BatchTooLarge, ErrorContext, InvalidAssociation, find_error_answer
from stele.apis.confluent.models import STRONG, TOPIC, WEAK, ErrorMessage
from stele.apis.confluent.names import (
    NoSuchResource,
    context_name,
    is_true,
    parse_context,
    parse_subject_key,
    slice_page,
)
from stele.apis.confluent.operations import associations as words
from stele.apis.confluent.operations.associations import (
    AssociationFilter,
    end_associations,
    list_out,
    make_associations,
    parse_request,
)
from stele.apis.confluent.operations.schemas import Operations, read_first_value
from stele.apis.confluent.params import (
    NOT_EMPTY,
    READ,
    WRITE,
    AssociationTypes,
    Context,
    InjectedOperations,
    Limit,
    Offset,
    ResourceType,
    Subject,
    with_context_prefix,
)
from stele.apis.http.access import Place, access
from stele.apis.http.application import openapi_body
from stele.apis.http.requests import decode_segment
from stele.core import queries
from stele.core.access import Operation
from stele.core.model import Binding
from stele.errors import SteleError

_MOST_REQUESTS = 1000
"""Most requests of one batch."""

_BODY = openapi_body(api.AssociationCreateOrUpdateRequest)
_MULTI_STATUS = {**WRITE, "status_code": 207}

_Id = Annotated[str, PathParameter(name="resourceId", schema_extra=NOT_EMPTY, description="id of a resource")]
_Namespace = Annotated[
    str, PathParameter(name="resourceNamespace", schema_extra=NOT_EMPTY, description="id of a cluster; `-` is any")
]
_Name = Annotated[
    str, PathParameter(name="resourceName", schema_extra=NOT_EMPTY, description="name of a resource; `-` is any")
]
_InContext = Annotated[str, QueryParameter(name="context", description="context of subjects without one")]
_DryRun = Annotated[
    str,
    QueryParameter(name="dryRun", schema_extra={"type": "boolean"}, description="`true`: only validate the request"),
]
_Cascade = Annotated[
    str,
    QueryParameter(
        name="cascadeLifecycle",
        schema_extra={"type": "boolean"},
        description="`true`: also delete the subjects of STRONG associations",
    ),
]
_Lifecycle = Annotated[str, QueryParameter(schema_extra={"enum": [STRONG, WEAK]})]


@get(with_context_prefix("/associations/subjects/{subject:str}"), **READ, opt=access(Operation.READ))
async def list_associations_of_subject(
    operations: InjectedOperations,
    subject: Subject,
    context: Context = "",
    resource_type: ResourceType = "",
    association_types: AssociationTypes = None,
    lifecycle: _Lifecycle = "",
    offset: Offset = "",
    limit: Limit = "",
) -> list[api.Association]:
    # GET /associations/subjects/{subject}
    """Return the associations of a subject."""
    state = await operations.registry.fresh_state()
    bindings = queries.bindings_of(state, [parse_subject_key(subject, context)])
    return _slice_associations(
        operations, list(bindings), _parse_filter(resource_type, association_types, lifecycle), offset, limit
    )


@get(with_context_prefix("/associations/resources/{resourceId:str}"), **READ, opt=access(Operation.READ, Place.LIST))
async def list_associations_of_resource(
    operations: InjectedOperations,
    resource_id: _Id,
    context: Context = "",
    resource_type: ResourceType = "",
    association_types: AssociationTypes = None,
    lifecycle: _Lifecycle = "",
    offset: Offset = "",
    limit: Limit = "",
) -> list[api.Association]:
    # GET /associations/resources/{resourceId}
    """Return the associations of a resource by its id."""
    wanted = _parse_filter(resource_type, association_types, lifecycle)
    bindings = words.find_by_resource_id(
        await operations.registry.fresh_state(), decode_segment(resource_id), wanted.resource_type
    )
    return _slice_associations(operations, bindings, wanted, offset, limit)


@get(
    with_context_prefix("/associations/resources/{resourceNamespace:str}/{resourceName:str}"),
    **READ,
    opt=access(Operation.READ, Place.LIST),
)
async def list_associations_of_name(
    operations: InjectedOperations,
    resource_namespace: _Namespace,
    resource_name: _Name,
    context: Context = "",
    resource_type: ResourceType = "",
    association_types: AssociationTypes = None,
    lifecycle: _Lifecycle = "",
    offset: Offset = "",
    limit: Limit = "",
) -> list[api.Association]:
    # GET /associations/resources/{resourceNamespace}/{resourceName}
    """Return the associations of a resource by its name, of a whole namespace, or of a name in all namespaces."""
    bindings = words.find_by_name(
        await operations.registry.fresh_state(), decode_segment(resource_namespace), decode_segment(resource_name)
    )
    return _slice_associations(
        operations, bindings, _parse_filter(resource_type, association_types, lifecycle), offset, limit
    )


@post(with_context_prefix("/associations"), operation_class=_BODY, **WRITE, opt=access(Operation.BIND, Place.INSIDE))
async def create_associations(
    operations: InjectedOperations,
    request: Request[Any, Any, Any],
    context: Context = "",
    in_context: _InContext = "",
    dry_run: _DryRun = "",
) -> api.AssociationResponse:
    # POST /associations
    """Associate a resource with subjects, and register their schemas. Existing associations are not changed.

    The query's `context` applies to subjects without a context of their own.
    """
    body = await read_first_value(request, api.AssociationCreateOrUpdateRequest)
    dry = is_true(dry_run)
    wishes = parse_request(body, _choose_context(context, in_context), dry_run=dry)
    return await make_associations(operations, wishes, create=True, dry_run=dry)


@put(
    with_context_prefix("/associations/resources/{resourceId:str}"),
    operation_class=_BODY,
    **WRITE,
    opt=access(Operation.BIND, Place.INSIDE),
)
async def create_or_update(
    operations: InjectedOperations,
    request: Request[Any, Any, Any],
    resource_id: _Id,
    context: Context = "",
    in_context: _InContext = "",
    dry_run: _DryRun = "",
) -> api.AssociationResponse:
    # PUT /associations/resources/{resourceId}
    """Associate a resource with subjects, and register their schemas. Existing associations are changed."""
    body = await read_first_value(request, api.AssociationCreateOrUpdateRequest)
    path_id = decode_segment(resource_id)
    if body.resource_id not in (None, path_id):
        raise InvalidAssociation("resourceId", "does not match the resource id of the path")
    dry = is_true(dry_run)
    wishes = parse_request(replace(body, resource_id=path_id), _choose_context(context, in_context), dry_run=dry)
    return await make_associations(operations, wishes, create=False, dry_run=dry)


@delete(
    with_context_prefix("/associations/resources/{resourceId:str}"),
    status_code=204,
    responses=READ["responses"],
    opt=access(Operation.BIND, Place.INSIDE),
)
async def delete_associations(
    operations: InjectedOperations,
    resource_id: _Id,
    context: Context = "",
    resource_type: ResourceType = "",
    association_types: AssociationTypes = None,
    cascade: _Cascade = "",
    dry_run: _DryRun = "",
) -> None:
    # DELETE /associations/resources/{resourceId}
    """Delete associations of a resource; with `cascadeLifecycle` also the subjects with a strong association."""
    wanted = _parse_filter(resource_type, association_types, "")
    await end_associations(
        operations, decode_segment(resource_id), wanted, cascade=is_true(cascade), dry_run=is_true(dry_run)
    )


@post(
    [*with_context_prefix("/associations:batch"), *with_context_prefix("/associations:batchMutate")],
    operation_class=openapi_body(api.AssociationBatchRequest),
    **_MULTI_STATUS,
    opt=access(Operation.BIND, Place.INSIDE),
)
async def mutate_batch(
    operations: InjectedOperations,
    request: Request[Any, Any, Any],
    context: Context = "",
    in_context: _InContext = "",
    dry_run: _DryRun = "",
) -> api.AssociationBatchResponse:
    # POST /associations:batchMutate
    """Create, change and delete associations of several resources; each has a result of its own."""
    body = await read_first_value(request, api.AssociationBatchRequest)
    if not body.requests:
        raise InvalidAssociation("requests", "cannot be null or empty")
    if len(body.requests) > _MOST_REQUESTS:
        raise BatchTooLarge
    inside, dry = _choose_context(context, in_context), is_true(dry_run)
    results = []
    for row in body.requests:
        try:
            results.append(api.AssociationResult(result=await _apply_steps(operations, row, inside, dry_run=dry)))
        except SteleError as error:
            results.append(api.AssociationResult(error=_error_out(operations, error, inside)))
    return api.AssociationBatchResponse(results)


@post(
    with_context_prefix("/associations:batchGet"),
    operation_class=openapi_body(api.AssociationBatchGetRequest),
    **_MULTI_STATUS,
    opt=access(Operation.READ, Place.LIST),
)
async def get_batch(
    operations: InjectedOperations, request: Request[Any, Any, Any], context: Context = ""
) -> api.AssociationBatchResponse:
    # POST /associations:batchGet
    """Return the associations of several resources; each has a result of its own."""
    body = await read_first_value(request, api.AssociationBatchGetRequest)
    if not body.requests:
        raise InvalidAssociation("requests", "cannot be null or empty")
    if len(body.requests) > _MOST_REQUESTS:
        raise BatchTooLarge
    state = await operations.registry.fresh_state()
    is_shown = operations.registry.access.make_filter(Operation.READ)
    results = []
    for row in body.requests:
        try:
            wanted = _parse_filter(row.resource_type or "", row.association_types, row.lifecycle or "")
            if row.resource_id:
                bindings = words.find_by_resource_id(state, row.resource_id, wanted.resource_type)
            elif row.resource_name and row.resource_namespace:
                bindings = words.find_by_name(state, row.resource_namespace, row.resource_name)
            else:
                raise InvalidAssociation("resourceId", "cannot be null or empty")
            visible = [binding for binding in bindings if is_shown(binding.subject)]
            results.append(api.AssociationResult(result=_resource_out(visible, wanted)))
        except SteleError as error:
            results.append(api.AssociationResult(error=_error_out(operations, error, "")))
    return api.AssociationBatchResponse(results)


# --- what endpoints share -------------------------------------------------------------------------------------------


def _choose_context(context: str, in_context: str) -> str:
    """Return the context of unqualified subjects, '' for the default one. Raises `InvalidContext`."""
    space = parse_context(context or in_context)
    return context_name(space) if space else ""


def _parse_filter(resource_type: str, roles: list[str] | None, lifecycle: str) -> AssociationFilter:
    if lifecycle not in ("", STRONG, WEAK):
        raise NoSuchResource
    return AssociationFilter(resource_type or TOPIC, tuple(roles or ()), (lifecycle,) if lifecycle else ())


def _slice_associations(
    operations: Operations, bindings: list[Binding], wanted: AssociationFilter, offset: str, limit: str
) -> list[api.Association]:
    is_shown = operations.registry.access.make_filter(Operation.READ)
    visible = [row for row in bindings if is_shown(row.subject)]
    return slice_page(list_out(visible, wanted), offset, limit, operations.options.max_schemas)


async def _apply_steps(
    operations: Operations, row: api.AssociationOpRequest, context: str, *, dry_run: bool
) -> api.AssociationResponse:
    """Carry out the steps of one request of a batch in order. The first refused step raises."""
    if not row.associations:
        raise InvalidAssociation("associations", "cannot be null or empty")
    associations: list[api.AssociationInfo] = []
    for step in row.associations:
        if step.op_type not in {"CREATE", "UPSERT", "DELETE"}:
            raise InvalidAssociation("opType", "must be one of CREATE, UPSERT, DELETE")
        if step.op_type == "DELETE":
            wanted = _parse_filter(row.resource_type or "", [words.parse_association_type(step.association_type)], "")
            cascade = bool(step.cascade_lifecycle)
            await end_associations(operations, row.resource_id or "", wanted, cascade=cascade, dry_run=dry_run)
            continue
        info = api.AssociationCreateOrUpdateInfo(
            step.subject, step.association_type, step.lifecycle, step.frozen, step.schema, step.normalize
        )
        one = api.AssociationCreateOrUpdateRequest(
            row.resource_name, row.resource_namespace, row.resource_id, row.resource_type, [info]
        )
        wishes = parse_request(one, context, dry_run=dry_run)
        answer = await make_associations(operations, wishes, create=step.op_type == "CREATE", dry_run=dry_run)
        associations.extend(answer.associations)
    return api.AssociationResponse(
        row.resource_name or "",
        row.resource_namespace or "",
        row.resource_id or "",
        row.resource_type or TOPIC,
        associations,
    )


def _resource_out(bindings: list[Binding], wanted: AssociationFilter) -> api.AssociationResponse:
    """Return the associations of one resource as a result of a batch; without its name if they are of several."""
    rows = [row for row in sorted(bindings, key=lambda row: row.key) if wanted.matches_binding(row)]
    infos = [words.info_out(row) for row in rows]
    if len({(row.cluster, row.resource, row.resource_id) for row in rows}) != 1:
        return api.AssociationResponse(associations=infos)
    first = rows[0]
    return api.AssociationResponse(first.resource, first.cluster, first.resource_id, first.resource_type, infos)


def _error_out(operations: Operations, error: SteleError, context: str) -> ErrorMessage:
    fault = find_error_answer(error, ErrorContext("", context or ".", operations.options))
    return ErrorMessage(fault.code, fault.message)


ROUTES = [
    list_associations_of_subject,
    list_associations_of_resource,
    list_associations_of_name,
    create_associations,
    create_or_update,
    delete_associations,
    mutate_batch,
    get_batch,
]
