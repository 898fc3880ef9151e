"""AVRO-1124: groups of schemas whose ids are opaque strings.

In POST, `groups` before the name of a group is a literal. In GET it is a group like any other.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import MediaType, Request, Response, get, post
from litestar.params import PathParameter

from stele.apis.http.access import Place, access
from stele.apis.http.application import openapi_body
from stele.apis.http.requests import decode_segment
from stele.apis.schema_repo.errors import ERROR_RESPONSES
from stele.apis.schema_repo.operations import InjectedOperations
from stele.apis.schema_repo.options import split_words
from stele.apis.schema_repo.params import FORM, read_form
from stele.apis.schema_repo.translate import exact_words, format_lines, policy_words
from stele.core import queries
from stele.core.access import Operation
from stele.errors import InvalidRequest

Group = Annotated[str, PathParameter(description="name of a group")]
Id = Annotated[str, PathParameter(name="id", description="an id of the group, or `latest`")]

_READ: dict[str, Any] = {"media_type": MediaType.TEXT, "responses": ERROR_RESPONSES}
_WRITE: dict[str, Any] = {**_READ, "status_code": 200}

_ROOT = "/avro1124/schemas"
_LATEST = "latest"


class RegistrationForm(msgspec.Struct):
    """Form that registers a schema: text, new compatibility model of the group, and whether to skip the check."""

    schema: str
    compatibility_model: str = ""
    force_override: bool = False


@get(_ROOT, **_READ, opt=access(Operation.LIST, Place.LIST))
async def list_groups(operations: InjectedOperations) -> str:
    # GET /avro1124/schemas
    """Return all groups, one per line."""
    return format_lines(await operations.list_subjects())


@get([f"{_ROOT}/{{group:str}}", f"{_ROOT}/groups"], **_READ, opt=access(Operation.READ))
async def list_ids(operations: InjectedOperations, group: Group = "groups") -> Response[str]:
    # GET /avro1124/schemas/{group}
    """Return the ids of a group in order of registration, one per line; headers show its compatibility model."""
    name = decode_segment(group)
    ids = await operations.list_ids(name)
    state, subject = await operations.get_subject(name)
    policy = queries.policy_for(state, subject.key)
    words = ",".join(policy_words(policy)) or "none"
    headers = {"X-Compatibility-Model": words.encode("ascii", "backslashreplace").decode()}
    if (exact := exact_words(policy)) is not None:
        headers["X-Stele-Policy"] = exact
    return Response(format_lines(ids), headers=headers, media_type=MediaType.TEXT)


@get([f"{_ROOT}/{{group:str}}/{{id:str}}", f"{_ROOT}/groups/{{id:str}}"], **_READ, opt=access(Operation.READ))
async def get_schema(operations: InjectedOperations, schema_id: Id, group: Group = "groups") -> Response[bytes]:
    # GET /avro1124/schemas/{group}/{id}
    """Return the text of a schema; `latest` is the one registered last."""
    name = decode_segment(group)
    text = (
        (await operations.get_latest(name))[1]
        if schema_id == _LATEST
        else await operations.get_schema(name, decode_segment(schema_id))
    )
    return Response(text, media_type=MediaType.TEXT)


@post(
    [f"{_ROOT}/groups/{{group:str}}", f"{_ROOT}/{{group:str}}", f"{_ROOT}/groups"],
    operation_class=openapi_body(RegistrationForm, FORM),
    **_WRITE,
    opt=access(Operation.REGISTER),
)
async def register_schema(
    operations: InjectedOperations, request: Request[Any, Any, Any], group: Group = "groups"
) -> str:
    # POST /avro1124/schemas/groups/{group}
    """Register a schema and return its id; create the group if it does not exist."""
    form = await read_form(request)
    if not form.get("schema", "").strip():
        raise InvalidRequest("the form has no field 'schema'")
    model = split_words(form.get("compatibility_model", ""))
    force = _parse_flag(form.get("force_override", ""))
    return await operations.register_with_model(
        decode_segment(group), form["schema"].encode(), model or None, force=force
    )


def _parse_flag(text: str) -> bool:
    match text.strip().lower():
        case "true":
            return True
        case "false" | "":
            return False
        case _:
            raise InvalidRequest(f"force_override must be true or false, not {text!r}")


ROUTES = [list_groups, list_ids, get_schema, register_schema]
