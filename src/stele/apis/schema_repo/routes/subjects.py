"""schema-repo: subjects with a config, and their schemas."""

from __future__ import annotations

import time
from typing import Annotated, Any

from litestar import MediaType, Request, Response, get, post, put
from litestar.params import PathParameter

from stele.apis.http.access import Place, access
from stele.apis.http.application import openapi_body
from stele.apis.http.dependencies import VOLATILE
from stele.apis.http.requests import decode_segment
from stele.apis.schema_repo.errors import ERROR_RESPONSES
from stele.apis.schema_repo.ids import SEQUENTIAL
from stele.apis.schema_repo.operations import InjectedOperations
from stele.apis.schema_repo.params import FORM, JSON, TEXT, choose_media_type, read_form, read_text
from stele.apis.schema_repo.translate import (
    encode_entries,
    encode_names,
    format_entries,
    format_entry,
    format_lines,
    format_properties,
)
from stele.core.access import Operation

SubjectName = Annotated[str, PathParameter(description="name of a subject")]
SchemaId = Annotated[str, PathParameter(name="id", description="an id of the subject")]
LatestId = Annotated[str, PathParameter(description="id of the newest schema; empty if there is none")]

_READ: dict[str, Any] = {"media_type": MediaType.TEXT, "responses": ERROR_RESPONSES}
_WRITE: dict[str, Any] = {**_READ, "status_code": 200}
_WITH_SCHEMA: dict[str, Any] = {**_WRITE, "operation_class": openapi_body(str, TEXT)}

CONFIG_TITLE = "config of the subject"


def _below_mounts(path: str) -> list[str]:
    """Return a path below both places where the API is mounted."""
    return [f"/avro1124/schema-repo{path}", f"/schema-repo{path}"]


@get(_below_mounts(""), **_READ, opt=access(Operation.LIST, Place.LIST))
async def list_subjects(operations: InjectedOperations, request: Request[Any, Any, Any]) -> Response[Any]:
    # GET /schema-repo
    """Return all subjects, as lines or JSON."""
    shape = choose_media_type(request, TEXT, JSON)
    names = await operations.list_subjects()
    return _text_response(encode_names(names) if shape == JSON else format_lines(names), shape)


@get(_below_mounts("/{subject:str}"), **_READ, opt=access(Operation.LIST))
async def has_subject(operations: InjectedOperations, subject: SubjectName) -> str:
    # GET /schema-repo/{subject}
    """Return an empty body if the subject exists."""
    await operations.get_subject(decode_segment(subject))
    return ""


@put(
    _below_mounts("/{subject:str}"),
    operation_class=openapi_body(dict[str, str], FORM),
    **_WRITE,
    opt=access(Operation.REGISTER),
)
async def create_subject(operations: InjectedOperations, request: Request[Any, Any, Any], subject: SubjectName) -> str:
    # PUT /schema-repo/{subject}
    """Create a subject with this config and return its name; an existing one keeps its config."""
    await operations.create_subject(decode_segment(subject), await read_form(request))
    return decode_segment(subject)


@get(_below_mounts("/{subject:str}/all"), **_READ, opt=access(Operation.READ))
async def list_schemas(
    operations: InjectedOperations, request: Request[Any, Any, Any], subject: SubjectName
) -> Response[Any]:
    # GET /schema-repo/{subject}/all
    """Return all schemas with their ids, newest first, as lines or JSON."""
    shape = choose_media_type(request, TEXT, JSON)
    rows = (await operations.list_schemas(decode_segment(subject)))[::-1]
    return _text_response(encode_entries(rows) if shape == JSON else format_entries(rows), shape)


@get(_below_mounts("/{subject:str}/config"), **_READ, opt=access(Operation.READ) | {VOLATILE: True})
async def get_config(operations: InjectedOperations, request: Request[Any, Any, Any], subject: SubjectName) -> str:
    # GET /schema-repo/{subject}/config
    """Return the config of a subject as Java properties."""
    choose_media_type(request, TEXT)
    return format_properties(CONFIG_TITLE, await operations.get_config(decode_segment(subject)), time.time())


@get(_below_mounts("/{subject:str}/latest"), **_READ, opt=access(Operation.READ))
async def get_latest(
    operations: InjectedOperations, request: Request[Any, Any, Any], subject: SubjectName
) -> Response[Any]:
    # GET /schema-repo/{subject}/latest
    """Return the id of the newest schema, a tab, and its text."""
    choose_media_type(request, TEXT)
    schema_id, text = await operations.get_latest(decode_segment(subject))
    return _text_response(format_entry(schema_id, "").encode() + text, TEXT)


@get(_below_mounts("/{subject:str}/id/{id:str}"), **_READ, opt=access(Operation.READ))
async def get_schema(
    operations: InjectedOperations, request: Request[Any, Any, Any], subject: SubjectName, schema_id: SchemaId
) -> Response[Any]:
    # GET /schema-repo/{subject}/id/{id}
    """Return the text of a schema."""
    choose_media_type(request, TEXT)
    return _text_response(await operations.get_schema(decode_segment(subject), decode_segment(schema_id)), TEXT)


@get(_below_mounts("/{subject:str}/integral"), **_READ, opt=access(Operation.LIST))
async def is_integral(operations: InjectedOperations, subject: SubjectName) -> str:
    # GET /schema-repo/{subject}/integral
    """Return whether ids are numbers."""
    await operations.get_subject(decode_segment(subject))
    return "true" if operations.options.ids == SEQUENTIAL else "false"


@post(_below_mounts("/{subject:str}/schema"), **_WITH_SCHEMA, opt=access(Operation.READ))
async def find_id(operations: InjectedOperations, request: Request[Any, Any, Any], subject: SubjectName) -> str:
    # POST /schema-repo/{subject}/schema
    """Return the id of a schema by its text."""
    return await operations.find_id(decode_segment(subject), await read_text(request))


@put(_below_mounts("/{subject:str}/register"), **_WITH_SCHEMA, opt=access(Operation.REGISTER))
async def register_schema(operations: InjectedOperations, request: Request[Any, Any, Any], subject: SubjectName) -> str:
    # PUT /schema-repo/{subject}/register
    """Register a schema and return its id; a registered schema keeps its id."""
    return await operations.register_schema(decode_segment(subject), await read_text(request))


@put(
    [
        *_below_mounts("/{subject:str}/register_if_latest/{latest:str}"),
        *_below_mounts("/{subject:str}/register_if_latest"),
    ],
    **_WITH_SCHEMA,
    opt=access(Operation.REGISTER),
)
async def register_if_latest(
    operations: InjectedOperations, request: Request[Any, Any, Any], subject: SubjectName, latest: LatestId = ""
) -> str:
    # PUT /schema-repo/{subject}/register_if_latest/{latest}
    """Register a schema if the newest one has the expected id."""
    return await operations.register_if_latest(
        decode_segment(subject), await read_text(request), decode_segment(latest)
    )


def _text_response(body: bytes | str, media_type: str) -> Response[Any]:
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
    register_schema,
    register_if_latest,
]
