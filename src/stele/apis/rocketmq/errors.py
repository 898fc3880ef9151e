"""Errors of the dialect: `{"status", "message"}`.

`status` is the API's own number of five digits. The original also uses it as the HTTP status, which few clients accept.
Here the HTTP status is a valid one, and clients of the original read only the body. Errors without a number in the
original have the HTTP status followed by 01.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException
from litestar.openapi.datastructures import ResponseSpec

from stele import errors as err
from stele.apis.http.errors import classify_outage, error_headers, error_message, find_by_class, log_failure

_logger = structlog.get_logger("stele.rocketmq")


class SameSchema(err.Conflict):
    """An update is equal to a version that exists."""


class RocketmqErrorBody(msgspec.Struct, frozen=True):
    """Body of every error."""

    status: int
    message: str


class ErrorNumbers(NamedTuple):
    """HTTP status, and the API's own number of an error."""

    http_status: int
    status: int


NUMBERS: dict[type[Exception], ErrorNumbers] = {
    err.Unauthenticated: ErrorNumbers(401, 40101),
    err.Refused: ErrorNumbers(403, 40301),
    err.TooManyRequests: ErrorNumbers(429, 42901),
    err.AlreadyExists: ErrorNumbers(409, 40401),  # the original uses this number; its 40402 means the opposite
    err.NotFound: ErrorNumbers(404, 40402),
    err.Conflict: ErrorNumbers(409, 40901),
    err.FormatMismatch: ErrorNumbers(409, 40901),
    err.UnknownRuleset: ErrorNumbers(409, 40901),  # schemas of that type cannot be compared
    err.MalformedSchema: ErrorNumbers(422, 42201),
    err.Invalid: ErrorNumbers(400, 40001),
    err.Unavailable: ErrorNumbers(503, 50301),
    err.StoreError: ErrorNumbers(500, 50001),
    err.NewerLog: ErrorNumbers(503, 50301),
    err.NotInstalled: ErrorNumbers(501, 50101),
    err.SteleError: ErrorNumbers(500, 50001),
}
"""Numbers by error class."""

ERROR_RESPONSES = {
    status: ResponseSpec(RocketmqErrorBody, description=why, generate_examples=False)
    for status, why in (
        (400, "40001: a wrong value, or a limit is exceeded"),
        (401, "40101: the request is not authenticated"),
        (403, "40301: the caller or the mode in force may not do this"),
        (404, "40402: no such subject, schema, version or record"),
        (405, "40500: nothing is done to that path with this method"),
        (409, "40401: the schema exists; 40901: incompatible, or equal to a version there is"),
        (422, "42201: the text is not a valid schema of its type"),
        (429, "42901: more requests than the server takes from one caller; try again after the seconds of Retry-After"),
        (500, "50001: the store failed"),
        (503, "50301: too much to do, or the store cannot be read; try again after the seconds of Retry-After"),
    )
}


def numbers_of(error: Exception) -> ErrorNumbers:
    """Return the numbers of an error: those of its class or of its nearest ancestor in the table."""
    numbers = find_by_class(NUMBERS, error)
    if numbers is not None:
        return numbers
    if isinstance(error, HTTPException):
        return ErrorNumbers(error.status_code, error.status_code * 100)
    return NUMBERS[err.SteleError]


def handle_error(request: Request[Any, Any, Any], error: Exception) -> Response[RocketmqErrorBody]:
    """Answer an error: the exception handler of the application."""
    error = classify_outage(request, error)
    numbers = numbers_of(error)
    if numbers.http_status >= 500:
        log_failure(_logger, request.scope["path"], error)
    body = RocketmqErrorBody(numbers.status, error_message(error))
    return Response(body, status_code=numbers.http_status, media_type="application/json", headers=error_headers(error))
