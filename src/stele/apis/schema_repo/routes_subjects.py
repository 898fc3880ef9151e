"""schema-repo: subjects with a config, schemas registered one after the other, each with its id."""

from __future__ import annotations

import time
from typing import Annotated, Any

from litestar import MediaType, Request, Response, get, post, put
from litestar.params import PathParameter

from stele.apis.http.openapi import openapi_body
from stele.apis.http.paths import decode_segment
from stele.apis.schema_repo.bodies import FORM, JSON, TEXT, read_form, read_text, rendering
from stele.apis.schema_repo.desk import AtDesk
from stele.apis.schema_repo.faults import ERRORS
from stele.apis.schema_repo.renderings import entries, entries_json, entry, lines, names_json, properties
from stele.apis.schema_repo.strategies import SEQUENTIAL

SubjectName = Annotated[str, PathParameter(description="name of a subject")]
SchemaId = Annotated[str, PathParameter(name="id", description="an id of the subject")]
LatestId = Annotated[str, PathParameter(description="id of the newest schema; nothing when there is none")]

_READ: dict[str, Any] = {"media_type": MediaType.TEXT, "responses": ERRORS}
_WRITE: dict[str, Any] = {**_READ, "status_code": 200}
_WITH_SCHEMA: dict[str, Any] = {**_WRITE, "operation_class": openapi_body(str, TEXT)}

CONFIG_TITLE = "config of the subject"


def _at(path: str) -> list[str]:
    """A path below both places the API is found at."""
    return [f"/avro1124/schema-repo{path}", f"/schema-repo{path}"]


@get(_at(""), **_READ)
async def list_subjects(desk: AtDesk, request: Request[Any, Any, Any]) -> Response[Any]:
    # GET /schema-repo
    """All subjects, as lines or JSON."""
    shape = rendering(request, TEXT, JSON)
    names = await desk.names()
    return _told(names_json(names) if shape == JSON else lines(names), shape)


@get(_at("/{subject:str}"), **_READ)
async def has_subject(desk: AtDesk, subject: SubjectName) -> str:
    # GET /schema-repo/{subject}
    """Nothing, if the subject exists."""
    await desk.subject(decode_segment(subject))
    return ""


@put(_at("/{subject:str}"), operation_class=openapi_body(dict[str, str], FORM), **_WRITE)
async def create_subject(desk: AtDesk, request: Request[Any, Any, Any], subject: SubjectName) -> str:
    # PUT /schema-repo/{subject}
    """Create a subject with this config; one that exists keeps its own. Answers the name."""
    await desk.create(decode_segment(subject), await read_form(request))
    return decode_segment(subject)


@get(_at("/{subject:str}/all"), **_READ)
async def list_schemas(desk: AtDesk, request: Request[Any, Any, Any], subject: SubjectName) -> Response[Any]:
    # GET /schema-repo/{subject}/all
    """All schemas with their ids, newest first, as lines or JSON."""
    shape = rendering(request, TEXT, JSON)
    rows = (await desk.rows(decode_segment(subject)))[::-1]
    return _told(entries_json(rows) if shape == JSON else entries(rows), shape)


@get(_at("/{subject:str}/config"), **_READ)
async def get_config(desk: AtDesk, request: Request[Any, Any, Any], subject: SubjectName) -> str:
    # GET /schema-repo/{subject}/config
    """The config of a subject as Java properties."""
    rendering(request, TEXT)
    return properties(CONFIG_TITLE, await desk.config(decode_segment(subject)), time.time())


@get(_at("/{subject:str}/latest"), **_READ)
async def get_latest(desk: AtDesk, request: Request[Any, Any, Any], subject: SubjectName) -> Response[Any]:
    # GET /schema-repo/{subject}/latest
    """The newest schema, after its id and a tab."""
    rendering(request, TEXT)
    schema_id, text = await desk.latest(decode_segment(subject))
    return _told(entry(schema_id, "").encode() + text, TEXT)


@get(_at("/{subject:str}/id/{id:str}"), **_READ)
async def get_schema(
    desk: AtDesk, request: Request[Any, Any, Any], subject: SubjectName, schema_id: SchemaId
) -> Response[Any]:
    # GET /schema-repo/{subject}/id/{id}
    """The text of a schema."""
    rendering(request, TEXT)
    return _told(await desk.schema(decode_segment(subject), decode_segment(schema_id)), TEXT)


@get(_at("/{subject:str}/integral"), **_READ)
async def is_integral(desk: AtDesk, subject: SubjectName) -> str:
    # GET /schema-repo/{subject}/integral
    """Whether ids are numbers."""
    await desk.subject(decode_segment(subject))
    return "true" if desk.options.ids == SEQUENTIAL else "false"


@post(_at("/{subject:str}/schema"), **_WITH_SCHEMA)
async def find_id(desk: AtDesk, request: Request[Any, Any, Any], subject: SubjectName) -> str:
    # POST /schema-repo/{subject}/schema
    """The id of a schema."""
    return await desk.id_of_text(decode_segment(subject), await read_text(request))


@put(_at("/{subject:str}/register"), **_WITH_SCHEMA)
async def register(desk: AtDesk, request: Request[Any, Any, Any], subject: SubjectName) -> str:
    # PUT /schema-repo/{subject}/register
    """Register a schema; answers its id, the old one when it is registered already."""
    return await desk.register(decode_segment(subject), await read_text(request))


@put(
    [*_at("/{subject:str}/register_if_latest/{latest:str}"), *_at("/{subject:str}/register_if_latest")], **_WITH_SCHEMA
)
async def register_if_latest(
    desk: AtDesk, request: Request[Any, Any, Any], subject: SubjectName, latest: LatestId = ""
) -> str:
    # PUT /schema-repo/{subject}/register_if_latest/{latest}
    """Register a schema if the newest one is still the one of that id."""
    return await desk.register_after(decode_segment(subject), await read_text(request), decode_segment(latest))


def _told(body: bytes | str, media_type: str) -> Response[Any]:
    return Response(body, media_type=media_type if media_type == JSON else MediaType.TEXT)


ROUTES = [
    list_subjects,
    has_subject,
    create_subject,
    list_schemas,
    get_config,
    get_latest,
    get_schema,
    is_integral,
    find_id,
    register,
    register_if_latest,
]
