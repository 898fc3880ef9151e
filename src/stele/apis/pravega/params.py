"""Parameters of requests, declared for endpoints and the OpenAPI document; small parsers of them."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Annotated, Any

from litestar import Response
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter

from stele.apis.http.requests import decode_segment
from stele.apis.pravega.errors import ERROR_RESPONSES
from stele.apis.pravega.operations import Operations
from stele.core.model import MAX_INT32
from stele.errors import InvalidRequest, NotFound

_NUMBER = re.compile(r"-?[0-9]{1,10}\Z")
_INTEGER = {"type": "integer", "format": "int32"}
_MAX_PAGE = 1000
"""Groups on one page, at most."""

InjectedOperations = NamedDependency[Operations]

Group = Annotated[str, PathParameter(description="name of a group")]
SchemaId = Annotated[str, PathParameter(schema_extra=_INTEGER, description="id of a schema in its group, from 0")]
EncodingId = Annotated[str, PathParameter(schema_extra=_INTEGER, description="id of an encoding in its group, from 0")]
FormatName = Annotated[str, PathParameter(description="full type name of a serialization format")]
TypeName = Annotated[str, PathParameter(description="type of a schema")]
VersionNumber = Annotated[
    str, PathParameter(schema_extra=_INTEGER, description="version within the type and format, from 0")
]
OfType = Annotated[str | None, QueryParameter(name="type", description="only schemas of this type")]
Token = Annotated[str, QueryParameter(name="continuationToken", description="where the page before ended")]
Limit = Annotated[str, QueryParameter(schema_extra=_INTEGER, description="groups to answer, at most")]

Options = dict[str, Any]
READ: Options = {"responses": ERROR_RESPONSES}
"""Options of endpoints that read."""
STATUS_200: Options = {**READ, "status_code": 200}
"""Options of endpoints that read by POST or change what exists."""
STATUS_201: Options = {**READ, "status_code": 201}
"""Options of endpoints that create."""
DELETE: Options = {**READ, "status_code": 204}
"""Options of endpoints that delete."""


def namespaced_paths(path: str) -> list[str]:
    """Return a path below `/v1` in two forms: namespace as a query parameter, and as a part of the path."""
    return [f"/v1{path}", f"/v1/namespace/{{ns:str}}{path}"]


def empty_response(status: int) -> Response[bytes]:
    """Return a response without a body."""
    return Response(b"", status_code=status, media_type="application/json")


def parse_number(segment: str) -> int:
    """Return the number in a path segment. Raises `NotFound`, since nothing has any other name."""
    if not _NUMBER.match(segment) or not 0 <= int(segment) < MAX_INT32:
        raise NotFound(f"'{decode_segment(segment)}' is no number of anything")
    return int(segment)


def parse_limit(text: str) -> int:
    """Return the length of a page of groups. Raises `InvalidRequest`."""
    if not _NUMBER.match(text) or int(text) < 1:
        raise InvalidRequest(f"limit is a number from 1, not {text!r}")
    return min(int(text), _MAX_PAGE)


def encode_token(name: str) -> str:
    """Return the continuation token of a page whose last group has that name."""
    return base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")


def decode_token(token: str) -> str:
    """Return the name in a continuation token. Raises `InvalidRequest`."""
    try:
        return base64.b64decode(token + "=" * (-len(token) % 4), b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise InvalidRequest("the continuation token is not one of this registry") from None
