"""Errors of the dialect: `{"errorCode", "errorMessage"}`.

The HTTP status is the first three digits of the code. Codes that the specification lacks are a status with 00 or 01.
"""

from __future__ import annotations

from typing import Any

import msgspec
import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException
from litestar.openapi.datastructures import ResponseSpec

from stele import errors as err
from stele.apis.http.errors import classify_outage, error_headers, error_message, find_by_class, log_failure
from stele.apis.openschema.models import MEDIA_TYPE

_logger = structlog.get_logger("stele.openschema")


class OpenSchemaErrorBody(msgspec.Struct, frozen=True, rename="camel"):
    """Body of every error."""

    error_code: int
    error_message: str


CODES: dict[type[Exception], int] = {
    err.Unauthenticated: 40101,
    err.Refused: 40301,
    err.NotFound: 40401,
    err.VersionNotFound: 40402,
    err.Conflict: 40901,
    err.UnknownRuleset: 40901,  # schemas of that kind cannot be compared
    err.Invalid: 42201,
    err.TooManyRequests: 42901,
    err.InvalidVersion: 42202,
    err.SteleError: 50001,
    err.StoreTimeout: 50002,
    err.NotInstalled: 50101,
    err.Overloaded: 50301,
    err.StoreUnreadable: 50301,
    err.NewerLog: 50301,
}
"""Codes by error class."""

ERROR_RESPONSES = {
    status: ResponseSpec(OpenSchemaErrorBody, description=why, generate_examples=False, media_type=MEDIA_TYPE)
    for status, why in (
        (401, "40101: the request is not authenticated"),
        (403, "40301: the caller or the mode in force may not do this"),
        (404, "40401: no such subject or schema; 40402: no such version"),
        (405, "40500: nothing is done to that path with this method"),
        (406, "40600: the client takes no media type there is"),
        (409, "40901: incompatible, or others refer to it"),
        (422, "42201: the request or the schema is malformed; 42202: the version is"),
        (429, "42901: more requests than the server takes from one caller; try again after the seconds of Retry-After"),
        (500, "50001: the store failed; 50002: it did not answer in time"),
        (503, "50301: too much to do, or the store cannot be read; try again after the seconds of Retry-After"),
    )
}


def code_of(error: Exception) -> int:
    """Return the code of an error: that of its class or of its nearest ancestor in the table."""
    code = find_by_class(CODES, error)
    if code is not None:
        return code
    return error.status_code * 100 if isinstance(error, HTTPException) else CODES[err.SteleError]


def handle_error(request: Request[Any, Any, Any], error: Exception) -> Response[OpenSchemaErrorBody]:
    """Answer an error: the exception handler of the application."""
    error = classify_outage(request, error)
    code = code_of(error)
    if code >= 50000:
        log_failure(_logger, request.scope["path"], error)
    body = OpenSchemaErrorBody(code, error_message(error))
    return Response(body, status_code=code // 100, media_type=MEDIA_TYPE, headers=error_headers(error))
