"""Results of censuses of stored data, location by location, and the effects of deleting a version."""

from __future__ import annotations

from typing import Annotated, Any, Final

from litestar import Request, delete, get, put
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import PathParameter, QueryParameter

from stele.apis.http.access import Place, access
from stele.apis.http.application import openapi_body
from stele.apis.http.requests import decode_segment, parse_whole_number, read_body
from stele.apis.native.errors import ERRORS, NativeError
from stele.apis.native.params import InjectedState
from stele.core.access import Operation
from stele.core.model import MAX_INT32, SubjectKey
from stele.errors import InvalidName
from stele.service.policies import parse_level_name
from stele.service.usage import MOST_PLACES, CensusRecord, DeletionPreview, LocationUsage, UsagePage

PlaceName = Annotated[
    str, PathParameter(schema_extra={"minLength": 1}, description="`topic orders`, `table shop.orders`, a path …")
]
SubjectName = Annotated[
    str, PathParameter(name="subject", schema_extra={"minLength": 1}, description="`subject` or `:.namespace:subject`")
]
Number = Annotated[
    str | None,
    QueryParameter(
        name="version",
        schema_extra={"type": "integer", "minimum": 1},
        description="only this version; default: all active versions or, without one, all that are not deleted"
        " for good",
    ),
]
After = Annotated[str, QueryParameter(description="name of the place to start after")]
Limit = Annotated[
    str,
    QueryParameter(schema_extra={"type": "integer", "minimum": 1, "maximum": MOST_PLACES}, description="most places"),
]
InNamespace = Annotated[
    str | None, QueryParameter(name="namespace", description="only of this namespace; '' is the default namespace")
]
OfSubject = Annotated[str | None, QueryParameter(name="subject", description="only of subjects with this name")]

_MISSING = {404: ResponseSpec(NativeError, description="Nothing is recorded for the place", generate_examples=False)}
_READ_ONLY = {403: ResponseSpec(NativeError, description="The registry is read-only", generate_examples=False)}
_UNKNOWN = {404: ResponseSpec(NativeError, description="Subject or version not found", generate_examples=False)}
_REFUSED = {number: ERRORS[number] for number in (400, 422)}


@get("/api/usage", responses=_REFUSED, opt=access(Operation.READ, Place.LIST))
async def list_usage(
    app_state: InjectedState,
    after: After = "",
    limit: Limit = str(MOST_PLACES),
    namespace: InNamespace = None,
    subject: OfSubject = None,
) -> UsagePage:
    # GET /api/usage?after&limit&namespace&subject
    """Show the last census of every location, by name; for a namespace or subject, of locations with its records."""
    return await app_state.usage.list_places(
        after, parse_whole_number("limit", limit, 1, MOST_PLACES), namespace=namespace, subject=subject
    )


@get("/api/usage/{place:str}", responses=_MISSING, opt=access(Operation.READ, Place.INSIDE))
async def show_usage(app_state: InjectedState, place: PlaceName) -> LocationUsage:
    # GET /api/usage/{place}
    """Show the last census of a location."""
    return await app_state.usage.get_place(decode_segment(place))


@put(
    "/api/usage/{place:str}",
    operation_class=openapi_body(CensusRecord),
    responses=ERRORS | _READ_ONLY,
    opt=access(Operation.BIND, Place.INSIDE),
)
async def record_usage(request: Request[Any, Any, Any], app_state: InjectedState, place: PlaceName) -> LocationUsage:
    # PUT /api/usage/{place}
    """Store a census of a location in place of the previous one."""
    census = await read_body(request, CensusRecord)
    return await app_state.usage.record_census(decode_segment(place), census, via="native")


@delete(
    "/api/usage/{place:str}",
    status_code=200,
    responses=_MISSING | _READ_ONLY | _REFUSED,
    opt=access(Operation.BIND, Place.INSIDE),
)
async def forget_usage(request: Request[Any, Any, Any], app_state: InjectedState, place: PlaceName) -> LocationUsage:
    # DELETE /api/usage/{place}
    """Delete the census of a location, and return it."""
    return await app_state.usage.forget_place(decode_segment(place), via="native")


@get("/api/deletions/{subject:str}", responses=_UNKNOWN | _REFUSED, opt=access(Operation.READ))
async def preview_deletion(
    app_state: InjectedState, subject_name: SubjectName, version: Number = None
) -> DeletionPreview:
    # GET /api/deletions/{subject}?version
    """Show which versions would be deleted with a subject or one version, and where their records were seen."""
    level = parse_level_name(decode_segment(subject_name))
    if level.namespace is None or level.subject is None:
        raise InvalidName(decode_segment(subject_name), "names no subject")
    ordinal = None if version is None else parse_whole_number("version", version, 1, MAX_INT32)
    return await app_state.usage.preview_deletion(SubjectKey(level.namespace, level.subject), ordinal)


ROUTES: Final = (
    list_usage,
    show_usage,
    record_usage,
    forget_usage,
    preview_deletion,
)
"""Endpoints of usage."""
