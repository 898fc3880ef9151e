"""Errors of both dialects: a status and plain text.

The two 404 texts are those of the original. A refused schema is answered with 403 and the reasons, one per line,
because clients of schema-repo show that body to the user.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException
from litestar.openapi.datastructures import ResponseSpec

from stele import errors as err
from stele.apis.http.errors import error_headers, log_failure
from stele.core.findings import Finding
from stele.protocol.http_statuses import STATUS_PHRASES

NO_SUBJECT = "ERROR: This subject does not exist.\n"
NO_SCHEMA = "ERROR: This schema does not exist.\n"

_logger = structlog.get_logger("stele.schema-repo")

Wording = Callable[[Any], str]


def _plain_text(error: Exception) -> str:
    return f"ERROR: {error}\n"


def _incompatible_text(error: err.Incompatible) -> str:
    return _plain_text(error) + "".join(f"{_finding_line(finding)}\n" for finding in error.findings)


def _finding_line(finding: Finding) -> str:
    place = f" at {finding.path}" if finding.path else ""
    fix = f" ({finding.fix})" if finding.fix else ""
    return f"- {finding.rule}{place}: {finding.why}{fix}"


REPLIES: dict[type[Exception], tuple[int, Wording]] = {
    err.SubjectNotFound: (404, lambda error: NO_SUBJECT),
    err.NotFound: (404, lambda error: NO_SCHEMA),
    err.Incompatible: (403, _incompatible_text),
    err.Conflict: (409, _plain_text),
    err.TooLarge: (413, _plain_text),
    err.Invalid: (400, _plain_text),
    err.Unauthenticated: (401, _plain_text),
    err.Refused: (403, _plain_text),
    err.TooManyRequests: (429, _plain_text),
    err.Unavailable: (503, _plain_text),
    err.NotInstalled: (501, _plain_text),
    err.SteleError: (500, _plain_text),
}
"""Status and wording by error class."""

ERROR_RESPONSES = {
    get_status: ResponseSpec(str, description=why, generate_examples=False, media_type="text/plain")
    for get_status, why in (
        (400, "No schema, an unknown policy or validator, a reserved key"),
        (403, "A validator refuses the schema, or writes are not allowed"),
        (404, "No such subject, or no such schema in it"),
        (409, "Not the latest schema"),
        (413, "A limit is exceeded"),
        (429, "More requests than the server takes from one caller; try again after the seconds of Retry-After"),
        (503, "The store does not answer"),
    )
}


def describe_error(error: Exception) -> tuple[int, str]:
    """Return status and body for an error: those of its class or of its nearest ancestor in the table."""
    for cls in type(error).__mro__:
        if cls in REPLIES:
            get_status, wording = REPLIES[cls]
            return get_status, wording(error)
    if isinstance(error, HTTPException):
        phrase = STATUS_PHRASES[error.status_code]
        detail = error.detail if error.status_code in {406, 415} else f"HTTP {error.status_code} {phrase}"
        return error.status_code, f"ERROR: {detail}\n"
    return 500, "ERROR: internal error; the log of the server has the details\n"


def handle_error(request: Request[Any, Any, Any], error: Exception) -> Response[str]:
    """Answer an error: the exception handler of the application."""
    get_status, text = describe_error(error)
    if get_status >= 500:
        log_failure(_logger, request.scope["path"], error)
    return Response(text, status_code=get_status, media_type="text/plain", headers=error_headers(error))
