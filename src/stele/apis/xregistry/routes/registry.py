"""The registry as a whole: its attributes, the export, capabilities and model."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Request, Response, get, patch, post, put

from stele.apis.http.access import NO_RIGHT_NEEDED, Place, access
from stele.apis.xregistry.attributes import REGISTRY_ATTRIBUTES
from stele.apis.xregistry.bodies import read_map, read_object
from stele.apis.xregistry.capabilities import build_offered_capabilities
from stele.apis.xregistry.errors import RegistryError
from stele.apis.xregistry.operations import EVERYTHING, InjectedOperations
from stele.apis.xregistry.params import READ, WRITE, Level
from stele.apis.xregistry.responses import json_response
from stele.apis.xregistry.updates import RequestUpdate
from stele.core.access import Operation


@get("/", **READ, opt=access(Operation.LIST, Place.LIST))
async def get_registry(operations: InjectedOperations) -> Response[Any]:
    # GET /
    """Return the registry. Members that `inline` names are shown in full."""
    return json_response(await operations.describe_registry())


@get("/export", **READ, opt=access(Operation.LIST, Place.LIST))
async def export_registry(operations: InjectedOperations) -> Response[Any]:
    # GET /export
    """Return the whole registry as one document, which can be imported elsewhere."""
    operations.flags = msgspec.structs.replace(operations.flags, doc=True)
    return json_response(await operations.describe_registry(EVERYTHING))


@put("/", **WRITE, opt=access(Operation.REGISTER, Place.REGISTRY))
async def put_registry(operations: InjectedOperations, request: Request[Any, Any, Any]) -> Response[Any]:
    # PUT /
    """Replace the attributes of the registry, and create or replace the groups in the request."""
    return await _change_registry(operations, request, patch=False)


@patch("/", **WRITE, opt=access(Operation.REGISTER, Place.REGISTRY))
async def patch_registry(operations: InjectedOperations, request: Request[Any, Any, Any]) -> Response[Any]:
    # PATCH /
    """Change attributes of the registry, and create or change the groups in the request."""
    return await _change_registry(operations, request, patch=True)


async def _change_registry(
    operations: InjectedOperations, request: Request[Any, Any, Any], *, patch: bool
) -> Response[Any]:
    operations.require_no_default()
    body = await read_object(request)
    await operations.write(lambda update: update.put_registry(body, patch=patch), Level.REGISTRY)
    return json_response(await operations.describe_registry())


@post("/", **WRITE, opt=access(Operation.REGISTER, Place.INSIDE))
async def post_groups_by_type(operations: InjectedOperations, request: Request[Any, Any, Any]) -> Response[Any]:
    # POST /
    """Create or replace the groups in the request; the registry itself stays as it is."""
    operations.require_no_default()
    body = await read_object(request)
    for name in body:
        if name != "schemagroups":
            code = "groups_only" if name in REGISTRY_ATTRIBUTES or name == "$schema" else "unknown_group_type"
            raise RegistryError(code, name=name)

    def change(update: RequestUpdate) -> list[str]:
        return update.put_groups(read_map(body.get("schemagroups"), "schemagroups", "/"), patch=False)

    written = await operations.write(change, Level.GROUP, owner=Level.REGISTRY)
    return json_response({"schemagroups": dict(await operations.describe_groups(written))})


@get("/capabilities", **READ, opt=NO_RIGHT_NEEDED)
async def get_capabilities(operations: InjectedOperations) -> Response[Any]:
    # GET /capabilities
    """Return the capabilities of the server."""
    return json_response(await operations.describe_configuration("capabilities"))


@get("/capabilitiesoffered", **READ, opt=NO_RIGHT_NEEDED)
async def get_offered_capabilities(operations: InjectedOperations) -> Response[Any]:
    # GET /capabilitiesoffered
    """Return the possible values of each capability."""
    return json_response(build_offered_capabilities(await operations.describe_configuration("capabilities")))


@get("/model", **READ, opt=NO_RIGHT_NEEDED)
async def get_model(operations: InjectedOperations) -> Response[Any]:
    # GET /model
    """Return the whole model: groups of schemas, with all attributes."""
    return json_response(await operations.describe_configuration("model"))


@get("/modelsource", **READ, opt=NO_RIGHT_NEEDED)
async def get_model_source(operations: InjectedOperations) -> Response[Any]:
    # GET /modelsource
    """Return the extensions of the core specification's model."""
    return json_response(await operations.describe_configuration("modelsource"))


@get("/.xregistry", **READ, opt=NO_RIGHT_NEEDED)
async def list_known_registries(operations: InjectedOperations) -> Response[Any]:
    # GET /.xregistry
    """Return the URLs of other xRegistry servers that the setting `known_registries` names."""
    return json_response({"registries": operations.known_registries})


ROUTES = [
    get_registry,
    export_registry,
    put_registry,
    patch_registry,
    post_groups_by_type,
    get_capabilities,
    get_offered_capabilities,
    get_model,
    get_model_source,
    list_known_registries,
]
