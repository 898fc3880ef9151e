"""Versions with everything they have, for registries that replicate this one, and replicas from others."""

from __future__ import annotations

from typing import Any

from litestar import Request, post
from litestar.handlers import HTTPRouteHandler

from stele.apis.http.access import Place, access
from stele.apis.http.application import openapi_body
from stele.apis.http.requests import find_base_uri, read_body
from stele.apis.native.errors import ERRORS
from stele.core.access import Operation
from stele.protocol import replication as api
from stele.service.registry import Registry
from stele.service.replication.importing import import_versions
from stele.service.replication.reading import read_versions


def create_routes(registry: Registry, public_url: str) -> list[HTTPRouteHandler]:
    """Return the endpoints by which registries replicate this one."""

    @post(
        api.READ_PATH,
        operation_class=openapi_body(api.ReadRequest),
        status_code=200,
        responses={number: ERRORS[number] for number in (400, 422)},
        opt=access(Operation.EXPORT, Place.INSIDE),
    )
    async def read_all_versions(request: Request[Any, Any, Any]) -> api.ReadAnswer:
        # POST /api/versions/read
        """Show versions with uids, URIs, authorities, ids and states: of all subjects, of some, or by uid."""
        wanted = await read_body(request, api.ReadRequest)
        return await read_versions(registry, find_base_uri(request, public_url), wanted)

    @post(
        api.IMPORT_PATH,
        operation_class=openapi_body(api.ReplicaImportRequest),
        status_code=200,
        responses={number: ERRORS[number] for number in (400, 413, 422)},
        opt=access(Operation.IMPORT, Place.INSIDE),
    )
    async def import_replicas(request: Request[Any, Any, Any]) -> api.ImportAnswer:
        # POST /api/versions/import
        """Take in replicas of versions of other registries, and carry out what became of these; twice is harmless."""
        return await import_versions(registry, await read_body(request, api.ReplicaImportRequest))

    return [read_all_versions, import_replicas]
