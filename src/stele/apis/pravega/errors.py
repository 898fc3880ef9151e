"""Errors of the dialect: a status and a bare text."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, NamedTuple

import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException
from litestar.openapi.datastructures import ResponseSpec

from stele import errors as err
from stele.apis.http.errors import classify_outage, error_headers, find_by_class, log_failure
from stele.protocol.http_statuses import STATUS_PHRASES

_logger = structlog.get_logger("stele.pravega")

Wording = Callable[[Any], str]


class ErrorReply(NamedTuple):
    """Status and text of an error response."""

    status: int
    text: str


def _incompatible_text(error: err.Incompatible) -> str:
    lines = [f"{finding.path or '/'}: {finding.why}" for finding in error.findings]
    return "\n".join([str(error), *lines])


REPLIES: dict[type[Exception], tuple[int, Wording]] = {
    err.NotFound: (404, str),
    err.SubjectNotFound: (404, lambda error: f"Group '{error.subject}' not found."),
    err.CodecNotFound: (412, str),
    err.Conflict: (409, str),
    err.Incompatible: (409, _incompatible_text),
    err.Invalid: (400, str),
    err.FormatMismatch: (417, str),
    err.Refused: (403, str),
    err.TooManyRequests: (429, str),
    err.Unauthenticated: (401, str),
    err.Unavailable: (500, str),
    err.Overloaded: (503, str),
    err.StoreUnreadable: (503, str),
    err.NewerLog: (503, str),
    err.NotInstalled: (501, str),
    err.SteleError: (500, str),
}
"""Status and wording by error class."""

ERROR_RESPONSES = {
    status: ResponseSpec(str, description=why, generate_examples=False, media_type="text/plain")
    for status, why in (
        (400, "Not a schema, not of the type it says, or a wrong value"),
        (403, "The caller or the mode in force may not do this"),
        (404, "No such group, schema, version or encoding"),
        (409, "Exists already, incompatible, or another policy in force than expected"),
        (412, "The codec is not registered with the group"),
        (417, "The group takes another serialization format, which the body names"),
        (429, "More requests than the server takes from one caller; try again after the seconds of Retry-After"),
        (503, "Too much to do, or the store cannot be read; try again after the seconds of Retry-After"),
    )
}


def describe_error(error: Exception) -> ErrorReply:
    """Return status and text for an error: those of its class or of its nearest ancestor in the table."""
    row = find_by_class(REPLIES, error)
    if row is not None:
        status, wording = row
        return ErrorReply(status, wording(error))
    if isinstance(error, HTTPException):
        # The API has no status of its own for bodies that are too long.
        too_long = error.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        status = 400 if too_long else error.status_code
        return ErrorReply(status, "the request is too large" if too_long else STATUS_PHRASES[status])
    return ErrorReply(500, "internal error; the log of the server has the details")


def handle_error(request: Request[Any, Any, Any], error: Exception) -> Response[str]:
    """Answer an error: the exception handler of the application."""
    error = classify_outage(request, error)
    reply = describe_error(error)
    if reply.status >= 500:
        log_failure(_logger, request.scope["path"], error)
    return Response(reply.text, status_code=reply.status, media_type="text/plain", headers=error_headers(error))
