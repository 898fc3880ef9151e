"""AVRO-1124: the REST interface of the proposal, groups of schemas whose ids are opaque strings.

`groups` is a literal before the name of a group in POST only; below GET it is the name of a group like any other.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import MediaType, Request, Response, get, post
from litestar.params import PathParameter

from stele.apis.http.openapi import openapi_body
from stele.apis.http.paths import decode_segment
from stele.apis.schema_repo.bodies import FORM, read_form
from stele.apis.schema_repo.desk import AtDesk
from stele.apis.schema_repo.faults import ERRORS
from stele.apis.schema_repo.options import words_in
from stele.apis.schema_repo.renderings import lines
from stele.apis.schema_repo.translate import exact_words, words_of
from stele.core import queries
from stele.errors import InvalidRequest

Group = Annotated[str, PathParameter(description="name of a group")]
Id = Annotated[str, PathParameter(name="id", description="an id of the group, or `latest`")]

_READ: dict[str, Any] = {"media_type": MediaType.TEXT, "responses": ERRORS}
_WRITE: dict[str, Any] = {**_READ, "status_code": 200}

_ROOT = "/avro1124/schemas"
_LATEST = "latest"


class Posted(msgspec.Struct):
    """The form that registers a schema: its text, the group's model from now on, and whether to skip the check."""

    schema: str
    compatibility_model: str = ""
    force_override: bool = False


@get(_ROOT, **_READ)
async def list_groups(desk: AtDesk) -> str:
    # GET /avro1124/schemas
    """All groups, one per line."""
    return lines(await desk.names())


@get([f"{_ROOT}/{{group:str}}", f"{_ROOT}/groups"], **_READ)
async def list_ids(desk: AtDesk, group: Group = "groups") -> Response[str]:
    # GET /avro1124/schemas/{group}
    """The ids of a group in the order of registration, one per line; headers tell its compatibility model."""
    name = decode_segment(group)
    ids = await desk.ids(name)
    state, subject = await desk.subject(name)
    policy = queries.policy_for(state, subject.key)
    words = ",".join(words_of(policy)) or "none"
    headers = {"X-Compatibility-Model": words.encode("ascii", "backslashreplace").decode()}
    if (exact := exact_words(policy)) is not None:
        headers["X-Stele-Policy"] = exact
    return Response(lines(ids), headers=headers, media_type=MediaType.TEXT)


@get([f"{_ROOT}/{{group:str}}/{{id:str}}", f"{_ROOT}/groups/{{id:str}}"], **_READ)
async def get_schema(desk: AtDesk, schema_id: Id, group: Group = "groups") -> Response[bytes]:
    # GET /avro1124/schemas/{group}/{id}
    """The text of a schema; `latest` is the last one registered."""
    name = decode_segment(group)
    text = (await desk.latest(name))[1] if schema_id == _LATEST else await desk.schema(name, decode_segment(schema_id))
    return Response(text, media_type=MediaType.TEXT)


@post(
    [f"{_ROOT}/groups/{{group:str}}", f"{_ROOT}/{{group:str}}", f"{_ROOT}/groups"],
    operation_class=openapi_body(Posted, FORM),
    **_WRITE,
)
async def register(desk: AtDesk, request: Request[Any, Any, Any], group: Group = "groups") -> str:
    # POST /avro1124/schemas/groups/{group}
    """Register a schema, with its group where that is new; answers the id."""
    form = await read_form(request)
    if not form.get("schema", "").strip():
        raise InvalidRequest("the form has no field 'schema'")
    model = words_in(form.get("compatibility_model", ""))
    force = _flag(form.get("force_override", ""))
    return await desk.post(decode_segment(group), form["schema"].encode(), model or None, force=force)


def _flag(text: str) -> bool:
    match text.strip().lower():
        case "true":
            return True
        case "false" | "":
            return False
        case _:
            raise InvalidRequest(f"force_override is true or false, not {text!r}")


ROUTES = [list_groups, list_ids, get_schema, register]
