"""Exporters (`/exporters`): definitions, states and positions. Nothing runs them yet, so none gets past STARTING."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from litestar import Request, delete, get, post, put
from litestar.params import PathParameter

from stele.apis.confluent import exporters
from stele.apis.confluent import models as api
from stele.apis.confluent.exporters import COLLECTION, PAUSED, STARTING, Stored
from stele.apis.confluent.names import page
from stele.apis.confluent.operations.dek_generation import now
from stele.apis.confluent.operations.schemas import Desk, read_kept
from stele.apis.confluent.params import NAMED, READ, WRITE, AtDesk, Limit, Offset
from stele.apis.http.openapi import openapi_body
from stele.apis.http.paths import decode_segment
from stele.service.collections import Changes, Items

_EXPORTER = "/exporters/{name:str}"
_BODY = openapi_body(api.ExporterRequest)
_CONFIG = dict[str, str | dict[str, str]]
_Name = Annotated[str, PathParameter(schema_extra=NAMED, description="name of an exporter")]


@get("/exporters", **READ)
async def list_exporters(desk: AtDesk, offset: Offset = "", limit: Limit = "") -> list[str]:
    # GET /exporters
    """Names of the exporters."""
    names = sorted(name for (name,) in await desk.items(COLLECTION))
    return page(names, offset, limit, desk.options.max_items)


@post("/exporters", operation_class=_BODY, **WRITE)
async def create_exporter(desk: AtDesk, request: Request[Any, Any, Any]) -> api.ExporterName:
    # POST /exporters
    """Define an exporter."""
    body = await read_kept(desk, request, api.ExporterRequest)
    return await _changed(desk, lambda items: exporters.created(items, body, now()))


@get(_EXPORTER, **READ)
async def get_exporter(desk: AtDesk, name: _Name) -> api.Exporter:
    # GET /exporters/{name}
    """An exporter, its credentials hidden."""
    return exporters.shown(exporters.read(await desk.items(COLLECTION), decode_segment(name)))


@put(_EXPORTER, operation_class=_BODY, **WRITE)
async def update_exporter(desk: AtDesk, request: Request[Any, Any, Any], name: _Name) -> api.ExporterName:
    # PUT /exporters/{name}
    """Change a paused exporter."""
    body = await read_kept(desk, request, api.ExporterRequest)
    return await _changed(desk, lambda items: exporters.updated(items, decode_segment(name), body, now()))


@delete(_EXPORTER, **WRITE)
async def delete_exporter(desk: AtDesk, name: _Name) -> api.ExporterName:
    # DELETE /exporters/{name}
    """Remove an exporter; what it copied stays where it is."""
    return await _changed(desk, lambda items: exporters.removed(items, decode_segment(name)))


@get(f"{_EXPORTER}/status", **READ)
async def get_status(desk: AtDesk, name: _Name) -> api.ExporterStatus:
    # GET /exporters/{name}/status
    """The state of an exporter, and how far it is."""
    return exporters.status(exporters.read(await desk.items(COLLECTION), decode_segment(name)))


@get(f"{_EXPORTER}/config", **READ)
async def get_exporter_config(desk: AtDesk, name: _Name) -> dict[str, str]:
    # GET /exporters/{name}/config
    """The configuration of an exporter, its credentials hidden."""
    return exporters.config_shown(exporters.read(await desk.items(COLLECTION), decode_segment(name)))


@put(f"{_EXPORTER}/config", operation_class=openapi_body(dict[str, str]), **WRITE)
async def update_exporter_config(desk: AtDesk, request: Request[Any, Any, Any], name: _Name) -> api.ExporterName:
    # PUT /exporters/{name}/config
    """Replace the configuration of a paused exporter; it may also be sent as a member `config`."""
    body = await read_kept(desk, request, _CONFIG)
    inner = body.get("config")
    config = inner if isinstance(inner, dict) else {k: v for k, v in body.items() if isinstance(v, str)}
    return await _changed(desk, lambda items: exporters.configured(items, decode_segment(name), config, now()))


@put(f"{_EXPORTER}/pause", **WRITE)
async def pause_exporter(desk: AtDesk, name: _Name) -> api.ExporterName:
    # PUT /exporters/{name}/pause
    """Let an exporter rest."""
    return await _changed(desk, lambda items: exporters.turned(items, decode_segment(name), PAUSED, now()))


@put(f"{_EXPORTER}/resume", **WRITE)
async def resume_exporter(desk: AtDesk, name: _Name) -> api.ExporterName:
    # PUT /exporters/{name}/resume
    """Let a paused exporter go on."""
    return await _changed(desk, lambda items: exporters.turned(items, decode_segment(name), STARTING, now()))


@put(f"{_EXPORTER}/reset", **WRITE)
async def reset_exporter(desk: AtDesk, name: _Name) -> api.ExporterName:
    # PUT /exporters/{name}/reset
    """Set a paused exporter back to the beginning."""
    return await _changed(desk, lambda items: exporters.rewound(items, decode_segment(name), now()))


async def _changed(desk: Desk, change: Callable[[Items], tuple[Changes, Stored]]) -> api.ExporterName:
    return api.ExporterName((await desk.edit(COLLECTION, change)).name)


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
