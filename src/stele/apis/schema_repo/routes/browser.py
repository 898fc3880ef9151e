"""schema-repo's browser, which shows the reading API as HTML pages; and status and config of the server."""

from __future__ import annotations

import time
from typing import Annotated, Any

from litestar import MediaType, Request, Response, get
from litestar.params import QueryParameter

from stele import __version__
from stele.apis.http.access import NO_RIGHT_NEEDED, Place, access
from stele.apis.http.dependencies import VOLATILE
from stele.apis.http.requests import decode_segment
from stele.apis.schema_repo.errors import ERROR_RESPONSES
from stele.apis.schema_repo.operations import InjectedOperations
from stele.apis.schema_repo.options import SchemaRepoOptions
from stele.apis.schema_repo.params import HTML, TEXT, choose_media_type
from stele.apis.schema_repo.routes.subjects import CONFIG_TITLE, SchemaId, SubjectName
from stele.apis.schema_repo.translate import (
    format_properties,
    render_schemas,
    render_subjects,
    render_text,
)
from stele.core.access import Operation
from stele.errors import ContentNotFound, StoreError
from stele.templates import PAGE_HEADERS

_READ: dict[str, Any] = {"media_type": MediaType.HTML, "responses": ERROR_RESPONSES}
_TEXT: dict[str, Any] = {"media_type": MediaType.TEXT, "responses": ERROR_RESPONSES}

IncludeDefaults = Annotated[
    str, QueryParameter(name="includeDefaults", schema_extra={"type": "boolean"}, description="`true`: all schemas")
]


def _below_mounts(path: str) -> list[str]:
    """Return a path below both places where the browser is mounted."""
    return [f"/avro1124/schema-repo-browser{path}", f"/schema-repo-browser{path}"]


@get(_below_mounts(""), **_READ, opt=access(Operation.LIST, Place.LIST))
async def browse_subjects(operations: InjectedOperations, request: Request[Any, Any, Any]) -> Response[str]:
    # GET /schema-repo-browser
    """Show all subjects."""
    names = await operations.list_subjects()
    return _html_response(await operations.registry.run_stateless(render_subjects, _browser_root(request), names))


@get(_below_mounts("/{subject:str}/all"), **_READ, opt=access(Operation.READ))
async def browse_schemas(
    operations: InjectedOperations, request: Request[Any, Any, Any], subject: SubjectName
) -> Response[str]:
    # GET /schema-repo-browser/{subject}/all
    """Show all schemas of a subject, newest first."""
    name = decode_segment(subject)
    rows = (await operations.list_schemas(name))[::-1]
    return _html_response(await operations.registry.run_stateless(render_schemas, _browser_root(request), name, rows))


@get(_below_mounts("/{subject:str}/latest"), **_READ, opt=access(Operation.READ))
async def browse_latest(
    operations: InjectedOperations, request: Request[Any, Any, Any], subject: SubjectName
) -> Response[str]:
    # GET /schema-repo-browser/{subject}/latest
    """Show the newest schema of a subject."""
    name = decode_segment(subject)
    try:
        schema_id, text = await operations.get_latest(name)
        rows = [(schema_id, text.decode("utf-8", "replace"))]
    except ContentNotFound:
        rows = []
    return _html_response(render_schemas(_browser_root(request), name, rows))


@get(_below_mounts("/{subject:str}/config"), **_READ, opt=access(Operation.READ) | {VOLATILE: True})
async def browse_config(
    operations: InjectedOperations, request: Request[Any, Any, Any], subject: SubjectName
) -> Response[str]:
    # GET /schema-repo-browser/{subject}/config
    """Show the config of a subject."""
    text = format_properties(CONFIG_TITLE, await operations.get_config(decode_segment(subject)), time.time())
    return _html_response(render_text(_browser_root(request), decode_segment(subject), text))


@get(_below_mounts("/{subject:str}/id/{id:str}"), **_READ, opt=access(Operation.READ))
async def browse_schema(
    operations: InjectedOperations, request: Request[Any, Any, Any], subject: SubjectName, schema_id: SchemaId
) -> Response[str]:
    # GET /schema-repo-browser/{subject}/id/{id}
    """Show one schema."""
    name, identifier = decode_segment(subject), decode_segment(schema_id)
    text = (await operations.get_schema(name, identifier)).decode("utf-8", "replace")
    return _html_response(render_text(_browser_root(request), f"{name} {identifier}", text))


@get(["/avro1124/status", "/schema-repo-admin/status", "/status"], **_TEXT, opt=NO_RIGHT_NEEDED | {VOLATILE: True})
async def get_status(operations: InjectedOperations) -> Response[str]:
    # GET /schema-repo-admin/status
    """Return status and version of the server; 503 if the store does not respond."""
    try:
        await operations.registry.read_log(operations.registry.state.seq, 1)
    except StoreError as error:
        return Response(f"ERROR : {error}", status_code=503, media_type=MediaType.TEXT)
    return Response(f"OK : Stele {__version__}", media_type=MediaType.TEXT)


@get(
    ["/avro1124/config", "/schema-repo-admin/config"],
    **_TEXT,
    opt=access(Operation.READ, Place.REGISTRY) | {VOLATILE: True},
)
async def get_server_config(
    operations: InjectedOperations, request: Request[Any, Any, Any], include_defaults: IncludeDefaults = ""
) -> Response[str]:
    # GET /schema-repo-admin/config
    """Return the options that the operator set for these dialects, or all with defaults, as Java properties."""
    shape = choose_media_type(request, TEXT, HTML)
    properties = _options_as_properties(operations.options)
    if include_defaults.lower() != "true":
        defaults = _options_as_properties(SchemaRepoOptions())
        properties = {name: value for name, value in properties.items() if defaults.get(name) != value}
    text = format_properties("config of the server", properties, time.time())
    if shape == HTML:
        return _html_response(render_text(_browser_root(request), "Config", text))
    return Response(text, media_type=MediaType.TEXT)


def _options_as_properties(options: SchemaRepoOptions) -> dict[str, str]:
    models = {f"schema-repo.validator.{name}": ",".join(words) for name, words in options.models.items()}
    return {
        "schema-repo.ids": options.ids,
        "schema-repo.read-only": str(options.read_only).lower(),
        "schema-repo.validation.default.validators": ",".join(options.default_validators),
        **models,
    }


def _browser_root(request: Request[Any, Any, Any]) -> str:
    """Return the root path of the browser in a request."""
    prefix = "/avro1124" if request.scope["path"].startswith("/avro1124/") else ""
    return f"{prefix}/schema-repo-browser"


def _html_response(html: str) -> Response[str]:
    return Response(html, media_type=MediaType.HTML, headers=dict(PAGE_HEADERS))


ROUTES = [
    browse_subjects,
    browse_schemas,
    browse_latest,
    browse_config,
    browse_schema,
    get_status,
    get_server_config,
]
