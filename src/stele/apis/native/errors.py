"""Errors of the native API: `{"error": {"kind", "message", …}}`, by the class of the error.

kind is the snake-case name of the error's class in `stele.errors`, stable for programs; message is for users. A
malformed schema has a position: line and column from 1, path, and what was expected. These members are null for other
errors. findings are present only for a check that exceeded the time limit.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException
from litestar.openapi.datastructures import ResponseSpec

from stele import errors as err
from stele.apis.http.errors import error_headers, find_by_class, log_failure
from stele.apis.http.requests import NotJson
from stele.core.findings import Finding
from stele.protocol.http_statuses import STATUS_PHRASES

_logger = structlog.get_logger("stele.native")

ERROR_TABLE: dict[type[Exception], int] = {
    err.NotFound: 404,
    err.Conflict: 409,
    err.PreconditionFailed: 412,
    err.Invalid: 422,
    NotJson: 400,
    err.TooLarge: 413,
    err.Refused: 403,
    err.TooManyRequests: 429,
    err.Unauthenticated: 401,
    err.Unavailable: 503,
    err.DataError: 422,
    err.NotInstalled: 501,
    err.SteleError: 500,
}
"""HTTP status by error class."""


class SchemaProblem(msgspec.Struct, frozen=True):
    """What is wrong, and the position in the schema that was sent; null if there is no position.

    findings are what a check found before it exceeded the time limit; no other error has them.
    """

    kind: str
    message: str
    line: int | None = None
    column: int | None = None
    path: str | None = None
    expected: str | None = None
    findings: tuple[Finding, ...] | msgspec.UnsetType = msgspec.UNSET


class NativeError(msgspec.Struct, frozen=True):
    """The body of every error."""

    error: SchemaProblem


ERRORS = {
    400: ResponseSpec(NativeError, description="The body is not JSON", generate_examples=False),
    413: ResponseSpec(NativeError, description="A limit is exceeded", generate_examples=False),
    422: ResponseSpec(
        NativeError, description="Not a schema, or an unknown format, ruleset or policy", generate_examples=False
    ),
}


def http_status(error: Exception) -> int:
    """Return the HTTP status of an error."""
    if isinstance(error, HTTPException):
        return error.status_code
    return find_by_class(ERROR_TABLE, error) or 500


def describe_error(error: Exception) -> SchemaProblem:
    """Return the body of an error."""
    if isinstance(error, err.MalformedSchema):
        return SchemaProblem(error_kind(error), error.why, error.line, error.column, error.path, error.expected)
    if isinstance(error, err.TimeLimitReached):
        return SchemaProblem(error_kind(error), str(error), findings=error.findings)
    if isinstance(error, err.SteleError):
        return SchemaProblem(error_kind(error), str(error))
    if isinstance(error, HTTPException):
        phrase = STATUS_PHRASES[error.status_code]
        return SchemaProblem(phrase.lower().replace(" ", "_"), f"HTTP {error.status_code} {phrase}")
    return SchemaProblem("internal_error", "internal error; the log of the server has the details")


def error_kind(error: err.SteleError) -> str:
    """Return the snake-case name of an error's class, or of its nearest ancestor in `stele.errors`."""
    known = next(cls for cls in type(error).__mro__ if cls.__module__ == err.__name__)
    return re.sub(r"(?<!^)(?=[A-Z])", "_", known.__name__).lower()


def handle_error(request: Request[Any, Any, Any], error: Exception) -> Response[NativeError]:
    """Return the response to an error: the exception handler of the application."""
    status = http_status(error)
    if status >= 500:
        log_failure(_logger, request.scope["path"], error)
    return Response(
        NativeError(describe_error(error)),
        status_code=status,
        media_type="application/json",
        headers=error_headers(error),
    )
