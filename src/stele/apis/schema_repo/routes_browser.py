"""schema-repo's browser: the reads of the API as HTML, for people; and what the server says of itself."""

from __future__ import annotations

import time
from typing import Annotated, Any

from litestar import MediaType, Request, Response, get
from litestar.params import QueryParameter

from stele import __version__
from stele.apis.http.paths import decode_segment
from stele.apis.schema_repo.bodies import HTML, TEXT, rendering
from stele.apis.schema_repo.desk import AtDesk
from stele.apis.schema_repo.faults import ERRORS
from stele.apis.schema_repo.options import SchemaRepoOptions
from stele.apis.schema_repo.pages import HEADERS, render_schemas, render_subjects, render_text
from stele.apis.schema_repo.renderings import properties
from stele.apis.schema_repo.routes_subjects import CONFIG_TITLE, SchemaId, SubjectName
from stele.errors import ContentNotFound, StoreError

_READ: dict[str, Any] = {"media_type": MediaType.HTML, "responses": ERRORS}
_TEXT: dict[str, Any] = {"media_type": MediaType.TEXT, "responses": ERRORS}

IncludeDefaults = Annotated[
    str, QueryParameter(name="includeDefaults", schema_extra={"type": "boolean"}, description="`true`: all of them")
]


def _at(path: str) -> list[str]:
    """A path below both places the browser is found at."""
    return [f"/avro1124/schema-repo-browser{path}", f"/schema-repo-browser{path}"]


@get(_at(""), **_READ)
async def browse_subjects(desk: AtDesk, request: Request[Any, Any, Any]) -> Response[str]:
    # GET /schema-repo-browser
    """All subjects."""
    return _page(render_subjects(_root(request), await desk.names()))


@get(_at("/{subject:str}/all"), **_READ)
async def browse_schemas(desk: AtDesk, request: Request[Any, Any, Any], subject: SubjectName) -> Response[str]:
    # GET /schema-repo-browser/{subject}/all
    """All schemas of a subject, newest first."""
    name = decode_segment(subject)
    return _page(render_schemas(_root(request), name, (await desk.rows(name))[::-1]))


@get(_at("/{subject:str}/latest"), **_READ)
async def browse_latest(desk: AtDesk, request: Request[Any, Any, Any], subject: SubjectName) -> Response[str]:
    # GET /schema-repo-browser/{subject}/latest
    """The newest schema of a subject."""
    name = decode_segment(subject)
    try:
        schema_id, text = await desk.latest(name)
        rows = [(schema_id, text.decode("utf-8", "replace"))]
    except ContentNotFound:
        rows = []
    return _page(render_schemas(_root(request), name, rows))


@get(_at("/{subject:str}/config"), **_READ)
async def browse_config(desk: AtDesk, request: Request[Any, Any, Any], subject: SubjectName) -> Response[str]:
    # GET /schema-repo-browser/{subject}/config
    """The config of a subject."""
    text = properties(CONFIG_TITLE, await desk.config(decode_segment(subject)), time.time())
    return _page(render_text(_root(request), decode_segment(subject), text))


@get(_at("/{subject:str}/id/{id:str}"), **_READ)
async def browse_schema(
    desk: AtDesk, request: Request[Any, Any, Any], subject: SubjectName, schema_id: SchemaId
) -> Response[str]:
    # GET /schema-repo-browser/{subject}/id/{id}
    """One schema."""
    name, asked = decode_segment(subject), decode_segment(schema_id)
    text = (await desk.schema(name, asked)).decode("utf-8", "replace")
    return _page(render_text(_root(request), f"{name} {asked}", text))


@get(["/avro1124/status", "/schema-repo-admin/status", "/status"], **_TEXT)
async def status(desk: AtDesk) -> Response[str]:
    # GET /schema-repo-admin/status
    """Whether the store answers."""
    try:
        await desk.registry.read_log(desk.registry.state.seq, 1)
    except StoreError as error:
        return Response(f"ERROR : {error}", status_code=503, media_type=MediaType.TEXT)
    return Response(f"OK : Stele {__version__}", media_type=MediaType.TEXT)


@get(["/avro1124/config", "/schema-repo-admin/config"], **_TEXT)
async def server_config(
    desk: AtDesk, request: Request[Any, Any, Any], include_defaults: IncludeDefaults = ""
) -> Response[str]:
    # GET /schema-repo-admin/config
    """What the operator has set for these dialects, or with defaults everything, as Java properties."""
    shape = rendering(request, TEXT, HTML)
    told = _properties(desk.options)
    if include_defaults.lower() != "true":
        defaults = _properties(SchemaRepoOptions())
        told = {name: value for name, value in told.items() if defaults.get(name) != value}
    text = properties("config of the server", told, time.time())
    if shape == HTML:
        return _page(render_text(_root(request), "Config", text))
    return Response(text, media_type=MediaType.TEXT)


def _properties(options: SchemaRepoOptions) -> dict[str, str]:
    models = {f"schema-repo.validator.{name}": ",".join(words) for name, words in options.models.items()}
    return {
        "schema-repo.ids": options.ids,
        "schema-repo.read-only": str(options.read_only).lower(),
        "schema-repo.validation.default.validators": ",".join(options.default_validators),
        **models,
    }


def _root(request: Request[Any, Any, Any]) -> str:
    """The path of the browser the request came to."""
    prefix = "/avro1124" if request.scope["path"].startswith("/avro1124/") else ""
    return f"{prefix}/schema-repo-browser"


def _page(html: str) -> Response[str]:
    return Response(html, media_type=MediaType.HTML, headers=HEADERS)


ROUTES = [
    browse_subjects,
    browse_schemas,
    browse_latest,
    browse_config,
    browse_schema,
    status,
    server_config,
]
