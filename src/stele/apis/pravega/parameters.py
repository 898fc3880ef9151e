"""Paths and query parameters as endpoints declare them: how they read in code and in the OpenAPI document."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Annotated, Any

from litestar import Response
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter

from stele.apis.http.paths import decode_segment
from stele.apis.pravega.desk import Desk
from stele.apis.pravega.faults import ERRORS
from stele.core.model import MAX_INT32
from stele.errors import InvalidRequest, NotFound

_NUMBER = re.compile(r"-?[0-9]{1,10}\Z")
_INTEGER = {"type": "integer", "format": "int32"}
_MOST = 1000
"""Groups a page has at most, whatever was asked for."""

AtDesk = NamedDependency[Desk]

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
READ: Options = {"responses": ERRORS}
"""What endpoints that read have in common."""
ASK: Options = {**READ, "status_code": 200}
"""What endpoints have in common that read by POST, or change what is there."""
CREATE: Options = {**READ, "status_code": 201}
"""What endpoints that create have in common."""
DELETE: Options = {**READ, "status_code": 204}
"""What endpoints that delete have in common."""


def everywhere(path: str) -> list[str]:
    """A path below `/v1`, with the namespace as a parameter and as a part of it."""
    return [f"/v1{path}", f"/v1/namespace/{{ns:str}}{path}"]


def nothing(status: int) -> Response[bytes]:
    """An answer without a body."""
    return Response(b"", status_code=status, media_type="application/json")


def number_of(segment: str) -> int:
    """The number a path segment spells. Raises `NotFound`: nothing has any other name."""
    if not _NUMBER.match(segment) or not 0 <= int(segment) < MAX_INT32:
        raise NotFound(f"'{decode_segment(segment)}' is no number of anything")
    return int(segment)


def limit_of(text: str) -> int:
    """How many groups a page has. Raises `InvalidRequest`."""
    if not _NUMBER.match(text) or int(text) < 1:
        raise InvalidRequest(f"limit is a number from 1, not {text!r}")
    return min(int(text), _MOST)


def token_of(name: str) -> str:
    """The token of a page that ends with that group: where the next one begins."""
    return base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")


def name_in(token: str) -> str:
    """Inverse of `token_of`. Raises `InvalidRequest`."""
    try:
        return base64.b64decode(token + "=" * (-len(token) % 4), b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise InvalidRequest("the continuation token is not one of this registry") from None
