"""Exporters (`/exporters`): definitions, states and positions. `apis.confluent.exporting` runs the exporters."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, delete, get, post, put
from litestar.params import PathParameter

from stele.apis.confluent import models as api
from stele.apis.confluent import translate
from stele.apis.confluent.names import slice_page
from stele.apis.confluent.operations.schemas import VIA, read_first_value
from stele.apis.confluent.params import NOT_EMPTY, READ, WRITE, InjectedOperations, Limit, Offset
from stele.apis.http.access import Place, access
from stele.apis.http.application import openapi_body
from stele.apis.http.requests import decode_segment
from stele.core.access import Operation
from stele.service.delivery import exporter_definitions as definitions
from stele.service.delivery import exporters as stored
from stele.service.delivery.exporter_definitions import ExporterChange
from stele.service.delivery.exporters import COLLECTION, hide_config, read_exporter

_EXPORTER = "/exporters/{name:str}"
_BODY = openapi_body(api.ExporterRequest)
_CONFIG = dict[str, str | dict[str, str]]
_Name = Annotated[str, PathParameter(schema_extra=NOT_EMPTY, description="name of an exporter")]


@get("/exporters", **READ, opt=access(Operation.MANAGE_EXPORTERS, Place.REGISTRY))
async def list_exporters(operations: InjectedOperations, offset: Offset = "", limit: Limit = "") -> list[str]:
    # GET /exporters
    """Return the names of the exporters."""
    names = sorted(name for (name,) in await operations.read_items(COLLECTION))
    return slice_page(names, offset, limit, operations.options.max_items)


@post("/exporters", operation_class=_BODY, **WRITE, opt=access(Operation.MANAGE_EXPORTERS, Place.REGISTRY))
async def create_exporter(operations: InjectedOperations, request: Request[Any, Any, Any]) -> api.ExporterName:
    # POST /exporters
    """Create an exporter."""
    body = await read_first_value(request, api.ExporterRequest)
    exporter = await definitions.create_exporter(operations.registry, translate.read_change(body), VIA)
    return api.ExporterName(exporter.name)


@get(_EXPORTER, **READ, opt=access(Operation.MANAGE_EXPORTERS, Place.REGISTRY))
async def get_exporter(operations: InjectedOperations, name: _Name) -> api.Exporter:
    # GET /exporters/{name}
    """Return an exporter, with its credentials hidden."""
    return translate.exporter_out(read_exporter(await operations.read_items(COLLECTION), decode_segment(name)))


@put(_EXPORTER, operation_class=_BODY, **WRITE, opt=access(Operation.MANAGE_EXPORTERS, Place.REGISTRY))
async def update_exporter(
    operations: InjectedOperations, request: Request[Any, Any, Any], name: _Name
) -> api.ExporterName:
    # PUT /exporters/{name}
    """Change an exporter."""
    wanted = translate.read_change(await read_first_value(request, api.ExporterRequest))
    exporter = await definitions.update_exporter(operations.registry, decode_segment(name), wanted, VIA)
    return api.ExporterName(exporter.name)


@delete(_EXPORTER, **WRITE, opt=access(Operation.MANAGE_EXPORTERS, Place.REGISTRY))
async def delete_exporter(operations: InjectedOperations, name: _Name) -> api.ExporterName:
    # DELETE /exporters/{name}
    """Delete an exporter. The versions that it copied stay in the other registry."""
    exporter = await definitions.delete_exporter(operations.registry, decode_segment(name), VIA)
    return api.ExporterName(exporter.name)


@get(f"{_EXPORTER}/status", **READ, opt=access(Operation.MANAGE_EXPORTERS, Place.REGISTRY))
async def get_status(operations: InjectedOperations, name: _Name) -> api.ExporterStatus:
    # GET /exporters/{name}/status
    """Return the state of an exporter and its position."""
    exporter = read_exporter(await operations.read_items(COLLECTION), decode_segment(name))
    return translate.status_out(operations.registry.state, exporter)


@get(f"{_EXPORTER}/config", **READ, opt=access(Operation.MANAGE_EXPORTERS, Place.REGISTRY))
async def get_exporter_config(operations: InjectedOperations, name: _Name) -> dict[str, str]:
    # GET /exporters/{name}/config
    """Return the configuration of an exporter, with its credentials hidden."""
    return hide_config(read_exporter(await operations.read_items(COLLECTION), decode_segment(name)))


@put(
    f"{_EXPORTER}/config",
    operation_class=openapi_body(dict[str, str]),
    **WRITE,
    opt=access(Operation.MANAGE_EXPORTERS, Place.REGISTRY),
)
async def update_exporter_config(
    operations: InjectedOperations, request: Request[Any, Any, Any], name: _Name
) -> api.ExporterName:
    # PUT /exporters/{name}/config
    """Replace the configuration of an exporter; it may also be sent as a member `config`."""
    body = await read_first_value(request, _CONFIG)
    inner = body.get("config")
    config = inner if isinstance(inner, dict) else {k: v for k, v in body.items() if isinstance(v, str)}
    wanted = ExporterChange(config=config)
    exporter = await definitions.update_exporter(operations.registry, decode_segment(name), wanted, VIA)
    return api.ExporterName(exporter.name)


@put(f"{_EXPORTER}/pause", **WRITE, opt=access(Operation.MANAGE_EXPORTERS, Place.REGISTRY))
async def pause_exporter(operations: InjectedOperations, name: _Name) -> api.ExporterName:
    # PUT /exporters/{name}/pause
    """Pause an exporter. When it is resumed, it continues from its position."""
    exporter = await stored.pause_exporter(operations.registry, decode_segment(name), VIA)
    return api.ExporterName(exporter.name)


@put(f"{_EXPORTER}/resume", **WRITE, opt=access(Operation.MANAGE_EXPORTERS, Place.REGISTRY))
async def resume_exporter(operations: InjectedOperations, name: _Name) -> api.ExporterName:
    # PUT /exporters/{name}/resume
    """Resume an exporter that was paused or stopped by an error."""
    exporter = await stored.resume_exporter(operations.registry, decode_segment(name), VIA)
    return api.ExporterName(exporter.name)


@put(f"{_EXPORTER}/reset", **WRITE, opt=access(Operation.MANAGE_EXPORTERS, Place.REGISTRY))
async def reset_exporter(operations: InjectedOperations, name: _Name) -> api.ExporterName:
    # PUT /exporters/{name}/reset
    """Set the position of an exporter back to the beginning of the log."""
    exporter = await stored.reset_exporter(operations.registry, decode_segment(name), VIA)
    return api.ExporterName(exporter.name)


ROUTES = [
    list_exporters,
    create_exporter,
    get_exporter,
    update_exporter,
    delete_exporter,
    get_status,
    get_exporter_config,
    update_exporter_config,
    pause_exporter,
    resume_exporter,
    reset_exporter,
]
