"""Errors of the dialect: `{"status", "message"}`, found along the class tree of the error.

status is the API's own number of five digits. The original uses it as the HTTP status, too, which few clients can read;
here that is a real one, and clients of the original look at the body only. Numbers the original has not are the HTTP
status with 01 behind it, as its own are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException
from litestar.openapi.datastructures import ResponseSpec

from stele import errors as err
from stele.apis.http.errors import allow_header, error_message

_logger = structlog.get_logger("stele.rocketmq")


class SameSchema(err.Conflict):
    """The schema is equal to a version there is: no update."""


class Error(msgspec.Struct, frozen=True):
    """The body of every error."""

    status: int
    message: str


class Fault(NamedTuple):
    """An HTTP status and the API's own number."""

    http: int
    status: int


FAULTS: dict[type[Exception], Fault] = {
    err.Unauthenticated: Fault(401, 40101),
    err.Refused: Fault(403, 40301),
    err.AlreadyExists: Fault(409, 40401),  # that is its number, and what 40402 means is the opposite
    err.NotFound: Fault(404, 40402),
    err.Conflict: Fault(409, 40901),
    err.FormatMismatch: Fault(409, 40901),
    err.UnknownRuleset: Fault(409, 40901),  # nobody can compare schemas of that type
    err.MalformedSchema: Fault(422, 42201),
    err.Invalid: Fault(400, 40001),
    err.Unavailable: Fault(503, 50301),
    err.StoreError: Fault(500, 50001),
    err.NotInstalled: Fault(501, 50101),
    err.SteleError: Fault(500, 50001),
}
"""By class."""

ERRORS = {
    status: ResponseSpec(Error, description=why, generate_examples=False)
    for status, why in (
        (400, "40001: a wrong value, or a limit is exceeded"),
        (401, "40101: nobody proved who is asking"),
        (403, "40301: the caller or the mode in force may not do this"),
        (404, "40402: no such subject, schema, version or record"),
        (405, "40500: nothing is done to that path with this method"),
        (405, "40500: nothing is done to that path with this method"),
        (409, "40401: the schema exists; 40901: incompatible, or equal to a version there is"),
        (422, "42201: the text is no schema of its type"),
        (500, "50001: the store failed"),
    )
}


def fault_of(error: Exception) -> Fault:
    """The numbers of an error: those of its class, or of its nearest ancestor in the table."""
    known = next((FAULTS[cls] for cls in type(error).__mro__ if cls in FAULTS), None)
    if known is not None:
        return known
    if isinstance(error, HTTPException):
        return Fault(error.status_code, error.status_code * 100)
    return FAULTS[err.SteleError]


def answer(request: Request[Any, Any, Any], error: Exception) -> Response[Error]:
    """The exception handler of the application."""
    fault = fault_of(error)
    if fault.http >= 500:
        _logger.error("failed", path=request.scope["path"], exc_info=error)
    body = Error(fault.status, error_message(error))
    return Response(body, status_code=fault.http, media_type="application/json", headers=allow_header(error))
