"""Replication: what this server replicates, and the endpoints that other registries use to replicate it.

Each replication shows its source, its target and its progress, and can be paused. Versions are read with all their
attributes, and replicas from other registries are imported.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from litestar import Request, Response, delete, get, post
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import PathParameter

from stele.apis.http.access import Place, access
from stele.apis.http.application import openapi_body
from stele.apis.http.dependencies import VOLATILE
from stele.apis.http.requests import decode_segment, find_base_uri, read_body
from stele.apis.native.errors import ERRORS, NativeError
from stele.apis.native.params import InjectedRegistry, InjectedState
from stele.core.access import Operation
from stele.errors import InvalidRequest
from stele.protocol import replication as api
from stele.service.replication import documents
from stele.service.replication.documents import Replication, ReplicationOverview, RunState
from stele.service.replication.importing import import_versions
from stele.service.replication.reading import read_versions

Name = Annotated[str, PathParameter(description="name of a replication")]
_NOT_FOUND = {404: ResponseSpec(NativeError, description="No such replication", generate_examples=False)}
_EXISTS = {409: ResponseSpec(NativeError, description="A replication with this name exists", generate_examples=False)}
_CREATED = {
    201: ResponseSpec(ReplicationOverview, description="The replication starts at once", generate_examples=False)
}
_RIGHT = access(Operation.MANAGE_EXPORTERS, Place.REGISTRY)
_READ = {VOLATILE: True, **_RIGHT}  # the lag grows without a record of the log


class ReplicationsOut(msgspec.Struct, frozen=True):
    """All replications, by name."""

    replications: list[ReplicationOverview]


@get("/api/replications", opt=_READ)
async def list_replications(registry: InjectedRegistry) -> ReplicationsOut:
    # GET /api/replications
    """Show all replications, the progress of each, and what blocks it."""
    return ReplicationsOut(await documents.list_replications(registry))


@post(
    "/api/replications",
    operation_class=openapi_body(Replication),
    status_code=201,
    responses={400: ERRORS[400], 413: ERRORS[413], 422: ERRORS[422], **_EXISTS, **_CREATED},
    opt=_RIGHT,
)
async def create_replication(
    request: Request[Any, Any, Any], app_state: InjectedState
) -> Response[ReplicationOverview]:
    # POST /api/replications
    """Start to replicate another registry (`pull`), or to send this one's changes there (`push`)."""
    wanted = await read_body(request, Replication)
    if not app_state.options.public_url:
        raise InvalidRequest("set public_url first: it is the authority of the schemas of this server")
    overview = await documents.create_replication(app_state.registry, wanted)
    return Response(overview, status_code=201)


@get("/api/replications/{replication:str}", responses=_NOT_FOUND, opt=_READ)
async def get_replication(registry: InjectedRegistry, replication: Name) -> ReplicationOverview:
    # GET /api/replications/{replication}
    """Show one replication, its progress, and what blocks it."""
    return await documents.get_replication(registry, decode_segment(replication))


@post("/api/replications/{replication:str}/pause", status_code=200, responses=_NOT_FOUND, opt=_RIGHT)
async def pause_replication(registry: InjectedRegistry, replication: Name) -> ReplicationOverview:
    # POST /api/replications/{replication}/pause
    """Stop a replication until it is resumed. No change is lost."""
    return await documents.set_run_state(registry, decode_segment(replication), RunState.PAUSED)


@post("/api/replications/{replication:str}/resume", status_code=200, responses=_NOT_FOUND, opt=_RIGHT)
async def resume_replication(registry: InjectedRegistry, replication: Name) -> ReplicationOverview:
    # POST /api/replications/{replication}/resume
    """Replicate all changes since it was paused, and continue."""
    return await documents.set_run_state(registry, decode_segment(replication), RunState.RUNNING)


@delete("/api/replications/{replication:str}", responses=_NOT_FOUND, opt=_RIGHT)
async def delete_replication(registry: InjectedRegistry, replication: Name) -> None:
    # DELETE /api/replications/{replication}
    """Delete a replication. Replicated subjects stay, and refuse other writers until their mode is changed."""
    await documents.delete_replication(registry, decode_segment(replication))


@post(
    api.READ_PATH,
    operation_class=openapi_body(api.ReadRequest),
    status_code=200,
    responses={number: ERRORS[number] for number in (400, 422)},
    opt=access(Operation.EXPORT, Place.INSIDE),
)
async def read_all_versions(request: Request[Any, Any, Any], app_state: InjectedState) -> api.ReadAnswer:
    # POST /api/versions/read
    """Show versions with uids, URIs, authorities, ids and states: of all subjects, of some, or by uid."""
    wanted = await read_body(request, api.ReadRequest)
    return await read_versions(app_state.registry, find_base_uri(request, app_state.options.public_url), wanted)


@post(
    api.IMPORT_PATH,
    operation_class=openapi_body(api.ReplicaImportRequest),
    status_code=200,
    responses={number: ERRORS[number] for number in (400, 413, 422)},
    opt=access(Operation.IMPORT, Place.INSIDE),
)
async def import_replicas(request: Request[Any, Any, Any], registry: InjectedRegistry) -> api.ImportAnswer:
    # POST /api/versions/import
    """Import replicas of versions of other registries, with their changes of state. It can be repeated."""
    return await import_versions(registry, await read_body(request, api.ReplicaImportRequest))


ROUTES: Final = (
    list_replications,
    create_replication,
    get_replication,
    pause_replication,
    resume_replication,
    delete_replication,
    read_all_versions,
    import_replicas,
)
"""Endpoints of replications, and those by which others replicate the registry."""
